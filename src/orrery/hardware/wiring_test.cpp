// What a wiring means: the figures of the closed form against the routes of the network that is built of it.
#include "orrery/hardware/wiring.hpp"

#include <gtest/gtest.h>

#include "orrery/hardware/records.hpp"
#include "orrery/hardware/routes.hpp"
#include "orrery/hardware/topology.hpp"

namespace orrery::hardware::wiring_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

TopologySpec grid(std::vector<std::int64_t> sizes, std::vector<Wiring> wirings) {
  TopologySpec spec;
  spec.kind = TopologyKind::grid;
  spec.sizes = std::move(sizes);
  spec.wirings = std::move(wirings);
  spec.bandwidth = 10_GBps;
  spec.routing = Routing::shortest;
  return spec;
}

// Bytes/s that each of the first `members` devices sends, if it sends as much to the next one on either side. At the
// ends of a line there is one side.
double rate_to_neighbours(const Topology& topology, std::uint32_t members) {
  Routes routes(topology);
  const bool whole = members == topology.devices;
  return rate_of_pattern(routes, [&](std::uint32_t device) {
    std::vector<std::uint32_t> peers;
    if (device >= members) { return peers; }
    if (whole || device + 1 < members) { peers.push_back((device + 1) % members); }
    if (whole || device > 0) { peers.push_back((device + members - 1) % members); }
    return peers;
  });
}

// A device of a mesh, or at a switch, sends to the other members at the bandwidth of the closed form. In a whole ring
// both neighbours have a link, and both count. A part of a ring is a line: the closed form counts one of its links, as
// at its ends, while the routes give a device between two neighbours both.
TEST(WiringLaw, bandwidth_is_that_of_the_routes_but_a_part_of_a_ring_counts_as_its_ends) {
  constexpr double kLink = 10e9;
  for (const Wiring wiring : {Wiring::ring, Wiring::mesh, Wiring::switched}) {
    for (const std::int64_t size : {3, 4, 8}) {
      const Topology topology = build(grid({size}, {wiring}));
      const auto dimensions = dimensions_of(grid({size}, {wiring}), topology);
      ASSERT_EQ(dimensions.size(), 1U);
      EXPECT_EQ(dimensions.front().wiring, wiring);
      std::vector<double> out(topology.devices, 0.0);
      for (const TopologyLink& link : topology.links) {
        if (link.from < topology.devices) { out[link.from] += link.bandwidth; }
      }
      for (const double sum : out) { EXPECT_DOUBLE_EQ(sum, dimensions.front().bandwidth.value()); }
      for (std::int64_t members = 2; members <= size; ++members) {
        Routes routes(topology);
        const double to_all = rate_of_pattern(routes, [&](std::uint32_t device) {
          std::vector<std::uint32_t> peers;
          for (std::uint32_t peer = 0; peer < members && device < members; ++peer) {
            if (peer != device) { peers.push_back(peer); }
          }
          return peers;
        });
        const double said = dimensions.front().bandwidth_among(members).value();
        if (has_neighbours_only(wiring)) {
          const bool whole = members == size;
          EXPECT_DOUBLE_EQ(said, kLink * (whole ? 2 : 1)) << members;
          EXPECT_DOUBLE_EQ(rate_to_neighbours(topology, static_cast<std::uint32_t>(members)),
                           kLink * (whole || members > 2 ? 2 : 1))
              << members;
        } else {
          EXPECT_DOUBLE_EQ(said, to_all) << size << " " << members;
        }
      }
    }
  }
}

TEST(Wiring, links_of_a_device_and_on_the_way_to_a_peer_are_those_of_the_network) {
  for (const Wiring wiring : {Wiring::ring, Wiring::mesh, Wiring::switched}) {
    for (const std::int64_t size : {2, 3, 5}) {
      const Topology topology = build(grid({size}, {wiring}));
      Routes routes(topology);
      std::int64_t links = 0;
      for (const TopologyLink& link : topology.links) { links += link.from == 0 ? 1 : 0; }
      EXPECT_EQ(links, links_of_device(wiring, size));
      EXPECT_EQ(routes.distance(0, 1), static_cast<std::uint32_t>(links_to_peer(wiring)));
    }
  }
}

// The names that cluster files read are those of the one table, each once.
TEST(Wiring, names_are_read_and_printed_from_one_table) {
  for (const WiringNames& row : kWiringNames) { EXPECT_EQ(config::enum_name(row.wiring), row.name); }
  EXPECT_EQ(config::enum_name(Wiring::mesh), "mesh");
  EXPECT_EQ(config::enum_name(Wiring::rails), "rails");
}

// Two axes: 4 in a ring, 3 at a switch: 12 devices, 3 lines of 4 cables and 4 switches of 3 cables.
TEST(Wiring, a_grid_has_its_lines_along_each_axis) {
  const TopologySpec spec = grid({4, 3}, {Wiring::ring, Wiring::switched});
  ASSERT_FALSE(mistake_in(spec));
  const Topology topology = build(spec);
  const TopologyFigures figures = figures_of(spec, topology);
  EXPECT_EQ(figures.devices, 12);
  EXPECT_EQ(figures.switches, 4);
  EXPECT_EQ(figures.cables, 3 * 4 + 4 * 3);
  EXPECT_EQ(figures.diameter, 2 + 2);
}

TEST(Wiring, a_grid_that_cannot_be_is_explained) {
  EXPECT_EQ(mistake_in(grid({4, 3}, {Wiring::ring}))->message, "1 wirings, but sizes has 2");
  EXPECT_EQ(mistake_in(grid({4}, {Wiring::rails}))->at, "/wirings/0");
  TopologySpec torus = grid({4}, {Wiring::ring});
  torus.kind = TopologyKind::torus;
  EXPECT_EQ(mistake_in(torus)->at, "/wirings");
}

}  // namespace
}  // namespace orrery::hardware::wiring_test
