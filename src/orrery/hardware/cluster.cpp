#include "orrery/hardware/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

namespace orrery::hardware {
namespace {

// The error for `devices` that is not a multiple of `block`, the devices below dimension `dimension`.
std::string partial_block(const Cluster& cluster, std::int64_t devices, std::int64_t block, std::size_t dimension) {
  const std::int64_t below = devices / block * block;
  const std::string what =
      dimension == 1 ? fmt::format("nodes of {}", block)
                     : fmt::format("blocks of {} below dimension \"{}\"", block, cluster.dimensions[dimension].name);
  return fmt::format("{} devices are not a whole number of {}; nearest: {} or {}", devices, what, below, below + block);
}

// Part of a ring is a line: traffic has one direction instead of two.
constexpr double kLineOfRing = 0.5;

void scale_node_expenses(Cluster& cluster, double share) {
  cluster.node_power_watts *= share;
  cluster.node_price_usd *= share;
}

}  // namespace

bool has_switch(Wiring wiring) {
  switch (wiring) {
    case Wiring::switched:
    case Wiring::rails: return true;
    case Wiring::ring:
    case Wiring::mesh: return false;
  }
  throw_internal_error("known wiring", __FILE__, __LINE__);
}

bool has_pair_links(Wiring wiring) {
  switch (wiring) {
    case Wiring::mesh: return true;
    case Wiring::switched:
    case Wiring::rails:
    case Wiring::ring: return false;
  }
  throw_internal_error("known wiring", __FILE__, __LINE__);
}

BytesPerSecond NetworkDimension::bandwidth_among(std::int64_t members) const {
  if (members >= size) { return rate(); }
  switch (wiring) {
    case Wiring::switched:
    case Wiring::rails: return rate();
    case Wiring::ring: return rate() * kLineOfRing;
    case Wiring::mesh: {
      const auto links = static_cast<double>(std::max<std::int64_t>(members - 1, 1));
      return rate() * (links / static_cast<double>(size - 1));
    }
  }
  throw_internal_error("known wiring", __FILE__, __LINE__);
}

double straggler_slowdown(double spread, std::int64_t devices) {
  if (devices <= 1) { return 1.0; }
  const auto n = static_cast<double>(devices);
  const double above = 0.625 / (n + 0.25);  // probability beyond the quantile
  double low = 0.0, high = 10.0;            // beyond 10 lies less than 1e-23
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    const bool beyond = 0.5 * std::erfc(middle / std::numbers::sqrt2) < above;
    (beyond ? high : low) = middle;
  }
  return 1.0 + spread * 0.5 * (low + high);
}

Ground weakest_ground(const Cluster& cluster, Links links) {
  Ground weakest{cluster.accelerator.basis, cluster.accelerator.name};
  for (const auto& dimension : cluster.dimensions) {
    const bool counts = links == Links::all || dimension.size != 1;
    if (counts && dimension.link.basis > weakest.basis) { weakest = {dimension.link.basis, dimension.link.name}; }
  }
  return weakest;
}

Result<Cluster> scaled(Cluster cluster, std::int64_t devices) {
  ORRERY_ASSERT(!cluster.dimensions.empty());
  if (devices < 1 || devices > kMaxDevices) {
    return fail(fmt::format("{} devices: must be between 1 and {}", devices, kMaxDevices));
  }
  auto& dimensions = cluster.dimensions;
  if (dimensions.size() == 1 && dimensions.front().size > 0 && devices > dimensions.front().size) {
    return fail(fmt::format("{} devices: dimension {} has at most {}, and cluster \"{}\" has no outer dimension",
                            devices, dimensions.front().name, dimensions.front().size, cluster.name));
  }
  // `rest` blocks of `block` devices are still to be distributed over dimension i and the outer ones.
  std::int64_t rest = devices;
  std::int64_t block = 1;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const bool last = i + 1 == dimensions.size();
    const std::int64_t full = dimensions[i].size;
    if (last || rest <= full) {
      if (i == 0 && rest < full) {
        scale_node_expenses(cluster, static_cast<double>(rest) / static_cast<double>(full));
      }
      if (rest < full) { dimensions[i].bandwidth *= dimensions[i].bandwidth_among(rest) / dimensions[i].rate(); }
      dimensions[i].size = rest;
      rest = 1;
      continue;
    }
    block *= full;
    if (rest % full != 0) { return fail(partial_block(cluster, devices, block, i + 1)); }
    rest /= full;
  }
  cluster.devices = devices;
  cluster.accelerator.slowdown = straggler_slowdown(cluster.speed_spread, devices / dimensions.front().size);
  return cluster;
}

}  // namespace orrery::hardware
