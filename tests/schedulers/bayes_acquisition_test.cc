#include <gtest/gtest.h>

#include <cmath>

#include "schedulers/bayes/acquisition.h"
#include "schedulers/bayes/output.h"
#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

// z, log h(z) and its slope, log of the normal distribution function: to 60 digits and more, by
// the definition, and below -30 by the continued fraction of Mills' ratio with 4,000 terms.
struct Exact {
  double z, improvement, slope, probability;
};
constexpr Exact kExact[] = {
    {-1e6, -500000000028.54996, 1000000.000002, -500000000014.734449},
    {-1000, -500014.734452091158, 1000.00199999400004, -500007.826694812184},
    {-40, -808.29856835661996, 40.0499066576485182, -804.608442013753788},
    {-12, -77.9091005450073483, 12.1633525715857398, -75.4106730015687959},
    {-5.5, -19.5430714528241054, 5.83395466272300476, -17.7793763526252605},
    {-5, -16.7443011626609901, 5.36181624128808853, -15.0649983939887257},
    {-4.5, -14.1804883818683403, 4.89428719389997134, -12.5924197357130787},
    {-1, -2.48512102571264134, 1.90427123332969182, -1.84102164500926351},
    {-0.25, -1.25055895533522244, 1.40143567108668132, -0.913061764811135055},
    {0, -0.918938533204672742, 1.25331413731550025, -0.693147180559945309},
    {0.5, -0.359827683745063819, 0.99092271800410996, -0.368946415288656393},
    {3, 1.09873966532770777, 0.332840968451795236, -0.0013508099647481938},
    {9, 2.19722457733621938, 0.111111111111111111, -1.12858840595384065e-19},
    {40, 3.6888794541139363, 0.025, 0.0},
};

TEST(LogExpectedImprovement, IsThatOfArbitraryPrecision) {
  for (const Exact& exact : kExact) {
    const LogValue got = LogExpectedImprovement(exact.z);
    EXPECT_NEAR(got.value, exact.improvement, 2e-13 * (1 + std::abs(exact.improvement))) << exact.z;
    EXPECT_NEAR(got.slope, exact.slope, 1e-12 * exact.slope) << exact.z;
    const LogValue probability = LogNormalProbability(exact.z);
    EXPECT_NEAR(probability.value, exact.probability, 2e-13 * (1 + std::abs(exact.probability)))
        << exact.z;
  }
}

TEST(LogNormalProbability, ItsSlopeIsThatOfFiniteDifferences) {
  for (const double z : {-30.0, -5.001, -4.999, -1.0, 0.0, 2.0}) {
    const double slope =
        (LogNormalProbability(z + 1e-6).value - LogNormalProbability(z - 1e-6).value) / 2e-6;
    EXPECT_NEAR(LogNormalProbability(z).slope, slope, 1e-6 * (1 + std::abs(slope))) << z;
  }
}

struct Fitted {
  Posterior posterior;
  VectorXd labels;
};

Fitted Example(Rng& rng, Index n, Index pending) {
  MatrixXd x(n + pending, 2);
  VectorXd y(n);
  for (Index i = 0; i < n + pending; ++i) {
    for (Index c = 0; c < 2; ++c) x(i, c) = rng.Uniform();
    if (i < n) y[i] = std::sin(4 * x(i, 0)) - x(i, 1);
  }
  Hyperparameters hyper;
  hyper.log_lengthscale = Eigen::Vector2d(-0.7, 0.1);
  hyper.log_noise = -5;
  Fitted fitted{Posterior(x.topRows(n), hyper, {0, 1}), y};
  for (Index i = n; i < n + pending; ++i) fitted.posterior.Append(x.row(i));
  return fitted;
}

TEST(Acquisition, ItsGradientIsThatOfFiniteDifferencesAndItsValueThatOfTheBatch) {
  Rng rng({TestSeed(), 51});
  for (const Index pending : {0, 3}) {
    const Fitted fitted = Example(rng, 15, pending);
    Acquisition acquisition(fitted.posterior, fitted.labels, 0, 7);
    Posterior feasible = Example(rng, 15, 0).posterior;
    const VectorXd sides = fitted.labels.cwiseSign();
    acquisition.SetFeasibility(feasible, sides, -0.5);
    for (int draw = 0; draw < 10; ++draw) {
      RowVectorXd query(2), gradient, unused;
      query << rng.Uniform(), rng.Uniform();
      const double value = acquisition.ValueAndGradient(query, gradient);
      EXPECT_NEAR(value, acquisition.Values(query).value[0], 1e-8 * (1 + std::abs(value)));
      for (Index c = 0; c < 2; ++c) {
        RowVectorXd up = query, down = query;
        up[c] += 1e-6;
        down[c] -= 1e-6;
        const double slope = (acquisition.ValueAndGradient(up, unused) -
                              acquisition.ValueAndGradient(down, unused)) /
                             2e-6;
        EXPECT_NEAR(gradient[c], slope, 1e-4 * (1 + std::abs(slope)));
      }
    }
  }
}

