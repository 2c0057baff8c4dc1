// Cost and power of a cluster while it runs: of all its devices, used or not.
//
// Cost: rent, usd_per_device_hour of every device. Where only a price is known, it is depreciated linearly over four
// years of continuous operation: node_price_usd of every node, else price_usd of every accelerator alone. Power:
// node_power_watts of every node (nameplate), else tdp_watts of every accelerator. A part of a node counts as its share
// of the node.
//
// Left out: networks outside the nodes, buildings, cooling, staff; power below the rating.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"

namespace orrery::hardware {

inline constexpr double kWriteOffYears = 4.0;
inline constexpr Seconds kYear{365.0 * 24 * 3600};

// A figure of the whole cluster, and its basis.
struct Rate {
  double value = 0;
  std::string basis;      // "rented at 2.95 USD per device and hour"
  std::string kind = {};  // whatever the number of devices: "rent", "rated power of nodes"
};

// USD a second; nothing where no price is known.
[[nodiscard]] std::optional<Rate> cost_rate(const Cluster& cluster);
// W; nothing where no power is known.
[[nodiscard]] std::optional<Rate> power(const Cluster& cluster);

// Priors where a file has no figure. Idle power of an accelerator: 11 % of its TDP (80 W of the 700 W of an H100, the
// idle power that campaigns assume). Energy of a bit on a cable, both ends: 5 pJ in a scale-up domain (electrical
// serializers, 2 to 5 pJ each end), 20 pJ on other networks (a 400 Gb/s optical module of 8 W at each end).
inline constexpr double kIdlePart = 80.0 / 700.0;
inline constexpr double kScaleUpPicojoules = 5.0, kNetworkPicojoules = 20.0;

// Keys that are missing, and of which entry: "usd_per_device_hour or node_price_usd of cluster "x", ...".
[[nodiscard]] std::string missing_price(const Cluster& cluster);
[[nodiscard]] std::string missing_power(const Cluster& cluster);

}  // namespace orrery::hardware
