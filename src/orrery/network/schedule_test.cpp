// The bytes that schedules send, derived by hand.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/network/chunking.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/network/test_collectives.hpp"

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

// ---- figures of phases follow from the steps of members -----------------------------------------------------------

struct Sums {
  double sent = 0.0, received = 0.0, reduced = 0.0;  // of the busiest member
};

enum class Over : std::uint8_t { busiest_step, mean_step, all_steps };

// Blocks of a line's members by its member schedule.
Sums sums_of(const MemberSchedule& line, const LineSteps& steps, Over over, double switch_returns) {
  Sums busiest;
  std::vector<Sums> total(line.members);
  for (std::uint32_t step = steps.first; step < steps.first + steps.count; ++step) {
    std::vector<Sums> now(line.members);
    for (std::uint32_t member = 0; member < participant_count(line); ++member) {
      for (std::uint32_t i = 0; i < send_count(line, member, step); ++i) {
        const StepMessage message = send(line, member, step, i);
        const double blocks = message.count;
        if (member < line.members) { now[member].sent += blocks; }
        if (message.peer >= line.members) { continue; }
        now[message.peer].received += blocks + (member >= line.members ? switch_returns : 0.0);
        if (message.reduces) { now[message.peer].reduced += blocks; }
      }
    }
    for (std::uint32_t member = 0; member < line.members; ++member) {
      const auto add = [&](double Sums::* figure) {
        total[member].*figure += now[member].*figure;
        if (over == Over::busiest_step) { busiest.*figure = std::max(busiest.*figure, now[member].*figure); }
      };
      add(&Sums::sent);
      add(&Sums::received);
      add(&Sums::reduced);
    }
  }
  if (over == Over::busiest_step) { return busiest; }
  const double count = over == Over::mean_step ? steps.count : 1.0;
  for (const Sums& sums : total) {
    busiest.sent = std::max(busiest.sent, sums.sent / count);
    busiest.received = std::max(busiest.received, sums.received / count);
    busiest.reduced = std::max(busiest.reduced, sums.reduced / count);
  }
  return busiest;
}

// The bytes that a line of the phase works on; SchedulePhase has them only as figures per step.
TEST(Schedule, figures_of_phases_are_those_of_the_busiest_member) {
  int phases = 0;
  for (std::int64_t n = 2; n <= 33; ++n) {
    for (const Collective collective : test::kPricedCollectives) {
      for (const CollectiveAlgorithm algorithm : test::kScheduleAlgorithms) {
        const Bytes bytes(5040.0);
        const Schedule schedule = make_schedule(collective, algorithm, bytes, group_of({n}));
        for (const SchedulePhase& phase : schedule.phases) {
          const MemberSchedule line = line_schedule(collective, phase);
          const LineSteps steps = line_steps(collective, phase);
          ASSERT_EQ(refusal(line), "");
          const bool tree = phase.pattern == Pattern::tree_up || phase.pattern == Pattern::tree_down;
          if (!tree) { EXPECT_EQ(steps.count, step_count(line)); }
          const double block = bytes.value() / block_count(line);
          const double returned = phase.pattern == Pattern::switch_down ? 1.0 : 0.0;
          // Levels of a tree or chain run at the same time, for different chunks.
          const Over over = level_per_step(phase.pattern)          ? Over::all_steps
                            : collective == Collective::all_to_all ? Over::mean_step
                                                                   : Over::busiest_step;
          const Sums sums = sums_of(line, steps, over, returned);
          SCOPED_TRACE(testing::Message() << "members " << n << " collective " << static_cast<int>(collective)
                                          << " pattern " << static_cast<int>(phase.pattern));
          constexpr double slack = 1e-9;
          EXPECT_NEAR(phase.sent_per_step.value(), sums.sent * block, slack);
          EXPECT_NEAR(phase.received_per_step.value(), sums.received * block, slack);
          if (phase.reduces && phase.pattern != Pattern::switch_up) {
            EXPECT_NEAR(phase.reduced_per_step.value(), sums.reduced * block, slack);
          }
          ++phases;
        }
      }
    }
  }
  EXPECT_GT(phases, 700);
}

}  // namespace
}  // namespace orrery::network::schedule_test
