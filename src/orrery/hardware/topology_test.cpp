// Networks of every kind against closed forms: counts, ports, diameters, bisections, throughput, routes.
#include "orrery/hardware/topology.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/core/random.hpp"
#include "orrery/core/test_effort.hpp"
#include "orrery/hardware/routes.hpp"
#include "orrery/hardware/topology_records.hpp"

namespace orrery::hardware::topology_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it

TopologySpec spec_of(TopologyKind kind) {
  TopologySpec spec;
  spec.kind = kind;
  spec.bandwidth = 1_GBps;
  spec.link.name = "plain";
  return spec;
}

TopologySpec fat_tree(std::int64_t radix, std::int64_t levels, std::vector<double> over = {}) {
  TopologySpec spec = spec_of(TopologyKind::fat_tree);
  spec.radix = radix;
  spec.levels = levels;
  spec.oversubscription = std::move(over);
  return spec;
}

TopologySpec grid(TopologyKind kind, std::vector<std::int64_t> sizes) {
  TopologySpec spec = spec_of(kind);
  spec.sizes = std::move(sizes);
  return spec;
}

TopologySpec dragonfly(std::int64_t groups, std::int64_t routers, std::int64_t hosts, std::int64_t global) {
  TopologySpec spec = spec_of(TopologyKind::dragonfly);
  spec.groups = groups;
  spec.routers = routers;
  spec.hosts = hosts;
  spec.global_links = global;
  return spec;
}

TopologySpec rails(std::int64_t size, std::int64_t nodes, std::int64_t pods, double over = 1) {
  TopologySpec spec = spec_of(TopologyKind::rails);
  spec.scale_up = ScaleUpDomain{size, 9_GBps, {}};
  spec.nodes = nodes;
  spec.pods = pods;
  spec.oversubscription = {over};
  return spec;
}

std::vector<TopologySpec> every_kind() {
  TopologySpec tree = spec_of(TopologyKind::switch_tree);
  tree.down = {4, 3, 2};
  TopologySpec xgft = spec_of(TopologyKind::fat_tree);
  xgft.down = {4, 4, 2};
  xgft.up = {1, 2, 3};
  xgft.cables = {1, 2, 1};
  TopologySpec above_nvlink = fat_tree(8, 2);
  above_nvlink.scale_up = ScaleUpDomain{2, 9_GBps, {}};
  TopologySpec hyperx = grid(TopologyKind::hyperx, {3, 4});
  hyperx.hosts = 2;
  TopologySpec list = spec_of(TopologyKind::list);
  list.devices = {"a", "b", "c"};
  list.switches = {"s", "t"};
  list.links = {{"a", "s"}, {"b", "s"}, {"s", "t", 2_GBps, 2}, {"t", "c"}};
  return {fat_tree(8, 2),
          fat_tree(8, 3),
          fat_tree(12, 2, {2}),
          xgft,
          tree,
          above_nvlink,
          rails(4, 4, 1),
          rails(4, 4, 3, 2),
          dragonfly(9, 4, 2, 2),
          hyperx,
          grid(TopologyKind::torus, {4, 3}),
          grid(TopologyKind::mesh, {3, 3}),
          list};
}

// ---- closed forms --------------------------------------------------------------------------------------------------

// Two levels of radix r: r/2 devices on each of r leaves, r/2 spines; any half to the other half at full rate.
TEST(Topology, two_level_fat_tree) {
  const TopologySpec spec = fat_tree(8, 2);
  const auto figures = figures_of(spec, build(spec));
  EXPECT_EQ(figures.devices, 32);
  EXPECT_EQ(figures.switches, 8 + 4);
  EXPECT_EQ(figures.cables, 32 + 8 * 4);
  EXPECT_EQ(figures.most_ports, 8);
  EXPECT_EQ(figures.diameter, 4);
  EXPECT_NEAR(figures.bisection, 16e9, 1);
}

