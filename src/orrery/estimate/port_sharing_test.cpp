#include "orrery/estimate/port_sharing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::estimate::port_sharing_test {
namespace {

// A block that is one call on dimension 0.
PortUses one_call(double time, double load) {
  PortUses uses;
  uses.used = 1;
  uses.time = Seconds(time);
  PortUse& use = uses.dimensions[0];
  const bool is_small = 2.0 * load <= time;
  (is_small ? use.small_time : use.time) = Seconds(time);
  (is_small ? use.small_load : use.load) = Seconds(load);
  use.contended = Seconds(std::max(time, 2.0 * load));
  uses.contended_on = 1;
  return uses;
}

TEST(PortSharing, calls_that_fill_a_port_have_half_of_it_each) {
  const Sharing both = sharing(one_call(3.0, 3.0), one_call(5.0, 5.0));
  EXPECT_DOUBLE_EQ(both.longer, 1.0);
  EXPECT_DOUBLE_EQ(both.progress, 1.0);
}

TEST(PortSharing, calls_that_fit_together_keep_their_speeds) {
  EXPECT_FALSE(sharing(one_call(3.0, 1.2), one_call(5.0, 2.5)).any());
}

// A quarter of the port is less than half of it: the small call keeps its speed, and three quarters are left.
TEST(PortSharing, a_small_call_keeps_its_speed) {
  const Sharing small = sharing(one_call(4.0, 1.0), one_call(1.0, 1.0));
  EXPECT_DOUBLE_EQ(small.longer, 0.0);
  EXPECT_DOUBLE_EQ(small.progress, 0.75);
  const Sharing large = sharing(one_call(1.0, 1.0), one_call(4.0, 1.0));
  EXPECT_DOUBLE_EQ(large.longer, 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(large.progress, 4.0 / 3.0);
}

TEST(PortSharing, other_dimensions_are_not_shared) {
  PortUses concurrent = one_call(1.0, 1.0);
  std::swap(concurrent.dimensions[0], concurrent.dimensions[1]);
  concurrent.used = 2;
  EXPECT_FALSE(sharing(one_call(1.0, 1.0), concurrent).any());
}

// Three blocks of 2 s on the port and one of 1 s without calls, 7 s in all. Beside reductions that fill the port the
// three take 4 s each, so all take 13 s. The reductions pass 6 s of their time at half speed during 12 s, and 1 s
// during the block without calls.
TEST(PortSharing, tasks_of_several_blocks_count_as_one_block) {
  PortUses silent;
  silent.time = Seconds(1.0);
  PortUses tasks;
  add_executions(tasks, 3.0, one_call(2.0, 2.0), 1);
  add_executions(tasks, 1.0, silent, 1);
  EXPECT_DOUBLE_EQ(tasks.time.value(), 7.0);
  PortUses paused;
  add_executions(paused, 3.0, one_call(2.0, 2.0), 1);
  add_pause(paused, Seconds(1.0), 1);
  EXPECT_DOUBLE_EQ(sharing(paused, one_call(1.0, 1.0)).progress, sharing(tasks, one_call(1.0, 1.0)).progress);
  EXPECT_DOUBLE_EQ(sharing(paused, one_call(1.0, 1.0)).longer, sharing(tasks, one_call(1.0, 1.0)).longer);
  const Sharing both = sharing(tasks, one_call(1.0, 1.0));
  EXPECT_DOUBLE_EQ(7.0 * (1.0 + both.longer), 13.0);
  EXPECT_DOUBLE_EQ(7.0 * both.progress, 7.0);
}

// Per second of the block alone, the port carries its load and that of the others: never more than the wall time.
RC_GTEST_PROP(PortSharing, no_port_carries_more_than_its_bandwidth, ()) {
  const auto share = [] { return *rc::gen::inRange(1, 101) * 0.01; };
  const double a = share(), b = share();
  const Sharing both = sharing(one_call(1.0, a), one_call(1.0, b));
  RC_ASSERT(a + both.progress * b <= (1.0 + both.longer) * (1.0 + 1e-9));
  RC_ASSERT(both.longer >= 0.0);
  RC_ASSERT(both.progress <= 1.0 + both.longer);
}

}  // namespace
}  // namespace orrery::estimate::port_sharing_test
