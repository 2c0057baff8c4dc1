// The check of collective algorithms that are given as graphs.
#include "orrery/simulate/custom_check.hpp"

#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "orrery/network/member_schedule.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::custom_check_test {
namespace {

using Graphs = std::vector<std::vector<NodeRecord>>;  // by position

NodeRecord tagged(NodeRecord record, std::int64_t tag) {
  record.attributes.back() = number(keys::comm_tag, tag);
  return record;
}

std::vector<CustomProgram> programs_of(const Graphs& graphs) {
  std::vector<CustomProgram> programs;
  for (const auto& nodes : graphs) {
    programs.push_back(custom_program(graph_of(nodes), "g", Semantics::astra_sim).value());
  }
  return programs;
}

Result<std::vector<std::string>> check(const Graphs& graphs, Collective collective, std::uint64_t bytes,
                                       bool rendezvous = false) {
  const auto programs = programs_of(graphs);
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < programs.size(); ++i) { members.push_back(i); }
  return check_custom({programs, members, collective, bytes, "g", rendezvous});
}

std::string text(const Result<std::vector<std::string>>& result) {
  if (!result) { return result.error().text(); }
  std::string all;
  for (const std::string& line : *result) { all += line + "\n"; }
  return all;
}

// A member schedule as graphs: the sends of a step depend on all receives of earlier steps.
Graphs graphs_of(const network::MemberSchedule& schedule, std::int64_t block) {
  Graphs graphs(schedule.members);
  for (std::uint32_t member = 0; member < schedule.members; ++member) {
    std::vector<std::uint64_t> received;
    std::uint64_t id = 0;
    for (std::uint32_t step = 0; step < network::step_count(schedule); ++step) {
      const std::vector<std::uint64_t> before = received;
      for (std::uint32_t i = 0; i < network::send_count(schedule, member, step); ++i) {
        const auto message = network::send(schedule, member, step, i);
        graphs[member].push_back(tagged(send(++id, message.peer, block * message.count, before), step));
      }
      for (std::uint32_t i = 0; i < network::receive_count(schedule, member, step); ++i) {
        const auto message = network::receive(schedule, member, step, i);
        graphs[member].push_back(tagged(receive(++id, message.peer, block * message.count), step));
        received.push_back(id);
      }
    }
  }
  return graphs;
}

TEST(CustomCheck, schedules_as_graphs_have_no_errors_or_anomalies) {
  for (const auto algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct,
                               CollectiveAlgorithm::halving_doubling, CollectiveAlgorithm::tree}) {
    for (const std::uint32_t n : {2U, 3U, 4U, 7U, 8U}) {
      for (const auto collective :
           {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
        const network::MemberSchedule schedule{collective, algorithm, n};
        if (!network::refusal(schedule).empty()) { continue; }
        const std::uint64_t block = 64;
        const std::uint64_t size =
            collective == Collective::all_gather ? block : block * network::block_count(schedule);
        EXPECT_EQ(text(check(graphs_of(schedule, block), collective, size)), "")
            << static_cast<int>(algorithm) << " " << static_cast<int>(collective) << " " << n;
      }
    }
  }
}

// If any send of a ring is removed, its receive never ends.
TEST(CustomCheck, a_missing_send_is_an_error) {
  const Graphs accepted = graphs_of({Collective::all_reduce, CollectiveAlgorithm::ring, 4}, 64);
  for (std::size_t position = 0; position < accepted.size(); ++position) {
    for (std::size_t node = 0; node < accepted[position].size(); ++node) {
      if (accepted[position][node].type != NodeType::comm_send) { continue; }
      Graphs changed = accepted;
      changed[position].erase(changed[position].begin() + static_cast<std::ptrdiff_t>(node));
      const auto result = check(changed, Collective::all_reduce, 256);
      ASSERT_FALSE(result);
      EXPECT_NE(result.error().text().find("waits for 64 B"), std::string::npos) << result.error().text();
    }
  }
}

TEST(CustomCheck, a_missing_receive_is_an_anomaly) {
  Graphs graphs = {{send(1, 1, 64), receive(2, 1, 64), send(3, 1, 8)}, {send(1, 0, 64), receive(2, 0, 64)}};
  const auto result = check(graphs, Collective::all_reduce, 64);
  ASSERT_TRUE(result);
  EXPECT_EQ(text(result), "custom collective g: no position receives the message of node 3 of position 0\n");
}