TEST(Acquisition, APendingPointPromisesLittleMore) {
  Rng rng({TestSeed(), 52});
  Fitted fitted = Example(rng, 10, 0);
  const RowVectorXd query = RowVectorXd::Constant(2, 0.123);
  const double before = Acquisition(fitted.posterior, fitted.labels, 0, 7).Values(query).value[0];
  fitted.posterior.Append(query);
  const double after = Acquisition(fitted.posterior, fitted.labels, 0, 7).Values(query).value[0];
  EXPECT_LT(after, before - 0.5);
}

TEST(Acquisition, ASilentRowPromisesLittleAndChangesNoMean) {
  Rng rng({TestSeed(), 53});
  Fitted fitted = Example(rng, 10, 0);
  const RowVectorXd query = RowVectorXd::Constant(2, 0.123);
  const Promise before = Acquisition(fitted.posterior, fitted.labels, 0, 7).Values(query);
  fitted.posterior.Append(query);
  const Acquisition silent(fitted.posterior, fitted.labels, 1, 7);
  const Promise after = silent.Values(query);
  EXPECT_NEAR(after.mean[0], before.mean[0], 1e-9);
  EXPECT_LT(after.variance[0], 0.5 * before.variance[0]);
  const RowVectorXd far = RowVectorXd::Constant(2, 0.9);
  EXPECT_NEAR(silent.incumbent(), fitted.labels.maxCoeff(), 0.1);
  EXPECT_TRUE(std::isfinite(silent.Values(far).value[0]));
}

std::vector<LearntRow> RowsOf(const std::vector<double>& values) {
  std::vector<LearntRow> rows;
  for (const double value : values) {
    rows.push_back({static_cast<TrialId>(rows.size()) + 1, true, false, value});
  }
  return rows;
}

constexpr Warp kWarps[] = {Warp::kPower, Warp::kHalfRank, Warp::kStandard};

TEST(Labels, KeepTheOrderAndAreStandardised) {
  for (const Warp warp : kWarps) {
    const std::vector<double> values = {3, -1e5, 2, 7, 7.5, -2, 0, 1e-3, -40};
    const VectorXd labels = Labels(RowsOf(values), warp);
    EXPECT_NEAR(labels.mean(), 0, 1e-9);
    EXPECT_NEAR(labels.squaredNorm() / 9, 1, 1e-9);
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j < values.size(); ++j) {
        if (values[i] < values[j]) {
          EXPECT_LT(labels[static_cast<Index>(i)], labels[static_cast<Index>(j)]);
        }
      }
    }
  }
}

TEST(Labels, RangesFromTinyToHugeComeOutTheSame) {
  for (const Warp warp : kWarps) {
    const VectorXd one = Labels(RowsOf({1, 2, 5, 3}), warp);
    for (const double scale : {1e-300, 1e-12, 1e12, 3e307}) {
      const VectorXd scaled = Labels(RowsOf({scale, 2 * scale, 5 * scale, 3 * scale}), warp);
      EXPECT_LT((one - scaled).norm(), 1e-9) << scale;
    }
    EXPECT_TRUE(Labels(RowsOf({-1.7e308, 1.7e308, 0}), warp).allFinite());
  }
}

TEST(Labels, ConstantsTiesAndOneAreFinite) {
  for (const Warp warp : kWarps) {
    EXPECT_EQ(Labels(RowsOf({4}), warp), VectorXd::Zero(1));
    EXPECT_EQ(Labels(RowsOf({4, 4, 4}), warp), VectorXd::Zero(3));
    EXPECT_TRUE(Labels(RowsOf({4, 4, 5, 5}), warp).allFinite());
    EXPECT_EQ(Labels({}, warp).size(), 0);
  }
}

}  // namespace
}  // namespace jizi::tuner
