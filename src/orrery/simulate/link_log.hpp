// Every grant of a link under physical rules, for the critical path of a run. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/simulate/physical_links.hpp"

namespace orrery::simulate {

// A transfer has been granted a link (or the memory that reduces it).
struct LinkGrant {
  std::uint32_t link = 0;
  std::uint32_t owner = 0;  // of a transfer: number of its collective; else of its message
  std::uint32_t chunk = 0, step = 0, node = 0;
  std::uint32_t from = 0, to = 0;      // indices into PhysicalCollective::progress
  std::uint32_t source = 0;            // rank that sends it first
  std::uint32_t at = 0, behind = 0;    // ranks before and behind the link, or those whose switch is there
  std::uint32_t previous_hop = kNone;  // of the transfer
  std::uint32_t previous_on_link = kNone;
  std::uint8_t dimension = 0;
  bool of_collective : 1 = false;
  bool from_switch : 1 = false, into_switch : 1 = false, to_switch : 1 = false;
  bool is_reduction : 1 = false;
  bool is_last_hop : 1 = true;  // of the network
  bool is_reduced_later : 1 = false;
  std::uint64_t requested_at = 0, granted_at = 0, duration = 0, latency = 0;

  [[nodiscard]] std::uint64_t left_at() const { return granted_at + duration; }
  [[nodiscard]] std::uint64_t arrives_at() const { return granted_at + duration + latency; }
};

class LinkLog {
 public:
  // Before the transfer crosses the link; `grant`: link, times, ends and dimension.
  void add(std::uint32_t transfer_id, const Transfer& transfer, LinkGrant grant);

  [[nodiscard]] const std::vector<LinkGrant>& grants() const { return grants_; }

 private:
  std::vector<LinkGrant> grants_;
  std::vector<std::uint32_t> last_of_transfer_, last_on_link_;
};

}  // namespace orrery::simulate
