// Device memory over time from the tensors of graphs, by hand.
#include "orrery/simulate/tensor_memory.hpp"

#include <gtest/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::tensor_memory_test {
namespace {

std::string list_of(const std::vector<std::string_view>& texts) { return graph::packed_texts(texts); }

NodeRecord with_tensors(NodeRecord node, const std::string& inputs, const std::string& outputs) {
  node.attributes.push_back({keys::inputs, Value::view(graph::ValueType::string_list, inputs), {}, {}});
  node.attributes.push_back({keys::outputs, Value::view(graph::ValueType::string_list, outputs), {}, {}});
  return node;
}

// Weights w (100 B) that no node writes: from the start to the end of their last reader, node 3. x (40 B) from the
// start of node 1 at 0 to the end of node 2 at 30 us; y (8 B) from the start of node 2 at 10 us to the end of node 3 at
// 60 us; z (1 B) from 30 us on, read by nobody.
TEST(TensorMemory, tensors_live_from_their_writer_to_their_last_reader) {
  const std::string w = list_of({"w", "100"}), x = list_of({"x", "40"}), y = list_of({"y", "8"}),
                    z = list_of({"z", "1"}), wx = list_of({"w", "100", "x", "40"}),
                    wy = list_of({"w", "100", "y", "8"}), none = list_of({});
  Rig rig({{Wiring::ring, 2}}, {"ring"});
  const std::vector<NodeRecord> nodes = {with_tensors(compute(1, 10), w, x), with_tensors(compute(2, 20, {1}), wx, y),
                                         with_tensors(compute(3, 30, {2}), wy, z), compute(4, 40, {3})};
  SimulationJob job = job_of(rig, [&](std::uint32_t) { return std::vector{nodes[0]}; }).value();
  job.spans = job.memory_over_time = true;
  job.rank_graphs.clear();
  job = with_graphs(std::move(job), {nodes, {compute(1, 5)}});
  const auto simulation = simulate(job).value();
  ASSERT_TRUE(simulation.memory);
  const results::MemoryRank& rank = simulation.memory->ranks[0];
  const std::vector<results::MemoryPoint> expected = {{0, 140}, {10'000, 148}, {30'000, 109}, {60'000, 1}};
  EXPECT_EQ(rank.points, expected);
  EXPECT_EQ(rank.peak, 148);
  EXPECT_EQ(rank.peak_ns, 10'000U);
  EXPECT_EQ(rank.held, 1);
  EXPECT_DOUBLE_EQ(rank.mean, (140 * 10.0 + 148 * 20.0 + 109 * 30.0 + 1 * 40.0) / 100.0);
  EXPECT_EQ(simulation.memory->ranks[1].peak, 0);
}

TEST(TensorMemory, graphs_without_tensors_are_an_error) {
  Rig rig({{Wiring::ring, 2}}, {"ring"});
  SimulationJob job = job_of(rig, [](std::uint32_t) { return std::vector{compute(1, 1)}; }).value();
  job.memory_over_time = true;
  const auto whole = complete(job);
  ASSERT_FALSE(whole);
  EXPECT_NE(whole.error().text().find("needs a plan, or graphs whose nodes list their tensors"), std::string::npos);
}

}  // namespace
}  // namespace orrery::simulate::test::tensor_memory_test
