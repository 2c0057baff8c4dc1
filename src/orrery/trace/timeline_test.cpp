#include "orrery/trace/timeline.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include "orrery/graph/builder.hpp"
#include "orrery/trace/drawing.hpp"
#include "orrery/trace/test_records.hpp"

namespace orrery::trace::timeline_test {
namespace {

namespace fs = std::filesystem;
using graph::NodeRecord;
using testing::HasSubstr;
using testing::Not;

std::string scratch_file() {
  return (fs::temp_directory_path() / ("orrery-timeline-test-" + std::to_string(::getpid()) + ".json")).string();
}

std::string read_and_removed(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  fs::remove(path);
  return text.str();
}

NodeRecord node(std::uint64_t id, std::uint64_t start, std::uint64_t duration, std::vector<std::uint64_t> data = {}) {
  NodeRecord made;
  made.id = id;
  made.name = "a";
  made.type = graph::NodeType::comp;
  made.start_us = start;
  made.duration_us = duration;
  made.data_deps = std::move(data);
  return made;
}

graph::Graph graph_of(const std::vector<NodeRecord>& nodes) {
  graph::GraphBuilder builder;
  for (const NodeRecord& record : nodes) { builder.add(record); }
  return builder.finish().value();
}

std::string timeline_of(const graph::Graph& graph) {
  const std::string path = scratch_file();
  auto writer = TimelineWriter::open(path);
  EXPECT_TRUE(writer);
  const auto added = writer->add(3, "rank 3", graph);
  EXPECT_TRUE(added) << added.error().text();
  EXPECT_TRUE(writer->close());
  return read_and_removed(path);
}

// 1 at 100 for 10; 2 after it, so at 110 for 5; 3 after both: at 115; 4 depends on nothing: at the first start, 100.
TEST(Timeline, nodes_without_a_start_are_placed_and_say_so) {
  const std::string text =
      timeline_of(graph_of({node(1, 100, 10), node(2, 0, 5, {1}), node(3, 0, 1, {1, 2}), node(4, 0, 2)}));
  EXPECT_THAT(text, HasSubstr(R"("ts":100.000,"dur":10.000,"args":{"id":1}})"));
  EXPECT_THAT(text, HasSubstr(R"("ts":110.000,"dur":5.000,"args":{"id":2,"placed":"by dependencies"}})"));
  EXPECT_THAT(text, HasSubstr(R"("ts":115.000,"dur":1.000,"args":{"id":3,"placed":"by dependencies"}})"));
  EXPECT_THAT(text, HasSubstr(R"("ts":100.000,"dur":2.000,"args":{"id":4,"placed":"by dependencies"}})"));
  EXPECT_THAT(text, HasSubstr(R"("recorded_start":1,"placed_by_dependencies":3)"));
}

// A call on the host launches 2 on stream 7, which 3 on stream 20 waits for: two arrows, each from an end to a start. 4
// follows 3 on its stream, which needs none, and so does a node that is only placed.
TEST(Timeline, recorded_dependencies_between_lanes_are_arrows) {
  const auto on = [](NodeRecord record, bool host, std::int64_t stream) {
    record.attributes = {{graph::keys::is_cpu_op, graph::Value::boolean(host), {}, {}}};
    if (!host) { record.attributes.push_back({graph::keys::stream, graph::Value::integer(stream), {}, {}}); }
    return record;
  };
  const std::string text = timeline_of(
      graph_of({on(node(1, 100, 5), true, 0), on(node(2, 110, 10, {1}), false, 7), on(node(3, 125, 10, {2}), false, 20),
                on(node(4, 140, 1, {3}), false, 20), on(node(5, 0, 1, {2}), true, 0)}));
  EXPECT_THAT(text,
              HasSubstr(R"({"ph":"s","name":"dependency","cat":"dependency","id":1,"pid":3,"tid":1,"ts":105.000})"));
  EXPECT_THAT(text, HasSubstr(R"("id":1,"pid":3,"tid":3,"ts":110.000,"bp":"e"})"));
  EXPECT_THAT(text, HasSubstr(R"("id":2,"pid":3,"tid":3,"ts":120.000})"));
  EXPECT_THAT(text, HasSubstr(R"("id":2,"pid":3,"tid":2,"ts":125.000,"bp":"e"})"));
  EXPECT_THAT(text, Not(HasSubstr(R"("id":3,"pid":3)")));
}

// 0 to 10 and 5 to 15 overlap without one within the other: two rows. 6 to 9 fits into the second.
TEST(Timeline, nodes_that_overlap_partly_are_in_different_rows) {
  const std::string text = timeline_of(graph_of({node(1, 10, 10), node(2, 15, 10), node(3, 16, 3)}));
  EXPECT_THAT(text, HasSubstr(R"("tid":1,"ts":10.000)"));
  EXPECT_THAT(text, HasSubstr(R"("tid":2,"ts":15.000)"));
  EXPECT_THAT(text, HasSubstr(R"("tid":1,"ts":16.000)"));
}

TEST(Timeline, a_cycle_of_nodes_without_start_cannot_be_placed) {
  const std::string path = scratch_file();
  {
    auto writer = TimelineWriter::open(path);
    ASSERT_TRUE(writer);
    EXPECT_THAT(writer->add(0, "x", graph_of({node(7, 0, 1, {8}), node(8, 0, 1, {7})})).error().text(),
                HasSubstr("node 7: has no start time, and cannot be placed because it is on a dependency cycle"));
    EXPECT_TRUE(writer->add(0, "x", graph_of({node(7, 1, 1, {8}), node(8, 1, 1, {7})})));
  }
  EXPECT_FALSE(fs::exists(path));
}

// Also in graphs with cycles and with names of any bytes.
RC_GTEST_PROP(Timeline, every_node_is_one_event, (std::uint64_t seed)) {
  auto records = test::random_records(seed, 20);
  for (NodeRecord& record : records.nodes) { record.start_us = 1 + record.start_us % 1000; }
  const std::string text = timeline_of(records.graph());
  const std::regex event(R"("ph":"X")");
  RC_ASSERT(std::distance(std::sregex_iterator(text.begin(), text.end(), event), std::sregex_iterator()) == 20);
  RC_ASSERT(std::count(text.begin(), text.end(), '\n') >= 22);
}

RC_GTEST_PROP(Drawing, every_box_and_edge_is_a_line, (std::uint64_t seed)) {
  const auto graph = test::random_records(seed, 20).graph();
  for (const auto by : {graph::Fold::By::none, graph::Fold::By::name, graph::Fold::By::depth}) {
    const graph::Folded made = graph::folded(graph, {by, 2});
    const std::string path = scratch_file();
    RC_ASSERT(write_dot(made, path).has_value());
    const std::string dot = read_and_removed(path);
    RC_ASSERT(static_cast<std::size_t>(std::count(dot.begin(), dot.end(), '\n')) ==
              3 + made.nodes.size() + made.edges.size());
    RC_ASSERT(write_graphml(made, path).has_value());
    const std::string xml = read_and_removed(path);
    RC_ASSERT(static_cast<std::size_t>(std::count(xml.begin(), xml.end(), '\n')) ==
              13 + made.nodes.size() + made.edges.size());
  }
}

TEST(Drawing, reserved_characters_are_escaped) {
  NodeRecord unusual = node(1, 0, 1);
  unusual.name = "a\"<b>&\\\n\xff";
  const graph::Folded made = graph::folded(graph_of({unusual}), {});
  const std::string path = scratch_file();
  ASSERT_TRUE(write_dot(made, path));
  EXPECT_THAT(read_and_removed(path), HasSubstr(R"(label="a\"<b>&\\??\nCOMP_NODE 1\n1 us")"));
  ASSERT_TRUE(write_graphml(made, path));
  EXPECT_THAT(read_and_removed(path), HasSubstr("a&quot;&lt;b&gt;&amp;\\??"
                                                "</data>"));
}

}  // namespace
}  // namespace orrery::trace::timeline_test
