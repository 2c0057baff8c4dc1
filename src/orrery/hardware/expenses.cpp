#include "orrery/hardware/expenses.hpp"

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::hardware {

namespace {

double nodes(const Cluster& cluster) {
  return static_cast<double>(cluster.devices) / static_cast<double>(cluster.node_size());
}

// Over the accelerators of nodes of several kinds; 0 if one kind has no figure, or all nodes are alike.
double sum_over_nodes(const Cluster& cluster, double Accelerator::* figure) {
  double sum = 0;
  for (const Nodes& some : cluster.nodes) {
    if (!(some.accelerator.*figure > 0)) { return 0; }
    sum += static_cast<double>(some.count * cluster.node_size()) * some.accelerator.*figure;
  }
  return sum;
}

// The name of the first accelerator without a figure.
std::string lacking(const Cluster& cluster, double Accelerator::* figure) {
  for (const Nodes& some : cluster.nodes) {
    if (!(some.accelerator.*figure > 0)) { return quote(some.accelerator.name); }
  }
  return quote(cluster.accelerator.name);
}

std::string written_off(std::string_view what) {
  return fmt::format("{}, written off over {} years", what, kWriteOffYears);
}

std::string depreciated(double price, std::string_view of) {
  return fmt::format("{} USD {}, depreciated over {} years", price, of, kWriteOffYears);
}

}  // namespace

std::optional<Rate> cost_rate(const Cluster& cluster) {
  constexpr double kHour = 3600.0;
  const double written_off_time = kWriteOffYears * kYear.value();
  const auto devices = static_cast<double>(cluster.devices);
  if (cluster.usd_per_device_hour > 0) {
    return Rate{devices * cluster.usd_per_device_hour / kHour,
                fmt::format("rented at {} USD per device and hour", cluster.usd_per_device_hour), "rent"};
  }
  if (cluster.node_price_usd > 0) {
    const std::string node = fmt::format("per node of {}", cluster.node_size());
    return Rate{nodes(cluster) * cluster.node_price_usd / written_off_time, depreciated(cluster.node_price_usd, node),
                written_off("node price")};
  }
  if (const double price = sum_over_nodes(cluster, &Accelerator::price_usd); price > 0) {
    return Rate{price / written_off_time,
                fmt::format("{} USD of all accelerators, depreciated over {} years, nothing else included", price,
                            kWriteOffYears),
                written_off("accelerators alone")};
  }
  if (cluster.nodes.empty() && cluster.accelerator.price_usd > 0) {
    return Rate{devices * cluster.accelerator.price_usd / written_off_time,
                depreciated(cluster.accelerator.price_usd, "per accelerator, nothing else included"),
                written_off("accelerators alone")};
  }
  return std::nullopt;
}

std::optional<Rate> power(const Cluster& cluster) {
  if (cluster.node_power_watts > 0) {
    return Rate{nodes(cluster) * cluster.node_power_watts,
                fmt::format("nameplate power, {} W per node of {}", cluster.node_power_watts, cluster.node_size()),
                "rated power of nodes"};
  }
  if (const double watts = sum_over_nodes(cluster, &Accelerator::tdp_watts); watts > 0) {
    return Rate{watts, fmt::format("nameplate power, {} W of all accelerators, nothing else included", watts),
                "rated power of accelerators alone"};
  }
  if (cluster.nodes.empty() && cluster.accelerator.tdp_watts > 0) {
    return Rate{
        static_cast<double>(cluster.devices) * cluster.accelerator.tdp_watts,
        fmt::format("nameplate power, {} W per accelerator, nothing else included", cluster.accelerator.tdp_watts),
        "rated power of accelerators alone"};
  }
  return std::nullopt;
}

std::string missing_price(const Cluster& cluster) {
  return fmt::format("usd_per_device_hour or node_price_usd of cluster {}, or price_usd of accelerator {}",
                     quote(cluster.name), lacking(cluster, &Accelerator::price_usd));
}

std::string missing_power(const Cluster& cluster) {
  return fmt::format("node_power_watts of cluster {}, or tdp_watts of accelerator {}", quote(cluster.name),
                     lacking(cluster, &Accelerator::tdp_watts));
}

}  // namespace orrery::hardware
