// Sizes of composed schedules. exactly_once_test.cpp checks what their messages do.
#include "orrery/network/composition.hpp"

#include <bit>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/network/test_cluster.hpp"
#include "orrery/network/test_collectives.hpp"

namespace orrery::network::composition_test {
namespace {

using test::group_of;

TEST(Composition, blocks_together_have_the_bytes_of_the_buffer) {
  const std::vector<std::vector<std::int64_t>> shapes = {{2}, {3}, {8}, {9}, {2, 4}, {4, 3}, {8, 2}, {2, 3, 2}};
  int schedules = 0;
  for (const auto& shape : shapes) {
    const Group group = group_of(shape);
    for (const Collective collective : test::kPricedCollectives) {
      for (const CollectiveAlgorithm algorithm : test::kScheduleAlgorithms) {
        for (const std::int64_t chunks : {1, 3}) {
          Schedule schedule = make_schedule(collective, algorithm, Bytes(720720.0), group);
          if (schedule.phases.empty()) { continue; }
          schedule.chunks = chunks;
          const Composition composition = compose(schedule, group);
          // all_to_all has a row of blocks, the whole buffer, for every member.
          const double rows = collective == Collective::all_to_all ? static_cast<double>(group.size()) : 1.0;
          EXPECT_NEAR(composition.block_bytes.value() * static_cast<double>(composition.blocks) / rows, 720720.0, 1e-6);
          ++schedules;
        }
      }
    }
  }
  EXPECT_EQ(schedules, 8 * 2 * (5 + 4 + 4 + 2 + 4));
}

TEST(Composition, a_group_of_one_has_no_messages) {
  for (const CollectiveAlgorithm algorithm : test::kScheduleAlgorithms) {
    const Schedule schedule = make_schedule(Collective::all_reduce, algorithm, Bytes(8.0), group_of({1}));
    EXPECT_TRUE(compose(schedule, group_of({1})).transfers.empty());
  }
}

TEST(Composition, no_member_has_more_than_two_children_or_two_parents_over_both_trees) {
  for (std::int64_t n = 2; n <= 70; ++n) {
    const Schedule schedule =
        make_schedule(Collective::all_reduce, CollectiveAlgorithm::tree, Bytes(1e6), group_of({n}));
    std::vector<int> children(static_cast<std::size_t>(n), 0), parents = children;
    for (const Transfer& transfer : compose(schedule, group_of({n})).transfers) {
      if (schedule.phases[transfer.phase].pattern != Pattern::tree_up) { continue; }
      EXPECT_LT(transfer.step, std::bit_width(static_cast<std::uint64_t>(n - 1))) << n;  // ceil(log2 n) levels
      ++children[static_cast<std::size_t>(transfer.destination)];
      ++parents[static_cast<std::size_t>(transfer.source)];
    }
    int edges = 0;
    for (std::size_t i = 0; i < children.size(); ++i) {
      EXPECT_LE(children[i], 2) << n;
      EXPECT_LE(parents[i], 2) << n;
      edges += children[i];
    }
    EXPECT_EQ(edges, 2 * (n - 1)) << n;  // two trees with one root each
  }
}

}  // namespace
}  // namespace orrery::network::composition_test