// Three levels of radix r: r^3 / 4 devices, 5 r^2 / 4 switches, 6 links across.
TEST(Topology, three_level_fat_tree) {
  const TopologySpec spec = fat_tree(8, 3);
  const auto figures = figures_of(spec, build(spec));
  EXPECT_EQ(figures.devices, 8 * 8 * 8 / 4);
  EXPECT_EQ(figures.switches, 5 * 8 * 8 / 4);
  EXPECT_EQ(figures.most_ports, 8);
  EXPECT_EQ(figures.diameter, 6);
  EXPECT_NEAR(figures.bisection, 64e9, 1);
}

// 2:1 leaves: 8 of 12 ports down, 4 up. All traffic between leaves gets half.
TEST(Topology, oversubscribed_fat_tree) {
  const TopologySpec spec = fat_tree(12, 2, {2});
  const Topology topology = build(spec);
  const auto figures = figures_of(spec, topology);
  EXPECT_EQ(figures.devices, 96);
  EXPECT_EQ(figures.switches, 12 + 4);
  EXPECT_NEAR(figures.bisection, 24e9, 1);
  const auto dimensions = dimensions_of(spec, topology);
  ASSERT_EQ(dimensions.size(), 2U);
  EXPECT_EQ(dimensions[0].size, 8);
  EXPECT_EQ(dimensions[1].size, 12);
  EXPECT_DOUBLE_EQ(dimensions[0].rate().value(), 1e9);
  EXPECT_DOUBLE_EQ(dimensions[1].oversubscription.value(), 2);
}

// k^n torus, k even: cut in the middle of the last axis, 2 k^(n-1) links; diameter n k / 2; n k^n cables.
TEST(Topology, torus) {
  const TopologySpec spec = grid(TopologyKind::torus, {4, 4, 4});
  const auto figures = figures_of(spec, build(spec));
  EXPECT_EQ(figures.devices, 64);
  EXPECT_EQ(figures.switches, 0);
  EXPECT_EQ(figures.cables, 3 * 64);
  EXPECT_EQ(figures.most_ports, 6);
  EXPECT_EQ(figures.diameter, 6);
  EXPECT_NEAR(figures.bisection, 2 * 16e9, 1);
}

// Grid without wrap-around: one link for each column across the cut, diameter the sum of (size - 1).
TEST(Topology, mesh) {
  const TopologySpec spec = grid(TopologyKind::mesh, {4, 6});
  const auto figures = figures_of(spec, build(spec));
  EXPECT_EQ(figures.cables, 3 * 6 + 4 * 5);
  EXPECT_EQ(figures.diameter, 3 + 5);
  EXPECT_NEAR(figures.bisection, 4e9, 1);
}

// Balanced dragonfly (a = 2 h = 2 p, g = a h + 1): one link for each pair of groups, diameter 2 + 3 links.
TEST(Topology, dragonfly) {
  const TopologySpec spec = dragonfly(9, 4, 2, 2);
  const Topology topology = build(spec);
  const auto figures = figures_of(spec, topology);
  EXPECT_EQ(figures.devices, 72);
  EXPECT_EQ(figures.switches, 36);
  EXPECT_EQ(figures.cables, 72 + 9 * 6 + 9 * 8 / 2);
  EXPECT_EQ(figures.most_ports, 2 + 3 + 2);
  EXPECT_EQ(figures.diameter, 5);
  std::multiset<std::pair<std::uint32_t, std::uint32_t>> pairs;  // of groups
  for (const TopologyLink& link : topology.links) {
    const auto from = (link.from - 72) / 4, to = (link.to - 72) / 4;
    if (link.from >= 72 && link.to >= 72 && from != to) { pairs.insert({from, to}); }
  }
  for (std::uint32_t a = 0; a < 9; ++a) {
    for (std::uint32_t b = 0; b < 9; ++b) { EXPECT_EQ(pairs.count({a, b}), a == b ? 0U : 1U); }
  }
}

