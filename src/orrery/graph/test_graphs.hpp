// Graphs for the tests of the room: made from records that own their texts.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "orrery/graph/builder.hpp"

namespace orrery::graph::test {

// A small seeded generator, equal on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}

  std::size_t below(std::size_t end) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>((state_ * 0x2545F4914F6CDD1DU >> 33) % end);
  }
  bool with_probability_one_in(std::size_t chances) { return below(chances) == 0; }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) { std::swap(items[i - 1], items[below(i)]); }
  }

 private:
  std::uint64_t state_;
};

inline NodeRecord node(std::uint64_t id, NodeType type = NodeType::comp, std::vector<std::uint64_t> data = {},
                       std::vector<std::uint64_t> ctrl = {}) {
  NodeRecord made;
  made.id = id;
  made.name = "node";
  made.type = type;
  made.data_deps = std::move(data);
  made.ctrl_deps = std::move(ctrl);
  return made;
}

inline Attribute number(std::string_view name, std::int64_t value) { return {name, Value::integer(value), {}, {}}; }

inline NodeRecord collective(std::uint64_t id, CollectiveType type, std::int64_t size, std::string_view group = {},
                             std::vector<std::uint64_t> data = {}) {
  NodeRecord made = node(id, NodeType::comm_coll, std::move(data));
  made.attributes = {number(keys::comm_type, static_cast<std::int64_t>(type)), number(keys::comm_size, size)};
  if (!group.empty()) { made.attributes.push_back({keys::pg_name, Value::text(group), {}, {}}); }
  return made;
}

inline NodeRecord message(std::uint64_t id, bool sends, std::int64_t peer, std::int64_t tag, std::int64_t size,
                          std::vector<std::uint64_t> data = {}) {
  NodeRecord made = node(id, sends ? NodeType::comm_send : NodeType::comm_recv, std::move(data));
  made.attributes = {number(sends ? keys::comm_dst : keys::comm_src, peer), number(keys::comm_tag, tag),
                     number(keys::comm_size, size)};
  return made;
}

inline Graph graph_of(const std::vector<NodeRecord>& nodes, const std::vector<ProcessGroup>& groups = {}) {
  GraphBuilder builder;
  for (const ProcessGroup& group : groups) { builder.add_group(group); }
  for (const NodeRecord& record : nodes) { builder.add(record, 100 + record.id); }
  return builder.finish().value();
}

// A sound graph of a step: nodes of all types with few different names, so that many are equal; ids from 1, parents
// before children.
inline std::vector<NodeRecord> random_step(Random& random, std::size_t count) {
  static constexpr std::string_view kNames[] = {"mm", "relu", "layer.3.norm"};
  std::vector<NodeRecord> nodes;
  for (std::uint64_t id = 1; id <= count; ++id) {
    NodeRecord made = random.with_probability_one_in(5)
                          ? collective(id, static_cast<CollectiveType>(random.below(9)),
                                       static_cast<std::int64_t>(random.below(3)) * 1024, "dp")
                          : node(id);
    made.name = kNames[random.below(3)];
    made.duration_us = random.below(3);
    for (std::uint64_t parent = id > 6 ? id - 6 : 1; parent < id; ++parent) {
      if (random.with_probability_one_in(4)) {
        (random.with_probability_one_in(4) ? made.ctrl_deps : made.data_deps).push_back(parent);
      }
    }
    nodes.push_back(std::move(made));
  }
  return nodes;
}

// The same nodes with other ids and, with `other_order`, in another order.
inline std::vector<NodeRecord> renumbered(Random& random, std::vector<NodeRecord> nodes, bool other_order) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i <= nodes.size(); ++i) { ids.push_back(1000 + i); }
  random.shuffle(ids);
  for (NodeRecord& node : nodes) {
    node.id = ids.at(node.id);
    for (auto* deps : {&node.data_deps, &node.ctrl_deps}) {
      for (std::uint64_t& parent : *deps) { parent = ids.at(parent); }
      random.shuffle(*deps);
    }
  }
  if (other_order) { random.shuffle(nodes); }
  return nodes;
}

}  // namespace orrery::graph::test
