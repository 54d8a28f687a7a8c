#include "schedulers/bayes/encoding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedulers/model/discrete.h"

namespace jizi::tuner {
namespace {

constexpr int64_t kMaxListedValues = 64;     // More are searched by gradient and rounded.
constexpr int64_t kMaxParentValues = 1'000;  // Of a parameter that others depend on.
constexpr double kHalfRoot = 0.70710678118654752440;
constexpr double kSameUnit = 1e-9;

// The values as numbers, if all of them are and there are enough to speak of an order.
std::optional<std::vector<double>> Numbers(const CategoricalDomain& domain) {
  std::vector<double> numbers;
  for (const ParamValue& value : domain.values) {
    if (const auto* whole = std::get_if<int64_t>(&value)) {
      numbers.push_back(static_cast<double>(*whole));
    } else if (const auto* real = std::get_if<double>(&value)) {
      numbers.push_back(*real);
    } else {
      return std::nullopt;
    }
  }
  if (numbers.size() < 3) return std::nullopt;
  return numbers;
}

// By rank, so that [32, 64, 128] and [1e-4, 1e-3, 1e-2] come out evenly.
std::vector<double> Ranked(const std::vector<double>& numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
  });
  std::vector<double> positions(numbers.size());
  for (size_t rank = 0; rank < order.size(); ++rank) {
    positions[order[rank]] =
        (static_cast<double>(rank) + 0.5) / static_cast<double>(numbers.size());
  }
  return positions;
}

double UnitOf(const ParameterSpec& parameter, const ParamValue& value) {
  return ToUnit({{{parameter.name, parameter.domain, {}}}}, {{parameter.name, value}}).front();
}

// Where between two neighbouring values' middles FromUnit goes over from one to the other.
double EndOf(const ParameterSpec& parameter, double low, double high) {
  const Space alone = {{{parameter.name, parameter.domain, {}}}};
  const Params first = FromUnit(alone, {&low, 1});
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    (FromUnit(alone, {&middle, 1}) == first ? low : high) = middle;
  }
}

}  // namespace

Encoding::Encoding(const Space& space) : space_(space) {
  std::vector<bool> is_parent(space.parameters.size(), false);
  const auto place_of = [&](const std::string& name) {
    const auto found =
        std::find_if(space.parameters.begin(), space.parameters.end(),
                     [&](const ParameterSpec& parameter) { return parameter.name == name; });
    return static_cast<size_t>(found - space.parameters.begin());
  };
  requirements_.resize(space.parameters.size());
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    for (const Condition& condition : space.parameters[i].when) {
      Requirement requirement{place_of(condition.parent), {}};
      const ParameterSpec& parent = space.parameters[requirement.parent];
      for (const ParamValue& value : condition.any_of) {
        if (CheckValue(parent, value).ok()) requirement.units.push_back(UnitOf(parent, value));
      }
      is_parent[requirement.parent] = true;
      requirements_[i].push_back(std::move(requirement));
      conditional_ = true;
    }
  }
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    AddCoordinate(space.parameters[i], is_parent[i]);
  }
  presence_column_.assign(coordinates_.size(), -1);
  if (!conditional_) return;
  for (size_t i = 0; i < coordinates_.size(); ++i) {
    if (requirements_[i].empty()) continue;
    presence_column_[i] = static_cast<int>(feature_of_column_.size());
    feature_of_column_.push_back(features_);
  }
  ++features_;
}

void Encoding::AddColumns(Coordinate& coordinate, int columns) {
  coordinate.column = static_cast<int>(feature_of_column_.size());
  coordinate.columns = columns;
  feature_of_column_.insert(feature_of_column_.end(), static_cast<size_t>(columns), features_);
  ++features_;
}

