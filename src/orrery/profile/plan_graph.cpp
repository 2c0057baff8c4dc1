#include "orrery/profile/plan_graph.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/graph/builder.hpp"
#include "orrery/profile/decimal.hpp"

namespace orrery::profile {

namespace {

using graph::CollectiveType;
using graph::NodeType;
using graph::Value;

std::string group_name(const JobPlan& job, const CollectiveInstance& one) {
  if (!one.group_name.empty()) { return one.group_name; }
  if (one.members.size() == job.ranks.size()) { return "world"; }
  std::vector<std::uint64_t> ranks;
  for (const CollectiveMember& member : one.members) { ranks.push_back(job.ranks[member.rank].rank); }
  return fmt::format("ranks_{}", fmt::join(ranks, "_"));
}

class GraphWriter {
 public:
  GraphWriter(const JobPlan& job, std::size_t rank)
      : job_(job), rank_(rank), plan_(job.ranks[rank]), profile_(*job.profiles[rank]) {
    for (std::size_t i = 0; i < job.collectives.size(); ++i) {
      for (const CollectiveMember& member : job.collectives[i].members) {
        if (member.rank == rank) { collective_of_.emplace(member.node, std::pair(i, &member)); }
      }
    }
  }

  Result<void> write(const GraphSink& sink) {
    graph::GraphBuilder builder;  // of the metadata with their groups
    metadata(builder);
    ORRERY_TRY(about, builder.finish());
    if (auto ok = sink.metadata(about.metadata()); !ok) { return ok; }
    for (PlanNode node = 0; node < plan_.nodes.size(); ++node) {
      make(node);
      if (auto ok = sink.node(record_); !ok) { return ok; }
    }
    return {};
  }

 private:
  void metadata(graph::GraphBuilder& builder) {
    graph::Metadata metadata;
    metadata.version = "0.0.4";
    const auto add = [&](std::string_view name, std::int64_t value) {
      metadata.attributes.push_back({name, Value::integer(value), {}, {}});
    };
    metadata.attributes.push_back({keys::schema, Value::text(kGraphSchema), {}, {}});
    add(keys::rank, static_cast<std::int64_t>(plan_.rank));
    members_.clear();
    for (const RankPlan& rank : job_.ranks) { members_.push_back(static_cast<std::int64_t>(rank.rank)); }
    metadata.attributes.push_back({keys::imported, list(members_), {}, {}});
    if (profile_.world_size) { add(keys::world_size, static_cast<std::int64_t>(*profile_.world_size)); }
    if (!profile_.device_name.empty()) {
      metadata.attributes.push_back({keys::device_name, Value::text(profile_.device_name), {}, {}});
    }
    add(keys::host_start, job_.time(rank_, plan_.first_ns));
    add(keys::host_end, job_.time(rank_, plan_.last_ns));
    add(keys::device_end, job_.time(rank_, plan_.device_end_ns));
    const std::int64_t without_cause = plan_.counts.blocked_ns - plan_.counts.blocked_with_cause_ns;
    if (without_cause > 0) { add(keys::blocked_without_cause, without_cause); }
    builder.set_metadata(metadata);
    groups(builder);
  }

  void groups(graph::GraphBuilder& builder) {
    std::map<std::string, std::vector<std::uint64_t>> groups;
    for (const CollectiveInstance& one : job_.collectives) {
      std::vector<std::uint64_t> ranks = one.group_ranks;
      if (ranks.empty() && !one.alone) {
        for (const CollectiveMember& member : one.members) { ranks.push_back(job_.ranks[member.rank].rank); }
      }
      if (!ranks.empty()) { groups.emplace(group_name(job_, one), std::move(ranks)); }
    }
    for (auto& [name, ranks] : groups) { builder.add_group({name, std::move(ranks)}); }
  }

  // ---- nodes ----

  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  Value list(const std::vector<std::int64_t>& values) {
    return Value::view(graph::ValueType::int64_list,
                       keep(graph::packed_integers(graph::ValueType::int64_list, values)));
  }
  void attribute(std::string_view name, Value value) { record_.attributes.push_back({name, value, {}, {}}); }
  void number(std::string_view name, std::int64_t value) { attribute(name, Value::integer(value)); }

