// How the devices of one dimension of a network are joined, and what follows from it: the one place that says so, for
// the closed form, the simulator and descriptions of networks. Others ask the functions below.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace orrery::hardware {

enum class Wiring : std::uint8_t {
  ring,      // links to two neighbours, both directions; a part of the ring is a line and has half the bandwidth
  mesh,      // a link for every pair: k peers get k / (size - 1) of a device's bandwidth
  switched,  // every device has its full bandwidth into one switch
  rails,     // device i of every node connects to switch fabric i through its own NIC
};

// Names of wirings: in descriptions of clusters, and in network files of ASTRA-sim, which cannot say rails (the program
// writes Switch for it).
struct WiringNames {
  Wiring wiring;
  std::string_view name, astra_sim;
};
inline constexpr std::array<WiringNames, 4> kWiringNames{{{Wiring::switched, "switched", "Switch"},
                                                          {Wiring::rails, "rails", "Switch"},
                                                          {Wiring::ring, "ring", "Ring"},
                                                          {Wiring::mesh, "mesh", "FullyConnected"}}};

// Devices send through ports of a switch; otherwise over links to other devices.
[[nodiscard]] constexpr bool has_switch(Wiring wiring) { return wiring == Wiring::switched || wiring == Wiring::rails; }
// A link for every pair. Bandwidth of a link follows from the number of devices: the dimension needs a size.
[[nodiscard]] constexpr bool has_pair_links(Wiring wiring) { return wiring == Wiring::mesh; }
// Links lead to neighbours only, and traffic to others passes devices.
[[nodiscard]] constexpr bool has_neighbours_only(Wiring wiring) { return wiring == Wiring::ring; }
// Ports are NICs of nodes.
[[nodiscard]] constexpr bool joins_nodes(Wiring wiring) { return wiring == Wiring::rails; }

// Links of one of `size` devices.
[[nodiscard]] std::int64_t links_of_device(Wiring wiring, std::int64_t size);
// Links between a device and one that it sends to: neighbours, or devices of one switch.
[[nodiscard]] constexpr int links_to_peer(Wiring wiring) { return has_switch(wiring) ? 2 : 1; }
// Part of a device's bandwidth to the other members of a group of `members` of `size` devices.
[[nodiscard]] double bandwidth_part(Wiring wiring, std::int64_t size, std::int64_t members);

}  // namespace orrery::hardware
