#include "orrery/simulate/graph_fields.hpp"

#include <limits>

#include <fmt/format.h>

#include "orrery/graph/check.hpp"

namespace orrery::simulate {

using graph::Graph;
using graph::NodeIndex;

namespace {

constexpr std::size_t kMostErrors = 5;  // of one file

bool is_fatal(graph::Problem problem) {
  return problem == graph::Problem::duplicate_id || problem == graph::Problem::missing_parent ||
         problem == graph::Problem::cycle || problem == graph::Problem::self_dependency;
}

}  // namespace

GraphFields::GraphFields(const Graph& graph, const std::string& file, const std::string& whose)
    : is_cpu_op(graph.find_key(graph::keys::is_cpu_op)),
      num_ops(graph.find_key(graph::keys::num_ops)),
      tensor_size(graph.find_key(graph::keys::tensor_size)),
      comm_type(graph.find_key(graph::keys::comm_type)),
      comm_size(graph.find_key(graph::keys::comm_size)),
      comm_src(graph.find_key(graph::keys::comm_src)),
      comm_dst(graph.find_key(graph::keys::comm_dst)),
      comm_tag(graph.find_key(graph::keys::comm_tag)),
      comm_priority(graph.find_key(graph::keys::comm_priority)),
      pg_name(graph.find_key(graph::keys::pg_name)),
      involved_dim(graph.find_key(graph::keys::involved_dim)),
      slows_kernels(graph.find_key(graph::keys::slows_kernels)),
      in_switch(graph.find_key(graph::keys::in_switch)),
      inputs(graph.find_key(graph::keys::inputs)),
      outputs(graph.find_key(graph::keys::outputs)),
      exact_duration(graph.find_key(graph::keys::duration_ns)),
      graph_(graph),
      file_(file),
      whose_(whose) {}

Result<void> GraphFields::runnable() const {
  Place file;
  file.file = file_;
  if (graph_.node_count() == 0) { return fail(file, "has no nodes"); }
  Failure failure;
  for (const graph::Finding& finding : graph::check(graph_, {.examples = 1, .rank = std::nullopt})) {
    if (!is_fatal(finding.problem) || finding.examples.empty()) { continue; }
    const graph::Example& example = finding.examples.front();
    failure.diagnostics.push_back({example.node ? place(*example.node) : file, example.message});
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return {};
}

Place GraphFields::place(std::uint64_t id) const { return {file_, 0, 0, fmt::format("{}, node {}", whose_, id)}; }

void GraphFields::add_error(NodeIndex node, std::string message) {
  if (failure_.diagnostics.size() < kMostErrors) {
    failure_.diagnostics.push_back({place(graph_.id(node)), std::move(message)});
  }
}

bool GraphFields::truth(NodeIndex node, Key key) {
  const auto found = value(node, key);
  return found && found->as_int().value_or(0) != 0;
}

std::int64_t GraphFields::integer(NodeIndex node, Key key) {
  const auto found = value(node, key);
  return found ? found->as_int().value_or(0) : 0;
}

std::uint64_t GraphFields::duration_ns(NodeIndex node) const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  if (const auto exact = value(node, exact_duration)) {
    if (const auto count = exact->as_uint()) { return *count; }
  }
  const std::uint64_t microseconds = graph_.duration_us(node);
  return microseconds > kMost / 1000 ? kMost : microseconds * 1000;
}

std::uint64_t GraphFields::need(NodeIndex node, Key key, std::string_view name) {
  const auto found = value(node, key);
  const auto type = graph::name_of(graph_.type(node));
  if (!found) {
    add_error(node, fmt::format("is a {} without the attribute {}", type, name));
    return 0;
  }
  const auto number = found->as_uint();
  if (!number || graph::is_list(found->type())) {
    const auto signed_number = found->as_int();
    add_error(node, fmt::format("is a {} with {} {}; valid: a whole number of at least 0", type, name,
                                signed_number ? std::to_string(*signed_number) : std::string(name_of(found->type()))));
    return 0;
  }
  return *number;
}

}  // namespace orrery::simulate
