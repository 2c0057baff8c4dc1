#include "orrery/graph/statistics.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "orrery/graph/check.hpp"
#include "orrery/graph/topology.hpp"

namespace orrery::graph {

namespace {

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > kMostBytes - b ? kMostBytes : a + b; }

void add(Amount& to, const Amount& more) {
  to.count += more.count;
  to.bytes = sum(to.bytes, more.bytes);
  to.time_ns = sum(to.time_ns, more.time_ns);
}

void append_without_numbers(std::string& plain, std::string_view name) {
  bool in_number = false;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !in_number) { plain += digit ? '#' : c; }
    in_number = digit;
  }
}

template <class Key, class Text>
std::vector<NamedAmount> named(const std::map<Key, Amount>& amounts, const Text& text) {
  std::vector<NamedAmount> found;
  for (const auto& [key, amount] : amounts) { found.push_back({text(key), amount}); }
  return found;
}

class Counter {
 public:
  Counter(const Graph& graph, std::size_t most)
      : graph_(graph),
        most_(most),
        comm_type_(graph.find_key(keys::comm_type)),
        comm_size_(graph.find_key(keys::comm_size)),
        tensor_size_(graph.find_key(keys::tensor_size)),
        pg_name_(graph.find_key(keys::pg_name)) {}

  Statistics count() {
    result_.nodes = graph_.node_count();
    result_.data_deps = graph_.data_dep_count();
    result_.ctrl_deps = graph_.ctrl_dep_count();
    duration_ns_.resize(graph_.node_count());
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) { count(node); }
    result_.by_type = named(by_type_, type_text);
    result_.by_collective = named(by_collective_, [](const auto& key) { return key.second; });
    for (const auto& [name, amount] : by_group_) { result_.by_group.push_back({name, ranks_of(name), amount}); }
    result_.by_name = longest_names();
    if (result_.started > 0) { result_.span_ns = last_end_ - first_start_; }
    count_degrees();
    find_path();
    return std::move(result_);
  }

 private:
  void count(NodeIndex node) {
    const NodeType type = graph_.type(node);
    const bool communicates = type == NodeType::comm_coll || type == NodeType::comm_send || type == NodeType::comm_recv;
    const auto size = graph_.value(node, communicates ? comm_size_ : tensor_size_);
    duration_ns_[node] = graph_.duration_ns(node);
    const Amount amount{1, size ? size->as_uint().value_or(0) : 0, duration_ns_[node]};
    add(result_.all, amount);
    add(by_type_[type], amount);
    if (amount.time_ns > 0) { ++result_.timed; }
    if (type == NodeType::comm_coll) { count_collective(node, amount); }
    count_name(graph_.name(node), amount);
    if (const std::uint64_t start = graph_.start_ns(node); start > 0) {
      ++result_.started;
      first_start_ = std::min(first_start_, start);
      last_end_ = std::max(last_end_, sum(start, amount.time_ns));
    }
  }

  // The key is built in a reused string, since most names are known already.
  void count_name(std::string_view name, const Amount& amount) {
    name_without_numbers_.clear();
    append_without_numbers(name_without_numbers_, name);
    auto known = by_name_.find(name_without_numbers_);
    if (known == by_name_.end()) { known = by_name_.emplace(name_without_numbers_, Amount()).first; }
    add(known->second, amount);
  }

  void count_collective(NodeIndex node, const Amount& amount) {
    const auto type = graph_.value(node, comm_type_);
    const std::int64_t number = type ? type->as_int().value_or(std::numeric_limits<std::int64_t>::max() - 1)
                                     : std::numeric_limits<std::int64_t>::max();
    add(by_collective_[{number, collective_text(type)}], amount);
    add(by_group_[group_name(graph_.value(node, pg_name_))], amount);
  }

  [[nodiscard]] std::optional<std::uint64_t> ranks_of(const std::optional<std::string>& name) const {
    for (const ProcessGroup& group : graph_.groups()) {
      if (name && group.name == *name) { return group.ranks.size(); }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<NamedAmount> longest_names() const {
    std::vector<NamedAmount> names;
    for (const auto& [name, amount] : by_name_) { names.push_back({name, amount}); }
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return a.amount.time_ns > b.amount.time_ns; });
    names.resize(std::min(names.size(), most_));
    return names;
  }

  void count_degrees() {
    Degrees& degrees = result_.degrees;
    std::vector<std::uint64_t> children(graph_.node_count(), 0);
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      std::uint64_t parents = 0;
      for_each_parent(graph_, node, [&](NodeIndex parent) {
        ++children[parent];
        ++parents;
      });
      degrees.roots += parents == 0 ? 1U : 0U;
      if (parents > degrees.most_parents) {
        degrees.most_parents = parents;
        degrees.most_parents_id = graph_.id(node);
      }
    }
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      degrees.leaves += children[node] == 0 ? 1U : 0U;
      if (children[node] > degrees.most_children) {
        degrees.most_children = children[node];
        degrees.most_children_id = graph_.id(node);
      }
    }
  }

  // The longest chain in nodes, and in time, that ends at each node: its own and that of the parent with the longest.
  void find_path() {
    const std::vector<NodeIndex> order = run_order(graph_);
    if (order.size() < graph_.node_count()) { return; }
    std::vector<std::uint64_t> end_ns(graph_.node_count(), 0);
    std::vector<std::uint32_t> level(graph_.node_count(), 0);
    std::vector<NodeIndex> before(graph_.node_count());
    NodeIndex last = 0;
    for (const NodeIndex node : order) {
      before[node] = node;
      for_each_parent(graph_, node, [&](NodeIndex parent) {
        if (parent == node) { return; }
        level[node] = std::max(level[node], level[parent]);
        if (before[node] == node || end_ns[parent] > end_ns[before[node]]) { before[node] = parent; }
      });
      ++level[node];
      end_ns[node] = sum(duration_ns_[node], before[node] == node ? 0 : end_ns[before[node]]);
      result_.degrees.levels = std::max<std::uint64_t>(result_.degrees.levels, level[node]);
      if (node == order.front() || end_ns[node] > end_ns[last]) { last = node; }
    }
    result_.critical_path.emplace();
    if (order.empty()) { return; }
    result_.critical_path->time_ns = end_ns[last];
    describe_path(last, before);
  }

  void describe_path(NodeIndex last, const std::vector<NodeIndex>& before) {
    CriticalPath& path = *result_.critical_path;
    std::map<NodeType, Amount> by_type;
    std::vector<NodeIndex> nodes;
    for (NodeIndex node = last;; node = before[node]) {
      nodes.push_back(node);
      add(by_type[graph_.type(node)], {1, 0, duration_ns_[node]});
      if (before[node] == node) { break; }
    }
    path.nodes = nodes.size();
    path.by_type = named(by_type, type_text);
    std::reverse(nodes.begin(), nodes.end());
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](NodeIndex a, NodeIndex b) { return duration_ns_[a] > duration_ns_[b]; });
    nodes.resize(std::min(nodes.size(), most_));
    for (const NodeIndex node : nodes) {
      path.longest.push_back({graph_.id(node), std::string(graph_.name(node)), graph_.type(node), duration_ns_[node]});
    }
  }

  const Graph& graph_;
  std::size_t most_;
  std::optional<KeyIndex> comm_type_, comm_size_, tensor_size_, pg_name_;
  Statistics result_;
  std::vector<std::uint64_t> duration_ns_;
  std::map<NodeType, Amount> by_type_;
  std::map<std::pair<std::int64_t, std::string>, Amount> by_collective_;
  std::map<std::optional<std::string>, Amount> by_group_;
  std::unordered_map<std::string, Amount> by_name_;
  std::string name_without_numbers_;
  std::uint64_t first_start_ = kMostBytes, last_end_ = 0;
};

}  // namespace

std::string type_text(NodeType type) {
  return is_known(type) ? std::string(name_of(type)) : fmt::format("UNKNOWN_{}", static_cast<std::int32_t>(type));
}

std::string collective_text(const std::optional<Value>& comm_type) {
  const auto number = comm_type ? comm_type->as_int() : std::nullopt;
  if (!number) { return comm_type ? "UNUSABLE_TYPE" : "NO_TYPE"; }
  const auto type = static_cast<CollectiveType>(*number);
  const bool fits = *number == static_cast<std::int32_t>(*number);
  return fits && is_known(type) ? std::string(name_of(type)) : fmt::format("UNKNOWN_{}", *number);
}

std::string without_numbers(std::string_view name) {
  std::string plain;
  append_without_numbers(plain, name);
  return plain;
}

Statistics statistics(const Graph& graph, std::size_t most) { return Counter(graph, most).count(); }

}  // namespace orrery::graph
