#include "orrery/validate/expert_all_to_all.hpp"

#include <algorithm>

namespace orrery::validate {

namespace {

constexpr double kScaled = 1.0 + 4.0 / 128.0;  // bytes of an fp8 number with its part of a scale
constexpr double kWide = 2.0;
constexpr double kMostNodes = 4.0;

double nodes_of(std::int64_t devices, std::int64_t per_node) {
  return static_cast<double>(std::max<std::int64_t>(1, devices / std::max<std::int64_t>(1, per_node)));
}

}  // namespace

std::optional<ExpertAllToAll> all_to_all_named(std::string_view metric) {
  const bool outward = metric.starts_with("dispatch_");
  if (!outward && !metric.starts_with("combine_")) { return std::nullopt; }
  const bool rate = metric.ends_with("_bottleneck_bw");
  if (!rate && !metric.ends_with("_latency")) { return std::nullopt; }
  return ExpertAllToAll{outward ? kScaled : kWide, rate, rate};
}

workload::NodeDispatch node_dispatch(double copies, std::int64_t devices, std::int64_t per_node) {
  const double nodes = nodes_of(devices, per_node);
  return {copies, nodes, std::min(nodes, kMostNodes)};
}

double counted_bytes(const ExpertAllToAll& exchange, double tokens, double hidden, double copies, std::int64_t devices,
                     std::int64_t per_node) {
  const double nodes = nodes_of(devices, per_node);
  const double places = nodes > 1.0 ? nodes : static_cast<double>(devices);
  return tokens * hidden * exchange.element * node_dispatch(copies, devices, per_node).places_reached(places);
}

}  // namespace orrery::validate
