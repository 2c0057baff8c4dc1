#include "orrery/core/random.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <gtest/gtest.h>

namespace orrery::random_test {
namespace {

// The first numbers of seed 1234567 as they are published with the generator.
TEST(RandomStream, is_splitmix64) {
  RandomStream stream(1234567);
  for (const std::uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                       4593380528125082431U, 16408922859458223821U}) {
    EXPECT_EQ(stream.bits(), expected);
  }
}

// 60,000 samples below 6: each value about 10,000 times, within five standard deviations of 91.
TEST(RandomStream, samples_are_uniform_and_below_the_limit) {
  RandomStream stream(1);
  std::array<int, 6> seen{};
  for (int i = 0; i < 60'000; ++i) { ++seen.at(static_cast<std::size_t>(stream.below(6))); }
  for (const int times : seen) { EXPECT_NEAR(times, 10'000, 455); }
  EXPECT_EQ(stream.below(1), 0);
  constexpr std::int64_t kMost = 0x7FFFFFFFFFFFFFFF;
  for (int i = 0; i < 100; ++i) { EXPECT_LT(stream.below(kMost), kMost); }
}

// Neighbouring seeds and repetitions start at places of the one sequence of all states that are far from each other: in
// 64 bits, 32,000 numbers are all different with a probability of 1 - 3e-11.
TEST(RandomStream, streams_of_neighbours_do_not_overlap) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint64_t repetition = 0; repetition < 8; ++repetition) {
      RandomStream stream = stream_of(seed, repetition);
      for (int i = 0; i < 500; ++i) {
        EXPECT_TRUE(seen.insert(stream.bits()).second) << seed << ' ' << repetition << ' ' << i;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::random_test
