#include "orrery/profile/replay_read.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace orrery::profile {

namespace {

std::optional<std::int64_t> number(const graph::Metadata& metadata, std::string_view key) {
  const graph::Attribute* const found = metadata.find(key);
  return found == nullptr ? std::nullopt : found->value.as_int();
}

std::string text(const graph::Graph& graph, graph::NodeIndex node, std::string_view key) {
  const auto value = graph.value(node, key);
  const auto found = value ? value->as_text() : std::nullopt;
  return std::string(found.value_or(""));
}

}  // namespace

bool is_imported_profile(const graph::Metadata& metadata) {
  const graph::Attribute* const schema = metadata.find(keys::schema);
  return schema != nullptr && schema->value.as_text() == std::optional<std::string_view>(kGraphSchema);
}

Result<void> ReplayJob::Reader::add(const graph::Graph& graph) {
  if (!is_imported_profile(graph.metadata())) { return fail("is not a graph that \"orrery trace import\" wrote"); }
  Rank rank;
  rank.number = static_cast<std::uint64_t>(number(graph.metadata(), keys::rank).value_or(0));
  rank.first = static_cast<std::uint32_t>(job_.nodes_.size());
  rank.host_start = number(graph.metadata(), keys::host_start).value_or(0);
  rank.host_end = number(graph.metadata(), keys::host_end).value_or(0);
  rank.device_end = number(graph.metadata(), keys::device_end).value_or(0);
  job_.ranks_.push_back(rank);
  if (const graph::Attribute* const device = graph.metadata().find(keys::device_name); device != nullptr) {
    const std::string name(device->value.as_text().value_or(""));
    if (std::find(job_.devices_.begin(), job_.devices_.end(), name) == job_.devices_.end()) {
      job_.devices_.push_back(name);
    }
  }
  const Keys found{graph.find_key(keys::lags),        graph.find_key(keys::step_begin),
                   graph.find_key(keys::step_end),    graph.find_key(keys::collective),
                   graph.find_key(keys::wire),        graph.find_key(graph::keys::is_cpu_op),
                   graph.find_key(keys::unexplained), graph.find_key(keys::operation)};
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (auto ok = add_node(graph, found, node, rank.first); !ok) { return ok; }
  }
  job_.ranks_.back().last = static_cast<std::uint32_t>(job_.nodes_.size());
  return {};
}

Result<void> ReplayJob::Reader::add_node(const graph::Graph& graph, const Keys& found, graph::NodeIndex node,
                                         std::uint32_t first) {
  const auto integer = [&](const std::optional<graph::KeyIndex>& key) -> std::optional<std::int64_t> {
    const auto value = graph.value(node, key);
    return value ? value->as_int() : std::nullopt;
  };
  Node made;
  made.duration = static_cast<std::int64_t>(graph.duration_ns(node));
  made.recorded_start = static_cast<std::int64_t>(graph.start_ns(node));
  made.deps_begin = static_cast<std::uint32_t>(job_.deps_.size());
  const auto cpu = graph.value(node, found.cpu);
  made.on_device = cpu && !cpu->as_bool().value_or(true);
  const auto position = static_cast<std::uint32_t>(job_.nodes_.size());
  const auto lags = graph.value(node, found.lags);
  const auto parents = graph.data_deps(node);
  for (std::size_t i = 0; i < parents.size(); ++i) {
    if (!graph.present(parents[i])) {
      return fail(
          fmt::format("node {}: depends on node {}, which is not in the file", graph.id(node), graph.id(parents[i])));
    }
    job_.deps_.push_back({first + parents[i], lags ? lags->as_int(i).value_or(0) : 0});
  }
  if (const auto step = integer(found.step_begin)) { add_step(static_cast<std::uint64_t>(*step), position, true); }
  if (const auto step = integer(found.step_end)) { add_step(static_cast<std::uint64_t>(*step), position, false); }
  made.unexplained = integer(found.unexplained).value_or(0);
  job_.ranks_.back().unexplained += made.unexplained;
  if (const auto instance = integer(found.collective)) {
    made.communicates = true;
    job_.nodes_.push_back(made);
    add_member(graph, node, *instance, integer(found.wire).value_or(made.duration), position);
    return {};
  }
  if (made.on_device) { made.kernel = kernel(graph, found, node, made.duration); }
  job_.nodes_.push_back(made);
  return {};
}

