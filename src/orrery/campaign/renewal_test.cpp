#include "orrery/campaign/renewal.hpp"

#include <array>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::campaign::renewal_test {
namespace {

constexpr double kDay = 86'400.0;
const Hertz kLlama3{419.0 / (54.0 * kDay)};  // unexpected interruptions of Llama 3 405B, arXiv:2407.21783 section 3.3.4

#define EXPECT_CLOSE(actual, expected, relative) EXPECT_NEAR(actual, expected, (relative) * std::abs(expected))

TEST(lambert_w0, solves_its_equation) {
  for (const double z : {-0.36787944, -0.3678, -0.36, -0.3, -0.2, -0.1, -1e-3, -1e-9, 0.0}) {
    const double w = lambert_w0(z);
    EXPECT_NEAR(w * std::exp(w), z, 1e-15) << z;
    EXPECT_GE(w, -1.0);
  }
}

// The equation that the optimum solves: d/dw [w / (e^(lam (w + C)) - 1)] = 0, or lam w = 1 - e^(-lam (w + C)).
RC_GTEST_PROP(best_useful, is_where_the_derivative_is_zero, ()) {
  const double lam = std::exp(*rc::gen::inRange(-160, 0) / 10.0), pause = std::exp(*rc::gen::inRange(-50, 80) / 10.0);
  const double w = best_useful(Hertz(lam), Seconds(pause)).value();
  const double right = -std::expm1(-lam * (w + pause));
  RC_ASSERT(std::abs(lam * w - right) <= 1e-9 * right);
}

// Nine ETTRs of Llama 3 405B and the best useful times, from an independent program (D 30 s).
TEST(ettr, of_llama3_at_the_best_interval) {
  struct Case {
    double pause, young, daly, best;
    std::array<double, 3> ettrs;  // R 180, 600, 900 s
  };
  const std::array cases = {
      Case{3.0, 258.4772740, 256.4811428, 256.4811548, {0.9587176, 0.9232296, 0.8986881}},
      Case{30.0, 817.3769093, 797.4992519, 797.5004547, {0.9110383, 0.8773151, 0.8539942}},
      Case{300.0, 2584.7727404, 2388.6415524, 2388.7629181, {0.7708023, 0.7422702, 0.7225390}},
  };
  for (const auto& one : cases) {
    const Seconds pause(one.pause);
    EXPECT_CLOSE(young_useful(kLlama3, pause).value(), one.young, 1e-8);
    EXPECT_CLOSE(daly_useful(kLlama3, pause).value(), one.daly, 1e-8);
    EXPECT_CLOSE(best_useful(kLlama3, pause).value(), one.best, 1e-8);
    const std::array<double, 3> restarts = {180.0, 600.0, 900.0};
    for (std::size_t i = 0; i < restarts.size(); ++i) {
      const auto interval = best_interval(kLlama3, pause, Seconds(0));
      EXPECT_CLOSE(ettr(kLlama3, interval, {Seconds(30), Seconds(restarts[i])}), one.ettrs[i], 1e-6);
    }
  }
}

// C 60 s, D 0, R 300 s at the best interval, for mean times between failures from 12 hours to 5 minutes. By hand for 1
// h: lam C = 1/60, w* = 597.6 s, ETTR = 597.6 / (e^(1/12) 3600 (e^(657.6/3600) - 1)) = 0.7621.
TEST(ettr, stays_positive_where_failures_are_as_fast_as_restarts) {
  const std::array means = {43'200.0, 10'800.0, 3'600.0, 1'800.0, 900.0, 300.0};
  const std::array expected = {0.9417, 0.8737, 0.7621, 0.6463, 0.4857, 0.1815};
  for (std::size_t i = 0; i < means.size(); ++i) {
    const Hertz rate(1.0 / means[i]);
    EXPECT_NEAR(ettr(rate, best_interval(rate, Seconds(60), Seconds(0)), {Seconds(0), Seconds(300)}), expected[i],
                5e-5);
  }
}

// P 300 s, C 3 s, 630 s after a failure in which none strikes: u e^(-lam F) / (e^(lam P) - 1) / (1/lam + 630 s).
TEST(ettr, counts_the_flush_as_lost_work) {
  const std::array flushes = {0.0, 60.0, 300.0};
  const std::array expected = {0.9244217833548534, 0.9194540486306819, 0.8998486392348211};
  for (std::size_t i = 0; i < flushes.size(); ++i) {
    const Interval interval{Seconds(297), Seconds(3), Seconds(flushes[i])};
    EXPECT_CLOSE(ettr(kLlama3, interval, {Seconds(630), Seconds(0)}), expected[i], 1e-9);
    const Seconds mean(1.0 / kLlama3.value());
    EXPECT_CLOSE(shape_ettr(1.0, mean, interval, Seconds(630)), expected[i], 1e-9);  // Weibull of shape 1
  }
}

// P 900 s, C 30 s, F 60 s, 630 s of downtime, mean time to failure as above: figures of an independent program.
TEST(shape_ettr, rises_with_infant_failures) {
  const Interval interval{Seconds(870), Seconds(30), Seconds(60)};
  const Seconds mean(1.0 / kLlama3.value());
  const std::array shapes = {0.5, 0.7, 1.0, 1.5};
  const std::array expected = {0.87999, 0.87576, 0.87371, 0.87307};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_NEAR(shape_ettr(shapes[i], mean, interval, Seconds(630)), expected[i], 1e-5);
  }
}

