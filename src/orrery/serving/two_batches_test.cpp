#include "orrery/serving/two_batches.hpp"

#include <array>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::serving::two_batches_test {
namespace {

Phases random_phases() {
  const auto time = [] { return Seconds(*rc::gen::element(0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0)); };
  return {.attention = time(), .dispatch = time(), .experts = time(), .combine = time(), .others = time()};
}

// The slow reference: kernels of both halves follow each other on one stream, transfers on another, in this order in
// every layer; each begins when the phase before it of its own half has ended.
double played(const Phases& half, int layers) {
  double kernels = 0.0, transfers = 0.0;
  std::array<double, 2> ready = {};
  const auto run = [&](double& stream, Seconds time) {
    for (double& own : ready) { own = stream = std::max(stream, own) + time.value(); }
  };
  for (int layer = 0; layer < layers; ++layer) {
    run(kernels, half.attention);
    run(transfers, half.dispatch);
    run(kernels, half.experts);
    run(transfers, half.combine);
  }
  return std::max(ready[0], ready[1]);
}

RC_GTEST_PROP(TwoBatches, take_turns_as_on_two_streams, ()) {
  Phases half = random_phases();
  half.others = {};
  const double layer = (played(half, 60) - played(half, 40)) / 20.0;
  RC_ASSERT(std::abs(time_of_two(half, 0.0).value() - layer) < 1e-9);
}

// Never shorter than the kernels of both, the transfers of both, or all phases of one; never longer than one after the
// other.
RC_GTEST_PROP(TwoBatches, are_bounded_by_their_parts, ()) {
  const Phases half = random_phases();
  const double kernels = (half.attention + half.experts).value(), transfers = (half.dispatch + half.combine).value();
  const double time = time_of_two(half, 0.0).value() - 2.0 * half.others.value();
  RC_ASSERT(time >= 2.0 * std::max(kernels, transfers) && time >= kernels + transfers);
  RC_ASSERT(time <= 2.0 * (kernels + transfers));
  const double slowed = time_of_two(half, 0.2).value() - 2.0 * half.others.value();
  RC_ASSERT(slowed >= time && slowed <= time + 0.2 * 2.0 * transfers + 1e-9);
}

// The line in contexts is the time at each of them, up to its end.
RC_GTEST_PROP(TwoBatches, have_a_line_while_attention_grows, ()) {
  Phases half = random_phases();
  const auto begin = *rc::gen::inRange<std::int64_t>(0, 1000), last = begin + *rc::gen::inRange<std::int64_t>(0, 1000);
  const Ticks per_token = ticks_of(Seconds(*rc::gen::element(0.0, 0.001, 0.01)));
  const Seconds fixed = half.attention;
  const double interference = *rc::gen::element(0.0, 0.25);
  const DecodeLine line = line_of_two({0, per_token, last}, half, interference, begin);
  RC_ASSERT(line.last >= begin && line.last <= last);
  for (const std::int64_t contexts : {begin, (begin + line.last) / 2, line.last}) {
    half.attention = fixed + Seconds(seconds_of(per_token * (contexts - begin)));
    const double time = time_of_two(half, interference).value();
    RC_ASSERT(std::abs(seconds_of(line.at + line.per_token * (contexts - begin)) - time) < 1e-9);
  }
}

}  // namespace
}  // namespace orrery::serving::two_batches_test