std::uint32_t ReplayJob::Reader::kernel(const graph::Graph& graph, const Keys& found, graph::NodeIndex node,
                                        std::int64_t duration) {
  const std::string_view name = graph.name(node);
  const auto around = graph.value(node, found.operation);
  const std::string_view operation = around ? around->as_text().value_or("") : std::string_view();
  const auto inputs = graph.inputs(node);
  const std::string_view shapes = inputs ? inputs->shapes : std::string_view();
  const std::string_view types = inputs ? inputs->types : std::string_view();
  const auto [known, is_new] = kernels_.try_emplace(fmt::format("{}\n{}\n{}\n{}", name, operation, shapes, types),
                                                    static_cast<std::uint32_t>(job_.kernels_.size()));
  if (is_new) {
    job_.kernels_.push_back({std::string(name), std::string(operation), kernel_class(name, operation),
                             work_shape_of(operation, shapes, types), 0, 0});
  }
  ++job_.kernels_[known->second].count;
  job_.kernels_[known->second].time_ns += duration;
  return known->second;
}

void ReplayJob::Reader::add_step(std::uint64_t step, std::uint32_t node, bool begins) {
  const std::size_t rank = job_.ranks_.size() - 1;
  const auto [found, is_new] = step_of_.try_emplace({rank, step}, static_cast<std::uint32_t>(job_.steps_.size()));
  if (is_new) { job_.steps_.push_back({rank, step, kNo, kNo}); }
  std::uint32_t& border = begins ? job_.steps_[found->second].begin : job_.steps_[found->second].end;
  if (border == kNo) { border = node; }
}

void ReplayJob::Reader::add_member(const graph::Graph& graph, graph::NodeIndex node, std::int64_t instance,
                                   std::int64_t wire, std::uint32_t position) {
  const auto [found, is_new] = instances_.try_emplace(instance, static_cast<std::uint32_t>(job_.collectives_.size()));
  if (is_new) {
    Collective made;
    made.about.group = text(graph, node, keys::group);
    made.about.kind = text(graph, node, keys::kind);
    made.about.called = text(graph, node, keys::called);
    const auto integer = [&](std::string_view key) {
      const auto value = graph.value(node, key);
      return value ? value->as_uint().value_or(0) : 0;
    };
    made.about.number = integer(keys::number);
    made.about.group_size = integer(keys::group_size);
    made.about.bytes = integer(graph::keys::comm_size);
    job_.collectives_.push_back(std::move(made));
  }
  Collective& collective = job_.collectives_[found->second];
  collective.members.push_back({position, wire});
  collective.about.members.push_back(job_.ranks_.back().number);
  job_.nodes_[position].collective = found->second;
}

void ReplayJob::Reader::finish() {
  for (std::uint32_t i = 0; i < job_.steps_.size(); ++i) {
    if (job_.steps_[i].begin != kNo) { job_.nodes_[job_.steps_[i].begin].step = i; }
  }
  for (Collective& collective : job_.collectives_) { collective.about.alone = collective.members.size() == 1; }
}

Result<ReplayJob> ReplayJob::of(const std::vector<graph::Graph>& graphs) {
  ReplayJob job;
  Reader reader(job);
  for (const graph::Graph& graph : graphs) {
    if (auto ok = reader.add(graph); !ok) { return tl::make_unexpected(ok.error()); }
  }
  reader.finish();
  return job;
}

void ReplayJob::scale_kernels(const std::vector<double>& factors) {
  for (Node& node : nodes_) {
    if (node.kernel == kNo || node.kernel >= factors.size() || factors[node.kernel] == 1) { continue; }
    node.duration = std::llround(std::min(static_cast<double>(node.duration) * factors[node.kernel], 1e17));
  }
}

void ReplayJob::set_wire_times(const std::vector<std::optional<std::int64_t>>& wire_ns) {
  for (std::size_t i = 0; i < collectives_.size() && i < wire_ns.size(); ++i) {
    if (!wire_ns[i]) { continue; }
    for (Member& member : collectives_[i].members) { member.wire = *wire_ns[i]; }
  }
}

}  // namespace orrery::profile
