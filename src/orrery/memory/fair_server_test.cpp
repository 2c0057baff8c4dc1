#include "orrery/memory/fair_server.hpp"

#include <gtest/gtest.h>

#include <map>

namespace orrery::memory {
namespace {

// When each request is over, if they arrive as listed: (time, alone).
std::map<std::uint32_t, std::uint64_t> served(const std::multimap<std::uint64_t, std::uint64_t>& arrivals) {
  FairServer server;
  std::map<std::uint32_t, std::uint64_t> over;
  std::uint32_t who = 0;
  const auto until = [&](std::uint64_t end) {
    for (auto next = server.next(); next && *next <= end; next = server.next()) {
      for (const std::uint32_t one : server.leave(*next)) { over[one] = *next; }
    }
  };
  for (const auto& [time, alone] : arrivals) {
    until(time);
    server.arrive(time, who++, alone);
  }
  until(~std::uint64_t{0});
  return over;
}

TEST(FairServer, requests_that_are_alike_end_alike) {
  EXPECT_EQ(served({{5, 100}, {5, 100}, {5, 100}}),
            (std::map<std::uint32_t, std::uint64_t>{{0, 305}, {1, 305}, {2, 305}}));
}

// Alone until 50, then both at half the pace: the first has 50 left, which takes 100; then the second has 50 left.
TEST(FairServer, who_comes_later_takes_half) {
  EXPECT_EQ(served({{0, 100}, {50, 100}}), (std::map<std::uint32_t, std::uint64_t>{{0, 150}, {1, 200}}));
}

TEST(FairServer, serves_no_more_than_it_can_and_wastes_no_more_than_a_tick_a_request) {
  const auto over = served({{0, 7}, {0, 11}, {3, 13}, {4, 1}, {4, 5}});
  std::uint64_t last = 0;
  for (const auto& [who, time] : over) { last = std::max(last, time); }
  EXPECT_EQ(over.size(), 5U);
  EXPECT_GE(last, 37U);
  EXPECT_LE(last, 42U);
}

}  // namespace
}  // namespace orrery::memory
