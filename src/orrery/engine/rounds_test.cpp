#include "orrery/engine/rounds.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::engine::rounds_test {
namespace {

TEST(Rounds, events_registered_for_the_current_instant_belong_to_the_next_round) {
  Rounds<int> rounds;
  rounds.at(5, 1);
  rounds.at(5, 2);
  rounds.at(9, 3);
  std::string log;
  rounds.run(
      [&](int event) {
        log += std::to_string(rounds.now()) + ":" + std::to_string(event) + " ";
        if (event == 1) { rounds.at(5, 10); }
        if (event == 10) { rounds.at(8, 11); }
      },
      [&] { log += "| "; });
  EXPECT_EQ(log, "| 5:1 5:2 | 5:10 | 8:11 | 9:3 | ");
  EXPECT_EQ(rounds.events(), 5U);
}

TEST(Rounds, end_round_can_add_rounds_to_the_instant) {
  Rounds<int> rounds;
  int ended_rounds = 0;
  std::vector<std::uint64_t> times;
  rounds.run([&](int) { times.push_back(rounds.now()); },
             [&] {
               if (++ended_rounds <= 3) { rounds.at(rounds.now() + (ended_rounds == 3 ? 1 : 0), 0); }
             });
  EXPECT_EQ(times, (std::vector<std::uint64_t>{0, 0, 1}));
  EXPECT_LE(rounds.capacity(), 1000U);
}

}  // namespace
}  // namespace orrery::engine::rounds_test
