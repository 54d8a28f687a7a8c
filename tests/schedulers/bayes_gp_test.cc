#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "schedulers/bayes/gaussian_process.h"
#include "schedulers/bayes/minimise.h"
#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

// Two columns share a feature, as those of a category do.
GpData RandomData(Rng& rng, Index n) {
  GpData data;
  data.x.resize(n, 4);
  data.y.resize(n);
  for (Index i = 0; i < n; ++i) {
    for (Index c = 0; c < 4; ++c) data.x(i, c) = rng.Uniform();
    data.y[i] = std::sin(5 * data.x(i, 0)) + data.x(i, 2) + 0.1 * rng.Normal();
  }
  data.feature_of_column = {0, 1, 1, 2};
  data.features = 3;
  return data;
}

double Kernel(const RowVectorXd& a, const RowVectorXd& b, const Hyperparameters& hyper,
              const std::vector<int>& feature_of_column) {
  double squared = 0;
  for (Index c = 0; c < a.size(); ++c) {
    const double scale = std::exp(hyper.log_lengthscale[feature_of_column[static_cast<size_t>(c)]]);
    squared += (a[c] - b[c]) * (a[c] - b[c]) / scale / scale;
  }
  const double r = std::sqrt(5 * squared);
  return std::exp(hyper.log_signal) * (1 + r + r * r / 3) * std::exp(-r);
}

Hyperparameters SomeHyperparameters() {
  Hyperparameters hyper;
  hyper.log_lengthscale = Eigen::Vector3d(-1, 0.2, 0.7);
  hyper.log_signal = 0.3;
  hyper.log_noise = -3;
  return hyper;
}

TEST(NegativeLogDensity, ItsGradientIsThatOfFiniteDifferences) {
  Rng rng({TestSeed(), 41});
  const GpData data = RandomData(rng, 17);
  const GpPriors priors;
  for (int draw = 0; draw < 5; ++draw) {
    VectorXd logs(5);
    for (double& log : logs) log = rng.Normal() - 0.5;
    VectorXd gradient, unused;
    NegativeLogDensity(data, priors, logs, gradient);
    for (Index i = 0; i < logs.size(); ++i) {
      const double h = 1e-5;
      VectorXd up = logs, down = logs;
      up[i] += h;
      down[i] -= h;
      const double slope = (NegativeLogDensity(data, priors, up, unused) -
                            NegativeLogDensity(data, priors, down, unused)) /
                           (2 * h);
      EXPECT_NEAR(gradient[i], slope, 1e-6 * (1 + std::abs(slope))) << i;
    }
  }
}

TEST(NegativeLogDensity, IsThatOfTheTextbook) {
  Rng rng({TestSeed(), 42});
  const GpData data = RandomData(rng, 9);
  const Hyperparameters hyper = SomeHyperparameters();
  MatrixXd k(9, 9);
  for (Index i = 0; i < 9; ++i) {
    for (Index j = 0; j < 9; ++j) {
      k(i, j) = Kernel(data.x.row(i), data.x.row(j), hyper, data.feature_of_column);
      if (i == j) k(i, j) += std::exp(hyper.log_noise) + Posterior::kJitter * std::exp(0.3);
    }
  }
  double expected = 0.5 * data.y.dot(k.inverse() * data.y) + 0.5 * std::log(k.determinant());
  GpPriors priors;
  const auto add = [&](double x, double at, double spread) {
    expected += 0.5 * std::pow((x - at) / spread, 2);
  };
  for (const double l : hyper.log_lengthscale) {
    add(l, priors.lengthscale_location + 0.5 * std::log(3.0), priors.lengthscale_spread);
  }
  add(hyper.log_signal, priors.signal_location, priors.signal_spread);
  add(hyper.log_noise, priors.noise_location, priors.noise_spread);
  VectorXd logs(5), gradient;
  logs << hyper.log_lengthscale, hyper.log_signal, hyper.log_noise;
  EXPECT_NEAR(NegativeLogDensity(data, priors, logs, gradient), expected, 1e-9);
}

TEST(Posterior, MeanAndVarianceAreThoseOfTheTextbook) {
  Rng rng({TestSeed(), 43});
  const GpData data = RandomData(rng, 12);
  const Hyperparameters hyper = SomeHyperparameters();
  const Posterior posterior(data.x, hyper, data.feature_of_column);
  const GpData queries = RandomData(rng, 5);
  MatrixXd k(12, 12), cross(12, 5);
  for (Index i = 0; i < 12; ++i) {
    for (Index j = 0; j < 12; ++j) {
      k(i, j) = Kernel(data.x.row(i), data.x.row(j), hyper, data.feature_of_column) +
                (i == j ? std::exp(hyper.log_noise) : 0.0);
    }
    for (Index j = 0; j < 5; ++j) {
      cross(i, j) = Kernel(data.x.row(i), queries.x.row(j), hyper, data.feature_of_column);
    }
  }
  const MatrixXd covariance = posterior.Covariance(queries.x);
  const VectorXd mean = covariance.transpose() * posterior.Weights(posterior.Whiten(data.y)).col(0);
  const VectorXd variance = posterior.Variances(covariance);
  for (Index j = 0; j < 5; ++j) {
    EXPECT_NEAR(mean[j], cross.col(j).dot(k.inverse() * data.y), 1e-6);
    const double expected =
        std::exp(hyper.log_signal) - cross.col(j).dot(k.inverse() * cross.col(j));
    EXPECT_NEAR(variance[j], expected, 1e-6);
    const Posterior::Local local = posterior.At(queries.x.row(j));
    EXPECT_NEAR(local.variance, expected, 1e-6);
    EXPECT_LT((local.covariance - covariance.col(j)).norm(), 1e-12);
    EXPECT_LT((local.solved - k.inverse() * cross.col(j)).norm(), 1e-5);
    for (Index c = 0; c < 4; ++c) {
      RowVectorXd up = queries.x.row(j), down = up;
      up[c] += 1e-6;
      down[c] -= 1e-6;
      const VectorXd slope = (posterior.Covariance(up) - posterior.Covariance(down)).col(0) / 2e-6;
      EXPECT_LT((local.slopes.col(c) - slope).norm(), 1e-7);
    }
  }
}