Tiers tiers_of(double recoverable) {
  Tiers tiers;
  tiers.memory = {Seconds(60), Seconds(0.5), Seconds(0)};
  tiers.storage_pause = Seconds(10);
  tiers.pieces = 60;
  tiers.recoverable = recoverable;
  tiers.memory_downtime = Seconds(150);
  tiers.storage_downtime = Seconds(900);
  return tiers;
}

TEST(tiers_ettr, depends_on_the_failures_that_leave_a_copy) {
  const std::array shares = {1.0, 0.95, 0.8, 0.0};
  const std::array expected = {0.973209, 0.962191, 0.929829, 0.773623};
  for (std::size_t i = 0; i < shares.size(); ++i) {
    EXPECT_NEAR(tiers_ettr(kLlama3, tiers_of(shares[i])), expected[i], 5e-7);
  }
}

// All failures leave a copy and storage is never written: one level with the pieces as intervals.
TEST(tiers_ettr, with_every_copy_kept_is_one_level) {
  Tiers tiers = tiers_of(1.0);
  tiers.pieces = 1'000'000'000;
  EXPECT_CLOSE(tiers_ettr(kLlama3, tiers), ettr(kLlama3, tiers.memory, {Seconds(150), Seconds(0)}), 1e-6);
}

// No failure leaves a copy: one level whose interval is all pieces.
TEST(tiers_ettr, without_copies_is_one_level_of_all_pieces) {
  const Tiers tiers = tiers_of(0.0);
  const Interval whole{Seconds(60.0 * 60), Seconds(0.5 * 60 + 10), Seconds(0)};
  EXPECT_CLOSE(tiers_ettr(kLlama3, tiers), ettr(kLlama3, whole, {Seconds(900), Seconds(0)}), 1e-9);
}

TEST(best_pieces, no_other_number_is_better) {
  for (const double share : {0.0, 0.5, 0.95, 0.999}) {
    Tiers tiers = tiers_of(share);
    tiers.pieces = best_pieces(kLlama3, tiers);
    const double best = tiers_ettr(kLlama3, tiers);
    for (std::int64_t pieces = 1; pieces <= 20'000; pieces += pieces < 2000 ? 1 : 97) {
      tiers.pieces = pieces;
      ASSERT_LE(tiers_ettr(kLlama3, tiers), best * (1.0 + 1e-12)) << share << ' ' << pieces;
    }
  }
}