// A full mesh on each axis: diameter one link for each axis; the last axis of 4 has 2 x 2 cables across in each row.
TEST(Topology, hyperx) {
  TopologySpec spec = grid(TopologyKind::hyperx, {3, 4});
  spec.hosts = 8;
  const auto figures = figures_of(spec, build(spec));
  EXPECT_EQ(figures.devices, 96);
  EXPECT_EQ(figures.switches, 12);
  EXPECT_EQ(figures.cables, 96 + 4 * 3 + 3 * 6);
  EXPECT_EQ(figures.diameter, 2 + 2);
  EXPECT_NEAR(figures.bisection, 3 * 2 * 2 * 1e9, 1);
}

// Nodes of 4 on 4 rails, 4 nodes in each of 3 pods, 2:1: leaves have 4 down and 2 up, to 2 spines.
TEST(Topology, rails_with_pods) {
  const TopologySpec spec = rails(4, 4, 3, 2);
  const Topology topology = build(spec);
  const auto figures = figures_of(spec, topology);
  EXPECT_EQ(figures.devices, 48);
  EXPECT_EQ(figures.switches, 12 + 12 + 2);
  EXPECT_EQ(figures.cables, 48 + 48 + 12 * 2);
  const auto dimensions = dimensions_of(spec, topology);
  ASSERT_EQ(dimensions.size(), 3U);
  EXPECT_EQ(dimensions[0].bandwidth, 9_GBps);
  EXPECT_EQ(dimensions[1].wiring, Wiring::rails);
  EXPECT_DOUBLE_EQ(dimensions[1].rate().value(), 1e9);
  EXPECT_DOUBLE_EQ(dimensions[2].oversubscription.value(), 2);
}

// Without spines, another rail is reached through a device of the own node.
TEST(Topology, rails_of_one_pod_cross_in_the_node) {
  const Topology topology = build(rails(4, 4, 1));
  Routes routes(topology);
  EXPECT_EQ(routes.distance(0, 4), 2U);  // same rail
  EXPECT_EQ(routes.distance(0, 1), 2U);  // same node
  EXPECT_EQ(routes.distance(0, 5), 4U);
}

// Two devices of one domain are two links apart over the leaf that both are on, too: the domain's own links are taken,
// whatever the policy.
TEST(Topology, devices_of_one_domain_use_their_own_switch) {
  TopologySpec spec = fat_tree(8, 2);
  spec.scale_up = ScaleUpDomain{4, 9_GBps, {}};
  for (const Routing routing :
       {Routing::shortest, Routing::d_mod_k, Routing::ecmp, Routing::spread, Routing::valiant, Routing::adaptive}) {
    spec.routing = routing;
    const Topology topology = build(spec);
    Routes routes(topology);
    std::vector<double> load(topology.links.size(), 0.0);
    for (std::uint32_t from = 4; from < 8; ++from) {
      for (std::uint32_t to = 4; to < 8; ++to) {
        if (from != to) { routes.charge(from, to, 1.0, load); }
      }
    }
    for (std::size_t i = 0; i < load.size(); ++i) {
      const TopologyLink& link = topology.links[i];
      const bool is_theirs = link.level == 0 && (link.from / 4 == 1 || link.to / 4 == 1);
      EXPECT_EQ(load[i], is_theirs ? 3 : 0);
    }
  }
}

// The port of a device in a list is what its cables have together; another cable, or the trunk, may leave less.
TEST(Topology, ports_of_a_list_are_its_cables) {
  TopologySpec spec = spec_of(TopologyKind::list);
  spec.devices = {"a", "b"};
  spec.switches = {"s", "t"};
  spec.links = {{"a", "s", 3_GBps, 2}, {"b", "t", 2_GBps, 1}, {"s", "t", 5_GBps, 1}};
  const Topology topology = build(spec);
  EXPECT_EQ(port_bandwidth(spec, topology), 6_GBps);
  EXPECT_EQ(dimensions_of(spec, topology)[0].bandwidth, 2_GBps);
}