TEST(Posterior, RowsThatWereAppendedAreToTheLastBitThoseAppendedAnew) {
  Rng rng({TestSeed(), 44});
  const GpData data = RandomData(rng, 40);
  const Hyperparameters hyper = SomeHyperparameters();
  Posterior grown(data.x.topRows(10), hyper, data.feature_of_column);
  for (Index i = 10; i < 40; ++i) {
    if (i % 3 == 0) {  // Pending rows that come and go.
      grown.Append(data.x.row(39 - i));
      grown.Truncate(i);
    }
    grown.Append(data.x.row(i));
    Posterior anew(data.x.topRows(10), hyper, data.feature_of_column);
    for (Index j = 10; j <= i; ++j) anew.Append(data.x.row(j));
    EXPECT_EQ(grown.Whiten(data.y.head(i + 1)), anew.Whiten(data.y.head(i + 1)));
    EXPECT_EQ(grown.Covariance(data.x), anew.Covariance(data.x));
  }
  const Posterior whole(data.x, hyper, data.feature_of_column);
  EXPECT_LT((whole.Whiten(data.y) - grown.Whiten(data.y)).norm(), 1e-9);
}

TEST(Posterior, RowsThatRepeatWithoutNoiseDoNotBreakIt) {
  MatrixXd x = MatrixXd::Constant(30, 2, 0.3);
  x(29, 1) = 0.4;
  Hyperparameters hyper;
  hyper.log_lengthscale = Eigen::Vector2d(6, 6);
  hyper.log_noise = -80;
  Posterior posterior(x, hyper, {0, 1});
  posterior.Append(x.row(3));
  const VectorXd variance = posterior.Variances(posterior.Covariance(x));
  EXPECT_TRUE(variance.allFinite());
  EXPECT_GT(variance.minCoeff(), 0);
}

TEST(FitHyperparameters, FindsWhichFeaturesMatter) {
  Rng rng({TestSeed(), 45});
  GpData data = RandomData(rng, 60);
  for (Index i = 0; i < 60; ++i) data.y[i] = std::sin(6 * data.x(i, 0)) * 1.4;
  const GpPriors priors;
  const auto hyper = FitHyperparameters(data, priors, {DefaultHyperparameters(priors, 3)}, 60);
  EXPECT_LT(hyper.log_lengthscale[0] + 1, hyper.log_lengthscale[1]);
  EXPECT_LT(hyper.log_lengthscale[0] + 1, hyper.log_lengthscale[2]);
  EXPECT_LT(hyper.log_noise, -4);
}

TEST(FitHyperparameters, AConstantAndAPointAreFitted) {
  const GpPriors priors;
  GpData data;
  data.x = MatrixXd::Constant(1, 1, 0.5);
  data.y = VectorXd::Zero(1);
  data.feature_of_column = {0};
  data.features = 1;
  for (const Index n : {Index{1}, Index{20}}) {
    data.x = MatrixXd::Constant(n, 1, 0.5);
    data.y = VectorXd::Zero(n);
    const auto hyper = FitHyperparameters(data, priors, {DefaultHyperparameters(priors, 1)}, 60);
    EXPECT_TRUE(hyper.log_lengthscale.allFinite());
    EXPECT_TRUE(std::isfinite(hyper.log_signal) && std::isfinite(hyper.log_noise));
  }
}

TEST(Minimise, FindsTheMinimumOfRosenbrockAndStaysInTheBox) {
  const Smooth rosenbrock = [](const VectorXd& x, VectorXd& gradient) {
    const double a = 1 - x[0], b = x[1] - x[0] * x[0];
    gradient[0] = -2 * a - 400 * x[0] * b;
    gradient[1] = 200 * b;
    return a * a + 100 * b * b;
  };
  MinimiseOptions options;
  options.max_evaluations = 300;
  options.value_tolerance = 0;
  const VectorXd start = Eigen::Vector2d(-1.2, 1);
  const Box wide{VectorXd::Constant(2, -5), VectorXd::Constant(2, 5)};
  const Minimum free = Minimise(rosenbrock, start, wide, options);
  EXPECT_NEAR(free.x[0], 1, 1e-3);
  EXPECT_NEAR(free.x[1], 1, 1e-3);
  // With x0 at most 0.5 the best is (0.5, 0.25).
  const Box narrow{VectorXd::Constant(2, -5), Eigen::Vector2d(0.5, 5)};
  const Minimum held = Minimise(rosenbrock, start, narrow, options);
  EXPECT_NEAR(held.x[0], 0.5, 1e-6);
  EXPECT_NEAR(held.x[1], 0.25, 1e-4);
}

TEST(Minimise, AFunctionThatIsNotFiniteThereEndsWhereItBegan) {
  const Smooth broken = [](const VectorXd&, VectorXd& gradient) {
    gradient.setZero();
    return std::nan("");
  };
  const Box box{VectorXd::Zero(1), VectorXd::Ones(1)};
  EXPECT_EQ(Minimise(broken, VectorXd::Constant(1, 0.5), box, {}).x[0], 0.5);
}

}  // namespace
}  // namespace jizi::tuner
