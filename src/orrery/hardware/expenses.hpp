// What a cluster costs and draws while it works: money and power of all its devices, used or not.
//
// Rent: usd_per_device_hour of every device. Where only a price is known, it is written off evenly over four years of
// work without a pause: node_price_usd of every node, else price_usd of every accelerator, nothing of what stands
// around them. Power: node_power_watts of every node, as its maker rates it, else tdp_watts of every accelerator. A
// part of a node has its share of the node.
//
// Left out: networks beyond the nodes, buildings, cooling, people; what a price does not hold; power below the rating.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"

namespace orrery::hardware {

inline constexpr double kWriteOffYears = 4.0;
inline constexpr Seconds kYear{365.0 * 24 * 3600};

// A figure of the whole cluster, and what it rests on.
struct Rate {
  double value = 0;
  std::string basis;  // "rented at 2.95 USD a device and hour"
};

// USD a second; nothing where no price is known.
[[nodiscard]] std::optional<Rate> cost_rate(const Cluster& cluster);
// W; nothing where no power is known.
[[nodiscard]] std::optional<Rate> power(const Cluster& cluster);

// What would have to be known, and where it is written: "usd_per_device_hour or node_price_usd of cluster "x", ...".
[[nodiscard]] std::string missing_price(const Cluster& cluster);
[[nodiscard]] std::string missing_power(const Cluster& cluster);

}  // namespace orrery::hardware