// ---- laws ----------------------------------------------------------------------------------------------------------

TEST(Topology, levels_multiply_to_the_devices_and_links_have_both_directions) {
  for (const TopologySpec& spec : every_kind()) {
    const Topology topology = build(spec);
    std::int64_t product = 1;
    for (const TopologyLevel& level : topology.levels) { product *= level.size; }
    EXPECT_EQ(product, topology.devices);
    EXPECT_EQ(device_count(spec), topology.devices);
    for (std::size_t i = 0; i < topology.links.size(); i += 2) {
      const TopologyLink &there = topology.links[i], &back = topology.links[i + 1];
      EXPECT_TRUE(there.from == back.to && there.to == back.from && there.bandwidth == back.bandwidth);
      EXPECT_NE(there.from, there.to);
      EXPECT_LT(there.level, topology.levels.size());
    }
  }
}

TEST(Topology, routes_are_connected_and_shortest_under_every_policy) {
  RandomStream random(2);
  for (TopologySpec spec : every_kind()) {
    for (const Routing routing :
         {Routing::shortest, Routing::d_mod_k, Routing::ecmp, Routing::spread, Routing::valiant, Routing::adaptive}) {
      spec.routing = routing;
      const Topology topology = build(spec);
      Routes routes(topology);
      for (int i = 0; i < orrery::test::cases(100); ++i) {
        const auto from = static_cast<std::uint32_t>(random.below(topology.devices));
        const auto to = static_cast<std::uint32_t>(random.below(topology.devices));
        std::uint32_t at = from;
        const auto links = routes.route(from, to, static_cast<std::uint64_t>(i));
        for (const std::uint32_t link : links) {
          ASSERT_EQ(topology.links[link].from, at);
          at = topology.links[link].to;
          ASSERT_TRUE(at >= topology.devices || at == to || topology.devices_forward);
        }
        ASSERT_EQ(at, to);
        ASSERT_EQ(routes.distance(from, to), routes.distance(to, from));
        if (routing != Routing::valiant) { ASSERT_EQ(links.size(), routes.distance(from, to)); }
      }
    }
  }
}

// Whatever the policy, the loads of a message leave its source, enter its destination, and balance in between.
TEST(Topology, charged_loads_are_conserved_at_every_node) {
  RandomStream random(3);
  for (TopologySpec spec : every_kind()) {
    for (const Routing routing : {Routing::d_mod_k, Routing::spread, Routing::valiant, Routing::adaptive}) {
      spec.routing = routing;
      const Topology topology = build(spec);
      Routes routes(topology);
      std::vector<double> load(topology.links.size(), 0.0), balance(topology.nodes.size(), 0.0);
      for (int i = 0; i < 50; ++i) {
        const auto from = static_cast<std::uint32_t>(random.below(topology.devices));
        const auto to = static_cast<std::uint32_t>(random.below(topology.devices));
        routes.charge(from, to, 3.0, load);
        balance[from] += 3;
        balance[to] -= 3;
      }
      for (std::size_t i = 0; i < load.size(); ++i) {
        balance[topology.links[i].from] -= load[i];
        balance[topology.links[i].to] += load[i];
      }
      for (const double rest : balance) { ASSERT_NEAR(rest, 0, 1e-9); }
    }
  }
}

// All-to-all on a non-blocking tree: every link carries the same under d-mod-k, so a device has its whole port.
TEST(Topology, d_mod_k_balances_all_to_all) {
  for (const std::int64_t levels : {2, 3}) {
    const TopologySpec spec = fat_tree(8, levels);
    const auto figures = figures_of(spec, build(spec));
    EXPECT_NEAR(figures.all_to_all.value(), 1e9, 1) << levels;
  }
}

