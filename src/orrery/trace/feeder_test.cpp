#include "orrery/trace/feeder.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include "orrery/graph/builder.hpp"
#include "orrery/trace/ready_set.hpp"
#include "orrery/trace/test_records.hpp"
#include "orrery/trace/test_wire.hpp"

namespace orrery::trace::feeder_test {
namespace {

using graph::NodeRecord;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<std::uint64_t>;

struct Link {
  std::uint64_t id;
  Ids data;
  Ids ctrl;
};

graph::Graph graph_of(const std::vector<Link>& links) {
  graph::GraphBuilder builder;
  for (const Link& link : links) {
    NodeRecord node;
    node.id = link.id;
    node.type = graph::NodeType::comp;
    node.data_deps = link.data;
    node.ctrl_deps = link.ctrl;
    builder.add(node);
  }
  return builder.finish().value();
}

Result<Feeder> feeder_of(const std::vector<Link>& links, const FeederOptions& options = {}) {
  return Feeder::of_graph(graph_of(links), "graph", options);
}

std::string refusal(const std::vector<Link>& links, const FeederOptions& options = {}) {
  const auto feeder = feeder_of(links, options);
  return feeder ? "accepted" : feeder.error().text();
}

// Issues all ready nodes.
Ids issue_all(Feeder& feeder) {
  Ids ids;
  for (auto node = feeder.next(); *node != nullptr; node = feeder.next()) { ids.push_back((*node)->id); }
  return ids;
}

Ids first_issued(Result<Feeder> feeder) { return issue_all(*feeder); }

// An acyclic graph: nodes in any order, consecutive or scattered ids, both kinds of dependencies, some repeated.
std::vector<Link> random_dag(test::Random& random, std::size_t count) {
  std::vector<Link> links(count);
  const bool scattered = random.one_in(2);
  std::uint64_t id = random.one_in(2) ? 0 : random.bits() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    links[i].id = id;
    id += scattered ? 1 + random.below(random.one_in(5) ? 100'000 : 3) : 1;
  }
  std::vector<std::uint64_t> ids;
  for (const Link& link : links) { ids.push_back(link.id); }
  for (std::size_t i = count; i > 1; --i) { std::swap(ids[i - 1], ids[random.one_in(3) ? random.below(i) : i - 1]); }
  for (std::size_t i = 1; i < count; ++i) {
    auto& link = *std::find_if(links.begin(), links.end(), [&](const Link& l) { return l.id == ids[i]; });
    for (std::size_t n = random.below(4); n > 0; --n) { link.data.push_back(ids[random.below(i)]); }
    for (std::size_t n = random.below(3); n > 0; --n) { link.ctrl.push_back(ids[random.below(i)]); }
  }
  if (random.one_in(2)) {
    std::rotate(links.begin(), links.begin() + static_cast<long>(random.below(count)), links.end());
  }
  return links;
}

// Executes the graph, completing nodes in any order; false if a law is violated.
bool executes(Feeder& feeder, const std::vector<Link>& links, test::Random& random) {
  std::map<std::uint64_t, Link> by_id;
  for (const Link& link : links) { by_id[link.id] = link; }
  std::set<std::uint64_t> completed;
  std::vector<std::uint64_t> out;
  std::set<std::uint64_t> seen;
  while (!feeder.done()) {
    const auto node = feeder.next().value();
    if (node != nullptr) {
      const Link& link = by_id.at(node->id);
      if (!seen.insert(node->id).second || node->data_deps != link.data || node->ctrl_deps != link.ctrl) {
        return false;
      }
      for (const Ids* parents : {&link.data, &link.ctrl}) {
        for (const std::uint64_t parent : *parents) {
          if (!completed.contains(parent)) { return false; }
        }
      }
      out.push_back(node->id);
    }
    if (out.empty()) { return false; }
    if (node != nullptr && !random.one_in(3)) { continue; }
    std::swap(out.back(), out[random.below(out.size())]);
    if (!feeder.complete(out.back())) { return false; }
    completed.insert(out.back());
    out.pop_back();
  }
  return seen.size() == links.size() && feeder.next().value() == nullptr && feeder.issued() == 0;
}

RC_GTEST_PROP(Feeder, every_node_is_issued_once_and_after_its_parents, (std::uint64_t seed)) {
  test::Random random(seed);
  const auto links = random_dag(random, 1 + random.below(60));
  const std::string bytes = chakra_bytes(graph_of(links));
  FeederOptions options;
  options.cached_records = random.below(5);
  options.read.version = ChakraVersion::v0_0_4;
  auto from_graph = feeder_of(links, options);
  auto from_bytes = Feeder::of_bytes(bytes, "bytes", options);
  RC_ASSERT(from_graph.has_value() && from_bytes.has_value());
  RC_ASSERT(from_bytes->streams() && !from_graph->streams());
  RC_ASSERT(from_graph->nodes() == links.size() && from_bytes->nodes() == links.size());
  RC_ASSERT(executes(*from_graph, links, random));
  RC_ASSERT(executes(*from_bytes, links, random));
}

RC_GTEST_PROP(Feeder, ready_nodes_are_issued_by_id_in_any_order_of_the_file, (std::uint64_t seed)) {
  test::Random random(seed);
  auto links = random_dag(random, 1 + random.below(40));
  auto first = feeder_of(links);
  std::rotate(links.begin(), links.begin() + static_cast<long>(random.below(links.size())), links.end());
  auto second = feeder_of(links);
  while (!first->done()) {
    const Ids ids = issue_all(*first);
    RC_ASSERT(std::is_sorted(ids.begin(), ids.end()));
    RC_ASSERT(ids == issue_all(*second));
    for (const std::uint64_t id : ids) {
      RC_ASSERT(first->complete(id).has_value() && second->complete(id).has_value());
    }
  }
  RC_ASSERT(second->done());
}

TEST(Feeder, the_kind_of_dependencies_can_be_chosen) {
  const std::vector<Link> links = {{1, {}, {}}, {2, {1}, {}}, {3, {}, {1}}};
  FeederOptions options;
  EXPECT_THAT(first_issued(feeder_of(links)), ElementsAre(1));
  options.follow = graph::Children::Of::data;
  EXPECT_THAT(first_issued(feeder_of(links, options)), ElementsAre(1, 3));
  options.follow = graph::Children::Of::ctrl;
  EXPECT_THAT(first_issued(feeder_of(links, options)), ElementsAre(1, 2));
}

TEST(Feeder, misuse_is_a_failure_and_changes_nothing) {
  auto feeder = feeder_of({{1, {}, {}}, {2, {1}, {}}, {3, {}, {}}});
  EXPECT_EQ(feeder->complete(1).error().text(), "graph: node 1: cannot be completed: it is ready but not issued");
  EXPECT_EQ(feeder->complete(2).error().text(), "graph: node 2: cannot be completed: it waits for its parents");
  EXPECT_EQ(feeder->complete(9).error().text(), "graph: node 9: cannot be completed: it does not exist");
  EXPECT_EQ(feeder->complete(0).error().text(), "graph: node 0: cannot be completed: it does not exist");
  EXPECT_EQ(feeder->node(4).error().text(), "graph: node 4: does not exist");
  EXPECT_EQ(feeder->next().value()->id, 1U);
  EXPECT_TRUE(feeder->complete(1));
  EXPECT_EQ(feeder->complete(1).error().text(), "graph: node 1: cannot be completed: it is already complete");
  EXPECT_EQ(feeder->ready(), 2U);
  EXPECT_EQ(feeder->completed(), 1U);
  EXPECT_THAT(issue_all(*feeder), ElementsAre(2, 3));
  EXPECT_FALSE(feeder->done());
  EXPECT_EQ(feeder->next().value(), nullptr);
}

TEST(Feeder, a_cycle_is_refused_and_named) {
  EXPECT_EQ(refusal({{1, {}, {}}, {2, {1, 4}, {}}, {3, {2}, {}}, {4, {}, {3}}, {5, {4}, {}}}),
            "graph: node 2: can never run: nodes wait for each other in a cycle: 2 for 4 for 3 for 2");
  EXPECT_EQ(refusal({{7, {7}, {}}}), "graph: node 7: can never run: it depends on itself");
  std::vector<Link> ring;
  for (std::uint64_t id = 0; id < 100'000; ++id) { ring.push_back({id, {(id + 1) % 100'000}, {}}); }
  EXPECT_EQ(refusal(ring),
            "graph: node 0: can never run: nodes wait for each other in a cycle: 0 for 1 for 2 for 3 for 4 for 5 for 6 "
            "for 7 for … (99991 more) for 99999 for 0");
}