void Encoding::AddCoordinate(const ParameterSpec& parameter, bool is_parent) {
  Coordinate coordinate;
  const auto discrete = DiscreteDomain::Of(parameter.domain);
  const auto* categorical = std::get_if<CategoricalDomain>(&parameter.domain);
  if (discrete && discrete->count() <= 1) {
    coordinates_.push_back(std::move(coordinate));
    return;
  }
  const int64_t most = is_parent ? kMaxParentValues : kMaxListedValues;
  if (categorical == nullptr && (!discrete || discrete->count() > most)) {
    coordinate.kind = Kind::kSmooth;
    const auto& numeric = std::get<NumericDomain>(parameter.domain);
    coordinate.stepped = numeric.quantum > 0;
    AddColumns(coordinate, 1);
    smooth_ = true;
    coordinates_.push_back(std::move(coordinate));
    return;
  }
  coordinate.kind = Kind::kListed;
  listed_ = true;
  for (int64_t level = 0; level < discrete->count(); ++level) {
    coordinate.units.push_back(UnitOf(parameter, discrete->At(level)));
  }
  // A scale that runs from the largest value down lists its units the other way round.
  std::sort(coordinate.units.begin(), coordinate.units.end());
  for (size_t level = 0; level + 1 < coordinate.units.size(); ++level) {
    coordinate.ends.push_back(
        EndOf(parameter, coordinate.units[level], coordinate.units[level + 1]));
  }
  coordinate.ends.push_back(1);
  if (categorical == nullptr) {
    coordinate.positions = coordinate.units;
    AddColumns(coordinate, 1);
  } else if (const auto numbers = Numbers(*categorical)) {
    coordinate.positions = Ranked(*numbers);
    AddColumns(coordinate, 1);
  } else {
    coordinate.ordered = false;
    AddColumns(coordinate, static_cast<int>(coordinate.units.size()));
  }
  coordinates_.push_back(std::move(coordinate));
}

size_t Encoding::LevelOf(size_t coordinate, double unit) const {
  const std::vector<double>& ends = coordinates_[coordinate].ends;
  const auto above = std::upper_bound(ends.begin(), ends.end(), unit);
  return std::min(static_cast<size_t>(above - ends.begin()), ends.size() - 1);
}

bool Encoding::IsThere(size_t coordinate, const Point& point,
                       const std::vector<bool>& there) const {
  for (const Requirement& requirement : requirements_[coordinate]) {
    if (!there[requirement.parent]) return false;
    const Coordinate& parent = coordinates_[requirement.parent];
    if (parent.kind == Kind::kFixed) {
      if (requirement.units.empty()) return false;
      continue;
    }
    const double unit = point[static_cast<Eigen::Index>(requirement.parent)];
    const double at =
        parent.kind == Kind::kListed ? parent.units[LevelOf(requirement.parent, unit)] : unit;
    const bool holds = std::any_of(requirement.units.begin(), requirement.units.end(),
                                   [at](double u) { return std::abs(u - at) <= kSameUnit; });
    if (!holds) return false;
  }
  return true;
}

std::vector<bool> Encoding::There(const Point& point) const {
  std::vector<bool> there(coordinates_.size(), true);
  if (!conditional_) return there;
  for (size_t i = 0; i < coordinates_.size(); ++i) there[i] = IsThere(i, point, there);
  return there;
}

void Encoding::Settle(Point& point) const {
  const std::vector<bool> there = There(point);
  for (size_t i = 0; i < coordinates_.size(); ++i) {
    double& unit = point[static_cast<Eigen::Index>(i)];
    if (!there[i] || coordinates_[i].kind == Kind::kFixed) {
      unit = 0.5;
    } else if (coordinates_[i].kind == Kind::kListed) {
      unit = coordinates_[i].units[LevelOf(i, unit)];
    }
  }
}

Params Encoding::ToParams(const Point& point) const {
  return FromUnit(space_, {point.data(), static_cast<size_t>(point.size())});
}

Point Encoding::ToPoint(const Params& params) const {
  const std::vector<double> unit = ToUnit(space_, params);
  return Eigen::Map<const Eigen::VectorXd>(unit.data(), static_cast<Eigen::Index>(unit.size()));
}

Point Encoding::Canonical(const Point& point) const {
  Point settled = point;
  Settle(settled);
  return ToPoint(ToParams(settled));
}

void Encoding::Features(const Point& point, Eigen::Ref<Eigen::RowVectorXd> row) const {
  row.setZero();
  const std::vector<bool> there = There(point);
  for (size_t i = 0; i < coordinates_.size(); ++i) {
    const Coordinate& coordinate = coordinates_[i];
    const double unit = point[static_cast<Eigen::Index>(i)];
    if (presence_column_[i] >= 0 && there[i]) row[presence_column_[i]] = 1;
    if (coordinate.kind == Kind::kFixed) continue;
    if (!there[i]) {
      if (coordinate.ordered) row[coordinate.column] = 0.5;
    } else if (coordinate.kind == Kind::kSmooth) {
      row[coordinate.column] = unit;
    } else if (coordinate.ordered) {
      row[coordinate.column] = coordinate.positions[LevelOf(i, unit)];
    } else {
      row[coordinate.column + static_cast<int>(LevelOf(i, unit))] = kHalfRoot;
    }
  }
}

}  // namespace jizi::tuner
