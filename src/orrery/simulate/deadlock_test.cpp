// The error of a job that cannot finish names the cause.
#include <gtest/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::deadlock_test {
namespace {

constexpr auto kRing = Wiring::ring;

std::string refusal(const Rig& rig, const Nodes& nodes) {
  const auto result = run(rig, nodes);
  return result ? "" : result.error().text();
}

Rig ring(std::uint32_t ranks) { return Rig({{kRing, ranks}}, {"ring"}); }

TEST(Deadlock, a_receive_without_a_send_is_named) {
  EXPECT_EQ(
      refusal(ring(4), [](std::uint32_t rank) { return std::vector{rank == 2 ? receive(9, 3, 4096) : compute(1, 1)}; }),
      "w.2.et rank 2, node 9: waits for 4096 B with tag 0 from rank 3, which has no matching send (1 of 4 ranks cannot "
      "finish)");
}

TEST(Deadlock, a_send_of_another_size_is_named) {
  EXPECT_EQ(refusal(ring(2),
                    [](std::uint32_t rank) { return std::vector{rank == 0 ? send(5, 1, 1000) : receive(6, 0, 2000)}; }),
            "w.1.et rank 1, node 6: waits for 2000 B with tag 0 from rank 0, which has no matching send; its node 5 "
            "sends 1000 B (1 of 2 ranks cannot finish)");
}

TEST(Deadlock, a_rank_that_never_joins_is_named) {
  EXPECT_EQ(
      refusal(ring(4), [](std::uint32_t rank) { return std::vector{rank == 1 ? compute(1, 1) : all_reduce(1, kMiB)}; }),
      "w.2.et rank 2, node 1: waits in ALL_REDUCE (all ranks) for rank 1, which never joins (3 of 4 ranks cannot "
      "finish)");
}

TEST(Deadlock, a_collective_of_another_size_is_named) {
  const auto sizes =
      refusal(ring(2), [](std::uint32_t rank) { return std::vector{all_reduce(1 + rank, rank == 0 ? 4096 : 8192)}; });
  EXPECT_EQ(sizes,
            "w.0.et rank 0, node 1: runs ALL_REDUCE of 4096 B, but rank 1 runs ALL_REDUCE of 8192 B instead (node 2) "
            "(2 of 2 ranks cannot finish)");
}

// Rank 0 receives before it sends, and so does rank 1.
TEST(Deadlock, ranks_that_wait_for_each_other_are_a_deadlock) {
  EXPECT_EQ(
      refusal(ring(2),
              [](std::uint32_t rank) { return std::vector{receive(1, 1 - rank, 4096), send(2, 1 - rank, 4096, {1})}; }),
      "w.0.et rank 0, node 1: deadlock: rank 0 in node 1 (a receive), which waits for rank 1 in node 1 (a "
      "receive), which waits for rank 0 (2 of 2 ranks cannot finish)");
}

// Two groups in different orders: rank 0 runs group 1 first, rank 1 runs group 2 first.
TEST(Deadlock, collectives_in_different_orders_are_a_deadlock) {
  auto rig = ring(4);
  rig.groups = {{"1", {0, 1}}, {"2", {1, 0}}};
  const auto text = refusal(rig, [](std::uint32_t rank) {
    if (rank > 1) { return std::vector{compute(1, 1)}; }
    return std::vector{all_reduce(1, 4096, {}, rank == 0 ? "1" : "2"), all_reduce(2, 4096, {1}, rank == 0 ? "2" : "1")};
  });
  EXPECT_EQ(text,
            "w.0.et rank 0, node 1: deadlock: rank 0 in node 1 (ALL_REDUCE), which waits for rank 1 in node 1 "
            "(ALL_REDUCE), which waits for rank 0 (2 of 4 ranks cannot finish)");
}

TEST(Deadlock, chunk_numbers_that_differ_between_ranks_are_named) {
  auto rig = ring(4);
  rig.groups = {{"1", {0, 1}}};
  const auto text = refusal(rig, [](std::uint32_t rank) {
    if (rank > 1) { return std::vector{all_reduce(2, 4096)}; }
    return std::vector{all_reduce(1, 4096, {}, "1"), all_reduce(2, 4096, {1})};
  });
  EXPECT_NE(text.find("whose chunks have other numbers"), std::string::npos) << text;
}

TEST(Deadlock, a_group_of_one_never_ends) {
  auto rig = ring(4);
  rig.groups = {{"1", {0}}};
  const auto text = refusal(
      rig, [](std::uint32_t rank) { return std::vector{rank == 0 ? all_reduce(1, 4096, {}, "1") : compute(1, 1)}; });
  EXPECT_EQ(
      text,
      "w.0.et rank 0, node 1: runs ALL_REDUCE with one rank or no dimension, which never ends in ASTRA-sim (1 of 4 "
      "ranks cannot finish)");
}

TEST(Deadlock, children_of_an_invalid_node_never_start) {
  const auto text =
      refusal(ring(2), [](std::uint32_t) { return std::vector{node(1, NodeType::invalid), compute(2, 3, {1})}; });
  EXPECT_NE(text.find("w.0.et rank 0, node 2: never starts: it became ready"), std::string::npos) << text;
}

// Three dimensions, one chunk at a time, one late rank: chunks enter the queues of a dimension in different orders on
// different ranks.
TEST(Deadlock, queues_of_a_skewed_torus_deadlock) {
  const auto rig = Rig({{kRing, 2}, {kRing, 2}, {kRing, 2}}, {"ring", "ring", "ring"}).chunks(2);
  const auto text = refusal(
      rig, [](std::uint32_t rank) { return std::vector{compute(1, rank == 0 ? 200 : 1), all_reduce(2, kMiB, {1})}; });
  EXPECT_NE(text.find("deadlock: "), std::string::npos) << text;
  EXPECT_NE(text.find("with chunk 1"), std::string::npos) << text;
  EXPECT_NE(text.find("(8 of 8 ranks cannot finish)"), std::string::npos) << text;
}

}  // namespace
}  // namespace orrery::simulate::test::deadlock_test
