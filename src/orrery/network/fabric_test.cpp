// Laws of prices.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "orrery/network/chunking.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/network/test_collectives.hpp"

namespace orrery::network::fabric_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it
using hardware::Cluster;
using hardware::Wiring;
using test::group_of;

// Three protocols that trade latency for bandwidth, on up to three dimensions of different speeds.
Cluster random_cluster(const std::vector<std::int64_t>& sizes) {
  const auto figure = [] { return static_cast<double>(*rc::gen::inRange(1, 1000)); };
  const auto time = [&] { return Seconds(figure() * 2e-8); };
  Cluster cluster = test::plain_cluster(sizes);
  for (auto& dimension : cluster.dimensions) {
    dimension.bandwidth = BytesPerSecond(figure() * 1e9);
    dimension.wiring = *rc::gen::element(Wiring::switched, Wiring::rails, Wiring::ring, Wiring::mesh);
    auto& link = dimension.link;
    link.efficiency = 0.8;
    link.latency = time();
    link.in_switch_base = time();
    link.in_switch_step = time();
    link.in_switch_efficiency = *rc::gen::element(0.0, 0.5, 0.7);
    link.protocols = {{"fast", time(), time() * 0.1, time(), time() * 0.1, 0.4},
                      {"middle", time(), time(), time(), time(), 0.9},
                      {"wide", time(), time(), time(), time(), 1.0}};
    link.protocols.resize(static_cast<std::size_t>(*rc::gen::inRange(1, 4)));
  }
  cluster.accelerator.memory_bandwidth = BytesPerSecond(figure() * 1e10);
  return cluster;
}

std::vector<std::int64_t> random_shape() {
  std::vector<std::int64_t> shape;
  const int dimensions = *rc::gen::inRange(1, 4);
  for (int d = 0; d < dimensions; ++d) { shape.push_back(*rc::gen::inRange<std::int64_t>(2, 17)); }
  return shape;
}

Bytes random_bytes() { return Bytes(std::exp2(*rc::gen::inRange(0, 34)) * *rc::gen::inRange(1, 100) / 50.0); }

double members(const Group& group) { return static_cast<double>(group.size()); }

// The bytes that must pass each member's outermost port with any algorithm: only the outermost dimension connects
// nodes, so the n / m members of a node together must receive the data of the m - 1 other nodes.
double outermost_bytes(Collective collective, Bytes bytes, const Group& group, bool switch_reduces) {
  const auto m = static_cast<double>(group.extents.back().members);
  const double inside = members(group) / m;
  const double others = (m - 1) / m * bytes.value();
  switch (collective) {
    case Collective::all_reduce: return (switch_reduces ? 1.0 : 2.0) * others / inside;
    case Collective::all_gather:
    case Collective::reduce_scatter: return others / inside;
    case Collective::all_to_all: return others;
    case Collective::broadcast: return bytes.value() / inside;
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier: break;  // without a price
  }
  return 0.0;
}

TEST(Fabric, no_collective_is_faster_than_the_bandwidth_of_the_links_between_its_nodes) {
  EXPECT_TRUE(rc::check([] {
    const auto shape = random_shape();
    const Cluster cluster = random_cluster(shape);
    const Fabric fabric(cluster);
    const Group group = group_of(shape);
    const Bytes bytes = random_bytes();
    const auto& outermost = cluster.dimensions.back();
    for (const Collective collective : test::kPricedCollectives) {
      const double passed = outermost_bytes(collective, bytes, group, outermost.link.in_switch_efficiency > 0.0);
      RC_ASSERT(fabric.price(collective, bytes, group).time.value() * (1 + 1e-12) >=
                passed / (outermost.bandwidth.value() * 0.8));
    }
  }));
}

