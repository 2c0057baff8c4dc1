#include "orrery/memory/expansion.hpp"

#include <gtest/gtest.h>

namespace orrery::memory::expansion_test {
namespace {

TEST(Expansion, a_request_takes_latency_and_whole_nanoseconds_of_transfer) {
  const Expansion expansion{Arrangement::PER_NPU_MEMORY_EXPANSION, 100, 50, 1};
  EXPECT_EQ(expansion.service_ns(0), 100U);
  EXPECT_EQ(expansion.service_ns(1 << 20), 100U + 20971U);  // 1048576 / 50 = 20971.52
}

TEST(Expansion, nodes_and_pools_share_a_server_and_ranks_do_not) {
  const Expansion nodes{Arrangement::PER_NODE_MEMORY_EXPANSION, 0, 1, 4};
  EXPECT_EQ(nodes.server(3), 0U);
  EXPECT_EQ(nodes.server(4), 1U);
  EXPECT_EQ(nodes.servers(8), 2U);
  const Expansion pool{Arrangement::MEMORY_POOL, 0, 1, 1};
  EXPECT_EQ(pool.server(7), 0U);
  EXPECT_EQ(pool.servers(8), 1U);
  EXPECT_EQ((Expansion{Arrangement::PER_NPU_MEMORY_EXPANSION, 0, 1, 1}.server(7)), std::nullopt);
}

TEST(Server, requests_are_served_one_at_a_time_in_their_order) {
  Server server;
  EXPECT_EQ(server.arrive({1, 10, 5})->node, 10U);
  EXPECT_FALSE(server.arrive({2, 20, 5}));
  EXPECT_FALSE(server.arrive({3, 30, 5}));
  EXPECT_EQ(server.leave()->node, 20U);
  EXPECT_EQ(server.leave()->node, 30U);
  EXPECT_FALSE(server.leave());
  EXPECT_EQ(server.arrive({4, 40, 5})->node, 40U);
}

}  // namespace
}  // namespace orrery::memory::expansion_test
