// Collectives under ASTRA-sim's rules, by hand. 50 GiB/s are 53.687 B/ns; H(m) = 500 + m / 53.687 per hop, R(m) = 3 x
// (m / 1600), each rounded down to whole nanoseconds, ED = 10. Values that are not derived here have their traces in
// docs/models/astra-sim.md.
#include <algorithm>

#include <gtest/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::collectives_test {
namespace {

constexpr auto kRing = Wiring::ring;
constexpr auto kFull = Wiring::mesh;
constexpr auto kSwitch = Wiring::switched;

// 2(n-1) messages of c/n one after the other: ED + 2(n-1)(H + ED) + (n-1) R, with c/n = 262144 B: H = 5382, R = 489.
TEST(Ring, an_all_reduce_sends_every_part_around_twice_and_reduces_once) {
  EXPECT_EQ(finish(Rig({{kRing, 4}}, {"ring"}), all_reduce(1, kMiB)), all(4, 10 + 6 * (5382 + 10) + 3 * 489));
}

// n(n-1)/2 messages: the part for the farthest rank takes n-1 hops, and so on. H(262144) = 5382.
TEST(Ring, an_all_to_all_forwards_parts) {
  EXPECT_EQ(finish(Rig({{kRing, 4}}, {"ring"}), collective(1, CollectiveType::all_to_all, kMiB)),
            all(4, 10 + 6 * (5382 + 10)));
}

// The size of an all-gather is that of a rank's shard: n-1 messages of it, no reduction. H(1 MiB) = 20031.
TEST(Ring, an_all_gather_forwards_whole_shards) {
  EXPECT_EQ(finish(Rig({{kRing, 4}}, {"ring"}), collective(1, CollectiveType::all_gather, kMiB)),
            all(4, 10 + 3 * (20031 + 10)));
}

// 4 chunks one after another; a remainder becomes a fifth chunk of full size.
TEST(Ring, a_remainder_makes_one_more_whole_chunk) {
  const auto rig = Rig({{kRing, 8}}, {"ring"}).chunks(4);
  EXPECT_EQ(finish(rig, all_reduce(1, 1'000'000)), all(8, 62788));
  EXPECT_EQ(finish(rig, all_reduce(1, 1'000'003)), all(8, 62788 / 4 * 5));
}

TEST(Ring, queues_of_a_dimension_use_both_directions) {
  auto rig = Rig({{kRing, 5}}, {"ring"}).chunks(4, 4, 4).aware();
  rig.system.optimization = Optimization::baseline;
  EXPECT_EQ(finish(rig, all_reduce(1, kMiB)), all(5, 16136));
}

// Arrivals at 5392, 5392 and 5892, each followed by a reduction of 489. The second half starts after the last arrival,
// with all messages at once: 6391 + 5382 + 10, and 500 more for the farthest.
TEST(Direct, the_second_half_starts_when_all_messages_have_arrived) {
  EXPECT_EQ(finish(Rig({{kRing, 4}}, {"direct"}), all_reduce(1, kMiB)), all(4, 12283));
}

// With slow memory the reductions (3930) end after the last arrival, and the messages of the second half leave one by
// one.
TEST(Direct, the_second_half_starts_message_by_message_if_memory_is_slow) {
  auto rig = Rig({{kRing, 4}}, {"direct"});
  rig.system.local_memory_gb = 200;
  EXPECT_EQ(finish(rig, all_reduce(1, kMiB)), all(4, 15224));
}

TEST(Direct, a_window_limits_the_messages_in_flight) {
  EXPECT_EQ(finish(Rig({{kFull, 8}}, {"direct2"}), all_reduce(1, 256 << 10)), all(8, 9090));
  EXPECT_EQ(finish(Rig({{kRing, 7}}, {"direct3"}).chunks(3, 2).aware(), all_reduce(1, kMiB)), all(7, 48623));
  EXPECT_EQ(
      finish(Rig({{kRing, 6}}, {"direct"}).chunks(2, 2).aware(), collective(1, CollectiveType::all_to_all, 300'000)),
      all(6, 6135));
}

// Four chunks, each with two rounds of seven messages that queue on the link to the switch: 4 x 11850.
TEST(Direct, messages_queue_on_the_links_of_a_switch) {
  EXPECT_EQ(finish(Rig({{kSwitch, 8}}, {"direct"}).chunks(4).aware(), all_reduce(1, kMiB)), all(8, 4 * 11850));
}

TEST(HalvingDoubling, partners_at_powers_of_two_reduce_halves) {
  auto rig = Rig({{kRing, 8}}, {"halvingDoubling"}).aware();
  rig.system.local_memory_gb = 50;
  EXPECT_EQ(finish(rig, all_reduce(1, 1'000'000)), all(8, 85444));
}

// Chunk 0 uses the upper tree, chunk 1 the lower one; a rank finishes when it has sent.
TEST(DoubleBinaryTree, chunks_alternate_between_two_trees) {
  EXPECT_EQ(finish(Rig({{kFull, 8}}, {"doubleBinaryTree"}).chunks(2), all_reduce(1, kMiB)),
            (Times{90068, 122855, 112580, 122855, 101324, 122855, 112580, 122855}));
  EXPECT_EQ(finish(Rig({{kSwitch, 8}}, {"doubleBinaryTree"}).chunks(4, 2).aware(), all_reduce(1, kMiB)),
            (Times{147824, 153726, 152706, 158608, 152706, 158608, 157588, 163490}));
  Times rows;
  for (int i = 0; i < 4; ++i) { rows.insert(rows.end(), {218702, 233396, 226376, 233396}); }
  EXPECT_EQ(finish(Rig({{kFull, 4}, {kRing, 4}}, {"doubleBinaryTree", "ring"}).chunks(3), all_reduce(1, kMiB)), rows);
}

TEST(DoubleBinaryTree, an_all_gather_runs_as_an_all_reduce_with_a_warning_in_a_group_of_all_ranks_too) {
  Rig rig({{kFull, 4}}, {"doubleBinaryTree"});
  rig.groups = {{"1", {0, 1, 2, 3}}};
  for (const char* group : {"", "1"}) {
    const auto result = run(
        rig, [&](std::uint32_t) { return std::vector{collective(1, CollectiveType::all_gather, 4096, {}, group)}; });
    ASSERT_TRUE(result) << result.error().text();
    ASSERT_EQ(result->warnings.size(), 1U) << group;
    EXPECT_EQ(result->warnings.front(),
              "doubleBinaryTree runs an all-reduce in place of other collectives, as in "
              "ASTRA-sim");
  }
}

TEST(Dimensions, localBWAware_reduce_scatters_inside_and_baseline_all_reduces_in_every_dimension) {
  auto rig = Rig({{kRing, 4}, {kRing, 2}}, {"ring", "ring"}).chunks(5, 3, 3);
  rig.dimensions[1].bandwidth = 25;
  rig.dimensions[1].latency_ns = 1000;
  EXPECT_EQ(finish(rig, all_reduce(1, kMiB)), all(8, 37034));
  rig.system.optimization = Optimization::baseline;
  EXPECT_EQ(finish(rig, all_reduce(1, kMiB)), all(8, 29288));
}

TEST(Dimensions, skewed_ranks_of_a_torus_have_different_queue_orders_and_finish) {
  const auto rig = Rig({{kRing, 4}, {kRing, 4}}, {"ring", "ring"}).chunks(2);
  const auto result = run(
      rig, [](std::uint32_t rank) { return std::vector{compute(1, rank == 5 ? 30 : 1), all_reduce(2, kMiB, {1})}; });
  EXPECT_EQ(finish_of(result), (Times{61627, 61165, 60898, 58686, 63969, 66910, 63969, 61028, 63847, 60906, 63118,
                                      60906, 64957, 62016, 64228, 62016}));
}

TEST(Dimensions, a_list_of_fewer_algorithms_leaves_dimensions_out) {
  EXPECT_EQ(finish(Rig({{kRing, 4}, {kRing, 2}}, {"ring"}), all_reduce(1, kMiB)),
            all(8, 10 + 6 * (5382 + 10) + 3 * 489));
}

// Six dimensions of two: each dimension outwards has half the bytes. ASTRA-sim reads out of bounds here; we use all six
// dimensions.
TEST(Dimensions, six_dimensions_are_used) {
  const std::vector<std::pair<Wiring, std::uint32_t>> shape(6, {kRing, 2});
  const auto times = finish(Rig(shape, std::vector<std::string>(6, "ring")), all_reduce(1, kMiB));
  // ChunkPhase i < 5 scatters 2^(20-i) B (one message of half of it), phase 5 reduces 2^15, and back.
  std::uint64_t expected = 0;
  const auto flight = [](std::uint64_t bytes) {
    return 500 + static_cast<std::uint64_t>(static_cast<double>(bytes) / 53.6870912);
  };
  const auto reduce = [](std::uint64_t bytes) {
    return 3 * static_cast<std::uint64_t>(static_cast<double>(bytes) / 1600);
  };
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t half = std::uint64_t{1} << (19 - i);
    expected += 10 + flight(half) + 10 + reduce(half);  // scatter
    expected += 10 + flight(half) + 10;                 // gather
  }
  expected += 10 + 2 * (flight(1 << 14) + 10) + reduce(1 << 14);
  EXPECT_EQ(times, all(64, expected));
}

TEST(Groups, members_are_a_flat_ring_in_the_listed_order_with_an_endpoint_delay_of_10_ns) {
  auto full = Rig({{kFull, 8}}, {"direct2"}).chunks(2);
  full.system.endpoint_delay_ns = 100;
  full.groups = {{"1", {5, 1, 3}}};
  const auto members_only = [](const std::vector<std::uint32_t>& members, const NodeRecord& task) {
    return [members, task](std::uint32_t rank) {
      const bool in = std::find(members.begin(), members.end(), rank) != members.end();
      return std::vector{in ? task : compute(1, 1)};
    };
  };
  auto times = finish_of(run(full, members_only({5, 1, 3}, all_reduce(1, 300'000, {}, "1"))));
  EXPECT_EQ(times, (Times{1000, 6156, 1000, 6156, 1000, 6156, 1000, 1000}));

  auto ring = Rig({{kRing, 8}}, {"ring"}).aware();
  ring.system.endpoint_delay_ns = 100;
  ring.groups = {{"7", {6, 0, 2, 4}}};
  times =
      finish_of(run(ring, members_only({6, 0, 2, 4}, collective(1, CollectiveType::reduce_scatter, kMiB, {}, "7"))));
  EXPECT_EQ(times, (Times{33799, 1000, 33799, 1000, 33799, 1000, 33799, 1000}));
}

TEST(Groups, ranks_with_different_numbers_of_group_chunks_deadlock) {
  auto rig = Rig({{kFull, 4}}, {"ring"});
  rig.groups = {{"1", {0, 1}}};
  const auto result = run(rig, [](std::uint32_t rank) {
    std::vector<NodeRecord> nodes;
    if (rank < 2) { nodes.push_back(all_reduce(1, 4096, {}, "1")); }
    nodes.push_back(all_reduce(2, 4096, rank < 2 ? std::vector<std::uint64_t>{1} : std::vector<std::uint64_t>{}));
    return nodes;
  });
  ASSERT_FALSE(result);
}

TEST(Rendezvous, every_message_waits_for_a_ready_message) {
  auto rig = Rig({{kSwitch, 4}}, {"direct"}).chunks(2).aware();
  rig.system.rendezvous = true;
  EXPECT_EQ(finish(rig, all_reduce(1, kMiB)), all(4, 48818));
}

// The slot that is opened after the last one sends no message, but its bus transfer has twice the bytes of the last.
TEST(SharedBus, the_slot_after_the_last_uses_the_bus) {
  auto rig = Rig({{kFull, 4}}, {"halvingDoubling"});
  rig.system.bus = SharedBus{5, 3, 4, 0.02F};
  rig.system.reduction_delay_ns = 2;
  EXPECT_EQ(finish(rig, collective(1, CollectiveType::all_gather, 65536)), all(4, 15643));
  EXPECT_EQ(finish(rig, all_reduce(1, 65536)), all(4, 8387));
}

// 7 B: messages of 3 B, 1 B and 0 B.
TEST(SharedBus, a_bus_transfer_of_0_bytes_is_short) {
  auto rig = Rig({{kFull, 4}}, {"halvingDoubling"});
  rig.system.bus = SharedBus{5, 3, 4, 0.02F};
  rig.system.reduction_delay_ns = 2;
  EXPECT_EQ(finish(rig, collective(1, CollectiveType::reduce_scatter, 7)), all(4, 1136));
}

// Two chunks in two queues run concurrently. With localBWAware all chunks of an all-reduce use the first half of the
// queues, also in a group, and are serialized.
TEST(Group, an_all_reduce_uses_half_of_the_queues_with_localBWAware) {
  auto rig = Rig({{kRing, 4}}, {"ring"}).chunks(2, 2, 2);
  rig.groups = {{"7", {0, 1}}};
  const auto of_two = [&](std::uint32_t rank) {
    return rank < 2 ? std::vector{all_reduce(1, kMiB, {}, "7")} : std::vector{compute(1, 1)};
  };
  const Times serialized = finish_of(run(rig, of_two));
  rig.system.optimization = Optimization::baseline;
  const Times concurrent = finish_of(run(rig, of_two));
  EXPECT_EQ(serialized[0], 2 * concurrent[0]);
}

TEST(Group, without_a_list_of_algorithms_the_algorithm_is_a_ring) {
  auto rig = Rig({{kRing, 4}}, {"ring"});
  rig.groups = {{"7", {0, 1, 2}}};
  const auto of_three = [&](std::uint32_t rank) {
    return rank < 3 ? std::vector{all_reduce(1, kMiB, {}, "7")} : std::vector{compute(1, 1)};
  };
  const Times listed = finish_of(run(rig, of_three));
  for (Choice& choice : rig.system.algorithms) { choice = std::vector<DimensionAlgorithm>{}; }
  EXPECT_EQ(finish_of(run(rig, of_three)), listed);
}

TEST(SharedBus, delays_are_transfers_over_a_bus_of_two_stages) {
  const auto rig = [](Wiring wiring, const std::string& name) {
    auto made = Rig({{wiring, 4}}, {name}).chunks(2, 2);
    made.system.bus = SharedBus{5, 3, 4, 0.02F};
    made.system.reduction_delay_ns = 2;
    return made;
  };
  EXPECT_EQ(finish(rig(kRing, "ring"), all_reduce(1, 65536)), all(4, 7599));
  EXPECT_EQ(finish(rig(kFull, "direct"), all_reduce(1, 65536)), all(4, 3506));
  EXPECT_EQ(finish(rig(kFull, "doubleBinaryTree"), all_reduce(1, 65536)), all(4, 14654));
}

}  // namespace
}  // namespace orrery::simulate::test::collectives_test