TEST(Fabric, no_collective_is_faster_than_the_latency_of_its_hops) {
  EXPECT_TRUE(rc::check([] {
    const auto shape = random_shape();
    const Cluster cluster = random_cluster(shape);
    const Fabric fabric(cluster);
    const Group group = group_of(shape);
    auto step = infinite<Seconds>();
    for (const auto& dimension : cluster.dimensions) {
      step = min(step, dimension.link.in_switch_step);
      for (const auto& p : dimension.link.protocols) { step = min(step, min(p.ring_step, p.tree_step)); }
    }
    for (const Collective collective : test::kPricedCollectives) {
      for (const CollectiveAlgorithm algorithm :
           {CollectiveAlgorithm::ring, CollectiveAlgorithm::tree, CollectiveAlgorithm::direct,
            CollectiveAlgorithm::in_switch, CollectiveAlgorithm::flat_ring}) {
        // In a step between members the data of a member reaches at most twice as many members, three times as many
        // with rings in both directions. With a switch or direct it reaches all members along a dimension in one step.
        const bool stepwise = algorithm != CollectiveAlgorithm::direct && algorithm != CollectiveAlgorithm::in_switch;
        const double growth = collective == Collective::all_to_all ? 3.0 : 2.0;
        const int hops = stepwise ? static_cast<int>(std::ceil(std::log(members(group)) / std::log(growth) - 1e-9))
                                  : static_cast<int>(group.extents.size());
        RC_ASSERT(fabric.price(collective, random_bytes(), group, algorithm).time >= step * hops * (1 - 1e-12));
      }
    }
  }));
}

TEST(Fabric, time_is_the_sum_of_its_terms_and_the_price_of_the_chosen_schedule) {
  EXPECT_TRUE(rc::check([] {
    const auto shape = random_shape();
    const Cluster cluster = random_cluster(shape);
    const Fabric fabric(cluster);
    const Group group = group_of(shape);
    const Bytes bytes = random_bytes();
    for (const Collective collective : test::kPricedCollectives) {
      const Price price = fabric.price(collective, bytes, group);
      const Seconds sum = price.base + price.latency + price.bandwidth + price.reduction;
      RC_ASSERT(std::abs((price.time - sum).value()) <= 1e-12 * sum.value());
      const Price again = fabric.price(fabric.schedule(collective, bytes, group));
      RC_ASSERT(std::abs((price.time - again.time).value()) <= 1e-12 * sum.value());
      RC_ASSERT(price.algorithm == again.algorithm);
      RC_ASSERT(price.protocol == again.protocol);
      RC_ASSERT(price.chunks == again.chunks);
    }
  }));
}

TEST(Fabric, the_price_is_the_least_over_all_recipes_protocols_and_chunk_counts) {
  // Exhaustive search without pruning: every schedule that automatic may choose, with every power of two of chunks.
  EXPECT_TRUE(rc::check([] {
    const auto shape = random_shape();
    const Cluster cluster = random_cluster(shape);
    const Fabric fabric(cluster);
    const Group group = group_of(shape);
    const Bytes bytes = random_bytes();
    const auto can = [&](CollectiveAlgorithm algorithm, std::size_t e) {
      const auto& d = cluster.dimensions[e];
      if (algorithm == CollectiveAlgorithm::ring) { return true; }
      if (algorithm == CollectiveAlgorithm::tree) {
        return d.wiring == Wiring::rails || (d.wiring == Wiring::switched && e > 0);
      }
      if (algorithm == CollectiveAlgorithm::direct) { return d.wiring != Wiring::ring; }
      const bool switched = d.wiring == Wiring::switched || d.wiring == Wiring::rails;
      return switched && d.link.in_switch_efficiency > 0.0;
    };
    const auto is_mesh = [&](std::size_t e) { return cluster.dimensions[e].wiring == Wiring::mesh; };
    const bool torus = std::any_of(cluster.dimensions.begin(), cluster.dimensions.end(),
                                   [](const auto& d) { return d.wiring == Wiring::ring; });
    for (const Collective collective : test::kPricedCollectives) {
      auto least = infinite<Seconds>();
      const bool flat =
          shape.size() > 1 && !torus && collective != Collective::all_to_all && collective != Collective::broadcast;
      if (flat) { least = fabric.price(make_schedule(collective, CollectiveAlgorithm::flat_ring, bytes, group)).time; }
      for (const CollectiveAlgorithm inner : {CollectiveAlgorithm::ring, CollectiveAlgorithm::in_switch}) {
        for (const CollectiveAlgorithm outer : {CollectiveAlgorithm::ring, CollectiveAlgorithm::tree,
                                                CollectiveAlgorithm::in_switch, CollectiveAlgorithm::direct}) {
          if (outer == CollectiveAlgorithm::direct && !is_mesh(shape.size() - 1)) { continue; }
          if (outer == CollectiveAlgorithm::ring && flat) { continue; }
          if (outer == CollectiveAlgorithm::tree && collective == Collective::broadcast) { continue; }
          Recipe recipe{};
          for (std::size_t e = 0; e < shape.size(); ++e) {
            const bool reduces = inner == CollectiveAlgorithm::in_switch && can(inner, e);
            const CollectiveAlgorithm inside = reduces      ? inner
                                               : is_mesh(e) ? CollectiveAlgorithm::direct
                                                            : CollectiveAlgorithm::ring;
            recipe[e] = e + 1 == shape.size() ? outer : inside;
            if (collective == Collective::all_to_all) {
              recipe[e] = can(CollectiveAlgorithm::direct, e) ? CollectiveAlgorithm::direct : CollectiveAlgorithm::ring;
            }
          }
          if (collective != Collective::all_to_all && !can(outer, shape.size() - 1)) { continue; }
          Schedule schedule = make_schedule(collective, recipe, bytes, group);
          if (schedule.phases.empty()) { continue; }
          for (schedule.chunks = 1; schedule.chunks <= kMaxChunks; schedule.chunks *= 2) {
            least = min(least, fabric.price(schedule).time);
          }
        }
      }
      const Seconds time = fabric.price(collective, bytes, group).time;
      RC_ASSERT(std::abs((time - least).value()) <= 1e-9 * least.value());
    }
  }));
}

