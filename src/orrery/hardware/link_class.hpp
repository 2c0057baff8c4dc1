// Classes of links: latency, efficiency and the protocols of the collective library on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::hardware {

// One wire protocol of a collective library on a link class (NCCL: LL, LL128, Simple): latency of a step, and the part
// of the link's bandwidth that is payload.
//
//   ring of n, one dimension:  time = ring_base + steps ring_step + bytes per member / payload rate
//   tree of n, one dimension:  time = tree_base + hops tree_step  + bytes per member / payload rate
//   payload rate = dimension bandwidth x link efficiency x bandwidth_fraction
//
// The base is the library's, the step the link's: a collective over several dimensions has one base, and each step has
// the latency of its own link.
struct Protocol {
  std::string name;
  Seconds ring_base;                // once per ring collective: launch and synchronisation
  Seconds ring_step;                // per ring step on this link
  Seconds tree_base;                // once per tree collective
  Seconds tree_step;                // per tree hop on this link
  double bandwidth_fraction = 1.0;  // payload bandwidth / bandwidth that a large message reaches on the link
  // Part of a member's own shard that the kernel copies in addition to the shards on the link: a ring of n takes
  // n - 1 + own_share shards.
  double own_share = 0.0;
  // The library changes to a protocol with more payload where the bytes of a ring or tree step take longer than this at
  // the link's nominal bandwidth.
  Seconds until = {};          // 0: never
  Seconds exchange_base = {};  // added to ring_base where every member sends to every other one (all-to-all)
  bool exchanges = true;       // all-to-all uses this protocol
};

// A class of links: everything that does not depend on their number.
//
// In-switch reduction (NVLink SHARP, "NVLS"): for an all-reduce of S bytes among n members, the switch reads S from
// every member, returns to each its reduced share S/n, reads that share and multicasts it, so that every member moves
// S (1 + 1/n) bytes out and as many in, both directions concurrently:
//
//   time = in_switch_base + traversals in_switch_step + S (1 + 1/n) / (dimension bandwidth x in_switch_efficiency)
//
// With in_switch_efficiency 0.68 this gives back the all-reduce rates measured on 5, 6, 7 and 8 H200 within 2 % (see
// docs/models/hardware.md), which S / rate does not. `efficiency` is not applied to in-switch traffic.
struct LinkClass {
  std::string name;  // e.g. "nvlink4"
  std::string description;
  BytesPerSecond port;      // one port, one direction; 0: every device has its own port
  double efficiency = 1.0;  // best measured payload rate / nominal bandwidth, large messages
  Seconds latency;          // of one message, device to device, software included, without the time of its bytes
  std::vector<Protocol> protocols;  // at least one
  Seconds exchange_peer;   // of every further peer of a device in an all-to-all: a message that the library starts
  Seconds in_switch_base;  // once per in-switch collective
  Seconds in_switch_step;  // per traversal of the reducing switch
  double in_switch_efficiency =
      0;  // part of the bandwidth that in-switch traffic reaches; 0 = the switch cannot reduce
  std::optional<double> picojoules_per_bit;  // of one cable, both ends; not given: a prior (expenses.hpp)
  Basis basis = Basis::prior;                // of efficiency, latency and protocols
  Sources sources;
};

}  // namespace orrery::hardware
