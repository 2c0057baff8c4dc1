// The order in which a rank starts its collectives, where one at a time is executed (ASTRA-sim): ranks of a group must
// agree on it, whatever the durations of kernels and messages.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/generate/job_graphs.hpp"
#include "orrery/generate/test_sinks.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::generate::collective_order_test {

using parallel::test::any_case;
using parallel::test::any_inference_case;
using parallel::test::Case;
using parallel::test::SeededRandom;

// Nodes, by id.
class Set {
 public:
  Set(std::size_t nodes, bool all) : words_(nodes / kBits + 1, all ? ~std::uint64_t{0} : 0) {}
  void add(std::size_t id) { words_[id / kBits] |= std::uint64_t{1} << id % kBits; }
  void add(const Set& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) { words_[i] |= other.words_[i]; }
  }
  void keep(const Set& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) { words_[i] &= other.words_[i]; }
  }
  [[nodiscard]] bool has(std::size_t id) const { return (words_[id / kBits] >> id % kBits & 1) != 0; }

 private:
  static constexpr std::size_t kBits = 64;
  std::vector<std::uint64_t> words_;
};

struct Node {
  graph::NodeType type;
  NodeIds parents;
};

class Nodes : public NodeSink {
 public:
  std::vector<Node> all{{}};  // by id, from 1
  Result<void> write(const graph::NodeRecord& node) override {
    all.push_back({node.type, {node.data_deps.begin(), node.data_deps.end()}});
    return {};
  }
};

// If collective k can start and no other is running, each collective m before it in the graph can start or has ended:
// what m waits for, other than collectives, precedes k too, or a collective before m. Then the first one that has not
// started can always start, and that is the one that ASTRA-sim starts, as it takes the smallest id: the order is that
// of the graph. Transfers to memory take the place of collectives but wait for nobody; what they wait for counts
// instead. (Messages that are sent wait for nobody either.)
class Order {
 public:
  explicit Order(const std::vector<Node>& nodes) : nodes_(nodes) {
    for (std::size_t id = 0; id < nodes.size(); ++id) {
      Set set(nodes.size(), false);
      set.add(id);
      for (const NodeId parent : nodes[id].parents) { set.add(before_[parent]); }
      before_.push_back(std::move(set));
      if (nodes[id].type == graph::NodeType::comm_coll) { collectives_.push_back(id); }
    }
  }

  void expect_that_of_the_graph() {
    const std::size_t count = collectives_.size();
    std::vector<Set> before_all_later(count, Set(nodes_.size(), true));
    for (std::size_t i = count; i-- > 1;) {
      before_all_later[i - 1] = before_all_later[i];
      before_all_later[i - 1].keep(before_[collectives_[i]]);
    }
    Set before_earlier(nodes_.size(), false);
    for (std::size_t i = 0; i < count; ++i) {
      Set known = before_earlier;
      known.add(before_all_later[i]);
      EXPECT_TRUE(waits_only_for(collectives_[i], known)) << "node " << collectives_[i];
      before_earlier.add(before_[collectives_[i]]);
    }
  }

 private:
  [[nodiscard]] bool waits_only_for(std::size_t id, const Set& known) const {
    using graph::NodeType;
    return std::all_of(nodes_[id].parents.begin(), nodes_[id].parents.end(), [&](NodeId parent) {
      const NodeType type = nodes_[parent].type;
      if (type == NodeType::comm_coll || known.has(parent)) { return true; }
      return (type == NodeType::mem_load || type == NodeType::mem_store) && waits_only_for(parent, known);
    });
  }

  const std::vector<Node>& nodes_;
  std::vector<Set> before_;  // by id: the node and its ancestors
  std::vector<std::size_t> collectives_;
};

void expect_order(const Case& c) {
  constexpr std::size_t kMostNodes = 3000;
  const auto program = parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack);
  const JobGraphs graphs(program, c.cluster, c.stack, {Granularity::segment, 1});
  for (std::int64_t stage = 0; stage < graphs.stages(); ++stage) {
    Nodes nodes;
    ASSERT_TRUE(graphs.write(graphs.first_rank(stage), Naming::ranks, nodes).has_value());
    if (nodes.all.size() <= kMostNodes) { Order(nodes.all).expect_that_of_the_graph(); }
  }
}

TEST(CollectiveOrder, is_that_of_the_graph_whatever_the_durations) {
  for (std::uint64_t seed = 0; seed < orrery::test::cases(1000U); ++seed) {
    SeededRandom random(seed);
    Case c = seed % 5 == 4 ? any_inference_case(random) : any_case(random);
    c.stack.overlap.dispatch = seed % 2 == 1;
    expect_order(c);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
}

}  // namespace orrery::generate::collective_order_test