TEST(Fabric, time_never_falls_with_size_and_never_rises_with_bandwidth_or_falling_latency) {
  EXPECT_TRUE(rc::check([] {
    const auto shape = random_shape();
    const Cluster cluster = random_cluster(shape);
    const Group group = group_of(shape);
    const Bytes bytes = random_bytes();
    Cluster wider = cluster;
    Cluster quicker = cluster;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      wider.dimensions[d].bandwidth *= *rc::gen::inRange(100, 300) / 100.0;
      for (auto& p : quicker.dimensions[d].link.protocols) {
        const double factor = *rc::gen::inRange(0, 100) / 100.0;
        p.ring_step *= factor;
        p.tree_step *= factor;
      }
      quicker.dimensions[d].link.in_switch_step *= 0.5;
    }
    for (const Collective collective : test::kPricedCollectives) {
      const Seconds time = Fabric(cluster).price(collective, bytes, group).time * (1 + 1e-12);
      RC_ASSERT(Fabric(cluster).price(collective, bytes * 0.9, group).time <= time);
      RC_ASSERT(Fabric(cluster).price(collective, bytes * 0.1, group).time <= time);
      RC_ASSERT(Fabric(wider).price(collective, bytes, group).time <= time);
      RC_ASSERT(Fabric(quicker).price(collective, bytes, group).time <= time);
    }
  }));
}

TEST(Fabric, doubling_every_bandwidth_never_increases_the_time_and_at_most_halves_it) {
  EXPECT_TRUE(rc::check([] {
    const auto shape = random_shape();
    const Cluster cluster = random_cluster(shape);
    Cluster doubled = cluster;
    for (auto& dimension : doubled.dimensions) { dimension.bandwidth *= 2.0; }
    const Bytes bytes = random_bytes();
    for (const Collective collective : test::kPricedCollectives) {
      const Seconds before = Fabric(cluster).price(collective, bytes, group_of(shape)).time;
      const Seconds after = Fabric(doubled).price(collective, bytes, group_of(shape)).time;
      RC_ASSERT(after <= before * (1 + 1e-12));
      RC_ASSERT(after * 2.0 >= before * (1 - 1e-12));
    }
  }));
}

TEST(Fabric, swapping_two_identical_dimensions_changes_nothing) {
  EXPECT_TRUE(rc::check([] {
    const auto m = *rc::gen::inRange<std::int64_t>(2, 9);
    Cluster cluster = random_cluster({m, m, 4});
    cluster.dimensions[1] = cluster.dimensions[0];
    const Bytes bytes = random_bytes();
    Group first, second;
    first.extents = {{0, m}, {2, 4}};
    second.extents = {{1, m}, {2, 4}};
    for (const Collective collective : test::kPricedCollectives) {
      const Fabric fabric(cluster);
      RC_ASSERT(fabric.price(collective, bytes, first).time == fabric.price(collective, bytes, second).time);
    }
  }));
}

TEST(Fabric, the_time_of_large_messages_approaches_that_of_the_busiest_port) {
  // 8 x 16, 16 GB, inner 200 GB/s, outer 25 GB/s. Inner port 2 x 7/8 x 16 / 200 = 0.14 s; outer 2 x 15/16 x 2 / 25 =
  // 0.15 s. One after the other 0.29 s; overlapped little more than 0.15 s.
  Cluster cluster = test::plain_cluster({8, 16});
  cluster.dimensions[0].bandwidth = 200_GBps;
  cluster.dimensions[1].bandwidth = 25_GBps;
  const Price price =
      Fabric(cluster).price(Collective::all_reduce, Bytes(16e9), group_of({8, 16}), CollectiveAlgorithm::ring);
  EXPECT_GT(price.time.value(), 0.15);
  EXPECT_LT(price.time.value(), 0.15 * 1.05);
  EXPECT_GT(price.chunks, 1);
}

