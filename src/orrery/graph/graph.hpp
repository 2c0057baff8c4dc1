// An execution graph: the operations of one rank (or of one rank class), and their dependencies. Read-only; made by a
// GraphBuilder or by a reader.
//
// It represents a file as it is, right or wrong: with duplicate ids, missing parents, cycles and unknown types.
// check.hpp finds these.
//
// Memory: 64 bytes a node, 4 per dependency, 16 per attribute, and texts (see text.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/graph/columns.hpp"
#include "orrery/graph/id_index.hpp"
#include "orrery/graph/record.hpp"

namespace orrery::graph {

using KeyIndex = std::uint32_t;

class Graph;

// The attributes of one node, in their order: `for (const Attribute& attribute : graph.attributes(node))`.
class AttributeRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Attribute;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Attribute;

    Iterator(const Graph* graph, std::uint32_t at) : graph_(graph), at_(at) {}
    Attribute operator*() const;
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++at_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    const Graph* graph_;
    std::uint32_t at_;
  };

  AttributeRange(const Graph* graph, std::uint32_t first, std::uint32_t last)
      : graph_(graph), first_(first), last_(last) {}

  [[nodiscard]] Iterator begin() const { return {graph_, first_}; }
  [[nodiscard]] Iterator end() const { return {graph_, last_}; }
  [[nodiscard]] std::size_t size() const { return last_ - first_; }
  [[nodiscard]] bool empty() const { return first_ == last_; }

 private:
  const Graph* graph_;
  std::uint32_t first_;
  std::uint32_t last_;
};

class Graph {
 public:
  Graph() : Graph(Columns{}) {}

  // From columns whose parents are positions; see columns.hpp.
  explicit Graph(Columns columns);
  Graph(Columns columns, IdIndex index);

  [[nodiscard]] std::size_t node_count() const { return columns_.id.size(); }
  [[nodiscard]] std::size_t data_dep_count() const { return columns_.data.size(); }
  [[nodiscard]] std::size_t ctrl_dep_count() const { return columns_.ctrl.size(); }
  [[nodiscard]] std::size_t attribute_count() const { return columns_.attributes.size(); }

  // The first node with that id.
  [[nodiscard]] std::optional<NodeIndex> find(std::uint64_t id) const { return index_.find(id, columns_.id); }

  // The id of a node, or of a missing parent.
  [[nodiscard]] std::uint64_t id(NodeIndex node) const {
    return present(node) ? columns_.id[node] : columns_.missing[node - node_count()];
  }

  // Whether a parent is a node of the graph. All functions below except id() require that it is.
  [[nodiscard]] bool present(NodeIndex node) const { return node < node_count(); }

  // Ids of missing parents, each once, in the order of first use.
  [[nodiscard]] std::span<const std::uint64_t> missing_ids() const { return columns_.missing; }

  [[nodiscard]] std::string_view name(NodeIndex node) const { return columns_.name[node].view(); }
  [[nodiscard]] NodeType type(NodeIndex node) const { return columns_.type[node]; }

  // Microseconds, as in the file format; 0 = unknown.
  [[nodiscard]] std::uint64_t start_us(NodeIndex node) const { return columns_.start_us[node]; }
  [[nodiscard]] std::uint64_t duration_us(NodeIndex node) const { return columns_.duration_us[node]; }

  // Nanoseconds: keys::start_time_ns, keys::duration_ns if the node has them, else the microseconds x 1000
  // (saturated at 64 bits). 0 = unknown.
  [[nodiscard]] std::uint64_t start_ns(NodeIndex node) const;
  [[nodiscard]] std::uint64_t duration_ns(NodeIndex node) const;

  // Byte of the (uncompressed) file where the node's record starts; 0 when the graph was not read.
  [[nodiscard]] std::uint64_t offset(NodeIndex node) const { return columns_.offset[node]; }

  // Parents in the file's order, repetitions included. Some may not be present().
  [[nodiscard]] std::span<const NodeIndex> data_deps(NodeIndex node) const {
    return slice(columns_.data, columns_.data_begin, node);
  }
  [[nodiscard]] std::span<const NodeIndex> ctrl_deps(NodeIndex node) const {
    return slice(columns_.ctrl, columns_.ctrl_begin, node);
  }

  [[nodiscard]] std::optional<IoInfo> inputs(NodeIndex node) const { return io(columns_.inputs[node]); }
  [[nodiscard]] std::optional<IoInfo> outputs(NodeIndex node) const { return io(columns_.outputs[node]); }

  [[nodiscard]] AttributeRange attributes(NodeIndex node) const {
    return {this, columns_.attribute_begin[node], columns_.attribute_begin[node + 1]};
  }

  // Names of the attributes of all nodes. Look a key up once, then use it for every node.
  [[nodiscard]] std::size_t key_count() const { return columns_.keys.size(); }
  [[nodiscard]] std::string_view key(KeyIndex key) const { return columns_.keys[key].view(); }
  [[nodiscard]] std::optional<KeyIndex> find_key(std::string_view name) const;

  // The node's first attribute of that name. Nothing without a key, so that graph.value(node, graph.find_key(k)) works.
  [[nodiscard]] std::optional<Value> value(NodeIndex node, std::optional<KeyIndex> key) const;
  [[nodiscard]] std::optional<Value> value(NodeIndex node, std::string_view name) const {
    return value(node, find_key(name));
  }

  [[nodiscard]] const Metadata& metadata() const { return columns_.metadata; }
  [[nodiscard]] const std::vector<ProcessGroup>& groups() const { return groups_; }

  // Wire bytes of fields of the node that are not in the schema; almost always empty.
  [[nodiscard]] std::string_view unknown(NodeIndex node) const;

  // The node as a record, whose texts are views of this graph. copy_record fills a record that is reused.
  [[nodiscard]] NodeRecord record(NodeIndex node) const;
  void copy_record(NodeIndex node, NodeRecord& into) const;

  // Memory of the graph in bytes.
  [[nodiscard]] std::size_t memory() const;

  // Same metadata and same records in the same order; offsets aside.
  friend bool operator==(const Graph& a, const Graph& b);

 private:
  friend class AttributeRange::Iterator;

  static std::span<const NodeIndex> slice(const Column<NodeIndex>& entries, const Column<std::uint32_t>& begin,
                                          NodeIndex node) {
    return {entries.data() + begin[node], entries.data() + begin[node + 1]};
  }
  [[nodiscard]] std::optional<IoInfo> io(std::uint32_t which) const;
  [[nodiscard]] Attribute attribute(std::uint32_t at) const;
  [[nodiscard]] std::uint64_t nanoseconds(NodeIndex node, std::string_view key, std::uint64_t microseconds) const;

  Columns columns_;
  IdIndex index_;
  std::vector<ProcessGroup> groups_;
};

// The dependencies reversed, from parents to children. Made on demand: 4 bytes per node and 4 per dependency.
class Children {
 public:
  enum class Of : std::uint8_t { data, ctrl, both };

  // Children of a node are in ascending order; a child that names a parent twice (or as data and control) is in it
  // twice.
  explicit Children(const Graph& graph, Of which = Of::both);

  [[nodiscard]] std::span<const NodeIndex> of(NodeIndex node) const {
    return {children_.data() + begin_[node], children_.data() + begin_[node + 1]};
  }

 private:
  Column<std::size_t> begin_;
  Column<NodeIndex> children_;
};

}  // namespace orrery::graph