TEST(CustomCheck, a_deadlock_names_its_positions) {
  const Graphs graphs = {{receive(1, 1, 64), send(2, 1, 64, {1})}, {receive(1, 0, 64), send(2, 0, 64, {1})}};
  const auto result = check(graphs, Collective::all_reduce, 64);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().text(),
            "g.0.et node 1: deadlock: position 0 in node 1, which waits for position 1 in node 1, which waits "
            "for position 0");
}

// Both positions send first: correct if sends do not wait, a deadlock under rendezvous.
TEST(CustomCheck, two_positions_that_send_first_deadlock_under_rendezvous) {
  const Graphs graphs = {{send(1, 1, 64), receive(2, 1, 64, {1})}, {send(1, 0, 64), receive(2, 0, 64, {1})}};
  EXPECT_TRUE(check(graphs, Collective::all_reduce, 64));
  const auto result = check(graphs, Collective::all_reduce, 64, true);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text().find("deadlock: "), std::string::npos) << result.error().text();
}

// A line 0 -> 1 -> 2: no data reaches 0.
TEST(CustomCheck, members_whose_data_does_not_reach_each_other_are_anomalies) {
  const Graphs graphs = {{send(1, 1, 64)}, {receive(1, 0, 64), send(2, 2, 64, {1})}, {receive(1, 1, 64)}};
  const std::string anomalies = text(check(graphs, Collective::all_reduce, 1));
  EXPECT_NE(anomalies.find("no data of position 1 reaches position 0"), std::string::npos) << anomalies;
  EXPECT_NE(anomalies.find("no data of position 2 reaches position 1"), std::string::npos) << anomalies;
}

// Position 1 sends before it has received: all messages exist, but data of 0 does not reach 2.
TEST(CustomCheck, a_message_that_departs_before_a_receive_does_not_contain_its_data) {
  const Graphs graphs = {{send(1, 1, 64), receive(2, 2, 64)},
                         {receive(1, 0, 64), send(2, 2, 64)},
                         {receive(1, 1, 64), send(2, 0, 64, {1})}};
  const std::string anomalies = text(check(graphs, Collective::all_gather, 1));
  EXPECT_NE(anomalies.find("no data of position 0 reaches position 2"), std::string::npos) << anomalies;
}

TEST(CustomCheck, too_few_bytes_for_the_collective_are_an_anomaly) {
  const Graphs graphs = {{send(1, 1, 64), receive(2, 1, 64)}, {send(1, 0, 64), receive(2, 0, 64)}};
  EXPECT_EQ(text(check(graphs, Collective::all_reduce, 64)), "");
  const std::string anomalies = text(check(graphs, Collective::all_reduce, 65));
  EXPECT_NE(anomalies.find("position 0 sends 64 B, but ALL_REDUCE of 65 B needs at least 65 B"), std::string::npos)
      << anomalies;
  EXPECT_EQ(text(check(graphs, Collective::all_to_all, 128)), "");
}

// ---- against the machine -------------------------------------------------------------------------------------------

// Random messages between positions, some of which lack their send or receive. Nodes depend on earlier nodes of their
// position.
Graphs random_graphs(std::mt19937& engine, std::uint32_t positions) {
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(engine() % end); };
  Graphs graphs(positions);
  const auto add = [&](std::uint32_t position, NodeRecord record) {
    auto& nodes = graphs[position];
    record.id = nodes.size() + 1;
    for (std::uint64_t before = 1; before < record.id; ++before) {
      if (below(3) == 0) { record.data_deps.push_back(before); }
    }
    nodes.insert(nodes.end(), std::move(record));
  };
  for (std::uint32_t message = 0; message < 2 + below(6); ++message) {
    const std::uint32_t from = below(positions), to = (from + 1 + below(positions - 1)) % positions;
    const std::int64_t bytes = 8 + 8 * below(2), tag = below(2);
    const bool receive_first = below(2) == 0;
    const std::uint32_t lost = below(16);
    for (const bool receives : {receive_first, !receive_first}) {
      if (lost == (receives ? 1 : 0)) { continue; }
      add(receives ? to : from, tagged(receives ? receive(1, from, bytes) : send(1, to, bytes), tag));
    }
  }
  for (std::uint32_t position = 0; position < positions; ++position) { add(position, compute(1, 1)); }
  return graphs;
}

