#include "orrery/graph/graph.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "orrery/core/error.hpp"

namespace orrery::graph {

namespace {

// Fills the begin columns if they are empty.
Columns complete(Columns columns) {
  for (auto* begin : {&columns.ctrl_begin, &columns.data_begin, &columns.attribute_begin}) {
    if (begin->empty()) { begin->assign(columns.id.size() + 1, 0); }
    ORRERY_ASSERT(begin->size() == columns.id.size() + 1);
  }
  return columns;
}

template <class T>
std::size_t bytes_of(const T& column) {
  return column.size() * sizeof(typename T::value_type);
}

bool has_payload(ValueType type) { return is_text(type) || is_list(type); }

}  // namespace

Graph::Graph(Columns columns) : Graph(std::move(columns), IdIndex()) { index_ = IdIndex(columns_.id); }

Graph::Graph(Columns columns, IdIndex index)
    : columns_(complete(std::move(columns))), index_(std::move(index)), groups_(process_groups(columns_.metadata)) {}

std::optional<KeyIndex> Graph::find_key(std::string_view name) const {
  const auto& keys = columns_.keys;
  const auto found = std::find_if(keys.begin(), keys.end(), [&](Text key) { return key.view() == name; });
  if (found == keys.end()) { return std::nullopt; }
  return static_cast<KeyIndex>(found - keys.begin());
}

Attribute Graph::attribute(std::uint32_t at) const {
  const AttributeCell& cell = columns_.attributes[at];
  Attribute attribute;
  attribute.name = columns_.keys[cell.key].view();
  attribute.value = has_payload(cell.type) ? Value::view(cell.type, Text(std::bit_cast<const char*>(cell.bits)).view())
                                           : Value::scalar(cell.type, cell.bits);
  if (cell.has_extra) {
    const auto& extras = columns_.attribute_extra;
    const auto extra = std::lower_bound(extras.begin(), extras.end(), at,
                                        [](const AttributeExtra& a, std::uint32_t i) { return a.attribute < i; });
    ORRERY_ASSERT(extra != extras.end() && extra->attribute == at);
    attribute.doc = extra->doc.view();
    attribute.unknown = extra->unknown.view();
  }
  return attribute;
}

Attribute AttributeRange::Iterator::operator*() const { return graph_->attribute(at_); }

std::optional<Value> Graph::value(NodeIndex node, std::optional<KeyIndex> key) const {
  if (!key) { return std::nullopt; }
  for (std::uint32_t at = columns_.attribute_begin[node]; at < columns_.attribute_begin[node + 1]; ++at) {
    if (columns_.attributes[at].key == *key) { return attribute(at).value; }
  }
  return std::nullopt;
}

std::uint64_t Graph::nanoseconds(NodeIndex node, std::string_view key, std::uint64_t microseconds) const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  if (const auto exact = value(node, key)) {
    if (const auto count = exact->as_uint()) { return *count; }
  }
  return microseconds > kMost / 1000 ? kMost : microseconds * 1000;
}

std::uint64_t Graph::start_ns(NodeIndex node) const { return nanoseconds(node, keys::start_time_ns, start_us(node)); }

std::uint64_t Graph::duration_ns(NodeIndex node) const {
  return nanoseconds(node, keys::duration_ns, duration_us(node));
}

std::optional<IoInfo> Graph::io(std::uint32_t which) const {
  if (which == 0) { return std::nullopt; }
  const IoTexts& texts = columns_.io[which - 1];
  return IoInfo{texts.values.view(), texts.shapes.view(), texts.types.view()};
}

std::string_view Graph::unknown(NodeIndex node) const {
  const auto& extras = columns_.node_extra;
  const auto extra =
      std::lower_bound(extras.begin(), extras.end(), node, [](const NodeExtra& a, NodeIndex i) { return a.node < i; });
  return extra == extras.end() || extra->node != node ? std::string_view() : extra->unknown.view();
}

void Graph::copy_record(NodeIndex node, NodeRecord& into) const {
  into.id = columns_.id[node];
  into.name = name(node);
  into.type = type(node);
  into.start_us = start_us(node);
  into.duration_us = duration_us(node);
  into.ctrl_deps.clear();
  for (const NodeIndex parent : ctrl_deps(node)) { into.ctrl_deps.push_back(id(parent)); }
  into.data_deps.clear();
  for (const NodeIndex parent : data_deps(node)) { into.data_deps.push_back(id(parent)); }
  into.inputs = inputs(node);
  into.outputs = outputs(node);
  into.attributes.clear();
  for (const Attribute& attribute : attributes(node)) { into.attributes.push_back(attribute); }
  into.unknown = unknown(node);
}

NodeRecord Graph::record(NodeIndex node) const {
  NodeRecord record;
  copy_record(node, record);
  return record;
}

std::size_t Graph::memory() const {
  const Columns& c = columns_;
  return bytes_of(c.id) + bytes_of(c.name) + bytes_of(c.type) + bytes_of(c.start_us) + bytes_of(c.duration_us) +
         bytes_of(c.offset) + bytes_of(c.inputs) + bytes_of(c.outputs) + bytes_of(c.ctrl_begin) +
         bytes_of(c.data_begin) + bytes_of(c.attribute_begin) + bytes_of(c.ctrl) + bytes_of(c.data) +
         bytes_of(c.missing) + bytes_of(c.attributes) + bytes_of(c.io) + bytes_of(c.keys) +
         bytes_of(c.attribute_extra) + bytes_of(c.node_extra) + c.text_bytes + index_.memory();
}

bool operator==(const Graph& a, const Graph& b) {
  if (a.node_count() != b.node_count() || !(a.metadata() == b.metadata())) { return false; }
  NodeRecord left;
  NodeRecord right;
  for (NodeIndex node = 0; node < a.node_count(); ++node) {
    a.copy_record(node, left);
    b.copy_record(node, right);
    if (!(left == right)) { return false; }
  }
  return true;
}

Children::Children(const Graph& graph, Of which) : begin_(graph.node_count() + 1, 0) {
  const auto count = static_cast<NodeIndex>(graph.node_count());
  const auto for_each_edge = [&](const auto& visit) {
    for (NodeIndex child = 0; child < count; ++child) {
      for (const NodeIndex parent : which == Of::ctrl ? std::span<const NodeIndex>() : graph.data_deps(child)) {
        if (graph.present(parent)) { visit(parent, child); }
      }
      for (const NodeIndex parent : which == Of::data ? std::span<const NodeIndex>() : graph.ctrl_deps(child)) {
        if (graph.present(parent)) { visit(parent, child); }
      }
    }
  };
  for_each_edge([&](NodeIndex parent, NodeIndex) { ++begin_[parent]; });
  std::size_t total = 0;
  for (std::size_t& begin : begin_) { begin = total += begin; }
  children_.resize(total);
  // Fills each node's slice from the back: afterwards begin_ has the start of every slice, and children are ascending.
  for (NodeIndex child = count; child-- > 0;) {
    const auto ctrl = which == Of::data ? std::span<const NodeIndex>() : graph.ctrl_deps(child);
    const auto data = which == Of::ctrl ? std::span<const NodeIndex>() : graph.data_deps(child);
    for (const auto& parents : {ctrl, data}) {
      for (const NodeIndex parent : parents) {
        if (graph.present(parent)) { children_[--begin_[parent]] = child; }
      }
    }
  }
}

}  // namespace orrery::graph
