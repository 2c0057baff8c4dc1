#include "orrery/graph/check.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include <fmt/format.h>

#include "orrery/graph/topology.hpp"

namespace orrery::graph {

namespace {

constexpr std::size_t kNodesOfACycle = 12;  // that a message names

class Checker {
 public:
  Checker(const Graph& graph, const CheckOptions& options)
      : graph_(graph),
        rank_(options.rank),
        alone_(options.alone),
        found_(options.examples),
        comm_type_(graph.find_key(keys::comm_type)),
        comm_size_(graph.find_key(keys::comm_size)),
        comm_src_(graph.find_key(keys::comm_src)),
        comm_dst_(graph.find_key(keys::comm_dst)),
        tensor_size_(graph.find_key(keys::tensor_size)),
        pg_name_(graph.find_key(keys::pg_name)) {
    for (const ProcessGroup& group : graph.groups()) {
      if (rank_ && std::find(group.ranks.begin(), group.ranks.end(), *rank_) == group.ranks.end()) {
        without_rank_.emplace(group.name, &group);
      }
    }
  }

  std::vector<Finding> findings() {
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      check_id(node);
      check_dependencies(node, graph_.data_deps(node), "data");
      check_dependencies(node, graph_.ctrl_deps(node), "control");
      check_type(node);
    }
    check_cycle();
    check_groups();
    if (alone_) { report_uncompared(); }
    return found_.take();
  }

 private:
  void add(Problem problem, NodeIndex node, std::string message, bool unsound = true) {
    found_.add(problem, {std::move(message), std::nullopt, graph_.id(node), graph_.offset(node)}, unsound);
  }

  void check_id(NodeIndex node) {
    const auto first = graph_.find(graph_.id(node));
    if (!first || *first == node) { return; }
    add(Problem::duplicate_id, node, fmt::format("has the same id as the node at byte {}", graph_.offset(*first)));
  }

  void check_dependencies(NodeIndex node, std::span<const NodeIndex> parents, const char* kind) {
    for (const NodeIndex parent : parents) {
      if (!graph_.present(parent)) {
        add(Problem::missing_parent, node,
            fmt::format("has a {} dependency on node {}, which is not in the file", kind, graph_.id(parent)));
      } else if (parent == node) {
        add(Problem::self_dependency, node, fmt::format("has a {} dependency on itself", kind));
      }
    }
    if (parents.size() < 2) { return; }
    sorted_.assign(parents.begin(), parents.end());
    std::sort(sorted_.begin(), sorted_.end());
    for (auto at = sorted_.begin(); (at = std::adjacent_find(at, sorted_.end())) != sorted_.end();) {
      const auto end = std::upper_bound(at, sorted_.end(), *at);
      add(Problem::duplicate_dependency, node,
          fmt::format("has {} {} dependencies on node {}", end - at, kind, graph_.id(*at)));
      at = end;
    }
  }

  void check_type(NodeIndex node) {
    switch (graph_.type(node)) {
      case NodeType::metadata:
      case NodeType::comp: return;
      case NodeType::mem_load:
      case NodeType::mem_store: return require(node, tensor_size_, keys::tensor_size);
      case NodeType::comm_send:
        require(node, comm_dst_, keys::comm_dst);
        return require(node, comm_size_, keys::comm_size);
      case NodeType::comm_recv:
        require(node, comm_src_, keys::comm_src);
        return require(node, comm_size_, keys::comm_size);
      case NodeType::comm_coll: return check_collective(node);
      case NodeType::invalid:
        return add(Problem::unknown_type, node, "is an INVALID_NODE (type 0, the default of a node without type)");
    }
    add(Problem::unknown_type, node,
        fmt::format("has type {}; the schema has 1 to 7", static_cast<std::int32_t>(graph_.type(node))));
  }

  // A required attribute, which must be a number of at least 0.
  void require(NodeIndex node, std::optional<KeyIndex> key, std::string_view name) {
    const auto value = graph_.value(node, key);
    if (!value) {
      return add(Problem::missing_attribute, node, fmt::format("is a {} without {}", name_of(graph_.type(node)), name));
    }
    if (!value->as_uint() || is_list(value->type())) {
      add(Problem::unusable_attribute, node,
          fmt::format("has {} as {}; it must be a whole number of at least 0", name, shown(*value)));
    }
  }

  [[nodiscard]] static std::string shown(const Value& value) {
    if (const auto number = value.as_int(); number && !is_list(value.type())) { return std::to_string(*number); }
    return fmt::format("{}", name_of(value.type()));
  }

