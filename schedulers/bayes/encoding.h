#pragma once
// encoding.h - a search space as the model sees it: points of the unit cube, and their features.
// Shapes: a point is p coordinates in [0, 1), one per parameter, as FromUnit (model/space.h) takes
// them; its features are D columns, each of one of `features()` kinds that share a lengthscale.
// - A number is one column: its coordinate, so that log scales and distributions are honoured. The
//   coordinate of a stepped number is the middle of what rounds to it, so rounding happens before
//   the kernel (Garrido-Merchan & Hernandez-Lobato 2020). A list of numbers counts as such.
// - A category of k values is k columns, 1/sqrt(2) in that of the value: two different values are
//   at a squared distance of 1.
// - A parameter that is not there has the number 0.5, or no category; all these absences together
//   are one more feature, the squared distance is the number of parameters there in one alone.
// Fails: never; the space must be valid.   Threads: immutable.   Cost: O(p + D) a point.

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "schedulers/model/space.h"

namespace jizi::tuner {

using Point = Eigen::VectorXd;               // p coordinates.
using Rows = Eigen::Matrix<double, -1, -1>;  // n x D, a row per point.

class Encoding {
 public:
  enum class Kind {
    kFixed,   // One value; the coordinate means nothing.
    kSmooth,  // A number that a gradient can move; a stepped one with many values is rounded after.
    kListed,  // Few values: `units` has the coordinate of each.
  };
  struct Coordinate {
    Kind kind = Kind::kFixed;
    bool stepped = false;           // Of kSmooth: rounded.
    bool ordered = true;            // Neighbours are alike: a number.
    std::vector<double> units;      // Of kListed, ascending.
    std::vector<double> ends;       // Of kListed: where the part of the axis of each value ends.
    std::vector<double> positions;  // Of kListed and ordered: the feature of each value.
    int column = 0;                 // Its first.
    int columns = 0;
  };

  explicit Encoding(const Space& space);

  const Space& space() const { return space_; }
  const std::vector<Coordinate>& coordinates() const { return coordinates_; }
  int features() const { return features_; }
  const std::vector<int>& feature_of_column() const { return feature_of_column_; }
  bool smooth() const { return smooth_; }  // Some coordinate is kSmooth.
  bool listed() const { return listed_; }

  // Listed coordinates moved to the middle of their value's part, those of absent parameters to
  // 0.5.
  void Settle(Point& point) const;
  // The same and stepped numbers rounded: what ToParams and back would give.
  Point Canonical(const Point& point) const;
  Params ToParams(const Point& point) const;
  Point ToPoint(const Params& params) const;
  // Which of a listed coordinate's values a unit stands for.
  size_t LevelOf(size_t coordinate, double unit) const;
  // Of a settled point.
  void Features(const Point& point, Eigen::Ref<Eigen::RowVectorXd> row) const;

 private:
  struct Requirement {
    size_t parent = 0;
    std::vector<double> units;  // Of the values that satisfy it.
  };

  bool IsThere(size_t coordinate, const Point& point, const std::vector<bool>& there) const;
  std::vector<bool> There(const Point& point) const;
  void AddCoordinate(const ParameterSpec& parameter, bool is_parent);
  void AddColumns(Coordinate& coordinate, int columns);

  Space space_;
  std::vector<Coordinate> coordinates_;
  std::vector<std::vector<Requirement>> requirements_;
  std::vector<int> presence_column_;  // -1: always there.
  std::vector<int> feature_of_column_;
  int features_ = 0;
  bool smooth_ = false;
  bool listed_ = false;
  bool conditional_ = false;
};

}  // namespace jizi::tuner
