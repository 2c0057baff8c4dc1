// Messages of direct collectives that are handled together, compared with the same messages handled one by one. With a
// second dimension of one rank, which has no messages, nothing is handled together.
#include <algorithm>
#include <array>
#include <iostream>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::direct_exchanges_test {
namespace {

Rig rig_of(RandomNumbers& random) {
  const std::array<std::string, 5> names = {"direct", "direct", "direct1", "direct2", "direct3"};
  const Wiring wiring = random.below(3) == 0 ? Wiring::mesh : Wiring::switched;
  const std::uint32_t ranks = 2 + random.below(9);
  Rig rig({{wiring, ranks}}, {names[random.below(names.size())]});
  rig.dimensions[0].latency_ns = random.below(4) * random.below(1000);
  if (random.below(4) == 0) {  // other algorithms whose messages have the same size
    rig.system.algorithms[0] = std::vector{algorithm("ring").value()};
  }
  rig.chunks(1 + random.below(4), 1 + random.below(4), 1 + random.below(3));
  rig.system.optimization = static_cast<Optimization>(random.below(2));
  rig.system.endpoint_delay_ns = random.below(2) * random.below(600);
  rig.system.local_memory_gb = random.below(2) * 100;
  std::vector<std::uint32_t> members;
  for (std::uint32_t rank = ranks; rank-- > 0;) {
    if (rank < 2 || random.below(2) == 0) { members.push_back(rank); }
  }
  rig.groups = {{"1", members}};
  return rig;
}

Rig with_messages_one_by_one(Rig rig) {
  rig.dimensions.push_back({Wiring::ring, 1});
  return rig;
}

enum class Ranks { alike, exchange_for_reduce_scatter, mixed };

// Collectives of few sizes after compute nodes of random durations. Ranks that are not alike run some other
// collectives: all-to-alls instead of reduce-scatters and the reverse, whose messages match; or any, or one less. Then
// chunks of different collectives have the same number.
std::vector<NodeRecord> nodes_of(RandomNumbers shared, RandomNumbers own, Ranks ranks, bool in_group) {
  std::vector<NodeRecord> nodes;
  for (std::uint64_t id = 1; id < 10; id += 2) {
    std::vector<std::uint64_t> parents;
    if (id > 1) { parents.push_back(id - 1 - shared.below(2)); }
    nodes.push_back(compute(id, own.below(2) * own.below(30), parents));
    auto type = static_cast<CollectiveType>(std::array{0, 0, 2, 6, 7}[shared.below(5)]);
    const std::int64_t bytes = std::int64_t{1} << (12 + 3 * shared.below(3));
    const bool small = shared.below(3) == 0;
    if (small && !in_group) { continue; }
    if (ranks == Ranks::mixed && own.below(8) == 0) {
      if (own.below(2) == 0) { continue; }
      type = static_cast<CollectiveType>(std::array{0, 2, 6, 7}[own.below(4)]);
    }
    const bool matches = type == CollectiveType::reduce_scatter || type == CollectiveType::all_to_all;
    if (ranks == Ranks::exchange_for_reduce_scatter && matches) {
      type = own.below(2) == 0 ? CollectiveType::reduce_scatter : CollectiveType::all_to_all;
    }
    nodes.push_back(collective(id + 1, type, bytes, {id}, small ? "1" : ""));
  }
  // Parents that do not exist are left out.
  for (NodeRecord& record : nodes) {
    for (std::uint64_t& parent : record.data_deps) {
      const bool exists =
          std::any_of(nodes.begin(), nodes.end(), [&](const NodeRecord& each) { return each.id == parent; });
      if (!exists) { parent -= 1; }
    }
  }
  return nodes;
}

// Of a deadlock: how many ranks cannot finish. Which of several causes is named depends on the order of chunks in
// memory.
std::string outcome(const Result<results::Simulation>& result) {
  if (!result) { return result.error().text().substr(result.error().text().rfind('(')); }
  std::string text = std::to_string(result->events) + " events, " + std::to_string(result->messages) + " messages\n";
  for (const auto& rank : result->ranks) { text += std::to_string(rank.finish_ns) + "\n"; }
  return text;
}

int finished_jobs(Ranks ranks, std::uint64_t jobs) {
  int finished = 0;
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    RandomNumbers random(seed);
    const Rig rig = rig_of(random);
    const auto nodes = [&](std::uint32_t rank) {
      const auto& group = rig.groups[0].ranks;
      const bool in_group = std::find(group.begin(), group.end(), rank) != group.end();
      return nodes_of(RandomNumbers(seed), RandomNumbers(seed * 1000 + rank), ranks, in_group);
    };
    const auto together = run(rig, nodes);
    const auto one_by_one = run(with_messages_one_by_one(rig), nodes);
    EXPECT_EQ(outcome(together), outcome(one_by_one)) << seed;
    if (::testing::Test::HasFailure()) { return 0; }
    finished += together ? 1 : 0;
  }
  return finished;
}

TEST(DirectExchanges, random_starts_have_the_times_of_messages_one_by_one) {
  const std::uint64_t jobs = orrery::test::cases(1000U);
  const int finished = finished_jobs(Ranks::alike, jobs);
  EXPECT_GT(finished, orrery::test::cases(300));
  std::cout << "  " << finished << " of " << jobs << " jobs finish\n";
}

TEST(DirectExchanges, ranks_that_run_other_collectives_have_the_times_of_messages_one_by_one) {
  const std::uint64_t jobs = orrery::test::cases(1000U);
  const int exchanged = finished_jobs(Ranks::exchange_for_reduce_scatter, jobs);
  EXPECT_GT(exchanged, orrery::test::cases(300));
  const int mixed = finished_jobs(Ranks::mixed, 2 * jobs);
  EXPECT_GT(mixed, orrery::test::cases(50));
  std::cout << "  " << exchanged << " of " << jobs << " jobs and " << mixed << " of " << 2 * jobs << " finish\n";
}

}  // namespace
}  // namespace orrery::simulate::test::direct_exchanges_test
