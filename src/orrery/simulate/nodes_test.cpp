// Nodes, messages and memory under ASTRA-sim's rules, by hand; 1 MiB takes 500 + 19531 = 20031 ns over a link of 50
// GiB/s and 500 ns.
#include <algorithm>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::nodes_test {
namespace {

constexpr auto kRing = Wiring::ring;
constexpr auto kFull = Wiring::mesh;
constexpr auto kSwitch = Wiring::switched;

Rig pair() { return Rig({{kRing, 2}}, {"ring"}); }

TEST(Nodes, the_accelerator_and_the_host_each_run_one_node_at_a_time) {
  EXPECT_EQ(finish(pair(), {compute(1, 5), compute(2, 7)}), all(2, 12000));
  EXPECT_EQ(finish(pair(), {compute(1, 5), on_host(compute(2, 7))}), all(2, 7000));
  EXPECT_EQ(finish(pair(), compute(1, 0)), all(2, 1));  // a node without duration takes 1 ns
}

// A kernel of 1.9 us; ASTRA-sim reads whole microseconds only.
NodeRecord short_kernel() {
  NodeRecord made = compute(1, 1);
  made.attributes = {{keys::duration_ns, Value::natural(1900), {}, {}}};
  return made;
}

bool warns(const Result<results::Simulation>& simulation, const std::string& part) {
  if (!simulation) { throw std::runtime_error(simulation.error().text()); }
  return std::any_of(simulation->warnings.begin(), simulation->warnings.end(),
                     [&](const std::string& warning) { return warning.find(part) != std::string::npos; });
}

TEST(Nodes, durations_in_ns_are_cut_to_whole_microseconds_with_a_warning) {
  const auto result = run(pair(), [](std::uint32_t) { return std::vector{short_kernel()}; });
  EXPECT_EQ(finish_of(result), all(2, 1000));
  EXPECT_TRUE(warns(result, "cut to whole microseconds"));
  EXPECT_FALSE(warns(run(pair(), [](std::uint32_t) { return std::vector{compute(1, 2)}; }), "microseconds"));
}

TEST(Nodes, physical_semantics_takes_durations_to_the_nanosecond) {
  Rig rig = pair();
  EXPECT_EQ(finish(rig.physical(), short_kernel()), all(2, 1900));
}

TEST(Nodes, broadcasts_take_their_recorded_duration_with_a_warning) {
  NodeRecord broadcast = collective(1, CollectiveType::broadcast, kMiB);
  broadcast.duration_us = 3;
  const auto result = run(pair(), [&](std::uint32_t) { return std::vector{broadcast}; });
  EXPECT_EQ(finish_of(result), all(2, 3000));
  EXPECT_TRUE(warns(result, "BROADCAST nodes take their recorded duration"));
}

TEST(Nodes, ready_nodes_start_by_ascending_id_and_may_overtake_one_that_waits_for_its_slot) {
  // 1 occupies the accelerator and 2 waits for it; 3 starts on the host. 2 runs after 1, then 4.
  const auto result = run(pair(), [](std::uint32_t) {
    return std::vector{compute(4, 1, {3}), on_host(compute(3, 1)), compute(2, 10), compute(1, 2)};
  });
  EXPECT_EQ(finish_of(result), all(2, 13000));
}

// 1e12 operations on 1e9 bytes: bound by 100 TFLOP/s, 10 ms; 1e9 on 1e9: bound by 1000 GB/s, 1 ms. One after another.
TEST(Nodes, the_roofline_is_the_longer_of_arithmetic_and_memory_traffic) {
  auto rig = pair();
  rig.system.roofline = true;
  rig.system.peak_tflops = 100;
  rig.system.local_memory_gb = 1000;
  const auto task = [](std::uint64_t id, std::int64_t operations) {
    NodeRecord made = compute(id, 5);
    made.attributes = {number(keys::num_ops, operations), number(keys::tensor_size, 1'000'000'000)};
    return made;
  };
  EXPECT_EQ(finish(rig, {task(1, 1'000'000'000'000), task(2, 1'000'000'000)}), all(2, 11'000'000));
}

TEST(Nodes, exposed_time_is_the_time_without_compute) {
  const auto result = run(pair(), [](std::uint32_t) { return std::vector{compute(1, 5), on_host(compute(2, 7))}; });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ranks[0].exposed_comm_ns, 2000U);
  EXPECT_EQ(result->ranks[0].compute_ns, 5000U);
}

// All replayed nodes count as compute, also those that overlap: 7 us - (7 + 5) us wraps around, as in ASTRA-sim.
TEST(Nodes, exposed_time_can_wrap_around_with_replay_only) {
  auto rig = pair();
  rig.system.replay_only = true;
  NodeRecord reduce = all_reduce(2, kMiB);
  reduce.duration_us = 7;
  const auto result = run(rig, [&](std::uint32_t) { return std::vector{compute(1, 5), reduce}; });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ranks[0].finish_ns, 7000U);
  EXPECT_EQ(result->ranks[0].exposed_comm_ns, 0U - std::uint64_t{5000});
}

TEST(Nodes, metadata_nodes_end_at_once) {
  const auto result =
      run(pair(), [](std::uint32_t) { return std::vector{node(1, NodeType::metadata), compute(2, 3, {1})}; });
  EXPECT_EQ(finish_of(result), all(2, 3000));
}

TEST(Messages, sends_and_receives_end_when_the_message_has_arrived) {
  const auto result = run(Rig({{kRing, 8}}, {"ring"}), [](std::uint32_t rank) {
    if (rank == 0) { return std::vector{send(1, 1, kMiB)}; }
    if (rank == 1) { return std::vector{receive(1, 0, kMiB)}; }
    return std::vector{compute(1, 1)};
  });
  EXPECT_EQ(finish_of(result), (Times{20031, 20031, 1000, 1000, 1000, 1000, 1000, 1000}));
}

TEST(Messages, a_send_without_a_receive_is_a_warning) {
  const auto result = run(pair(), [](std::uint32_t rank) {
    return rank == 0 ? std::vector{send(1, 1, 500), send(2, 1, 700)} : std::vector{receive(1, 0, 500)};
  });
  EXPECT_TRUE(warns(result, "w.0.et rank 0, node 2: sends 700 B with tag 0 to rank 1, which has no matching receive"));
  EXPECT_TRUE(warns(result, "(1 such message)"));
}

// Three hops: latency per hop and the bytes once; congestion-aware: store and forward at every rank. A switch: two
// links in both cases.
TEST(Messages, hops_take_latency_or_with_congestion_the_whole_time) {
  const auto time = [](const Rig& rig, std::uint32_t to) {
    const auto result = run(rig, [to](std::uint32_t rank) {
      if (rank == 0) { return std::vector{send(1, to, kMiB)}; }
      return std::vector{rank == to ? receive(1, 0, kMiB) : compute(1, 1)};
    });
    return finish_of(result)[to];
  };
  const Rig ring({{kRing, 8}}, {"ring"});
  EXPECT_EQ(time(ring, 3), 21031U);
  EXPECT_EQ(time(Rig(ring).aware(), 3), 3 * 20031U);
  EXPECT_EQ(time(Rig(ring).aware(), 5), 3 * 20031U);  // backwards
  const Rig hub({{kSwitch, 8}}, {"ring"});
  EXPECT_EQ(time(hub, 3), 20531U);
  EXPECT_EQ(time(Rig(hub).aware(), 3), 2 * 20031U);
  const Rig direct({{kFull, 8}}, {"ring"});
  EXPECT_EQ(time(direct, 5), time(Rig(direct).aware(), 5));
}

// Two senders to one receiver share the link from the switch: the second message waits for 19531 ns.
TEST(Messages, the_second_message_waits_for_the_link) {
  const auto result = run(Rig({{kSwitch, 4}}, {"ring"}).aware(), [](std::uint32_t rank) {
    if (rank == 0) { return std::vector{receive(1, 1, kMiB), receive(2, 2, kMiB)}; }
    return std::vector{rank == 3 ? compute(1, 1) : send(1, 0, kMiB)};
  });
  EXPECT_EQ(finish_of(result), (Times{40062 + 19531, 40062, 40062 + 19531, 1000}));
}

// Ranks 0 and 5 of a 4 x 4 differ in both dimensions; the message takes the time of the first only, with a warning.
TEST(Messages, only_the_lowest_dimension_takes_time_with_a_warning) {
  auto rig = Rig({{kRing, 4}, {kRing, 4}}, {"ring", "ring"});
  rig.dimensions[1].latency_ns = 1000;
  const auto to = [&](std::uint32_t target) {
    return run(rig, [target](std::uint32_t rank) {
      if (rank == 0) { return std::vector{send(1, target, kMiB)}; }
      return std::vector{rank == target ? receive(1, 0, kMiB) : compute(1, 1)};
    });
  };
  EXPECT_EQ(to(4)->ranks[4].finish_ns, 20531U);
  EXPECT_TRUE(to(4)->warnings.empty());
  EXPECT_EQ(to(5)->ranks[5].finish_ns, 20031U);
  EXPECT_EQ(to(5)->warnings.size(), 1U);
}

// The send occupies the communication slot until it has arrived, and the all-reduce behind it waits.
TEST(Messages, a_send_occupies_the_slot_that_a_collective_needs) {
  const auto result = run(Rig({{kRing, 3}}, {"ring"}).aware(), [](std::uint32_t rank) {
    if (rank == 0) {
      return std::vector{compute(1, 5), compute(2, 1), all_reduce(3, 4096, {1}), send(4, 1, kMiB), send(5, 2, 1000)};
    }
    if (rank == 1) { return std::vector{all_reduce(3, 4096), receive(6, 0, kMiB)}; }
    return std::vector{all_reduce(3, 4096), receive(6, 0, 1000, {3})};
  });
  EXPECT_EQ(finish_of(result), (Times{22189, 22181, 22189}));
}

// 1 MiB takes 100 + 20971 ns, 2 MiB 100 + 41943; 10 us of computing between.
TEST(Memory, ranks_have_their_own_memory_or_share_a_pool) {
  auto rig = pair();
  rig.memory = {memory::Arrangement::PER_NPU_MEMORY_EXPANSION, 100, 50, 1};
  const std::vector nodes{memory_access(1, NodeType::mem_load, kMiB), compute(2, 10, {1}),
                          memory_access(3, NodeType::mem_store, 2 * kMiB, {2})};
  EXPECT_EQ(finish(rig, nodes), all(2, 21071 + 10000 + 42043));
  // A pool: rank 1 loads after rank 0 (until 42142). Rank 0 requests its store at 31071 and waits until then. Rank 1
  // requests its store at 52142 and waits for that of rank 0, which ends at 84185.
  rig.memory.arrangement = memory::Arrangement::MEMORY_POOL;
  EXPECT_EQ(finish(rig, nodes), (Times{84185, 126228}));
}

TEST(Simulate, concurrent_simulations_are_independent) {
  const auto job = job_of(Rig({{kRing, 4}, {kRing, 4}}, {"ring", "ring"}).chunks(8, 2), [](std::uint32_t rank) {
    return std::vector{compute(1, rank * 7 % 5 + 1), all_reduce(2, kMiB, {1})};
  });
  ASSERT_TRUE(job);
  const auto expected = finish_of(simulate(*job));
  std::vector<Times> found(4);
  std::vector<std::thread> threads;
  threads.reserve(found.size());
  for (Times& times : found) {
    threads.emplace_back([&] { times = finish_of(simulate(*job)); });
  }
  for (std::thread& thread : threads) { thread.join(); }
  for (const Times& times : found) { EXPECT_EQ(times, expected); }
}

}  // namespace
}  // namespace orrery::simulate::test::nodes_test
