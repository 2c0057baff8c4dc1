#include "orrery/simulate/custom_program.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/simulate/graph_fields.hpp"
#include "orrery/simulate/hash_order.hpp"
#include "orrery/simulate/rate.hpp"

namespace orrery::simulate {

using graph::Graph;
using graph::NodeIndex;
using graph::NodeType;

namespace {

constexpr std::uint64_t kCustomTags = 500'000'000;

std::uint64_t duration_of(GraphFields& fields, NodeIndex node, Semantics semantics) {
  constexpr std::uint64_t kMost = 10'000'000'000'000'000;  // nanoseconds
  const Graph& graph = fields.graph();
  if (fields.duration_ns(node) > kMost) { fields.add_error(node, "has a duration above 10^16 ns, the maximum"); }
  switch (semantics) {
    case Semantics::astra_sim: return std::max<std::uint64_t>(1, graph.duration_us(node) * 1000) * kPicosecondsPerNs;
    case Semantics::physical: return fields.duration_ns(node) * kPicosecondsPerNs;
  }
  return 0;
}

CustomStep step_of(GraphFields& fields, NodeIndex node, Semantics semantics) {
  const Graph& graph = fields.graph();
  CustomStep step;
  step.id = graph.id(node);
  const NodeType type = graph.type(node);
  if (type == NodeType::comp) {
    step.amount = duration_of(fields, node, semantics);
    return step;
  }
  if (type != NodeType::comm_send && type != NodeType::comm_recv) {
    fields.add_error(node,
                     fmt::format("is a {}; valid in a custom collective: COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE",
                                 graph::name_of(type)));
    return step;
  }
  const bool sends = type == NodeType::comm_send;
  step.act = sends ? CustomStep::Act::send : CustomStep::Act::receive;
  step.amount = fields.need(node, fields.comm_size, "comm_size");
  if (step.amount == 0) { fields.add_error(node, "has comm_size 0; valid: at least 1 B"); }
  step.peer = static_cast<std::uint32_t>(sends ? fields.need(node, fields.comm_dst, "comm_dst")
                                               : fields.need(node, fields.comm_src, "comm_src"));
  step.tag = static_cast<std::uint64_t>(fields.integer(node, fields.comm_tag)) % kCustomTags;
  return step;
}

// ASTRA-sim's hash tables: one of all nodes, and one per node of its children; see hash_order.hpp.
class Tables {
 public:
  explicit Tables(std::size_t nodes) : is_added_(nodes, false), children_(nodes), is_child_(nodes, false) {}

  void add(const Graph& graph, NodeIndex node) {
    add_once(graph, node);
    HashOrder parents;
    std::vector<NodeIndex> seen;
    const auto once = [&](NodeIndex parent) {
      if (std::find(seen.begin(), seen.end(), parent) != seen.end()) { return; }
      seen.push_back(parent);
      parents.insert(graph.id(parent), parent);
    };
    for (const NodeIndex parent : graph.data_deps(node)) { once(parent); }
    for (const NodeIndex parent : graph.ctrl_deps(node)) { once(parent); }
    for (const NodeIndex parent : parents.values()) {
      add_once(graph, parent);
      children_[parent].insert(graph.id(node), node);
    }
    is_child_[node] = !seen.empty();
    counts_.push_back(static_cast<std::uint32_t>(seen.size()));
  }

  [[nodiscard]] std::uint32_t parents(NodeIndex node) const { return counts_[node]; }
  [[nodiscard]] std::vector<std::uint32_t> children(NodeIndex node) const { return children_[node].values(); }
  [[nodiscard]] std::vector<std::uint32_t> start() const {
    std::vector<std::uint32_t> start;
    for (const std::uint32_t node : all_.values()) {
      if (!is_child_[node]) { start.push_back(node); }
    }
    return start;
  }

 private:
  void add_once(const Graph& graph, NodeIndex node) {
    if (is_added_[node]) { return; }
    is_added_[node] = true;
    all_.insert(graph.id(node), node);
  }

  HashOrder all_;
  std::vector<bool> is_added_;
  std::vector<HashOrder> children_;
  std::vector<bool> is_child_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace

Result<CustomProgram> custom_program(const Graph& graph, const std::string& file, Semantics semantics) {
  GraphFields fields(graph, file, "custom collective");
  if (auto runnable = fields.runnable(); !runnable) { return tl::make_unexpected(runnable.error()); }
  CustomProgram program;
  const auto count = static_cast<NodeIndex>(graph.node_count());
  Tables tables(count);
  for (NodeIndex node = 0; node < count; ++node) {
    program.steps.push_back(step_of(fields, node, semantics));
    tables.add(graph, node);
  }
  if (fields.failed()) { return tl::make_unexpected(fields.failure()); }
  for (NodeIndex node = 0; node < count; ++node) {
    program.steps[node].parents = tables.parents(node);
    program.steps[node].children = tables.children(node);
  }
  program.start = tables.start();
  return program;
}

}  // namespace orrery::simulate
