#include "orrery/graph/anonymize.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/graph/builder.hpp"

namespace orrery::graph {

namespace {

constexpr std::array kKept = {
    keys::is_cpu_op,         keys::comm_type,     keys::comm_size,     keys::comm_src,
    keys::comm_dst,          keys::comm_tag,      keys::comm_priority, keys::pg_name,
    keys::involved_dim,      keys::num_ops,       keys::tensor_size,   keys::stream,
    keys::in_switch,         keys::start_time_ns, keys::duration_ns,   std::string_view("tensor_loc"),
    std::string_view("tid"),
};

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::span<const std::string_view> kept_attributes() { return kKept; }

const std::string& Anonymizer::node_name(std::string_view name) {
  const auto [entry, is_new] = nodes_.try_emplace(std::string(name));
  if (is_new) { entry->second = fmt::format("n{}", nodes_.size() - 1); }
  return entry->second;
}

std::string_view Anonymizer::group_name(std::string_view name) {
  if (is_number(name)) { return name; }
  const auto [entry, is_new] = groups_.try_emplace(std::string(name));
  if (is_new) { entry->second = fmt::format("g{}", groups_.size() - 1); }
  return entry->second;
}

Result<Graph> Anonymizer::anonymized(const Graph& graph) {
  GraphBuilder builder;
  Metadata metadata;
  metadata.version = is_number(graph.metadata().version.substr(0, 1)) ? graph.metadata().version : std::string_view();
  builder.set_metadata(metadata);
  for (const ProcessGroup& group : graph.groups()) {
    builder.add_group({std::string(group_name(group.name)), group.ranks});
  }
  NodeRecord record;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    graph.copy_record(node, record);
    if (!record.name.empty()) { record.name = node_name(record.name); }
    record.inputs.reset();
    record.outputs.reset();
    record.unknown = {};
    std::erase_if(record.attributes, [](const Attribute& attribute) {
      const bool kept = std::find(kKept.begin(), kKept.end(), attribute.name) != kKept.end();
      const ValueType type = attribute.value.type();
      return !kept || (is_text(type) && (attribute.name != keys::pg_name || is_list(type)));
    });
    for (Attribute& attribute : record.attributes) {
      attribute.doc = {};
      attribute.unknown = {};
      if (const auto text = attribute.value.as_text()) {
        attribute.value = Value::view(attribute.value.type(), group_name(*text));
      }
    }
    builder.add(record);
  }
  return builder.finish();
}

}  // namespace orrery::graph