TEST(Fabric, the_price_of_a_ring_is_base_plus_steps_plus_bytes) {
  // 8 members, 8 GB at 1 GB/s, steps of 1 us: base 1 us, 14 us, 2 x 7 GB / 1 GB/s.
  const Cluster cluster = test::plain_cluster({8});
  const Price price = Fabric(cluster).price(Collective::all_reduce, 8_GB, group_of({8}), CollectiveAlgorithm::ring);
  EXPECT_DOUBLE_EQ(price.base.value(), 1e-6);
  EXPECT_DOUBLE_EQ(price.latency.value(), 14e-6);
  EXPECT_DOUBLE_EQ(price.bandwidth.value(), 14.0);
  EXPECT_DOUBLE_EQ(price.reduction.value(), 0.0);
  EXPECT_EQ(price.protocol, "only");
}

TEST(Fabric, reduction_costs_only_the_time_beyond_that_of_the_link) {
  // 7 of 14 steps reduce 1 GB each: 3 GB of memory traffic at 2 GB/s take 1.5 s, of which 1 s overlaps with the link.
  Cluster cluster = test::plain_cluster({8});
  cluster.accelerator.memory_bandwidth = 2_GBps;
  const auto price = [&] {
    return Fabric(cluster).price(Collective::all_reduce, 8_GB, group_of({8}), CollectiveAlgorithm::ring);
  };
  EXPECT_DOUBLE_EQ(price().reduction.value(), 7 * 0.5);
  EXPECT_DOUBLE_EQ(price().bandwidth.value(), 14.0);
  cluster.accelerator.memory_bandwidth = 3_GBps;
  EXPECT_NEAR(price().reduction.value(), 0.0, 1e-12);
}

TEST(Fabric, a_group_of_one_and_a_call_without_bytes_take_no_time) {
  const Cluster cluster = test::plain_cluster({8});
  const Fabric fabric(cluster);
  EXPECT_EQ(fabric.price(Collective::all_reduce, 1_GiB, Group{}).time, Seconds());
  EXPECT_TRUE(fabric.price(Collective::all_reduce, 1_GiB, Group{}).protocol.empty());
  EXPECT_EQ(fabric.price(Collective::all_reduce, Bytes(), group_of({8})).time, Seconds());
  EXPECT_TRUE(fabric.schedule(Collective::all_reduce, 1_GiB, Group{}).phases.empty());
}

TEST(Fabric, an_algorithm_that_the_wiring_does_not_support_takes_infinite_time) {
  Cluster cluster = test::plain_cluster({8});
  cluster.dimensions[0].wiring = Wiring::ring;
  const Fabric fabric(cluster);
  for (const CollectiveAlgorithm algorithm :
       {CollectiveAlgorithm::tree, CollectiveAlgorithm::direct, CollectiveAlgorithm::in_switch}) {
    EXPECT_FALSE(is_finite(fabric.price(Collective::all_reduce, 1_MiB, group_of({8}), algorithm).time));
  }
  EXPECT_EQ(fabric.price(Collective::all_to_all, 1_MiB, group_of({8})).algorithm, CollectiveAlgorithm::ring);
  cluster.dimensions[0].wiring = Wiring::switched;
  EXPECT_EQ(fabric.price(Collective::all_to_all, 1_MiB, group_of({8})).algorithm, CollectiveAlgorithm::direct);
}

// Eight devices with a link of 1 GB/s between each pair: 7 GB/s among all, 3 GB/s among four, 1 GB/s between two.
TEST(Fabric, a_group_on_a_mesh_has_the_links_between_its_members) {
  Cluster cluster = test::plain_cluster({8});
  cluster.dimensions[0].wiring = Wiring::mesh;
  cluster.dimensions[0].bandwidth = BytesPerSecond(7e9);
  const Fabric fabric(cluster);
  const auto bandwidth_time = [&](std::int64_t n) {
    return fabric.price(Collective::all_gather, Bytes(8e9), group_of({n}), CollectiveAlgorithm::direct)
        .bandwidth.value();
  };
  EXPECT_NEAR(bandwidth_time(8), 7.0 / 7.0, 1e-12);
  EXPECT_NEAR(bandwidth_time(4), 6.0 / 3.0, 1e-12);
  EXPECT_NEAR(bandwidth_time(2), 4.0 / 1.0, 1e-12);
  EXPECT_NEAR(fabric.transfer(1_GB, 0).value(), 1.0 + 1e-6, 1e-12);
}