// Neighbours on the first axis of a torus use opposite links; the tie half-way round goes the positive way.
TEST(Topology, grids_are_routed_axis_by_axis) {
  TopologySpec spec = grid(TopologyKind::torus, {4, 4});
  spec.routing = Routing::shortest;
  const Topology topology = build(spec);
  Routes routes(topology);
  std::vector<std::uint32_t> passed;
  for (const std::uint32_t link : routes.route(0, 10)) { passed.push_back(topology.links[link].to); }
  EXPECT_EQ(passed, (std::vector<std::uint32_t>{1, 2, 6, 10}));
}

TEST(Topology, adaptive_avoids_loaded_ways) {
  TopologySpec spec = fat_tree(8, 2);
  spec.routing = Routing::adaptive;
  const Topology topology = build(spec);
  Routes routes(topology);
  std::vector<double> load(topology.links.size(), 0.0);
  for (std::uint32_t i = 0; i < 4; ++i) { routes.charge(i, 4 + i, 1, load); }  // four flows, four spines
  EXPECT_EQ(*std::max_element(load.begin(), load.end()), 1.0);
}

// ---- mistakes ------------------------------------------------------------------------------------------------------

std::string mistake_of(const TopologySpec& spec) {
  const auto mistake = mistake_in(spec);
  return mistake ? mistake->at + ": " + mistake->message : "";
}

TEST(Topology, networks_that_cannot_be_wired_are_refused) {
  EXPECT_EQ(mistake_of(fat_tree(8, 2)), "");
  EXPECT_EQ(mistake_of(fat_tree(8, 2, {2})),
            "/radix: 8 ports do not divide into 2 down : 1 up; radix must be a multiple of 3");
  EXPECT_EQ(
      mistake_of(dragonfly(10, 4, 2, 2)),
      "/groups: 10 groups cannot be wired: the 8 global links of a group (4 routers x 2) must be a multiple of the "
      "9 other groups");
  EXPECT_EQ(mistake_of(rails(4, 4, 2, 3)), "/oversubscription: 3: does not divide the 4 devices of a leaf switch");
  TopologySpec list = spec_of(TopologyKind::list);
  list.devices = {"a", "b"};
  list.links = {{"a", "a"}};
  EXPECT_EQ(mistake_of(list), "/links/0/to: \"a\": a link joins two different nodes");
  list.links = {{"a", "bb"}};
  EXPECT_EQ(mistake_of(list), "/links/0/to: no device or switch \"bb\"; did you mean \"b\"?");
  list.links.clear();
  EXPECT_EQ(mistake_of(list), "/devices/1: \"b\" cannot be reached from \"a\": the network is not connected");
  TopologySpec torus = grid(TopologyKind::torus, {4});
  torus.radix = 8;
  EXPECT_EQ(mistake_of(torus), "/radix: radix is not valid for this kind of topology");
  EXPECT_EQ(mistake_of(grid(TopologyKind::torus, {64, 64, 64})),
            ": has more than 16384 devices, the most of this kind");
}

// Zero had meant any number of groups.
TEST(Topology, switches_that_serve_no_group_are_refused) {
  const auto read = [](std::string_view text) {
    return config::Described<InSwitchLimits>::record().read(config::parse_yaml(text, "t.yaml").value());
  };
  EXPECT_EQ(read("{groups: 2}").value().groups, 2);
  EXPECT_FALSE(read("{buffer: 1 MiB}").value().groups.has_value());
  const auto none = read("{groups: 0}");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "t.yaml:1:10 /groups: 0: switches without room for a group reduce nothing; leave in_switch out, or give 1 "
            "or more");
}

// ---- groups of the closed form -------------------------------------------------------------------------------------

std::vector<double> rates_among(const NetworkDimension& dimension) {
  std::vector<double> rates;
  for (std::int64_t members = 2; members <= dimension.size; ++members) {
    rates.push_back(dimension.bandwidth_among(members).value() / 1e9);
  }
  return rates;
}

