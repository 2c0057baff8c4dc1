#include <unordered_map>

#include <fmt/format.h>

#include "orrery/graph/builder.hpp"
#include "orrery/profile/collective_kind.hpp"
#include "orrery/profile/decimal.hpp"
#include "orrery/profile/link.hpp"
#include "orrery/profile/operators.hpp"

namespace orrery::profile {

namespace {

using graph::Value;

class LinkedGraph {
 public:
  LinkedGraph(const HostTrace& host, const Profile& device, const Link& link)
      : host_(host), device_(device), link_(link) {
    for (std::size_t i = 0; i < host.nodes.size(); ++i) {
      ids_.emplace(host.nodes[i].id, i);
      if (link.event_of[i] != nullptr) { node_of_.try_emplace(link.event_of[i], host.nodes[i].id); }
      next_ = std::max(next_, host.nodes[i].id + 1);
    }
    for (const Event& event : device.events) { earliest_ = std::min(earliest_, event.start); }
  }

  Result<graph::Graph> write() {
    graph::Metadata metadata;
    metadata.version = "0.0.4";
    metadata.attributes.push_back({"schema", Value::text("orrery.linked-trace/1"), {}, {}});
    metadata.attributes.push_back({"host_schema", Value::text(host_.schema), {}, {}});
    if (host_.pid) { metadata.attributes.push_back({"pid", Value::natural(*host_.pid), {}, {}}); }
    builder_.set_metadata(metadata);
    for (std::size_t i = 0; i < host_.nodes.size(); ++i) { host_node(i); }
    device_nodes();
    return builder_.finish();
  }

 private:
  void times(const Event& event) {
    const std::int64_t start = event.start - earliest_;
    record_.start_us = static_cast<std::uint64_t>(start) / 1000;
    record_.duration_us = static_cast<std::uint64_t>(event.duration) / 1000;
    record_.attributes.push_back({graph::keys::start_time_ns, Value::integer(start), {}, {}});
    record_.attributes.push_back({graph::keys::duration_ns, Value::integer(event.duration), {}, {}});
  }

  void host_node(std::size_t position) {
    const HostNode& node = host_.nodes[position];
    record_ = {};
    record_.id = node.id;
    record_.name = host_.names[node.name];
    record_.type = node.is_frame ? graph::NodeType::metadata : graph::NodeType::comp;
    if (node.parent != node.id && ids_.contains(node.parent)) { record_.ctrl_deps.push_back(node.parent); }
    record_.attributes.push_back({graph::keys::is_cpu_op, Value::boolean(true), {}, {}});
    record_.attributes.push_back({"tid", Value::integer(node.thread), {}, {}});
    if (node.record_function != 0) {
      record_.attributes.push_back({"rf_id", Value::natural(node.record_function), {}, {}});
    }
    if (node.sequence >= 0) { record_.attributes.push_back({"seq_id", Value::integer(node.sequence), {}, {}}); }
    if (link_.event_of[position] != nullptr) { times(*link_.event_of[position]); }
    builder_.add(record_);
  }

  void device_nodes() {
    const OperatorIndex operators(device_);
    std::unordered_map<std::uint64_t, const Event*> calls;
    for (const Event& event : device_.events) {
      if (event.category == Category::call && event.correlation != 0) { calls.try_emplace(event.correlation, &event); }
    }
    for (const Event& event : device_.events) {
      if (!is_device_work(event.category)) { continue; }
      const auto call = calls.find(event.correlation);
      const Event* const around = call == calls.end() ? nullptr : operators.around(*call->second);
      const auto parent = around == nullptr ? node_of_.end() : node_of_.find(around);
      if (parent == node_of_.end()) { continue; }
      record_ = {};
      record_.id = next_++;
      record_.name = device_.name(event);
      record_.type = graph::NodeType::comp;
      record_.ctrl_deps.push_back(parent->second);
      record_.attributes.push_back({graph::keys::is_cpu_op, Value::boolean(false), {}, {}});
      if (const auto stream = integer_of<std::int64_t>(device_.streams[event.track].thread)) {
        record_.attributes.push_back({graph::keys::stream, Value::integer(*stream), {}, {}});
      }
      times(event);
      builder_.add(record_);
    }
  }

  const HostTrace& host_;
  const Profile& device_;
  const Link& link_;
  graph::GraphBuilder builder_;
  graph::NodeRecord record_;
  std::unordered_map<std::uint64_t, std::size_t> ids_;
  std::unordered_map<const Event*, std::uint64_t> node_of_;
  std::uint64_t next_ = 1;
  std::int64_t earliest_ = INT64_MAX;
};

}  // namespace

Result<graph::Graph> linked_graph(const HostTrace& host, const Profile& device, const Link& link) {
  return LinkedGraph(host, device, link).write();
}

}  // namespace orrery::profile