// Four pods of four devices, 3:1 oversubscribed. A member that is alone in its pod gets a third of its rate. In a ring
// through all 16, each device receives 15 GB through its port, a quarter of it from outside its pod: 3.75 GB at a third
// of the rate. In an all_to_all it receives 12 GB from outside.
TEST(Fabric, oversubscription_reduces_the_bandwidth_between_pods) {
  Cluster cluster = test::plain_cluster({4, 4});
  const auto bandwidth_time = [&](Collective collective, const Group& group, CollectiveAlgorithm algorithm) {
    return Fabric(cluster).price(collective, 16_GB, group, algorithm).bandwidth.value();
  };
  const Group alone{{{1, 4}}}, all = group_of({4, 4});
  EXPECT_NEAR(bandwidth_time(Collective::all_gather, alone, CollectiveAlgorithm::ring), 12.0, 1e-9);
  EXPECT_NEAR(bandwidth_time(Collective::all_gather, all, CollectiveAlgorithm::flat_ring), 11.25, 1e-9);  // two ports
  cluster.dimensions[1].oversubscription = 1.0;
  EXPECT_NEAR(bandwidth_time(Collective::all_gather, all, CollectiveAlgorithm::flat_ring), 15.0, 1e-9);
  cluster.dimensions[1].oversubscription = 3.0;
  EXPECT_NEAR(bandwidth_time(Collective::all_gather, alone, CollectiveAlgorithm::ring), 36.0, 1e-9);
  EXPECT_NEAR(bandwidth_time(Collective::all_gather, all, CollectiveAlgorithm::flat_ring), 15.0, 1e-9);
  EXPECT_NEAR(bandwidth_time(Collective::all_to_all, all, CollectiveAlgorithm::direct), 36.0,
              0.1);  // plus the first chunk inside the pod
  EXPECT_NEAR(Fabric(cluster).transfer(1_GB, 1).value(), 3.0 + 1e-6, 1e-12);
  const Traffic message = Fabric(cluster).transfer_traffic(1_GB, 1);
  ASSERT_EQ(message.ports.size(), 2U);
  EXPECT_NEAR(message.ports[1].out.value(), 1.0, 1e-12);  // of the three seconds that it takes through the tier
}

// The switches of a cluster as one dimension, or as leaves below a tier: the same ports, so nothing is faster.
TEST(Fabric, a_tier_of_switches_makes_no_collective_faster) {
  for (const std::int64_t nodes : {1, 4}) {
    for (const auto& [leaf, leaves] : {std::pair<std::int64_t, std::int64_t>{4, 4}, {2, 16}, {16, 2}, {8, 3}}) {
      const Cluster flat = test::plain_cluster({nodes, leaf * leaves});
      for (const double oversubscription : {1.0, 1.5, 4.0}) {
        Cluster tiers = test::plain_cluster({nodes, leaf, leaves});
        tiers.dimensions[2].oversubscription = oversubscription;
        for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                            Collective::all_to_all, Collective::broadcast}) {
          for (const double bytes : {1e3, 1e6, 1e7, 1e8, 1e9, 1e10}) {
            const Seconds one = Fabric(flat).price(collective, Bytes(bytes), group_of({nodes, leaf * leaves})).time;
            const Seconds two = Fabric(tiers).price(collective, Bytes(bytes), group_of({nodes, leaf, leaves})).time;
            EXPECT_GE(two.value(), one.value() * (1.0 - 1e-12))
                << nodes << ' ' << leaf << ' ' << leaves << ' ' << oversubscription << ' ' << bytes << ' '
                << static_cast<int>(collective);
          }
        }
      }
    }
  }
}