// Whether there are two receives with the same sender, tag and size, whose order depends on times. Under rendezvous the
// size is not compared, and sends count as well.
bool repeats_a_message(const Graphs& graphs, bool rendezvous) {
  for (const auto& nodes : graphs) {
    std::set<std::string> seen;
    for (const NodeRecord& record : nodes) {
      const bool receives = record.type == NodeType::comm_recv;
      if (!receives && (record.type != NodeType::comm_send || !rendezvous)) { continue; }
      std::string address = receives ? "receive" : "send";
      for (const Attribute& attribute : record.attributes) {
        if (rendezvous && attribute.name == keys::comm_size) { continue; }
        address += " " + std::to_string(attribute.value.as_int().value_or(0));
      }
      if (!seen.insert(address).second) { return true; }
    }
  }
  return false;
}

// Position 0 waits for a message that the collective does not send. The job is accepted, because a node of rank 1 may
// send it. If it does, the run ends; otherwise the error names the node that waits.
TEST(CustomCheck, a_graph_that_does_not_end_with_its_own_messages_is_an_error_only_if_the_run_does_not_end) {
  const Graphs graphs = {{tagged(receive(1, 1, 64), 7)}, {compute(1, 1)}};
  ASSERT_FALSE(check(graphs, Collective::all_reduce, 64));
  for (const bool physical : {false, true}) {
    for (const bool is_sent : {false, true}) {
      auto rig = Rig({{Wiring::mesh, 2}}, {"ring"});
      if (physical) { rig.physical(); }
      auto job = job_of(rig, [&](std::uint32_t rank) {
                   std::vector<NodeRecord> nodes;
                   if (is_sent && rank == 1) { nodes.push_back(tagged(send(1, 0, 64), 7)); }
                   nodes.push_back(all_reduce(2, 64));
                   return nodes;
                 }).value();
      job.system.algorithms[0] = std::string("g");
      job.customs["g"] = programs_of(graphs);
      ASSERT_TRUE(complete(job));
      EXPECT_EQ(job.possible_deadlocks.size(), 1U);
      const auto ran = simulate(job);
      const bool ends = is_sent && !physical;
      ASSERT_EQ(ran.has_value(), ends) << physical << " " << (ran ? "" : ran.error().text());
      if (!ends) { EXPECT_NE(ran.error().text().find("g.0.et node 1: waits for 64 B"), std::string::npos); }
    }
  }
}

// Graphs that the check accepts complete in the machine; graphs that it rejects do not.
TEST(CustomCheck, graphs_are_rejected_if_and_only_if_the_machine_deadlocks) {
  std::mt19937 engine(11);  // NOLINT(*-msc51-cpp): the same graphs in every run
  int accepted = 0, rejected = 0;
  for (int i = 0; i < 1500; ++i) {
    const auto positions = static_cast<std::uint32_t>(2 + engine() % 3);
    const Graphs graphs = random_graphs(engine, positions);
    auto rig = Rig({{Wiring::mesh, positions}}, {"ring"});
    rig.system.rendezvous = engine() % 2 == 0;
    auto job = job_of(rig, [](std::uint32_t) { return std::vector{all_reduce(1, 64)}; }).value();
    job.system.algorithms[0] = std::string("g");
    job.customs["g"] = programs_of(graphs);
    const bool ends = simulate(job).has_value();
    const auto checked = check(graphs, Collective::all_reduce, 64, rig.system.rendezvous);
    const bool depends_on_order = checked && text(checked).find("may deadlock") != std::string::npos;
    if (depends_on_order || (repeats_a_message(graphs, rig.system.rendezvous) && checked)) { continue; }
    ASSERT_EQ(checked.has_value(), ends) << i << " " << text(checked);
    (ends ? accepted : rejected) += 1;
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(rejected, 200);
}

}  // namespace
}  // namespace orrery::simulate::test::custom_check_test
