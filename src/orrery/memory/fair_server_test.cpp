#include "orrery/memory/fair_server.hpp"

#include <gtest/gtest.h>

#include <map>

namespace orrery::memory::fair_server_test {
namespace {

// The end of each request by its number, for arrivals (time, ticks alone).
std::map<std::uint32_t, std::uint64_t> served(const std::multimap<std::uint64_t, std::uint64_t>& arrivals) {
  FairServer server;
  std::map<std::uint32_t, std::uint64_t> ended;
  std::uint32_t id = 0;
  const auto until = [&](std::uint64_t end) {
    for (auto next = server.next(); next && *next <= end; next = server.next()) {
      for (const std::uint32_t request : server.leave(*next)) { ended[request] = *next; }
    }
  };
  for (const auto& [time, alone] : arrivals) {
    until(time);
    server.arrive(time, id++, alone);
  }
  until(~std::uint64_t{0});
  return ended;
}

TEST(FairServer, identical_requests_end_at_the_same_time) {
  EXPECT_EQ(served({{5, 100}, {5, 100}, {5, 100}}),
            (std::map<std::uint32_t, std::uint64_t>{{0, 305}, {1, 305}, {2, 305}}));
}

// Alone until 50, then both are served at half the rate: the first has 50 ticks left, which take 100; then the second
// has 50 left.
TEST(FairServer, a_second_request_halves_the_rate) {
  EXPECT_EQ(served({{0, 100}, {50, 100}}), (std::map<std::uint32_t, std::uint64_t>{{0, 150}, {1, 200}}));
}

TEST(FairServer, total_time_is_the_total_service_and_at_most_a_tick_more_per_request) {
  const auto ended = served({{0, 7}, {0, 11}, {3, 13}, {4, 1}, {4, 5}});
  std::uint64_t last = 0;
  for (const auto& [id, time] : ended) { last = std::max(last, time); }
  EXPECT_EQ(ended.size(), 5U);
  EXPECT_GE(last, 37U);
  EXPECT_LE(last, 42U);
}

}  // namespace
}  // namespace orrery::memory::fair_server_test
