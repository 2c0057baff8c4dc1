#include "orrery/graph/builder.hpp"

#include <bit>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace orrery::graph {

namespace {

// Positions are 32 bits, one of which means "none".
constexpr std::size_t kMostNodes = std::numeric_limits<std::uint32_t>::max() - 1;

std::uint32_t to_uint32(std::size_t size) { return static_cast<std::uint32_t>(size); }

}  // namespace

GraphBuilder::GraphBuilder() {
  for (auto* begin : {&columns_.ctrl_begin, &columns_.data_begin, &columns_.attribute_begin}) { begin->push_back(0); }
}

void GraphBuilder::add(const NodeRecord& node, std::uint64_t offset) {
  columns_.id.push_back(node.id);
  columns_.name.push_back(texts_.add(node.name));
  columns_.type.push_back(node.type);
  columns_.start_us.push_back(node.start_us);
  columns_.duration_us.push_back(node.duration_us);
  columns_.offset.push_back(offset);
  columns_.inputs.push_back(append_io(node.inputs));
  columns_.outputs.push_back(append_io(node.outputs));
  ctrl_ids_.insert(ctrl_ids_.end(), node.ctrl_deps.begin(), node.ctrl_deps.end());
  data_ids_.insert(data_ids_.end(), node.data_deps.begin(), node.data_deps.end());
  for (const Attribute& attribute : node.attributes) { append_attribute(attribute); }
  columns_.ctrl_begin.push_back(to_uint32(ctrl_ids_.size()));
  columns_.data_begin.push_back(to_uint32(data_ids_.size()));
  columns_.attribute_begin.push_back(to_uint32(columns_.attributes.size()));
  if (!node.unknown.empty()) {
    columns_.node_extra.push_back({to_uint32(columns_.id.size() - 1), texts_.add(node.unknown)});
  }
}

std::uint32_t GraphBuilder::append_io(const std::optional<IoInfo>& io) {
  if (!io) { return 0; }
  columns_.io.push_back({texts_.add(io->values), texts_.add(io->shapes), texts_.add(io->types)});
  return to_uint32(columns_.io.size());
}

// Nodes usually have the attributes of the previous node, in its order: the key after the last one is tried first.
KeyIndex GraphBuilder::key(std::string_view name) {
  const KeyIndex expected = expected_key_;
  if (expected < columns_.keys.size() && columns_.keys[expected].view() == name) {
    expected_key_ = expected + 1;
    return expected;
  }
  auto found = keys_.find(name);
  if (found == keys_.end()) {
    const auto index = to_uint32(columns_.keys.size());
    columns_.keys.push_back(texts_.add(name));
    found = keys_.emplace(columns_.keys.back().view(), index).first;
  }
  expected_key_ = found->second + 1;
  return found->second;
}

void GraphBuilder::append_attribute(const Attribute& attribute) {
  const Value& value = attribute.value;
  const bool payload = is_text(value.type()) || is_list(value.type());
  const bool extra = !attribute.doc.empty() || !attribute.unknown.empty();
  const std::uint64_t bits =
      payload ? std::bit_cast<std::uint64_t>(texts_.add(value.payload()).encoded()) : value.bits();
  if (extra) {
    columns_.attribute_extra.push_back(
        {to_uint32(columns_.attributes.size()), texts_.add(attribute.doc), texts_.add(attribute.unknown)});
  }
  columns_.attributes.push_back({bits, key(attribute.name), value.type(), extra});
}

Attribute GraphBuilder::copied(const Attribute& attribute) {
  const Value& value = attribute.value;
  Attribute copy{texts_.add(attribute.name).view(), value, texts_.add(attribute.doc).view(),
                 texts_.add(attribute.unknown).view()};
  if (is_text(value.type()) || is_list(value.type())) {
    copy.value = Value::view(value.type(), texts_.add(value.payload()).view());
  }
  return copy;
}

void GraphBuilder::set_metadata(const Metadata& metadata) {
  columns_.metadata = {};
  columns_.metadata.version = texts_.add(metadata.version).view();
  columns_.metadata.unknown = texts_.add(metadata.unknown).view();
  for (const Attribute& attribute : metadata.attributes) { columns_.metadata.attributes.push_back(copied(attribute)); }
}

GraphBuilder::OwnedMetadata GraphBuilder::copied(const Metadata& metadata) {
  GraphBuilder builder;
  builder.set_metadata(metadata);
  return {std::move(builder.columns_.metadata), builder.texts_.blocks(), builder.texts_.bytes()};
}

void GraphBuilder::add_group(const ProcessGroup& group) {
  std::string ranks;
  for (const std::uint64_t rank : group.ranks) { append_number(ranks, ValueType::uint64_list, rank); }
  const std::string name = std::string(keys::process_group_prefix) + group.name;
  groups_.push_back(copied({name, Value::view(ValueType::uint64_list, ranks), {}, {}}));
}

void GraphBuilder::resolve(const Column<std::uint64_t>& ids, Column<NodeIndex>& into, const IdIndex& index) {
  into.reserve(ids.size());
  for (const std::uint64_t id : ids) {
    if (const auto found = index.find(id, columns_.id)) {
      into.push_back(*found);
      continue;
    }
    const auto [entry, is_new] = missing_.try_emplace(id, to_uint32(columns_.id.size() + columns_.missing.size()));
    if (is_new) { columns_.missing.push_back(id); }
    into.push_back(entry->second);
  }
}

Result<Graph> GraphBuilder::finish() {
  for (const auto& [count, what] : {std::pair(columns_.id.size(), "nodes"),
                                    {ctrl_ids_.size(), "control dependencies"},
                                    {data_ids_.size(), "data dependencies"},
                                    {columns_.attributes.size(), "attributes"}}) {
    if (count > kMostNodes) {
      return fail(fmt::format("{} {} are more than a graph in memory can hold ({})", count, what, kMostNodes));
    }
  }
  const IdIndex index(columns_.id);
  resolve(ctrl_ids_, columns_.ctrl, index);
  resolve(data_ids_, columns_.data, index);
  // Positions of missing parents follow those of nodes and share their 32 bits.
  if (columns_.id.size() + columns_.missing.size() > kMostNodes) {
    return fail(fmt::format("{} nodes and {} missing parents are more than a graph in memory can hold ({})",
                            columns_.id.size(), columns_.missing.size(), kMostNodes));
  }
  auto& attributes = columns_.metadata.attributes;
  attributes.insert(attributes.end(), groups_.begin(), groups_.end());
  columns_.blocks = texts_.blocks();
  columns_.text_bytes = texts_.bytes();
  Graph graph(std::move(columns_), index);
  *this = GraphBuilder();
  return graph;
}

}  // namespace orrery::graph