// A cycle through a control dependency, of which only data dependencies are respected.
TEST(Feeder, ignored_dependencies_form_no_cycle) {
  FeederOptions options;
  options.follow = graph::Children::Of::data;
  EXPECT_EQ(refusal({{1, {}, {2}}, {2, {1}, {}}}, options), "accepted");
}

TEST(Feeder, a_missing_parent_is_refused_or_ignored) {
  const std::vector<Link> links = {{1, {}, {}}, {2, {1, 99}, {}}, {3, {2}, {98, 97}}};
  EXPECT_EQ(refusal(links),
            "graph: node 2: can never run: it depends on node 99, which is missing; 2 more dependencies are on missing "
            "nodes");
  EXPECT_EQ(refusal({{10, {}, {}}, {7, {3}, {}}}),
            "graph: node 7: can never run: it depends on node 3, which is missing");
  FeederOptions options;
  options.ignore_missing = true;
  auto feeder = feeder_of(links, options);
  ASSERT_TRUE(feeder) << feeder.error().text();
  test::Random random(1);
  EXPECT_THAT(issue_all(*feeder), ElementsAre(1));
  EXPECT_TRUE(feeder->complete(1));
  EXPECT_THAT(issue_all(*feeder), ElementsAre(2));
}

TEST(Feeder, a_duplicate_id_is_refused_with_both_places) {
  EXPECT_EQ(refusal({{1, {}, {}}, {2, {}, {}}, {1, {2}, {}}}), "graph: node 1: has the same id as another node");
  const std::string bytes = chakra_bytes(graph_of({{1, {}, {}}, {2, {}, {}}, {2, {1}, {}}}));
  const auto read = read_chakra_bytes(bytes, "w.0.et");
  const auto feeder = Feeder::of_bytes(bytes, "w.0.et");
  ASSERT_FALSE(feeder);
  EXPECT_EQ(feeder.error().text(), "w.0.et: byte " + std::to_string(read->graph.offset(2)) +
                                       ", node 2: has the same id as another node, at byte " +
                                       std::to_string(read->graph.offset(1)));
}

