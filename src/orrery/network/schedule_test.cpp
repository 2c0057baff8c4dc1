// The bytes that schedules send, derived by hand.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"

namespace orrery::network::schedule_test {
namespace {

using test::group_of;

// Bytes that a member sends along a dimension.
double sent(const Schedule& schedule, int dimension) {
  double bytes = 0.0;
  for (const SchedulePhase& phase : schedule.phases) {
    if (phase.dimension != dimension) { continue; }
    const bool sent_once = phase.pattern == Pattern::tree_up || phase.pattern == Pattern::tree_down ||
                           phase.pattern == Pattern::chain;  // a member takes part in one step of each
    bytes += phase.sent_per_step.value() * static_cast<double>(sent_once ? 1 : phase.steps);
  }
  return bytes;
}

TEST(Schedule, all_reduce_ring_moves_2_n_minus_1_over_n_bytes_per_member) {
  for (const std::int64_t n : {2, 3, 5, 8, 64}) {
    const Schedule s = make_schedule(Collective::all_reduce, CollectiveAlgorithm::ring, Bytes(960.0), group_of({n}));
    const auto count = static_cast<double>(n);
    EXPECT_NEAR(sent(s, 0), 2 * (count - 1) / count * 960.0, 1e-9);
    ASSERT_EQ(s.phases.size(), 2U);
    EXPECT_EQ(s.phases[0].steps + s.phases[1].steps, 2 * (n - 1));
  }
}

TEST(Schedule, half_an_all_reduce_moves_n_minus_1_over_n_bytes_per_member) {
  // 8 members, 800 bytes in all: 7 shards of 100 bytes, in 7 steps or in one.
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    const Schedule ring = make_schedule(collective, CollectiveAlgorithm::ring, Bytes(800.0), group_of({8}));
    const Schedule direct = make_schedule(collective, CollectiveAlgorithm::direct, Bytes(800.0), group_of({8}));
    EXPECT_DOUBLE_EQ(sent(ring, 0), 700.0);
    EXPECT_DOUBLE_EQ(sent(direct, 0), 700.0);
    EXPECT_EQ(ring.phases[0].steps, 7);
    EXPECT_EQ(direct.phases[0].steps, 1);
  }
}

TEST(Schedule, tree_all_reduce_moves_each_byte_up_once_and_down_once) {
  const Schedule s = make_schedule(Collective::all_reduce, CollectiveAlgorithm::tree, Bytes(800.0), group_of({9}));
  EXPECT_DOUBLE_EQ(sent(s, 0), 1600.0);
  EXPECT_EQ(s.phases[0].steps, 4);  // ceil(log2 9)
  EXPECT_EQ(s.phases[1].steps, 4);
}

TEST(Schedule, in_switch_all_reduce_moves_n_plus_1_over_n_bytes_in_each_direction) {
  // Up: the whole buffer (800) and the own reduced shard for the multicast (100). Down: one reduced shard (100) and all
  // shards (800).
  const Schedule s = make_schedule(Collective::all_reduce, CollectiveAlgorithm::in_switch, Bytes(800.0), group_of({8}));
  EXPECT_DOUBLE_EQ(sent(s, 0), 900.0);
  EXPECT_DOUBLE_EQ((s.phases[0].received_per_step + s.phases[1].received_per_step).value(), 900.0);
}

TEST(Schedule, hierarchical_all_reduce_sends_only_a_shard_across_the_outer_dimension) {
  // 4 x 3 members, 1200 bytes: 3/4 x 1200 in the reduce_scatter and in the all_gather inside; 2 x 2/3 of the shard of
  // 300 across.
  const Schedule s = make_schedule(Collective::all_reduce, CollectiveAlgorithm::ring, Bytes(1200.0), group_of({4, 3}));
  EXPECT_DOUBLE_EQ(sent(s, 0), 1800.0);
  EXPECT_DOUBLE_EQ(sent(s, 1), 400.0);
  ASSERT_EQ(s.phases.size(), 4U);
  EXPECT_EQ(s.phases[0].dimension, 0);
  EXPECT_EQ(s.phases[1].dimension, 1);
  EXPECT_EQ(s.phases[3].dimension, 0);
}

TEST(Schedule, hierarchical_all_gather_crosses_the_outer_dimension_first) {
  // 4 x 3 members, shards of 100 bytes: 2 shards across, then 3 blocks of 3 shards inside.
  const Schedule s = make_schedule(Collective::all_gather, CollectiveAlgorithm::ring, Bytes(1200.0), group_of({4, 3}));
  ASSERT_EQ(s.phases.size(), 2U);
  EXPECT_EQ(s.phases[0].dimension, 1);
  EXPECT_DOUBLE_EQ(sent(s, 1), 200.0);
  EXPECT_DOUBLE_EQ(sent(s, 0), 900.0);
}

TEST(Schedule, reduce_scatter_mirrors_all_gather) {
  const Schedule in =
      make_schedule(Collective::reduce_scatter, CollectiveAlgorithm::ring, Bytes(1200.0), group_of({4, 3}));
  const Schedule out =
      make_schedule(Collective::all_gather, CollectiveAlgorithm::ring, Bytes(1200.0), group_of({4, 3}));
  ASSERT_EQ(in.phases.size(), out.phases.size());
  for (std::size_t p = 0; p < in.phases.size(); ++p) {
    const SchedulePhase& mirror = out.phases[out.phases.size() - 1 - p];
    EXPECT_EQ(in.phases[p].dimension, mirror.dimension);
    EXPECT_EQ(in.phases[p].steps, mirror.steps);
    EXPECT_DOUBLE_EQ(in.phases[p].sent_per_step.value(), mirror.sent_per_step.value());
  }
}

TEST(Schedule, all_to_all_runs_dimension_by_dimension) {
  // 4 x 3 members, 1200 bytes each: 3/4 of them change the inner coordinate, 2/3 the outer one.
  const Schedule s =
      make_schedule(Collective::all_to_all, CollectiveAlgorithm::direct, Bytes(1200.0), group_of({4, 3}));
  EXPECT_DOUBLE_EQ(sent(s, 0), 900.0);
  EXPECT_DOUBLE_EQ(sent(s, 1), 800.0);
  // Around a ring of 4, shards of 300 bytes take 1, 2 and 1 hops; around one of 5, shards of 240 bytes 1, 2, 2 and 1.
  const Schedule four = make_schedule(Collective::all_to_all, CollectiveAlgorithm::ring, Bytes(1200.0), group_of({4}));
  EXPECT_DOUBLE_EQ(sent(four, 0), 1200.0);
  EXPECT_EQ(four.phases[0].steps, 2);
  const Schedule five = make_schedule(Collective::all_to_all, CollectiveAlgorithm::ring, Bytes(1200.0), group_of({5}));
  EXPECT_DOUBLE_EQ(sent(five, 0), 1440.0);
}

TEST(Schedule, broadcast_sends_a_part_of_the_buffer_through_every_nic_of_a_node) {
  // 4 x 3 members, 1200 bytes: the root scatters 900, each of 4 members sends 300 across, the node gathers 900.
  const Schedule s = make_schedule(Collective::broadcast, CollectiveAlgorithm::ring, Bytes(1200.0), group_of({4, 3}));
  EXPECT_DOUBLE_EQ(sent(s, 0), 1800.0);
  EXPECT_DOUBLE_EQ(sent(s, 1), 300.0);
}

TEST(Schedule, an_irregular_group_is_one_ring_on_its_outermost_dimension) {
  Group group = group_of({4, 3});
  group.regular = false;
  const Schedule s = make_schedule(Collective::all_reduce, CollectiveAlgorithm::ring, Bytes(1200.0), group);
  ASSERT_EQ(s.phases.size(), 2U);
  EXPECT_EQ(s.phases[0].dimension, 1);
  EXPECT_EQ(s.phases[0].members, 12);
}

TEST(Schedule, algorithms_that_a_collective_does_not_have_give_no_phases) {
  const Group group = group_of({4, 3});
  for (const Collective c : {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
    EXPECT_TRUE(make_schedule(c, CollectiveAlgorithm::tree, Bytes(8.0), group).phases.empty());
  }
  EXPECT_TRUE(make_schedule(Collective::all_to_all, CollectiveAlgorithm::in_switch, Bytes(8.0), group).phases.empty());
  EXPECT_TRUE(make_schedule(Collective::all_reduce, CollectiveAlgorithm::automatic, Bytes(8.0), group).phases.empty());
}

}  // namespace
}  // namespace orrery::network::schedule_test