// Tiers above tiers: bytes of all of them pass the innermost ports, also where a group has no neighbours on a level
// between (`middle` of 1).
TEST(Fabric, bytes_of_all_tiers_pass_the_innermost_ports) {
  for (const auto& [leaf, middle, top] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{4, 2, 2}, {2, 4, 8}, {8, 1, 4}}) {
    Cluster tiers = test::plain_cluster({1, leaf, std::max<std::int64_t>(middle, 2), top});
    tiers.dimensions[2].oversubscription = tiers.dimensions[3].oversubscription = 1.0;
    const std::int64_t devices = leaf * middle * top;
    const Cluster flat = test::plain_cluster({1, devices});
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                        Collective::all_to_all, Collective::broadcast}) {
      for (const double bytes : {1e3, 1e6, 1e8, 1e10}) {
        const Seconds one = Fabric(flat).price(collective, Bytes(bytes), group_of({1, devices})).time;
        const Seconds three = Fabric(tiers).price(collective, Bytes(bytes), group_of({1, leaf, middle, top})).time;
        EXPECT_GE(three.value(), one.value() * (1.0 - 1e-12))
            << leaf << ' ' << middle << ' ' << top << ' ' << bytes << ' ' << static_cast<int>(collective);
      }
    }
  }
}

// All links at the same time: base 1 us, two steps of 1 us, 2 x 7/8 of 8 GB at 7 GB/s.
TEST(Fabric, all_reduce_on_a_mesh_is_direct) {
  Cluster cluster = test::plain_cluster({8});
  cluster.dimensions[0].wiring = Wiring::mesh;
  cluster.dimensions[0].bandwidth = BytesPerSecond(7e9);
  const Fabric fabric(cluster);
  const Price price = fabric.price(Collective::all_reduce, 8_GB, group_of({8}));
  EXPECT_EQ(price.algorithm, CollectiveAlgorithm::direct);
  EXPECT_NEAR(price.time.value(), 2.0 + 3e-6, 1e-12);
  EXPECT_FALSE(
      is_finite(fabric.price(Collective::all_reduce, 1_MiB, group_of({8}), CollectiveAlgorithm::in_switch).time));
  EXPECT_FALSE(is_finite(fabric.price(Collective::all_reduce, 1_MiB, group_of({8}), CollectiveAlgorithm::tree).time));
}

// The ring of a group that is half of a ring returns over the same links, so it has half the bandwidth.
TEST(Fabric, part_of_a_ring_has_half_its_bandwidth) {
  Cluster cluster = test::plain_cluster({16});
  cluster.dimensions[0].wiring = Wiring::ring;
  const Fabric fabric(cluster);
  const auto time = [&](std::int64_t n) {
    return fabric.price(Collective::all_gather, Bytes(16e9), group_of({n})).bandwidth.value();
  };
  EXPECT_NEAR(time(16), 15.0, 1e-9);
  EXPECT_NEAR(time(8), 14.0 / 0.5, 1e-9);
}

// 8 shards of 1 GB: those of a member take 1, 1, 2, 2, 3, 3 and 4 hops, 16 GB-hops over its two links of 0.5 GB/s.
TEST(Fabric, all_to_all_takes_the_shorter_direction_around_a_ring) {
  Cluster cluster = test::plain_cluster({8});
  cluster.dimensions[0].wiring = Wiring::ring;
  const Price price = Fabric(cluster).price(Collective::all_to_all, 8_GB, group_of({8}));
  EXPECT_NEAR(price.bandwidth.value(), 16.0, 1e-9);
  EXPECT_NEAR(price.latency.value(), 4e-6 * static_cast<double>(price.chunks), 1e-15);
}

TEST(Fabric, trees_are_used_between_nodes_only) {
  Cluster cluster = test::plain_cluster({8, 64});
  for (auto& dimension : cluster.dimensions) { dimension.link.in_switch_efficiency = 0.0; }
  const Fabric fabric(cluster);
  EXPECT_EQ(fabric.price(Collective::all_reduce, 1_KiB, group_of({8})).algorithm, CollectiveAlgorithm::ring);
  EXPECT_EQ(fabric.price(Collective::all_reduce, 1_KiB, group_of({8, 64})).algorithm, CollectiveAlgorithm::tree);
  EXPECT_EQ(fabric.price(Collective::all_reduce, 64_GiB, group_of({8, 64})).algorithm, CollectiveAlgorithm::flat_ring);
}

TEST(Fabric, a_transfer_takes_the_link_s_latency_and_its_bytes) {
  Cluster cluster = test::plain_cluster({8, 4});
  cluster.dimensions[1].bandwidth = 50_GBps;
  cluster.dimensions[1].link.efficiency = 0.8;
  cluster.dimensions[1].link.latency = 5_us;
  // 5 us + 40 MB / (50 GB/s x 0.8) = 5 us + 1 ms
  EXPECT_NEAR(Fabric(cluster).transfer(Bytes(40e6), 1).value(), 1.005e-3, 1e-15);
}

}  // namespace
}  // namespace orrery::network::fabric_test