// Links of 1 GB/s. A part of a line has its links, as the whole; a part of a ring is a line. Between two routers of a
// row of a HyperX there is one cable, for two devices each; between two groups of a dragonfly one for eight.
TEST(TopologyLaw, a_group_has_the_bandwidth_of_the_links_between_its_members) {
  using testing::ElementsAre;
  const auto dimensions = [](const TopologySpec& spec) { return dimensions_of(spec, build(spec)); };
  EXPECT_THAT(rates_among(dimensions(grid(TopologyKind::mesh, {4, 3}))[0]), ElementsAre(1, 1, 1));
  EXPECT_THAT(rates_among(dimensions(grid(TopologyKind::torus, {4, 3}))[0]), ElementsAre(1, 1, 2));
  TopologySpec hyperx = grid(TopologyKind::hyperx, {4});
  hyperx.hosts = 2;
  EXPECT_THAT(rates_among(dimensions(hyperx)[1]), ElementsAre(0.5, 0.75, 1));  // 1.5 in all, but the port has 1
  TopologySpec minimal = dragonfly(5, 4, 2, 1);
  minimal.routing = Routing::shortest;
  EXPECT_THAT(rates_among(dimensions(minimal)[2]), ElementsAre(0.125, 0.25, 0.375, 0.5));
  EXPECT_THAT(rates_among(dimensions(fat_tree(8, 2))[1]), ElementsAre(1, 1, 1, 1, 1, 1, 1));
}

// Against every message one by one, on every kind of network and level: groups of neighbours and groups that are spread
// evenly, all of a level at once, and the lower of the two.
TEST(TopologyLaw, bandwidth_of_groups_is_that_of_their_routes) {
  int compared = 0;
  std::vector<TopologySpec> specs = every_kind();
  specs.push_back(grid(TopologyKind::mesh, {6, 4}));
  specs.push_back(grid(TopologyKind::torus, {8, 6}));
  for (const TopologySpec& spec : specs) {
    const Topology topology = build(spec);
    const auto dimensions = dimensions_of(spec, topology);
    std::int64_t stride = 1;
    for (std::size_t level = 0; level < dimensions.size(); ++level) {
      const NetworkDimension& dimension = dimensions[level];
      const std::int64_t size = dimension.size;
      for (std::int64_t members = 2; members <= size; ++members) {
        if (size % members != 0 || (topology.has_scale_up && level == 0)) { continue; }
        const bool is_ring = has_neighbours_only(dimension.wiring);
        double lowest = port_bandwidth(spec, topology).value() * (is_ring ? 2 : 1);
        for (const bool are_spread : {false, true}) {
          if (are_spread && is_ring) { continue; }
          Routes routes(topology);
          std::vector<double> load(topology.links.size(), 0.0);
          const auto group = [&](std::int64_t device) {
            const std::int64_t position = device / stride % size;
            const std::int64_t number = are_spread ? position % (size / members) : position / members;
            return std::pair(device - position * stride, number);
          };
          for (std::uint32_t from = 0; from < topology.devices; ++from) {
            for (std::uint32_t to = 0; to < topology.devices; ++to) {
              if (from == to || group(from) != group(to)) { continue; }
              const std::int64_t apart = std::abs(from / stride % size - to / stride % size);
              const double messages = !is_ring ? 1 : members == 2 ? 2 : apart == 1 ? 1 : apart == members - 1 ? 1 : 0;
              if (messages > 0) { routes.charge(from, to, messages, load); }
            }
          }
          const double peers = is_ring ? 2 : static_cast<double>(members - 1);
          for (std::size_t link = 0; link < load.size(); ++link) {
            if (load[link] > 0) { lowest = std::min(lowest, peers * topology.links[link].bandwidth / load[link]); }
          }
        }
        EXPECT_NEAR(dimension.bandwidth_among(members).value() / lowest, 1, 1e-12)
            << static_cast<int>(spec.kind) << " level " << level << " members " << members;
        ++compared;
      }
      stride *= size;
    }
  }
  EXPECT_GT(compared, 40);
}

}  // namespace
}  // namespace orrery::hardware::topology_test
