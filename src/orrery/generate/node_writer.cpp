#include "orrery/generate/node_writer.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/graph/chakra_collective.hpp"

namespace orrery::generate {

using graph::NodeType;
namespace keys = graph::keys;

void join(NodeIds& ids, const NodeIds& more) {
  for (const NodeId id : more) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) { ids.push_back(id); }
  }
}

std::int64_t whole(double value, std::int64_t least) {
  constexpr double kMost = 9e18;
  ORRERY_ASSERT(value >= 0.0 && value < kMost);
  return std::max(least, static_cast<std::int64_t>(std::llround(value)));
}

NodeWriter::NodeWriter(const ProcessGroups& groups, std::int64_t rank, Naming naming, NodeSink& sink)
    : groups_(groups), rank_(rank), naming_(naming), sink_(sink) {
  for (const GroupFamily& family : groups.families()) {
    names_.push_back(naming == Naming::classes
                         ? name_of(family)
                         : std::to_string(family.first_name + groups.position(family.kind, rank)));
  }
}

const GroupFamily& NodeWriter::family(parallel::GroupKind kind, Lane lane) const {
  for (const GroupFamily& family : groups_.families()) {
    if (family.kind == kind && family.lane == lane) { return family; }
  }
  throw_internal_error("group of the program", __FILE__, __LINE__);
}

void NodeWriter::begin(std::string_view name, NodeType type, const NodeIds& parents, bool on_host) {
  name_.assign(prefix_);
  name_ += name;
  record_.id = next_;
  record_.name = name_;
  record_.type = type;
  record_.duration_us = 0;
  record_.data_deps.assign(parents.begin(), parents.end());
  record_.attributes.clear();
  record_.attributes.push_back({keys::is_cpu_op, graph::Value::boolean(on_host), {}, {}});
}

NodeId NodeWriter::finish() {
  if (result_) { result_ = sink_.write(record_); }
  return next_++;
}

// Readers of whole microseconds take a node of 0 for one without a duration.
void NodeWriter::set_duration(Seconds time) {
  record_.duration_us = static_cast<std::uint64_t>(whole(time.value() * 1e6, 1));
  add(keys::duration_ns, whole(time.value() * 1e9, 0));
}

// A roofline divides by the operations and by the bytes, so both are at least 1.
NodeId NodeWriter::compute(std::string_view name, const Work& work, const NodeIds& parents) {
  begin(name, NodeType::comp, parents);
  add(keys::num_ops, whole(work.flops.value(), 1));
  add(keys::tensor_size, whole(work.bytes.value(), 1));
  set_duration(work.time);
  return finish();
}

NodeId NodeWriter::host(std::string_view name, Seconds time, const NodeIds& parents) {
  begin(name, NodeType::comp, parents, true);
  set_duration(time);
  return finish();
}

// ASTRA-sim's comm_size is the input of a rank: the shard of an all-gather, the whole buffer of the others.
NodeId NodeWriter::collective(std::string_view name, Collective collective, const GroupFamily& family, Bytes bytes,
                              const NodeIds& parents, double slows_kernels) {
  const auto size = static_cast<double>(groups_.members(family, rank_).degree);
  ORRERY_ASSERT(size > 1.0);
  begin(name, NodeType::comm_coll, parents);
  add(keys::comm_type, static_cast<std::int64_t>(graph::chakra_type(collective)));
  add(keys::comm_size, whole(collective == Collective::all_gather ? bytes.value() / size : bytes.value(), 1));
  add_text(keys::pg_name, names_[static_cast<std::size_t>(&family - groups_.families().data())]);
  if (slows_kernels > 0.0) { add(keys::slows_kernels, whole(slows_kernels * 1e6, 0)); }
  return finish();
}

NodeId NodeWriter::memory(std::string_view name, NodeType type, Bytes bytes, const NodeIds& parents,
                          const GroupFamily* sharers) {
  begin(name, type, parents);
  add(keys::tensor_size, whole(bytes.value(), 1));
  if (sharers != nullptr) {
    add_text(keys::pg_name, names_[static_cast<std::size_t>(sharers - groups_.families().data())]);
  }
  return finish();
}

NodeId NodeWriter::message(std::string_view name, NodeType type, std::string_view key, const Message& message,
                           const NodeIds& parents) {
  ORRERY_ASSERT(message.peer != rank_);
  begin(name, type, parents);
  add(key, naming_ == Naming::classes ? message.peer : groups_.device(message.peer));
  add(keys::comm_tag, static_cast<std::int64_t>(message.tag));
  add(keys::comm_size, whole(message.bytes.value(), 1));
  if (message.in_ring && naming_ == Naming::classes) { add_text(keys::peer_group, name_of(parallel::GroupKind::cp)); }
  return finish();
}

NodeId NodeWriter::send(std::string_view name, const Message& message, const NodeIds& parents) {
  return this->message(name, NodeType::comm_send, keys::comm_dst, message, parents);
}

NodeId NodeWriter::receive(std::string_view name, const Message& message, const NodeIds& parents) {
  return this->message(name, NodeType::comm_recv, keys::comm_src, message, parents);
}

}  // namespace orrery::generate
