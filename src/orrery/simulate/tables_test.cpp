// Tables of a run: times of ranks by activity, and traffic of links.
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "orrery/network/member_schedule.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::tables_test {
namespace {

using results::SimulatedLink;
using results::SimulationTables;

SimulationTables tables_of(const Rig& rig, const Nodes& nodes) {
  auto job = job_of(rig, nodes).value();
  job.spans = job.tables = true;
  return simulate(job).value().tables.value();
}
SimulationTables tables_of(const Rig& rig, const NodeRecord& only) {
  return tables_of(rig, [&](std::uint32_t) { return std::vector{only}; });
}

// 53688 B take 1000 ns at 53.687 B/ns; a message of one hop takes 1500 ns.
constexpr std::int64_t kMicrosecond = 53'688;

// Rank 0 computes 5 us and sends; rank 1 computes 1 us, and its receive runs from the start.
TEST(Tables, a_receive_whose_message_has_not_departed_is_waiting_and_idle) {
  const auto rig = Rig({{Wiring::mesh, 2}}, {"ring"});
  const auto tables = tables_of(rig, [](std::uint32_t rank) {
    if (rank == 0) { return std::vector{compute(1, 5), send(2, 1, kMicrosecond, {1})}; }
    return std::vector{compute(1, 1), receive(2, 0, kMicrosecond)};
  });
  const auto& times = tables.ranks[1];
  EXPECT_EQ(times.finish_ps, 6'500'000U);
  EXPECT_EQ(times.compute_ps, 1'000'000U);
  EXPECT_EQ(times.comm_ps, 1'500'000U);  // from 5 us on
  EXPECT_EQ(times.exposed_comm_ps, 1'500'000U);
  EXPECT_EQ(times.idle_ps, 4'000'000U);  // 1 us to 5 us
  EXPECT_EQ(times.waiting_ps, 4'000'000U);
  EXPECT_EQ(tables.ranks[0].idle_ps, 0U);
}

// Of two messages with the same sender, tag and size the second receive gets the second.
TEST(Tables, the_second_receive_waits_for_the_second_send) {
  const auto rig = Rig({{Wiring::mesh, 2}}, {"ring"});
  const auto tables = tables_of(rig, [](std::uint32_t rank) {
    if (rank == 0) { return std::vector{send(1, 1, kMicrosecond), compute(2, 10, {1}), send(3, 1, kMicrosecond, {2})}; }
    return std::vector{receive(1, 0, kMicrosecond), receive(2, 0, kMicrosecond)};
  });
  const auto& times = tables.ranks[1];  // sends at 0 and 11500
  EXPECT_EQ(times.finish_ps, 13'000'000U);
  EXPECT_EQ(times.comm_ps, 3'000'000U);
  EXPECT_EQ(times.idle_ps, 10'000'000U);
}

// Two requests to the memory of one node are serialized: 100 ns + 50 B/ns each. A host node runs concurrently.
TEST(Tables, memory_and_host_time_do_not_count_as_communication) {
  auto rig = Rig({{Wiring::mesh, 2}}, {"ring"});
  rig.memory = {memory::Arrangement::PER_NODE_MEMORY_EXPANSION, 100, 50, 2};
  const auto tables = tables_of(rig, [](std::uint32_t) {
    return std::vector{memory_access(1, NodeType::mem_load, 45'000), on_host(compute(2, 1))};
  });
  EXPECT_EQ(tables.ranks[0].memory_ps, 1'000'000U);
  EXPECT_EQ(tables.ranks[0].exposed_host_ps, 0U);
  EXPECT_EQ(tables.ranks[1].memory_ps, 2'000'000U);  // waits for the first request
  EXPECT_EQ(tables.ranks[1].exposed_memory_ps, 2'000'000U);
  EXPECT_EQ(tables.ranks[1].host_ps, 1'000'000U);
  EXPECT_EQ(tables.ranks[1].comm_ps, 0U);
}

// ---- links ---------------------------------------------------------------------------------------------------------

using Pairs = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;

Pairs bytes_of(const SimulationTables& tables) {
  Pairs bytes;
  for (const SimulatedLink& link : tables.links) { bytes[{link.from, link.to}] = link.bytes; }
  return bytes;
}

// The bytes that a schedule sends from each member to each other.
Pairs bytes_of(const network::MemberSchedule& schedule, std::uint64_t block) {
  Pairs bytes;
  for (std::uint32_t member = 0; member < schedule.members; ++member) {
    for (std::uint32_t step = 0; step < network::step_count(schedule); ++step) {
      for (std::uint32_t i = 0; i < network::send_count(schedule, member, step); ++i) {
        const network::StepMessage message = network::send(schedule, member, step, i);
        bytes[{member, message.peer}] += message.count * block;
      }
    }
  }
  return bytes;
}

// With a link for every pair, the bytes of a link are those that the schedule sends between the two ranks.
TEST(Tables, bytes_on_every_link_are_those_of_the_schedule) {
  const std::vector<std::pair<CollectiveType, Collective>> operations = {
      {CollectiveType::all_reduce, Collective::all_reduce},
      {CollectiveType::reduce_scatter, Collective::reduce_scatter},
      {CollectiveType::all_gather, Collective::all_gather},
      {CollectiveType::all_to_all, Collective::all_to_all}};
  const std::vector<std::pair<std::string, CollectiveAlgorithm>> algorithms = {
      {"ring", CollectiveAlgorithm::ring},
      {"direct", CollectiveAlgorithm::direct},
      {"halvingDoubling", CollectiveAlgorithm::halving_doubling}};
  for (const std::uint32_t n : {2U, 4U, 5U, 8U}) {
    const std::uint64_t block = 4096;
    for (const auto& [type, operation] : operations) {
      for (const auto& [name, algorithm] : algorithms) {
        const network::MemberSchedule schedule{operation, algorithm, n};
        // ASTRA-sim's ring all-to-all goes n (n - 1) / 2 times to the next neighbour, a schedule of its own.
        const bool has_own_schedule = operation == Collective::all_to_all && algorithm != CollectiveAlgorithm::direct;
        if (has_own_schedule || !network::refusal(schedule).empty()) { continue; }
        auto rig = Rig({{Wiring::mesh, n}}, {name}).aware();
        const std::uint64_t size = operation == Collective::all_gather ? block : block * n;
        const auto tables = tables_of(rig, collective(1, type, static_cast<std::int64_t>(size)));
        EXPECT_EQ(bytes_of(tables), bytes_of(schedule, block)) << name << " " << n;
      }
    }
  }
}

// Ring of 4, 64 KiB, ring all-reduce: six messages of 16 KiB to the next rank, none to the one before.
TEST(Tables, a_ring_uses_one_direction) {
  const auto tables = tables_of(Rig({{Wiring::ring, 4}}, {"ring"}).aware(), all_reduce(1, 65536));
  EXPECT_EQ(bytes_of(tables), (Pairs{{{0, 1}, 98304}, {{1, 2}, 98304}, {{2, 3}, 98304}, {{3, 0}, 98304}}));
  EXPECT_EQ(tables.links[0].messages, 6U);
  EXPECT_EQ(tables.links[0].busy_ps, 6U * 305'000);  // 16384 / 53.687
  EXPECT_EQ(tables.links[0].queued_ps, 0U);
  EXPECT_EQ(tables.dimensions[0].messages, 24U);
  EXPECT_EQ(tables.dimensions[0].link_bytes, 4U * 98304);
}

// Ranks 1 and 2 send 53688 B (1000 ns) to rank 0 at the same time: on the link from the switch one waits for the other.
TEST(Tables, queued_time_is_the_time_that_messages_wait_for_a_link) {
  const auto tables = tables_of(Rig({{Wiring::switched, 3}}, {"ring"}).aware(), [](std::uint32_t rank) {
    if (rank > 0) { return std::vector{send(1, 0, kMicrosecond)}; }
    return std::vector{receive(1, 1, kMicrosecond), receive(2, 2, kMicrosecond)};
  });
  std::uint64_t queued = 0;
  for (const SimulatedLink& link : tables.links) {
    if (link.to == 0) {
      EXPECT_EQ(link.from, SimulatedLink::kSwitch);
      EXPECT_EQ(link.bytes, 2U * kMicrosecond);
      EXPECT_EQ(link.busy_ps, 2'000'000U);
    }
    queued += link.queued_ps;
  }
  EXPECT_EQ(queued, 1'000'000U);
}

// ---- dimensions and collectives ------------------------------------------------------------------------------------

// 4 x 2, 1 MiB, localBWAware: dimension 0 reduce-scatters and all-gathers, 3 quarters of the buffer each; dimension 1
// all-reduces the remaining quarter in 2 messages of an eighth. Eight ranks.
TEST(Tables, bytes_of_a_dimension_are_those_of_its_phases) {
  const auto tables = tables_of(Rig({{Wiring::ring, 4}, {Wiring::ring, 2}}, {"ring", "ring"}), all_reduce(1, kMiB));
  ASSERT_EQ(tables.dimensions.size(), 2U);
  EXPECT_EQ(tables.dimensions[0].bytes, 8U * 6 * (kMiB / 4));
  EXPECT_EQ(tables.dimensions[0].messages, 8U * 6);
  EXPECT_EQ(tables.dimensions[1].bytes, 8U * 2 * (kMiB / 8));
}

// Without congestion, links have the bytes of the messages whose routes cross them: the same as with it.
TEST(Tables, links_without_congestion_have_the_bytes_of_links_with_it) {
  for (const Wiring wiring : {Wiring::ring, Wiring::mesh, Wiring::switched}) {
    for (const char* name : {"ring", "direct", "halvingDoubling"}) {
      const Rig rig = Rig({{wiring, 8}}, {name}).chunks(3);
      Rig aware = rig;
      const auto without = tables_of(rig, all_reduce(1, kMiB)), with = tables_of(aware.aware(), all_reduce(1, kMiB));
      EXPECT_EQ(bytes_of(without), bytes_of(with)) << name;
      for (std::size_t i = 0; i < with.links.size(); ++i) {
        EXPECT_EQ(without.links[i].messages, with.links[i].messages);
        EXPECT_EQ(without.links[i].busy_ps, with.links[i].busy_ps);
      }
    }
  }
}

// Ring of 4 x Switch of 2, from rank 5 (1 on the ring of the second group) to rank 7: over rank 6. From 0 to 4: the
// switch.
TEST(Tables, links_of_several_dimensions_are_those_of_the_dimension_that_counts) {
  const auto rig = Rig({{Wiring::ring, 4}, {Wiring::switched, 2}}, {"ring", "ring"});
  const auto tables = tables_of(rig, [](std::uint32_t rank) {
    std::vector<NodeRecord> nodes = {compute(1, 1)};
    if (rank == 5) { nodes.push_back(send(2, 7, 100)); }
    if (rank == 7) { nodes.push_back(receive(2, 5, 100)); }
    if (rank == 0) { nodes.push_back(send(2, 4, 10)); }
    if (rank == 4) { nodes.push_back(receive(2, 0, 10)); }
    return nodes;
  });
  constexpr std::uint32_t kHub = SimulatedLink::kSwitch;
  EXPECT_EQ(bytes_of(tables), (Pairs{{{5, 6}, 100}, {{6, 7}, 100}, {{0, kHub}, 10}, {{kHub, 4}, 10}}));
  EXPECT_EQ(tables.links.back().dimension, 1U);
  EXPECT_EQ(tables.dimensions[0].links, 2U);
}

TEST(Tables, a_collective_lasts_from_its_first_start_to_its_last_end) {
  auto rig = Rig({{Wiring::mesh, 4}}, {"direct"});
  rig.groups = {{"7", {0, 1}}};
  const auto tables = tables_of(rig, [](std::uint32_t rank) {
    std::vector<NodeRecord> nodes = {compute(1, rank + 1), all_reduce(2, 4096, {1})};
    if (rank < 2) { nodes.push_back(collective(3, CollectiveType::all_gather, 64, {2}, "7")); }
    return nodes;
  });
  ASSERT_EQ(tables.collectives.size(), 2U);
  const auto& whole = tables.collectives[0];
  EXPECT_EQ(whole.op, "ALL_REDUCE");
  EXPECT_TRUE(whole.whole_machine);
  EXPECT_EQ(whole.ranks, 4U);
  EXPECT_EQ(whole.first_start_ns, 1000U);
  EXPECT_EQ(whole.last_start_ns, 4000U);
  EXPECT_EQ(whole.algorithm, "direct");
  const auto& group = tables.collectives[1];
  EXPECT_EQ(group.group, "7");
  EXPECT_EQ(group.ranks, 2U);
  EXPECT_EQ(group.bytes, 64U);
}

}  // namespace
}  // namespace orrery::simulate::test::tables_test
