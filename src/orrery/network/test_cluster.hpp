// Small clusters with round numbers, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/group.hpp"

namespace orrery::network::test {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

// One protocol, full efficiency: base 1 us, step 1 us, and a switch that can reduce with the same constants.
inline hardware::LinkClass plain_link() {
  hardware::LinkClass link;
  link.name = "plain";
  link.latency = 1_us;
  link.protocols = {{"only", 1_us, 1_us, 1_us, 1_us, 1.0}};
  link.in_switch_base = 1_us;
  link.in_switch_step = 1_us;
  link.in_switch_efficiency = 1.0;
  return link;
}

inline hardware::NetworkDimension plain_dimension(std::int64_t size, double gigabytes_per_second = 1.0) {
  hardware::NetworkDimension dimension;
  dimension.name = "d";
  dimension.size = size;
  dimension.bandwidth = BytesPerSecond(gigabytes_per_second * 1e9);
  dimension.link = plain_link();
  return dimension;
}

// Reductions are free: memory bandwidth is left out.
inline hardware::Cluster plain_cluster(const std::vector<std::int64_t>& sizes) {
  hardware::Cluster cluster;
  cluster.devices = 1;
  for (const auto size : sizes) {
    cluster.dimensions.push_back(plain_dimension(size));
    cluster.devices *= size;
  }
  return cluster;
}

// The group of all devices.
inline Group group_of(const std::vector<std::int64_t>& members) {
  Group group;
  for (std::size_t d = 0; d < members.size(); ++d) {
    if (members[d] > 1) { group.extents.push_back({static_cast<int>(d), members[d]}); }
  }
  return group;
}

// On a topology, with the dimensions that follow from it.
inline hardware::Cluster cluster_on(hardware::TopologySpec spec) {
  hardware::Cluster cluster;
  cluster.dimensions = hardware::dimensions_of(spec, hardware::build(spec));
  cluster.devices = hardware::device_count(spec);
  cluster.topology = std::move(spec);
  return cluster;
}

// Leaves of four devices below as many spines, 1 GB/s; with `domain` > 1, scale-up domains of so many devices at 9
// GB/s.
inline hardware::Cluster non_blocking_tree(const hardware::LinkClass& link, std::int64_t domain) {
  hardware::TopologySpec spec;
  spec.link = link;
  spec.bandwidth = 1_GBps;
  spec.radix = 8;
  spec.blocks = 4;
  if (domain > 1) { spec.scale_up = hardware::ScaleUpDomain{domain, 9_GBps, link}; }
  return cluster_on(std::move(spec));
}

}  // namespace orrery::network::test
