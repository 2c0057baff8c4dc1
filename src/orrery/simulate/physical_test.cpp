// Physical semantics by hand: the cases of docs/models/physical.md, with its figures, and the closed form of every
// schedule on the network that suits it.
//
// Unless a test has other values: 50 GB/s, which is 20 ps per byte, and 500 ns per link. 1 MiB takes 20,971,520 ps.
#include <gtest/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::physical_test {
namespace {

constexpr std::uint64_t kMiBTime = 20'971'520;
constexpr std::uint64_t kHop = 500'000;
constexpr std::uint64_t kEndpoint = 10'000;

using Shape = std::vector<std::pair<Wiring, std::uint32_t>>;

Rig rig(const Shape& shape, const std::vector<std::string>& algorithms = {"ring"}) {
  Rig made(shape, algorithms);
  made.system.local_memory_gb = 0;  // reductions take no time
  return made.physical();
}

results::Simulation simulated(const Rig& rig, const Nodes& nodes) {
  auto result = run(rig, nodes);
  if (!result) { throw std::runtime_error(result.error().text()); }
  return *result;
}

Times picoseconds(const results::Simulation& simulation) {
  Times times;
  for (const auto& rank : simulation.tables->ranks) { times.push_back(rank.finish_ps); }
  return times;
}

// The listed ranks have the given nodes, the others one metadata node.
Nodes at(std::vector<std::pair<std::uint32_t, std::vector<NodeRecord>>> nodes_of_ranks) {
  return [nodes_of_ranks](std::uint32_t rank) {
    for (const auto& [where, nodes] : nodes_of_ranks) {
      if (where == rank) { return nodes; }
    }
    return std::vector{node(1, NodeType::metadata)};  // ends at once
  };
}

Times of_collective(const Rig& rig, CollectiveType type, std::int64_t bytes) {
  return picoseconds(simulated(rig, [&](std::uint32_t) { return std::vector{collective(1, type, bytes)}; }));
}

// ---- messages ------------------------------------------------------------------------------------------------------

TEST(Physical, a_message_without_contention_takes_the_latencies_of_its_route_and_its_bytes_once) {
  // Three links of a ring of 8: 3 x 500 ns + 20,971.52 ns, cut through and not stored in between.
  const auto result = simulated(rig({{Wiring::ring, 8}}), at({{0, {send(1, 3, kMiB)}}, {3, {receive(1, 0, kMiB)}}}));
  EXPECT_EQ(picoseconds(result)[3], 3 * kHop + kMiBTime);
  EXPECT_EQ(picoseconds(result)[0], 3 * kHop + kMiBTime);
  EXPECT_EQ(result.ranks[3].finish_ns, 22472U);  // rounded up
}

TEST(Physical, routes_on_rings_take_the_shorter_direction_and_forward_if_both_are_equal) {
  const auto links = [](std::uint32_t to) {
    const auto result =
        simulated(rig({{Wiring::ring, 6}}), at({{0, {send(1, to, kMiB)}}, {to, {receive(1, 0, kMiB)}}}));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> used;
    for (const auto& link : result.tables->links) { used.emplace_back(link.from, link.to); }
    return used;
  };
  using Used = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(links(3), (Used{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(links(4), (Used{{0, 5}, {5, 4}}));
}

TEST(Physical, two_messages_on_one_link_are_serialized) {
  // Ring of 8. Rank 1 occupies the link 1 -> 2 from 0 to 20,971.52 ns. The head of rank 0's message arrives at 500 ns
  // and waits; its tail leaves at 41,943.04 ns.
  const auto result = simulated(
      rig({{Wiring::ring, 8}}),
      at({{0, {send(1, 2, kMiB)}}, {1, {send(1, 2, kMiB)}}, {2, {receive(1, 0, kMiB), receive(2, 1, kMiB)}}}));
  const Times times = picoseconds(result);
  EXPECT_EQ(times[1], kMiBTime + kHop);
  EXPECT_EQ(times[0], 2 * kMiBTime + kHop);
  for (const auto& link : result.tables->links) {
    EXPECT_EQ(link.busy_ps, link.from == 1 ? 2 * kMiBTime : kMiBTime);
    EXPECT_EQ(link.queued_ps, link.from == 1 ? kMiBTime - kHop : 0);
  }
}

TEST(Physical, a_message_across_a_torus_takes_the_latency_of_each_dimension_and_its_bytes_on_the_narrowest_link) {
  // 0 -> 5 on 4 x 4. 500 + 700 ns, and 1 MiB at 25 GB/s: 41,943.04 ns, whichever dimension is the narrow one.
  for (const bool narrow_first : {true, false}) {
    Rig torus = rig({{Wiring::ring, 4}, {Wiring::ring, 4}});
    torus.dimensions[0].bandwidth = narrow_first ? 25 : 50;
    torus.dimensions[1].bandwidth = narrow_first ? 50 : 25;
    torus.dimensions[1].latency_ns = 700;
    const auto result = simulated(torus, at({{0, {send(1, 5, kMiB)}}, {5, {receive(1, 0, kMiB)}}}));
    EXPECT_EQ(picoseconds(result)[5], 1'200'000 + 2 * kMiBTime);
    ASSERT_EQ(result.tables->links.size(), 2U);
    EXPECT_EQ(result.tables->links[0].to, 1U);  // the inner dimension first
    EXPECT_EQ(result.tables->links[1].from, 1U);
  }
}

TEST(Physical, equal_messages_that_request_a_link_together_share_it_and_end_together) {
  // Incast of 7 ranks. The link from the switch transfers 7 MiB from 500 ns on, for 146,800.64 ns.
  std::vector<std::pair<std::uint32_t, std::vector<NodeRecord>>> nodes_of_ranks;
  std::vector<NodeRecord> receives;
  for (std::uint32_t rank = 1; rank < 8; ++rank) {
    nodes_of_ranks.push_back({rank, {send(1, 0, kMiB)}});
    receives.push_back(receive(rank, rank, kMiB));
  }
  nodes_of_ranks.push_back({0, receives});
  EXPECT_EQ(picoseconds(simulated(rig({{Wiring::switched, 8}}), at(nodes_of_ranks))), all(8, 2 * kHop + 7 * kMiBTime));
}

TEST(Physical, of_two_messages_that_request_a_link_together_the_shorter_is_served_first) {
  // Both heads are at the switch at 500 ns. 1 MiB has passed at 21,471.52 ns, 2 MiB at 63,414.56 ns.
  const auto result = simulated(
      rig({{Wiring::switched, 4}}),
      at({{1, {send(1, 0, 2 * kMiB)}}, {2, {send(1, 0, kMiB)}}, {0, {receive(1, 1, 2 * kMiB), receive(2, 2, kMiB)}}}));
  EXPECT_EQ(picoseconds(result)[2], 2 * kHop + kMiBTime);
  EXPECT_EQ(picoseconds(result)[1], 2 * kHop + 3 * kMiBTime);
}

TEST(Physical, messages_that_share_two_links_in_sequence_share_both_concurrently) {
  // 3 x 5, own links inside: (0,0) and (1,0) to (2,2), both through (2,0) -> (2,1) -> (2,2).
  Rig grid = rig({{Wiring::mesh, 3}, {Wiring::ring, 5}});
  const auto result = simulated(
      grid, at({{0, {send(1, 8, kMiB)}}, {1, {send(1, 8, kMiB)}}, {8, {receive(1, 0, kMiB), receive(2, 1, kMiB)}}}));
  // Own links into (2,0), then 2 MiB through two links, cut through.
  EXPECT_EQ(picoseconds(result)[8], 3 * kHop + 2 * kMiBTime);
  EXPECT_EQ(picoseconds(result)[0], 3 * kHop + 2 * kMiBTime);
  EXPECT_EQ(picoseconds(result)[1], 3 * kHop + 2 * kMiBTime);
}

TEST(Physical, under_rendezvous_a_message_departs_when_the_ready_message_of_its_receiver_has_arrived) {
  // After 30 us: a ready-to-receive message of 8192 bytes (163.84 ns), then the message.
  Rig ring = rig({{Wiring::ring, 4}});
  ring.system.rendezvous = true;
  const auto result = simulated(ring, at({{0, {send(1, 1, kMiB)}}, {1, {compute(1, 30), receive(2, 0, kMiB, {1})}}}));
  EXPECT_EQ(picoseconds(result)[1], 30'000'000 + kHop + 163'840 + kHop + kMiBTime);
}

// ---- schedules -----------------------------------------------------------------------------------------------------

constexpr std::uint64_t step(std::uint64_t bytes, std::uint64_t hops = 1) {
  return hops * kHop + kEndpoint + bytes * 20;
}

TEST(Physical, closed_form_of_rings) {
  // n = 8, m = 131,072 B: each step 500 + 10 + 2,621.44 ns.
  const Rig ring = rig({{Wiring::ring, 8}});
  EXPECT_EQ(of_collective(ring, CollectiveType::all_reduce, kMiB), all(8, 14 * step(131072)));
  EXPECT_EQ(of_collective(ring, CollectiveType::reduce_scatter, kMiB), all(8, 7 * step(131072)));
  EXPECT_EQ(of_collective(ring, CollectiveType::all_gather, 131072), all(8, 7 * step(131072)));
  // Targets at distances 1 to 4 forward and 1 to 3 backward. Forward is longer: 4 + 3 + 2 + 1 blocks in four steps.
  EXPECT_EQ(of_collective(ring, CollectiveType::all_to_all, kMiB), all(8, 4 * (kHop + kEndpoint) + 10 * 131072 * 20));
}

TEST(Physical, reductions_take_three_passes_through_memory_and_are_serialized) {
  // 3 x 131,072 B at 1600 GB/s: 245.76 ns in each of 7 steps.
  Rig ring = rig({{Wiring::ring, 8}});
  ring.system.local_memory_gb = 1600;
  EXPECT_EQ(of_collective(ring, CollectiveType::all_reduce, kMiB), all(8, 14 * step(131072) + 7 * 245'760));
  // Every rank receives 7 messages at the same time.
  Rig direct = rig({{Wiring::mesh, 8}}, {"direct"});
  direct.system.local_memory_gb = 1600;
  EXPECT_EQ(of_collective(direct, CollectiveType::all_reduce, kMiB), all(8, 2 * step(131072) + 7 * 245'760));
}

TEST(Physical, closed_form_of_direct) {
  const Rig direct = rig({{Wiring::mesh, 8}}, {"direct"});
  EXPECT_EQ(of_collective(direct, CollectiveType::all_reduce, kMiB), all(8, 2 * step(131072)));
  EXPECT_EQ(of_collective(direct, CollectiveType::all_to_all, kMiB), all(8, step(131072)));
  // Two messages at a time: 4 rounds.
  const Rig windowed = rig({{Wiring::mesh, 8}}, {"direct2"});
  EXPECT_EQ(of_collective(windowed, CollectiveType::all_to_all, kMiB), all(8, 4 * step(131072)));
  // Through a switch the 7 messages of a rank leave one after the other, each to the next rank, so there is no
  // contention on the links from the switch.
  const Rig star = rig({{Wiring::switched, 8}}, {"direct"});
  EXPECT_EQ(of_collective(star, CollectiveType::all_to_all, kMiB), all(8, 2 * kHop + kEndpoint + 7 * 131072 * 20));
}

TEST(Physical, closed_form_of_halving_and_doubling) {
  // Through a switch, 2 links a message: 512 + 256 + 128 KiB and back.
  const Rig star = rig({{Wiring::switched, 8}}, {"halvingDoubling"});
  EXPECT_EQ(of_collective(star, CollectiveType::all_reduce, kMiB),
            all(8, 2 * (step(524288, 2) + step(262144, 2) + step(131072, 2))));
}

TEST(Physical, closed_form_of_the_double_binary_tree) {
  // 8 ranks, 3 levels, 512 KiB in each tree; both trees run concurrently on different links.
  const Rig full = rig({{Wiring::mesh, 8}}, {"doubleBinaryTree"});
  const Times times = of_collective(full, CollectiveType::all_reduce, kMiB);
  EXPECT_EQ(*std::max_element(times.begin(), times.end()), 6 * step(524288));
}

TEST(Physical, closed_form_of_reduction_and_copies_in_the_switch) {
  // The whole buffer up, and the sum down to each rank. Only the endpoint of the receiver adds time; ranks do not
  // reduce.
  Rig star = rig({{Wiring::switched, 8}}, {"inSwitch"});
  star.system.local_memory_gb = 1600;
  EXPECT_EQ(of_collective(star, CollectiveType::all_reduce, kMiB), all(8, 2 * kHop + 2 * kMiBTime + kEndpoint));
  // All 8 blocks up, one down: 128 KiB.
  EXPECT_EQ(of_collective(star, CollectiveType::reduce_scatter, kMiB),
            all(8, 2 * kHop + kMiBTime + 131072 * 20 + kEndpoint));
  // One block up, 7 down.
  EXPECT_EQ(of_collective(star, CollectiveType::all_gather, 131072), all(8, 2 * kHop + 8 * 131072 * 20 + kEndpoint));
  // Two chunks: the first goes down while the second goes up.
  EXPECT_EQ(of_collective(star.chunks(2), CollectiveType::all_reduce, kMiB),
            all(8, 2 * kHop + 3 * kMiBTime / 2 + kEndpoint));
  // Full meshes inside, switches outside: each of the 4 lines has its own switch.
  Rig both = rig({{Wiring::mesh, 4}, {Wiring::switched, 2}}, {"direct", "inSwitch"});
  EXPECT_EQ(of_collective(both, CollectiveType::all_reduce, kMiB),
            all(8, 2 * step(262144) + 2 * kHop + 2 * 262144 * 20 + kEndpoint));
}

TEST(Physical, in_switch_without_a_switch_is_rejected) {
  const auto result =
      run(rig({{Wiring::ring, 4}}, {"inSwitch"}), [](std::uint32_t) { return std::vector{all_reduce(1, 64)}; });
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text().find("not all connected to one Switch"), std::string::npos);
}

TEST(Physical, an_all_reduce_over_two_dimensions_reduce_scatters_and_all_gathers_inside) {
  // 4 x 4: 256 KiB a step inside, 64 KiB a step outside.
  const Rig torus = rig({{Wiring::ring, 4}, {Wiring::ring, 4}}, {"ring", "ring"});
  EXPECT_EQ(of_collective(torus, CollectiveType::all_reduce, kMiB), all(16, 6 * step(262144) + 6 * step(65536)));
  EXPECT_EQ(of_collective(torus, CollectiveType::all_gather, 65536), all(16, 3 * step(65536) + 3 * step(262144)));
}

TEST(Physical, chunks_are_sent_around_a_ring_in_alternating_directions) {
  // Two chunks of 512 KiB on different links.
  Rig ring = rig({{Wiring::ring, 8}});
  ring.chunks(2);
  EXPECT_EQ(of_collective(ring, CollectiveType::all_reduce, kMiB), all(8, 14 * step(65536)));
}

TEST(Physical, a_group_that_is_a_grid_uses_the_dimensions_in_which_its_ranks_differ) {
  // The second column of 4 x 4: ranks 1, 5, 9, 13 are neighbours in the outer dimension.
  Rig torus = rig({{Wiring::ring, 4}, {Wiring::ring, 4}}, {"ring", "ring"});
  torus.groups = {{"1", {1, 5, 9, 13}}};
  const auto result = simulated(torus, [](std::uint32_t rank) {
    return rank % 4 == 1 ? std::vector{all_reduce(1, kMiB, {}, "1")} : std::vector{node(1, NodeType::metadata)};
  });
  EXPECT_EQ(picoseconds(result)[5], 6 * step(262144));
  for (const auto& link : result.tables->links) { EXPECT_EQ(link.dimension, 1U); }
}

TEST(Physical, a_broadcast_is_a_chain_from_the_first_rank_and_ignores_the_recorded_duration) {
  // Ring of 4, 64 KiB: rank 3 has all data after three steps; the others finish when their copy has left.
  NodeRecord broadcast = collective(1, CollectiveType::broadcast, 65536);
  broadcast.duration_us = 3;
  Rig ring = rig({{Wiring::ring, 4}});
  const std::uint64_t sent = 65536 * 20;
  const Times expected = {sent, step(65536) + sent, 2 * step(65536) + sent, 3 * step(65536)};
  EXPECT_EQ(picoseconds(simulated(ring, [&](std::uint32_t) { return std::vector{broadcast}; })), expected);
}

TEST(Physical, a_list_of_algorithms_without_the_dimension_of_a_collective_is_rejected) {
  const auto torus = [](const std::vector<std::string>& algorithms) {
    return rig({{Wiring::ring, 4}, {Wiring::ring, 4}}, algorithms);
  };
  const auto everywhere = [](std::uint32_t) { return std::vector{all_reduce(1, kMiB)}; };
  const auto refused = run(torus({"ring"}), everywhere);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("over dimension 1, but the system file has 1 algorithm for ALL_REDUCE"),
            std::string::npos)
      << refused.error().text();
  EXPECT_TRUE(run(torus({"oneRing"}), everywhere));  // one ring over both dimensions
}

TEST(Physical, the_double_binary_tree_has_no_all_gather) {
  const auto refused = run(rig({{Wiring::ring, 4}}, {"doubleBinaryTree"}),
                           [](std::uint32_t) { return std::vector{collective(1, CollectiveType::all_gather, 4096)}; });
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("doubleBinaryTree"), std::string::npos);
}

TEST(Physical, a_send_that_no_rank_receives_is_an_error) {
  const auto lost = run(rig({{Wiring::ring, 4}}),
                        at({{0, {send(1, 3, 500), send(2, 3, 700), send(3, 2, 900)}}, {3, {receive(1, 0, 500)}}}));
  ASSERT_FALSE(lost);
  EXPECT_NE(lost.error().text().find("w.0.et rank 0, node 2: sends 700 B with tag 0 to rank 3, which has no matching "
                                     "receive (2 such messages)"),
            std::string::npos)
      << lost.error().text();
}

TEST(Physical, groups_can_have_names) {
  Rig ring = rig({{Wiring::ring, 4}});
  ring.groups = {{"tp", {0, 1}}, {"dp", {2, 3}}};
  const auto result =
      simulated(ring, [](std::uint32_t rank) { return std::vector{all_reduce(1, kMiB, {}, rank < 2 ? "tp" : "dp")}; });
  ASSERT_EQ(result.tables->collectives.size(), 2U);
  EXPECT_EQ(result.tables->collectives[0].group, "tp");
  const auto unknown = run(ring, [](std::uint32_t) { return std::vector{all_reduce(1, kMiB, {}, "pp")}; });
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("has the pg_name \"pp\", but there is no such process group of the 4 ranks"),
            std::string::npos)
      << unknown.error().text();
}

// ---- ranks ---------------------------------------------------------------------------------------------------------

TEST(Physical, ranks_wait_for_a_late_rank_if_they_need_its_data) {
  // All-gather on a ring of 4: rank 0 arrives 100 us late. The blocks of the others are sent up to rank 0 before. Its
  // own block takes 1, 2 and 3 steps to ranks 1, 2 and 3, followed by the blocks that wait at rank 0.
  const auto late = simulated(rig({{Wiring::ring, 4}}), [](std::uint32_t rank) {
    std::vector<NodeRecord> nodes;
    if (rank == 0) { nodes.push_back(compute(1, 100)); }
    nodes.push_back(collective(2, CollectiveType::all_gather, 1000,
                               rank == 0 ? std::vector<std::uint64_t>{1} : std::vector<std::uint64_t>{}));
    return nodes;
  });
  // All blocks for rank 0 arrived before it did. It sends its own and two others, 20 ns each.
  const std::uint64_t start = 100'000'000;
  EXPECT_EQ(picoseconds(late)[0], start + 3 * 20'000);
  EXPECT_EQ(picoseconds(late)[1], start + kHop + 3 * 20'000 + kEndpoint);
}

TEST(Physical, independent_collectives_are_matched_whatever_the_order_in_which_ranks_reach_them) {
  // Rank 0 reaches the large one first, rank 1 the small one.
  const auto result = simulated(rig({{Wiring::ring, 2}}), [](std::uint32_t rank) {
    const std::vector<std::uint64_t> later = {9};
    return std::vector{all_reduce(1, kMiB, rank == 1 ? later : std::vector<std::uint64_t>{}),
                       all_reduce(2, 4096, rank == 0 ? later : std::vector<std::uint64_t>{}), compute(9, 10)};
  });
  EXPECT_GT(result.ranks[0].finish_ns, 10'000U);
}

TEST(Physical, the_times_of_a_rank_by_activity_add_up) {
  // Rank 1 computes 10 us, then waits for a message that departs at 30 us: 20 us idle, then communication.
  const auto result =
      simulated(rig({{Wiring::ring, 2}}),
                at({{0, {compute(1, 30), send(2, 1, kMiB, {1})}}, {1, {compute(1, 10), receive(2, 0, kMiB, {1})}}}));
  const results::RankTimes& times = result.tables->ranks[1];
  EXPECT_EQ(times.compute_ps, 10'000'000U);
  EXPECT_EQ(times.waiting_ps, 20'000'000U);
  EXPECT_EQ(times.idle_ps, 20'000'000U);
  EXPECT_EQ(times.exposed_comm_ps, kHop + kMiBTime);
  EXPECT_EQ(times.finish_ps, 30'000'000 + kHop + kMiBTime);
  EXPECT_EQ(result.ranks[1].idle_ns, 20'000U);
}

TEST(Physical, a_shared_memory_divides_its_bandwidth_equally) {
  // A pool of 50 B/ns: 4 ranks request 100,000 B at the same time, 2 us each alone, 8 us together, after 100 ns of
  // latency.
  Rig pool = rig({{Wiring::ring, 4}});
  pool.memory = {memory::Arrangement::MEMORY_POOL, 100, 50, 1};
  const auto result =
      simulated(pool, [](std::uint32_t) { return std::vector{memory_access(1, NodeType::mem_load, 100'000)}; });
  EXPECT_EQ(picoseconds(result), all(4, 8'100'000));
}

TEST(Physical, metadata_and_nodes_without_duration_end_at_once) {
  const auto result = simulated(rig({{Wiring::ring, 2}}), [](std::uint32_t) {
    return std::vector{node(1, NodeType::metadata), compute(2, 0, {1}), compute(3, 5, {2})};
  });
  EXPECT_EQ(picoseconds(result), all(2, 5'000'000));
}

// ---- what cannot finish --------------------------------------------------------------------------------------------

std::string why(const Rig& rig, const Nodes& nodes) {
  const auto result = run(rig, nodes);
  return result ? "" : result.error().text();
}

TEST(PhysicalDeadlock, receives_without_a_send_are_named) {
  EXPECT_EQ(why(rig({{Wiring::ring, 2}}), at({{1, {receive(4, 0, 64)}}})),
            "w.1.et rank 1, node 4: waits for 64 B with tag 0 from rank 0, which has no matching send (1 of 2 ranks "
            "cannot finish)");
}

TEST(PhysicalDeadlock, ranks_that_never_join_are_named) {
  EXPECT_EQ(why(rig({{Wiring::ring, 2}}), at({{1, {all_reduce(4, 64)}}})),
            "w.1.et rank 1, node 4: waits in ALL_REDUCE of 64 B (all ranks) for rank 0, which never joins (1 of 2 "
            "ranks cannot finish)");
  EXPECT_EQ(why(rig({{Wiring::ring, 2}}), at({{0, {all_reduce(3, 128)}}, {1, {all_reduce(4, 64)}}})),
            "w.0.et rank 0, node 3: waits in ALL_REDUCE of 128 B (all ranks) for rank 1, which runs ALL_REDUCE of 64 "
            "B instead (node 4) (2 of 2 ranks cannot finish)");
}

TEST(PhysicalDeadlock, cycles_are_deadlocks) {
  EXPECT_EQ(why(rig({{Wiring::ring, 2}}),
                at({{0, {receive(1, 1, 64), send(2, 1, 64, {1})}}, {1, {receive(1, 0, 64), send(2, 0, 64, {1})}}})),
            "w.0.et rank 0, node 1: deadlock: rank 0 in node 1 (a receive), which waits for rank 1 in node 1 "
            "(a receive), which waits for rank 0 (2 of 2 ranks cannot finish)");
}

TEST(Physical, a_back_end_without_links_is_rejected) {
  Rig made = rig({{Wiring::ring, 2}});
  made.backend = Backend::congestion_unaware;
  EXPECT_EQ(why(made, at({})), "--semantics physical needs --backend congestion-aware");
}

}  // namespace
}  // namespace orrery::simulate::test::physical_test