  [[nodiscard]] std::string_view name_of(const PlannedNode& node) {
    switch (node.kind) {
      case NodeKind::segment: return node.operation == nullptr ? "host" : profile_.name(*node.operation);
      case NodeKind::call:
      case NodeKind::device: return profile_.name(*node.event);
      case NodeKind::return_: return keep(fmt::format("{} returns", profile_.name(*node.event)));
      case NodeKind::point: return "host";
      case NodeKind::step_begin: return keep(fmt::format("ProfilerStep#{} begins", node.step));
      case NodeKind::step_end: return keep(fmt::format("ProfilerStep#{} ends", node.step));
    }
    return "host";
  }

  void make(PlanNode at) {
    const PlannedNode& node = plan_.nodes[at];
    record_.data_deps.clear();
    record_.attributes.clear();
    record_.inputs.reset();
    texts_.clear();
    lags_.clear();
    const auto collective = collective_of_.find(at);
    record_.id = at;
    record_.name = name_of(node);
    record_.type = NodeType::comp;
    const std::int64_t start = job_.time(rank_, node.start);
    record_.start_us = static_cast<std::uint64_t>(std::max<std::int64_t>(start, 0)) / 1000;
    record_.duration_us = static_cast<std::uint64_t>(node.duration) / 1000;
    for (const Dependency& dependency : node.deps) {
      record_.data_deps.push_back(dependency.node);
      lags_.push_back(dependency.lag);
    }
    attribute(graph::keys::is_cpu_op, Value::boolean(node.kind != NodeKind::device));
    number(graph::keys::start_time_ns, start);
    number(graph::keys::duration_ns, node.duration);
    if (std::any_of(lags_.begin(), lags_.end(), [](std::int64_t lag) { return lag != 0; })) {
      attribute(keys::lags, list(lags_));
    }
    place(node);
    if (node.kind == NodeKind::step_begin) { number(keys::step_begin, static_cast<std::int64_t>(node.step)); }
    if (node.kind == NodeKind::step_end) { number(keys::step_end, static_cast<std::int64_t>(node.step)); }
    if (node.kind == NodeKind::call && node.event->duration != node.duration) {
      number(keys::recorded_duration, node.event->duration);
    }
    if (collective != collective_of_.end()) { communicate(collective->second); }
    doubts(node, collective != collective_of_.end() ? &job_.collectives[collective->second.first] : nullptr);
  }

  void place(const PlannedNode& node) {
    const auto& tracks = node.kind == NodeKind::device ? profile_.streams : profile_.threads;
    if (const auto id = integer_of<std::int64_t>(tracks[node.track].thread)) {
      number(node.kind == NodeKind::device ? graph::keys::stream : std::string_view("tid"), *id);
    }
    if (node.kind == NodeKind::device || node.kind == NodeKind::call) {
      if (node.operation != nullptr) { attribute(keys::operation, Value::text(profile_.name(*node.operation))); }
      if (node.event->correlation != 0) { number("correlation", static_cast<std::int64_t>(node.event->correlation)); }
    }
    if (node.kind == NodeKind::device && node.event->category == Category::memcpy) {
      number(graph::keys::tensor_size, static_cast<std::int64_t>(profile_.memcpy_bytes[node.event->detail - 1]));
    }
    if (node.kind == NodeKind::device && node.operation != nullptr && node.operation->detail > 0 &&
        node.event->category == Category::kernel && profile_.comm(*node.operation) == nullptr) {
      const auto& [dims, types] = profile_.shapes[node.operation->detail - 1];
      record_.inputs = graph::IoInfo{{}, profile_.names[dims], profile_.names[types]};
    }
  }

  void communicate(const std::pair<std::size_t, const CollectiveMember*>& found) {
    const CollectiveInstance& one = job_.collectives[found.first];
    number(keys::collective, static_cast<std::int64_t>(found.first));
    number(keys::wire, found.second->wire_ns);
    attribute(keys::kind, Value::text(one.kind));
    if (!one.operation.empty()) { attribute(keys::called, Value::text(one.operation)); }
    attribute(keys::group, Value::text(one.group));
    number(keys::number, static_cast<std::int64_t>(one.number));
    members_.clear();
    for (const CollectiveMember& member : one.members) {
      members_.push_back(static_cast<std::int64_t>(job_.ranks[member.rank].rank));
    }
    attribute(keys::members, list(members_));
    if (one.one_sided) { wait_for(one, *found.second); }
    const std::size_t size = one.group_ranks.empty() ? one.members.size() : one.group_ranks.size();
    number(keys::group_size, static_cast<std::int64_t>(size));
    if (one.one_sided && one.kind == "send_recv") { return message(one, *found.second); }
    const auto type = collective_type_of(one.operation.empty() ? one.kind : one.operation);
    if (!type) { return; }
    record_.type = NodeType::comm_coll;
    number(graph::keys::comm_type, static_cast<std::int64_t>(*type));
    const bool shard = *type == CollectiveType::all_gather && size > 0;  // the schema has the size of a shard
    number(graph::keys::comm_size, static_cast<std::int64_t>(shard ? one.bytes / size : one.bytes));
    attribute(graph::keys::pg_name, Value::text(keep(group_name(job_, one))));
  }

