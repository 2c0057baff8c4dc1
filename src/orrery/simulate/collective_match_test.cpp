#include <gtest/gtest.h>

#include "orrery/simulate/collective_match.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::collective_match_test {
namespace {

// From every place where the search can start, for every collective between other nodes.
TEST(CollectiveMatch, a_search_from_any_place_finds_what_the_binary_search_finds) {
  constexpr std::uint32_t kCollectives = 7;
  std::vector<NodeRecord> graph;
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    graph.push_back(compute(3 * i + 1, 1));
    if (i % 2 == 0) { graph.push_back(compute(3 * i + 2, 1)); }
    graph.push_back(collective(3 * i + 3, CollectiveType::all_reduce, 1000 + i % 3));
  }
  const Rig rig = Rig({{Wiring::ring, 4}}, {"ring"}).physical();
  const auto job = job_of(rig, [&](std::uint32_t) { return graph; });
  ASSERT_TRUE(job) << job.error().text();
  const CollectiveMatch match(*job);
  EXPECT_EQ(match.all().size(), kCollectives);
  const auto& nodes = job->rank_graphs[1].nodes;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node].act != Act::collective) { continue; }
    for (std::uint32_t start = 0; start < kCollectives; ++start) {
      std::uint32_t place = start;
      EXPECT_EQ(match.collective_of(1, node, place), match.collective_of(1, node));
      EXPECT_EQ(match.node_of(1, match.collective_of(1, node)), node);
      std::uint32_t again = place;
      EXPECT_EQ(match.collective_of(1, node, again), match.collective_of(1, node));
      EXPECT_EQ(again, place);
    }
  }
}

}  // namespace
}  // namespace orrery::simulate::test::collective_match_test
