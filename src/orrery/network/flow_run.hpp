// A list of flows on a network of links, from the first start to the last end.
//
// A flow becomes eligible at its start or at the end of the last flow that it depends on, whichever is later. It waits
// for the latency of its route (the sum over its links), and then shares the links until its bytes have been
// transferred. Flows of no bytes, or without links, end when they would start to share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/network/fair_rates.hpp"

namespace orrery::network {

struct FlowLink {
  std::uint64_t id = 0;
  std::string name;
  double bandwidth = 0;  // bytes/s
  double latency = 0;    // seconds
};

// From a time on, a link has another bandwidth: it slows down, fails (0), or comes back.
struct LinkChange {
  std::uint32_t link = 0;
  double time = 0, bandwidth = 0;  // seconds, bytes/s
};

// Lists of lists: item i of list f is items[first[f] + i], up to first[f + 1].
struct IndexLists {
  std::vector<std::uint32_t> first = {0};
  std::vector<std::uint32_t> items;

  [[nodiscard]] std::span<const std::uint32_t> operator[](std::size_t list) const {
    return std::span(items).subspan(first[list], first[list + 1] - first[list]);
  }
  void close() { first.push_back(static_cast<std::uint32_t>(items.size())); }
};

struct FlowList {
  std::string name;
  std::vector<FlowLink> links;
  std::vector<LinkChange> changes;  // in any order; of one link and time, the last one holds
  // Flows share in proportion to 1 / (latency of the route), as TCP's do with their round-trip times; routes without
  // latency have the weight 1 / (1 s).
  bool is_weighted = false;
  std::vector<std::uint64_t> ids;
  std::vector<double> starts, bytes;  // seconds, bytes
  IndexLists dependencies, routes;    // indices of flows, of links

  [[nodiscard]] std::size_t size() const { return ids.size(); }
};

struct FlowTimes {
  std::vector<double> finish;           // by flow
  std::optional<std::uint32_t> stuck;   // a flow that waits for a link that has failed and does not come back
  std::vector<double> carried;          // bytes by link
  std::uint64_t updates = 0;            // of the rates
  std::uint64_t full = 0, repairs = 0;  // by method
};

// `flows` is valid: positive bandwidths, indices in range, no cycle of dependencies (find_cycle).
[[nodiscard]] FlowTimes run_flows(const FlowList& flows, FairRates::Method method = FairRates::Method::automatic);

// The flows of a cycle of dependencies, in their order; empty if there is none.
[[nodiscard]] std::vector<std::uint32_t> find_cycle(const IndexLists& dependencies);

}  // namespace orrery::network