  void check_collective(NodeIndex node) {
    require(node, comm_type_, keys::comm_type);
    const auto type = graph_.value(node, comm_type_);
    const auto number = type ? type->as_int() : std::nullopt;
    const auto collective = static_cast<CollectiveType>(number.value_or(0));
    if (number && (*number != static_cast<std::int32_t>(*number) || !is_known(collective))) {
      add(Problem::unknown_type, node, fmt::format("has comm_type {}; the schema has 0 to 9", *number));
    }
    if (number && collective == CollectiveType::barrier && !graph_.value(node, comm_size_)) { return; }
    require(node, comm_size_, keys::comm_size);
    check_width(node, type, keys::comm_type);
    check_width(node, graph_.value(node, comm_size_), keys::comm_size);
    check_rank(node);
  }

  void check_width(NodeIndex node, const std::optional<Value>& value, std::string_view name) {
    if (!value || value->type() == ValueType::int64_val || !value->as_uint() || is_list(value->type())) { return; }
    add(Problem::odd_attribute, node,
        fmt::format("has {} as {}; readers that expect int64_val read it as 0", name, name_of(value->type())), false);
  }

  void check_rank(NodeIndex node) {
    const auto name = without_rank_.empty() ? std::nullopt : group_name(graph_.value(node, pg_name_));
    const auto group = name ? without_rank_.find(*name) : without_rank_.end();
    if (group == without_rank_.end()) { return; }
    add(Problem::group_members, node,
        fmt::format("is a collective of group \"{}\", whose ranks ({}) do not include this rank, {}", *name,
                    ranks_text(group->second->ranks), *rank_));
  }

  void check_cycle() {
    const std::vector<NodeIndex> cycle = cycle_of(graph_, run_order(graph_));
    if (cycle.empty()) { return; }
    std::string ids;
    for (std::size_t i = 0; i < std::min(cycle.size(), kNodesOfACycle); ++i) {
      ids += fmt::format("{} -> ", graph_.id(cycle[i]));
    }
    if (cycle.size() > kNodesOfACycle) { ids += fmt::format("({} more) -> ", cycle.size() - kNodesOfACycle); }
    add(Problem::cycle, cycle.front(),
        fmt::format("depends on itself: {}{} (each depends on the next)", ids, graph_.id(cycle.front())));
  }

  void check_groups() {
    for (const ProcessGroup& group : graph_.groups()) {
      std::vector<std::uint64_t> ranks = group.ranks;
      std::sort(ranks.begin(), ranks.end());
      if (const auto twice = std::adjacent_find(ranks.begin(), ranks.end()); twice != ranks.end()) {
        found_.add(Problem::group_members,
                   {fmt::format("group \"{}\" has rank {} more than once", group.name, *twice), {}, {}, {}});
      }
    }
  }

  void report_uncompared() {
    std::array<std::size_t, 3> counts = {};
    constexpr std::array kTypes = {NodeType::comm_send, NodeType::comm_recv, NodeType::comm_coll};
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      const auto* type = std::find(kTypes.begin(), kTypes.end(), graph_.type(node));
      if (type != kTypes.end()) { ++counts[static_cast<std::size_t>(type - kTypes.begin())]; }
    }
    if (counts == std::array<std::size_t, 3>{}) { return; }
    found_.add(Problem::not_compared,
               {fmt::format("sends {}, receives {}, collectives {}: whether other ranks match them is not known, since "
                            "no file of another rank is given (the files of a job are PREFIX.RANK.et)",
                            counts[0], counts[1], counts[2]),
                {},
                {},
                {}},
               false);
  }

  const Graph& graph_;
  std::optional<std::uint64_t> rank_;
  bool alone_;
  Findings found_;
  std::vector<NodeIndex> sorted_;
  std::unordered_map<std::string, const ProcessGroup*> without_rank_;  // groups that do not include rank_
  std::optional<KeyIndex> comm_type_, comm_size_, comm_src_, comm_dst_, tensor_size_, pg_name_;
};

}  // namespace

std::optional<std::string> group_name(const std::optional<Value>& pg_name) {
  if (!pg_name) { return std::nullopt; }
  if (const auto text = pg_name->as_text()) { return std::string(*text); }
  if (const auto number = pg_name->as_int()) { return std::to_string(*number); }
  return std::nullopt;
}

std::vector<Finding> check(const Graph& graph, const CheckOptions& options) {
  return Checker(graph, options).findings();
}

}  // namespace orrery::graph