TEST(Feeder, errors_of_a_file_name_the_place) {
  const std::string bytes = chakra_bytes(graph_of({{1, {}, {}}, {2, {5}, {}}}));
  const auto read = read_chakra_bytes(bytes, "w.0.et");
  EXPECT_EQ(Feeder::of_bytes(bytes, "w.0.et").error().text(),
            "w.0.et: byte " + std::to_string(read->graph.offset(1)) +
                ", node 2: can never run: it depends on node 5, which is missing");
  EXPECT_THAT(Feeder::of_bytes(bytes.substr(0, bytes.size() - 1), "w.0.et").error().text(),
              HasSubstr("the file ends after"));
  EXPECT_THAT(Feeder::open("/nowhere/w.0.et").error().text(), HasSubstr("does not exist"));
}

TEST(Feeder, a_graph_without_nodes_is_done) {
  auto feeder = feeder_of({});
  ASSERT_TRUE(feeder);
  EXPECT_TRUE(feeder->done());
  EXPECT_EQ(feeder->next().value(), nullptr);
}

// A compressed file has no random access.
TEST(Feeder, a_compressed_file_is_read_to_memory) {
  const auto records = test::random_records(4, 50);
  const std::string bytes = chakra_bytes(graph_of({{1, {2}, {}}, {2, {}, {}}}));
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 3));
  auto feeder = Feeder::of_bytes(packed, "w.0.et");
  ASSERT_TRUE(feeder) << feeder.error().text();
  EXPECT_FALSE(feeder->streams());
  EXPECT_THAT(issue_all(*feeder), ElementsAre(2));
}

TEST(Feeder, cached_records_are_complete) {
  const auto records = test::random_records(5, 40);
  FeederOptions options;
  options.ignore_missing = true;
  options.follow = graph::Children::Of::data;
  std::vector<NodeRecord> nodes = records.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id = i;
    nodes[i].data_deps.clear();
  }
  graph::GraphBuilder builder;
  for (const NodeRecord& node : nodes) { builder.add(node); }
  const std::string bytes = chakra_bytes(builder.finish().value());
  for (const std::size_t slots : {0U, 1U, 7U, 100U}) {
    options.cached_records = slots;
    auto feeder = Feeder::of_bytes(bytes, "bytes", options);
    ASSERT_TRUE(feeder) << feeder.error().text();
    for (int again = 0; again < 2; ++again) {
      for (const NodeRecord& node : nodes) {
        EXPECT_EQ(*feeder->node(node.id).value(), node);
        EXPECT_EQ(*feeder->node(node.id).value(), node);
      }
    }
  }
}