  void wait_for(const CollectiveInstance& one, const CollectiveMember& member) {
    members_.clear();
    for (const std::size_t other : member.waits_for) {
      members_.push_back(static_cast<std::int64_t>(job_.ranks[one.members[other].rank].rank));
    }
    attribute(keys::waits_for, list(members_));
  }

  // The first member of a message sends it.
  void message(const CollectiveInstance& one, const CollectiveMember& member) {
    const bool sends = &member == &one.members.front();
    record_.type = sends ? NodeType::comm_send : NodeType::comm_recv;
    const CollectiveMember& peer = one.members[sends ? 1 : 0];
    number(sends ? graph::keys::comm_dst : graph::keys::comm_src,
           static_cast<std::int64_t>(job_.ranks[peer.rank].rank));
    number(graph::keys::comm_tag, static_cast<std::int64_t>(one.number));
    number(graph::keys::comm_size, static_cast<std::int64_t>(one.bytes));
  }

  void doubts(const PlannedNode& node, const CollectiveInstance* collective) {
    std::string text;
    const auto doubt = [&](std::string_view what) { text += fmt::format("{}{}", text.empty() ? "" : "; ", what); };
    if (node.unexplained > 0) {
      number(keys::unexplained, node.unexplained);
      doubt("idle time before it has no known cause");
    }
    for (const Dependency& dependency : node.deps) {
      if (dependency.cause == Cause::coincidence) { doubt("waits for an operation that ended when it started"); }
      if (dependency.cause == Cause::rule_wait) { doubt("waits for another stream by PyTorch's rules"); }
    }
    if (collective != nullptr && collective->alone) { doubt("its time contains waiting for other ranks"); }
    if (collective != nullptr && collective->guessed && !collective->alone) {
      doubt("its group is guessed from ranks that end together");
    }
    if (collective != nullptr && collective->guessed_root) {
      doubt("its root is guessed from the ends of its members");
    }
    const bool no_call = node.kind == NodeKind::device && profile_.mtia_operations > 0;
    if (no_call) { doubt("its call is not known"); }
    if (!text.empty()) { attribute(keys::uncertain, Value::text(keep(std::move(text)))); }
  }

  const JobPlan& job_;
  std::size_t rank_;
  const RankPlan& plan_;
  const Profile& profile_;
  std::map<PlanNode, std::pair<std::size_t, const CollectiveMember*>> collective_of_;
  graph::NodeRecord record_;
  std::deque<std::string> texts_;
  std::vector<std::int64_t> lags_, members_;
};

}  // namespace

std::optional<CollectiveType> collective_type_of(std::string_view kind) {
  static const std::map<std::string_view, CollectiveType> kTypes = {
      {"all_reduce", CollectiveType::all_reduce}, {"reduce", CollectiveType::reduce},
      {"all_gather", CollectiveType::all_gather}, {"gather", CollectiveType::gather},
      {"scatter", CollectiveType::scatter},       {"broadcast", CollectiveType::broadcast},
      {"all_to_all", CollectiveType::all_to_all}, {"reduce_scatter", CollectiveType::reduce_scatter},
      {"barrier", CollectiveType::barrier},       {"send_recv", CollectiveType::all_to_all}};
  const auto found = kTypes.find(kind);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

Result<void> write_graph(const JobPlan& job, std::size_t rank, const GraphSink& sink) {
  return GraphWriter(job, rank).write(sink);
}

Result<graph::Graph> graph_of(const JobPlan& job, std::size_t rank) {
  graph::GraphBuilder builder;
  const auto set = [&](const graph::Metadata& metadata) -> Result<void> {
    builder.set_metadata(metadata);
    return {};
  };
  const auto add = [&](const graph::NodeRecord& node) -> Result<void> {
    builder.add(node);
    return {};
  };
  if (auto ok = write_graph(job, rank, {set, add}); !ok) { return tl::make_unexpected(ok.error()); }
  return builder.finish();
}

}  // namespace orrery::profile
