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

// Bytes/s that routes leave each device of groups of neighbours that fill the only axis, all at once: to the other
// members or, where links lead to neighbours only, to the next member on either side, the last one being next to the
// first.
double rate_by_routes(const Topology& topology, Wiring wiring, std::uint32_t members) {
  Routes routes(topology);
  return rate_of_pattern(routes, [&](std::uint32_t device) {
    std::vector<std::uint32_t> peers;
    const std::uint32_t first = device / members * members;
    if (has_neighbours_only(wiring)) {
      return std::vector<std::uint32_t>{first + (device + 1) % members, first + (device + members - 1) % members};
    }
    for (std::uint32_t peer = first; peer < first + members; ++peer) {
      if (peer != device) { peers.push_back(peer); }
    }
    return peers;
  });
}

// The closed form has a figure for each wiring. It is what routes leave: a message from the last to the first member of
// a part of a ring passes all links between them, so that every link has a message of either direction.
TEST(WiringLaw, bandwidth_of_a_group_is_that_of_its_routes) {
  for (const Wiring wiring : {Wiring::ring, Wiring::mesh, Wiring::switched}) {
    for (const std::int64_t size : {2, 3, 4, 6, 8, 12}) {
      const TopologySpec spec = grid({size}, {wiring});
      const Topology topology = build(spec);
      NetworkDimension dimension = dimensions_of(spec, topology).front();
      EXPECT_EQ(dimension.wiring, wiring);
      if (!has_neighbours_only(wiring) || size > 2) {
        double out = 0;
        for (const TopologyLink& link : topology.links) { out += link.from == 0 ? link.bandwidth : 0; }
        EXPECT_DOUBLE_EQ(out, dimension.bandwidth.value());
      }
      dimension.parts.clear();  // of a cluster that has no topology
      for (std::int64_t members = 2; members <= size; ++members) {
        if (size % members != 0) { continue; }
        EXPECT_DOUBLE_EQ(dimension.bandwidth_among(members).value(),
                         rate_by_routes(topology, wiring, static_cast<std::uint32_t>(members)))
            << size << " " << members;
      }
    }
  }
}

// Device i of every node has a port of its own into fabric i.
TEST(WiringLaw, bandwidth_of_rails_is_that_of_the_routes) {
  TopologySpec spec;
  spec.kind = TopologyKind::rails;
  spec.bandwidth = 10_GBps;
  spec.scale_up = ScaleUpDomain{4, 90_GBps, {}};
  spec.nodes = 6;
  const Topology topology = build(spec);
  NetworkDimension dimension = dimensions_of(spec, topology).at(1);
  EXPECT_EQ(dimension.wiring, Wiring::rails);
  dimension.parts.clear();
  for (const std::uint32_t members : {2U, 3U, 6U}) {
    Routes routes(topology);
    const double rate = rate_of_pattern(routes, [&](std::uint32_t device) {
      std::vector<std::uint32_t> peers;
      const std::uint32_t node = device / 4, first = node / members * members;
      for (std::uint32_t peer = first; peer < first + members; ++peer) {
        if (peer != node) { peers.push_back(peer * 4 + device % 4); }
      }
      return peers;
    });
    EXPECT_DOUBLE_EQ(dimension.bandwidth_among(members).value(), rate) << members;
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
