// Collectives in a switch under ASTRA-sim's rules, by hand: 4 members and the switch, rank 4, in a full mesh of 5, 25
// GiB/s (26.84 B/ns) and 1 ns, as in the example of the branch. H(m) = trunc(1 + m / 26.84); no endpoint delay.
#include <gtest/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::phase_switch_test {
namespace {

Rig mesh_of_5() {
  Rig rig({}, {});
  rig.dimensions = {{Wiring::mesh, 5, 25, 1}};
  rig.use({"ring"});
  rig.groups = {{"7", {3, 1, 0, 2}}};
  return rig;
}

NodeRecord in_switch(CollectiveType type, std::int64_t bytes, std::string_view group = "7") {
  NodeRecord made = collective(1, type, bytes, {}, group);
  made.attributes.push_back({keys::in_switch, Value::boolean(true), {}, {}});
  return made;
}

Result<results::Simulation> run_members(const Rig& rig, const NodeRecord& node, std::uint64_t late_us = 0) {
  return run(rig, [&](std::uint32_t rank) {
    if (rank == 4) { return std::vector{compute(1, 1)}; }
    if (rank != 2 || late_us == 0) { return std::vector{node}; }
    NodeRecord late = node;
    late.id = 2;
    late.data_deps = {1};
    return std::vector{compute(1, late_us), late};
  });
}

std::uint64_t time_of(const Rig& rig, const NodeRecord& node) {
  const auto result = run_members(rig, node);
  if (!result) { throw std::runtime_error(result.error().text()); }
  return result->makespan_ns();
}

// H(1 MiB) = 39063; the switch reduces for 100 ns. An all-gather of shards of 1 MiB returns 3 MiB: H = 117188; an
// all-to-all moves 3/4 MiB both ways: H = 29297; a reduce-scatter returns 1/4 MiB: H = 9766.
TEST(InSwitch, members_send_once_and_get_one_message_back) {
  for (const bool aware : {false, true}) {
    Rig rig = mesh_of_5();
    if (aware) { rig.aware(); }
    EXPECT_EQ(time_of(rig, in_switch(CollectiveType::all_reduce, kMiB)), 39063U + 100 + 39063);
    EXPECT_EQ(time_of(rig, in_switch(CollectiveType::reduce_scatter, kMiB)), 39063U + 100 + 9766);
    EXPECT_EQ(time_of(rig, in_switch(CollectiveType::all_gather, kMiB)), 39063U + 117188);
    EXPECT_EQ(time_of(rig, in_switch(CollectiveType::all_to_all, kMiB)), 29297U + 29297);
  }
}

// H(512 KiB) = 19532: two chunks one after the other, or both at once where two may be active.
TEST(InSwitch, chunks_wait_for_their_queue) {
  const NodeRecord node = in_switch(CollectiveType::all_reduce, kMiB);
  EXPECT_EQ(time_of(mesh_of_5().chunks(2, 1), node), 2U * (19532 + 100 + 19532));
  EXPECT_EQ(time_of(mesh_of_5().chunks(2, 2), node), 19532U + 100 + 19532);
}

TEST(InSwitch, the_switch_waits_for_the_last_member) {
  const auto result = run_members(mesh_of_5(), in_switch(CollectiveType::all_reduce, kMiB), 70);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->makespan_ns(), 70'000U + 39063 + 100 + 39063);
}

// Without the attribute the group is a ring of 4 with an endpoint delay: 10 + 6 (H(256 KiB) + 10) + 3 x 489.
TEST(InSwitch, only_nodes_with_the_attribute_use_it) {
  EXPECT_EQ(time_of(mesh_of_5(), collective(1, CollectiveType::all_reduce, kMiB, {}, "7")),
            10U + 6 * (9766 + 10) + 3 * 489);
}

TEST(InSwitch, the_group_must_be_all_ranks_but_the_switch) {
  Rig rig = mesh_of_5();
  rig.groups = {{"7", {0, 1, 2, 3}}, {"8", {0, 1}}};
  const auto result = run(rig, [&](std::uint32_t rank) {
    return std::vector{rank < 2 ? in_switch(CollectiveType::all_reduce, kMiB, "8") : compute(1, 1)};
  });
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text().find("has in_switch, but its group is not ranks 0 to 3; rank 4, the last one, is the "
                                       "switch"),
            std::string::npos)
      << result.error().text();
}

}  // namespace
}  // namespace orrery::simulate::test::phase_switch_test
