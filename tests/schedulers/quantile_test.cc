#include "schedulers/model/quantile.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

// Reference values from arbitrary-precision arithmetic (60 digits), of the double written here.
TEST(Quantile, NormalHasDoubleAccuracyInBodyAndTails) {
  struct Row {
    double p, x;
  };
  for (const Row& row : {Row{5.551115123125783e-17, -8.2923610758135955382},
                         {1e-12, -7.0344838253011319326},
                         {1e-05, -4.2648907939228246102},
                         {0.001, -3.0902323061678135354},
                         {0.025, -1.9599639845400542118},
                         {0.1, -1.2815515655446004353},
                         {0.25, -0.6744897501960817432},
                         {0.4999, -0.00025066283008800749239},
                         {0.75, 0.6744897501960817432},
                         {0.975, 1.9599639845400538556},
                         {0.999999, 4.7534243088170877657}}) {
    EXPECT_NEAR(NormalQuantile(row.p), row.x, 4e-15 * (1 + std::abs(row.x))) << row.p;
  }
  EXPECT_NEAR(NormalQuantile(0.5), 0, 1e-15);
  EXPECT_TRUE(std::isfinite(NormalQuantile(0)) && std::isfinite(NormalQuantile(1)));
}

TEST(Quantile, BetaProbabilityAgreesWithReferenceValues) {
  struct Row {
    double a, b, x, p, relative;
  };
  for (const Row& row : {Row{1, 1, 0.3, 0.2999999999999999889, 1e-14},
                         {0.5, 0.5, 0.1, 0.20483276469913345754, 1e-14},
                         {2, 3, 0.4, 0.52480000000000003837, 1e-14},
                         {0.1, 0.1, 1e-08, 0.080391690380040687145, 1e-14},
                         {0.01, 5, 1e-30, 0.51170193316958645348, 1e-14},
                         {30, 70, 0.25, 0.13581490428342743891, 1e-12},
                         {1000, 2000, 0.34, 0.78121509116064272515, 1e-11},
                         {5, 0.2, 0.999, 0.62889007902661301768, 1e-12},
                         {2, 2, 1e-06, 2.9999979999999997285e-12, 1e-14},
                         {1e5, 1e5, 0.501, 0.8144532554424423, 1e-9}}) {
    EXPECT_NEAR(BetaProbability(row.x, row.a, row.b), row.p, row.relative * row.p)
        << row.a << " " << row.b << " " << row.x;
  }
}

TEST(Quantile, BetaHasClosedFormsWhereOneShapeIsOne) {
  for (const double a : {0.05, 0.5, 1.0, 3.0, 40.0}) {
    for (const double p : {1e-10, 0.01, 0.3, 0.5, 0.9, 0.99999}) {
      const double x = std::pow(p, 1 / a);
      EXPECT_NEAR(BetaQuantile(p, a, 1), x, 1e-13 * x) << a << " " << p;
      const double mirrored = -std::expm1(std::log1p(-p) / a);
      EXPECT_NEAR(BetaQuantile(p, 1, a), mirrored, 1e-13 * mirrored) << a << " " << p;
    }
  }
}

TEST(Quantile, BetaInvertsItsProbabilityForAnyShapes) {
  Rng rng({TestSeed(), 6});
  for (int i = 0; i < 500; ++i) {
    const double a = std::exp(10 * rng.Uniform() - 4);
    const double b = std::exp(10 * rng.Uniform() - 4);
    const double p = rng.Uniform();
    const double x = BetaQuantile(p, a, b);
    ASSERT_TRUE(x >= 0 && x <= 1) << a << " " << b << " " << p;
    // Between the neighbouring doubles: close to 1 one step of x can be a large step of p.
    const double slack = 1e-10;
    EXPECT_LE(BetaProbability(std::nextafter(x, 0), a, b), p + slack) << a << " " << b << " " << p;
    EXPECT_GE(BetaProbability(std::nextafter(x, 1), a, b), p - slack) << a << " " << b << " " << p;
  }
}

TEST(Quantile, BetaEndsWhereItsShapesAreExtreme) {
  for (const double a : {1e-300, 1e-3, 1e6}) {
    for (const double b : {1e-300, 1e-3, 1e6}) {
      for (const double p : {0.0, 1e-300, 0.5, 1 - 0x1p-53, 1.0}) {
        const double x = BetaQuantile(p, a, b);
        EXPECT_TRUE(x >= 0 && x <= 1) << a << " " << b << " " << p << " " << x;
      }
    }
  }
  EXPECT_EQ(BetaQuantile(0, 2, 2), 0);
  EXPECT_EQ(BetaQuantile(1, 2, 2), 1);
}

}  // namespace
}  // namespace jizi::tuner