// Points that Meta published (arXiv:2410.21680, figures 9 and 10), from its formula; nodes of 8 GPUs, rates per
// node-day.
TEST(meta_ettr, gives_metas_points) {
  const auto point = [](double gpus, double per_1000, double restart_min, double interval_min, double pause_s) {
    const Hertz rate(gpus / 8.0 * per_1000 / 1000.0 / kDay);
    return meta_ettr(rate, Seconds(60 * interval_min), Seconds(pause_s), Seconds(60 * restart_min));
  };
  EXPECT_NEAR(point(16'000, 6.5, 5, 60, 0), 0.684, 5e-4);
  EXPECT_NEAR(point(16'000, 6.5, 5, 5, 0), 0.932, 5e-4);
  EXPECT_NEAR(point(100'000, 2.34, 2, 2, 0), 0.939, 5e-4);
  EXPECT_NEAR(point(100'000, 6.5, 7, 7, 0), 0.408, 5e-4);
  // Mean times between failures of 16,384 and 131,072 GPUs.
  EXPECT_NEAR(24.0 / (2048 * 6.5e-3), 1.803, 5e-4);
  EXPECT_NEAR(24.0 / (16'384 * 6.5e-3), 0.2254, 5e-5);
}

TEST(ettr, limits) {
  const Downtime downtime{Seconds(30), Seconds(600)};
  const Interval interval{Seconds(300), Seconds(3), Seconds(0)};
  EXPECT_CLOSE(ettr(Hertz(1e-12), interval, downtime), 300.0 / 303.0, 1e-8);  // no failures
  EXPECT_EQ(ettr(Hertz(0), interval, downtime), 300.0 / 303.0);
  // Free checkpoints: the interval goes to 0, and only the downtime is left.
  const auto tiny = best_interval(kLlama3, Seconds(1e-9), Seconds(0));
  EXPECT_LT(tiny.useful.value(), 0.01);
  const double lam = kLlama3.value();
  EXPECT_CLOSE(ettr(kLlama3, tiny, downtime), 1.0 / ((1.0 + lam * 30.0) * std::exp(lam * 600.0)), 1e-6);
  EXPECT_CLOSE(ettr(kLlama3, {}, downtime), 1.0 / ((1.0 + lam * 30.0) * std::exp(lam * 600.0)), 1e-12);
}

RC_GTEST_PROP(ettr, falls_with_rate_pause_flush_and_downtime, ()) {
  const auto value = [](int low, int high) { return std::exp(*rc::gen::inRange(low, high) / 10.0); };
  const Hertz rate(value(-120, -60));
  const Interval interval{Seconds(value(20, 80)), Seconds(value(-20, 50)), Seconds(0)};
  const Downtime downtime{Seconds(value(0, 60)), Seconds(value(0, 70))};
  const double share = ettr(rate, interval, downtime);
  RC_ASSERT(share > 0.0 && share < 1.0);
  RC_ASSERT(ettr(rate * 1.1, interval, downtime) < share);
  RC_ASSERT(ettr(rate, {interval.useful, interval.pause * 1.1, interval.flush}, downtime) < share);
  RC_ASSERT(ettr(rate, {interval.useful, interval.pause, interval.length()}, downtime) < share);
  RC_ASSERT(ettr(rate, interval, {downtime.unprotected * 1.1, downtime.restart}) < share);
  RC_ASSERT(ettr(rate, interval, {downtime.unprotected, downtime.restart * 1.1}) < share);
}

TEST(best_interval, is_never_shorter_than_its_flush) {
  const auto interval = best_interval(kLlama3, Seconds(3), Seconds(1000));
  EXPECT_EQ(interval.length(), Seconds(1000));
}

}  // namespace
}  // namespace orrery::campaign::renewal_test