TEST(Feeder, feeders_are_independent) {
  const std::vector<Link> links = {{1, {}, {}}, {2, {1}, {}}};
  auto first = feeder_of(links);
  auto second = feeder_of(links);
  EXPECT_EQ(first->next().value()->id, 1U);
  EXPECT_TRUE(first->complete(1));
  EXPECT_FALSE(second->complete(1));
  Feeder moved = std::move(*first);
  EXPECT_EQ(moved.next().value()->id, 2U);
  EXPECT_EQ(second->next().value()->id, 1U);
}

// As in feeder.hpp: 16 bytes per node and 4 per dependency, plus the levels of the ready set.
TEST(Feeder, the_index_has_the_documented_size) {
  constexpr std::uint64_t kNodes = 64 * 64 * 4;
  std::vector<Link> links = {{0, {}, {}}};
  for (std::uint64_t id = 1; id < kNodes; ++id) { links.push_back({id, {id - 1}, {}}); }
  const std::size_t ready = kNodes / 8 + kNodes / 512 + 8;
  EXPECT_EQ(feeder_of(links)->index_memory(), 16 * kNodes + 4 + 4 * (kNodes - 1) + ready);
  links.back().id += 1;
  EXPECT_EQ(feeder_of(links)->index_memory(), 24 * kNodes + 4 + 4 * (kNodes - 1) + ready);
}

// Resident KiB of mapped files.
long mapped_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kib = -1;
    if (word == "RssFile:" && status >> kib) { return kib; }
  }
  return -1;
}

// The worst case for the mapped part: the nodes alternate between the two halves of the file.
TEST(Feeder, the_mapped_part_of_a_file_is_bounded) {
  const auto path = std::filesystem::temp_directory_path() / ("orrery-feeder-test-" + std::to_string(::getpid()));
  constexpr std::uint64_t kHalf = 20'000;
  graph::GraphBuilder builder;
  const std::string name(500, 'n');
  for (std::uint64_t i = 0; i < 2 * kHalf; ++i) {
    NodeRecord node;
    node.id = i < kHalf ? 2 * i : 2 * (i - kHalf) + 1;
    node.name = name;
    if (node.id > 0) { node.data_deps = {node.id - 1}; }
    builder.add(node);
  }
  const auto written = write_chakra(builder.finish().value(), path.string());
  ASSERT_TRUE(written && *written > 20'000'000);
  FeederOptions options;
  options.mapped_bytes = std::uint64_t{2} << 20;
  const long before = mapped_kib();
  ASSERT_GE(before, 0);
  auto feeder = Feeder::open(path.string(), options);
  ASSERT_TRUE(feeder) << feeder.error().text();
  EXPECT_TRUE(feeder->streams());
  long most = mapped_kib();
  for (std::uint64_t id = 0; !feeder->done(); ++id) {
    ASSERT_EQ((*feeder->next())->id, id);
    ASSERT_TRUE(feeder->complete(id));
    if (id % 16 == 0) { most = std::max(most, mapped_kib()); }
  }
  std::filesystem::remove(path);
  EXPECT_LE(most - before, 4096);
}

RC_GTEST_PROP(ReadySet, equals_a_sorted_set, (std::uint64_t seed)) {
  test::Random random(seed);
  const std::size_t end = 1 + random.below(random.one_in(4) ? 300'000 : 200);
  ReadySet set(end);
  std::set<std::uint32_t> expected;
  for (int step = 0; step < 300; ++step) {
    if (random.one_in(2)) {
      const auto number = static_cast<std::uint32_t>(random.below(end));
      if (expected.insert(number).second) { set.insert(number); }
    } else {
      const auto smallest = set.pop();
      RC_ASSERT(smallest.has_value() == !expected.empty());
      if (!smallest) { continue; }
      RC_ASSERT(*smallest == *expected.begin());
      expected.erase(expected.begin());
    }
    RC_ASSERT(set.size() == expected.size());
  }
}

}  // namespace
}  // namespace orrery::trace::feeder_test
