// Offloaded weights that replicas load together from a pool of memory.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/network/fabric.hpp"
#include "orrery/parallel/item_times.hpp"
#include "orrery/parallel/lowerer.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::pool_loads_test {
namespace {

// Two nodes of eight devices with 100 GB/s each to the switch of their node, which has four links of 50 GB/s to
// sixteen memories of 20 GB/s.
hardware::Cluster pool_cluster(bool nodes_combine, bool memories_combine) {
  hardware::Cluster cluster = test::cluster_of({8, 2});
  cluster.second_tier = {1024_GiB, 100_GBps, 10_us, {}, 0.5};
  cluster.second_tier.levels = {{"nodes", 8, 4, 50_GBps, nodes_combine},
                                {"memories", 16, 16, 20_GBps, memories_combine}};
  return cluster;
}

test::Case job_on(hardware::Cluster cluster) {
  test::Case c;
  c.model = test::llama(8, 1024, 16, 16, 4096, 32768);
  c.job = {16, 1024, hardware::Precision::bf16, Task::pretrain};
  c.cluster = std::move(cluster);
  c.plan.dp = 16;
  c.plan.offload.weights = true;
  return c;
}

Program program_of(const test::Case& c) { return lower(c.model, c.job, c.plan, c.cluster, c.stack); }

// Time of a load of 1 GB by the data-parallel group, without latency, in ms.
double load_ms(bool nodes_combine, bool memories_combine, std::int64_t tp) {
  test::Case c = job_on(pool_cluster(nodes_combine, memories_combine));
  c.plan.tp = tp;
  c.plan.dp = 16 / tp;
  const Program program = program_of(c);
  CollectiveCall call{Collective::broadcast, GroupKind::host, Bytes(1e9)};
  call.sharers = GroupKind::dp;
  const network::Fabric fabric(c.cluster);
  return (price_call(call, fabric, program.mesh) - 10_us).value() * 1e3;
}

// A device receives 1 GB in 10 ms. All devices of a node need 8 GB of 200 GB/s, those of the cluster 16 GB of 320 GB/s;
// where a level combines, one for each group of the node, or of the cluster. Behind it the bytes pass once as well.
TEST(PoolLoads, a_level_that_combines_passes_the_bytes_of_a_group_once) {
  EXPECT_NEAR(load_ms(false, false, 1), 50.0, 1e-9);
  EXPECT_NEAR(load_ms(false, true, 1), 40.0, 1e-9);
  EXPECT_NEAR(load_ms(true, true, 1), 10.0, 1e-9);
  EXPECT_NEAR(load_ms(true, true, 2), 10.0, 1e-9);  // two groups: 2 GB of 200 GB/s
  EXPECT_NEAR(load_ms(true, true, 4), 20.0, 1e-9);  // four
  EXPECT_NEAR(load_ms(true, false, 1), 10.0, 1e-9);
}

// Loads and gathers of the first forward of all layers, and the bytes of the loads.
struct Fetched {
  bool gathers = false;
  double together = 0, alone = 0;
};
Fetched fetched(const Program& program) {
  Fetched sum;
  for (const BlockUse& use : program.chunks.front().forward) {
    if (!use.gather) { continue; }
    for (const Item& item : program.block(*use.gather).items) {
      const CollectiveCall& call = item.collective()->call;
      sum.gathers |= call.group != GroupKind::host;
      const double bytes = static_cast<double>(use.repeat) * call.bytes.value();
      if (call.group == GroupKind::host) { (call.sharers == GroupKind::host ? sum.alone : sum.together) += bytes; }
    }
  }
  return sum;
}

TEST(PoolLoads, with_zero_3_loads_take_the_place_of_gathers) {
  for (const int zero : {0, 3}) {
    test::Case c = job_on(pool_cluster(true, true));
    c.plan.zero = zero;
    const Program together = program_of(c);
    c.cluster.second_tier.levels = {};
    const Program alone = program_of(c);
    const double weights = 2.0 * together.classes.front().parameters;
    EXPECT_FALSE(fetched(together).gathers);
    EXPECT_EQ(fetched(together).alone, 0.0);
    EXPECT_NEAR(fetched(together).together, weights, 1e-9 * weights);
    EXPECT_EQ(fetched(alone).gathers, zero == 3);
    EXPECT_EQ(fetched(alone).together, 0.0);
    EXPECT_NEAR(fetched(alone).alone, zero == 3 ? weights / 16.0 : weights, 1e-9 * weights);
    EXPECT_EQ(together.memory[0].total(), alone.memory[0].total());
  }
}

// The pool has one copy, of which each replica stores a part; without it each stores its own weights.
TEST(PoolLoads, replicas_store_one_copy) {
  const auto stored = [](const Program& program) {
    for (const BlockUse& use : program.classes.front().finish) {
      const Block& block = program.block(use.work);
      if (block.name == "weights.store") { return block.items.front().collective()->call.bytes.value(); }
    }
    return 0.0;
  };
  for (const int zero : {0, 1, 3}) {
    test::Case c = job_on(pool_cluster(true, true));
    c.plan.zero = zero;
    const Program together = program_of(c);
    c.cluster.second_tier.levels = {};
    const double weights = 2.0 * together.classes.front().parameters;
    EXPECT_NEAR(stored(together), weights / 16.0, 1e-9 * weights) << zero;
    EXPECT_NEAR(stored(program_of(c)), zero == 3 ? weights / 16.0 : weights, 1e-9 * weights) << zero;
  }
}

// Two copies of shards on the devices, one in the pool: of 2 bytes a weight each of 16 ranks stores a sixteenth.
TEST(PoolLoads, copies_of_shards_store_one_copy) {
  test::Case c = job_on(pool_cluster(true, true));
  c.plan.zero = 3;
  c.plan.shard = 8;
  const Program program = program_of(c);
  const double weights = 2.0 * program.classes.front().parameters;
  EXPECT_NEAR(program.memory[0].offloaded.value(), weights / 16.0, 1e-9 * weights);
}

// Bytes of all ranks in the second tier.
double in_the_tier(const Program& program) {
  double sum = 0;
  for (const MemoryNeed& need : program.memory) { sum += need.offloaded.value(); }
  return sum * static_cast<double>(program.plan.replicas() * program.plan.tp);
}

// Bytes of the weights of all ranks of one replica.
double weights_of_a_replica(const Program& program) {
  double sum = 0;
  for (const RankClassId of_stage : program.class_of_stage) { sum += program.classes[of_stage].parameters; }
  return 2.0 * sum * static_cast<double>(program.plan.tp);
}

// The weights of the model are there once, whatever the degrees; without a multicast once for each replica up to
// ZeRO 2. What the devices hold is the same.
TEST(PoolLoads, the_pool_has_one_copy_of_the_weights_of_replicas) {
  for (const auto& [tp, pp] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 4}}) {
    for (const int zero : {0, 1, 2, 3}) {
      test::Case c = job_on(pool_cluster(true, true));
      c.plan.tp = tp;
      c.plan.pp = pp;
      c.plan.dp = 16 / (tp * pp);
      c.plan.zero = zero;
      const Program together = program_of(c);
      c.cluster.second_tier.levels = {};
      const Program alone = program_of(c);
      const double weights = weights_of_a_replica(together);
      const auto copies = static_cast<double>(zero == 3 ? 1 : c.plan.dp);
      EXPECT_NEAR(in_the_tier(together), weights, 1e-9 * weights) << tp << " " << pp << " " << zero;
      EXPECT_NEAR(in_the_tier(alone), copies * weights, 1e-9 * copies * weights) << tp << " " << pp << " " << zero;
      for (std::size_t stage = 0; stage < together.memory.size(); ++stage) {
        EXPECT_EQ(together.memory[stage].total(), alone.memory[stage].total());
      }
    }
  }
}

// The capacities are what the plan needs with one copy: without a multicast each rank needs 15 / 16 of the weights
// more.
TEST(PoolLoads, a_search_keeps_plans_that_fit_because_of_the_one_copy) {
  for (const int zero : {0, 1, 2}) {
    test::Case c = job_on(pool_cluster(true, true));
    c.plan.zero = zero;
    const MemoryNeed need = program_of(c).memory[0];
    const Capacity exact{need.total() * (1.0 + 1e-9), need.offloaded * (1.0 + 1e-9)};
    const LowestMemory lowest_memory{zero, c.plan.offload};
    Lowerer together(c.model, c.cluster, c.stack);
    EXPECT_TRUE(together.may_fit(c.job, c.plan, lowest_memory, exact)) << zero;
    EXPECT_TRUE(together.lower_within(c.job, c.plan, exact)) << zero;
    c.cluster.second_tier.levels = {};
    Lowerer alone(c.model, c.cluster, c.stack);
    EXPECT_FALSE(alone.may_fit(c.job, c.plan, lowest_memory, exact)) << zero;
    EXPECT_FALSE(alone.lower_within(c.job, c.plan, exact)) << zero;
  }
}

// Sixteen experts over four ranks each: four copies of experts, sixteen of the other weights. Optimizer states are not
// shared: they are there as often as ranks keep them.
TEST(PoolLoads, experts_are_there_once_and_states_for_every_rank) {
  test::Case c = job_on(pool_cluster(true, true));
  c.model.experts = {};
  c.model.experts.count = 16;
  c.model.experts.active = 2;
  c.model.experts.ffn = 512;
  c.model.experts.every = 1;
  c.plan.ep = 4;
  const Program weights_only = program_of(c);
  c.plan.offload.optimizer = true;
  const Program with_states = program_of(c);
  c.cluster.second_tier.levels = {};
  c.plan.offload.weights = false;
  const Program states_only = program_of(c);
  const RankClass& rank = weights_only.classes.front();
  ASSERT_GT(rank.expert_parameters, 0.0);
  const double expected = 2.0 * (rank.parameters / 16.0 + rank.expert_parameters / 4.0);
  EXPECT_NEAR(weights_only.memory[0].offloaded.value(), expected, 1e-9 * expected);
  const double states = states_only.memory[0].offloaded.value();
  ASSERT_GT(states, 0.0);
  EXPECT_NEAR(with_states.memory[0].offloaded.value(), expected + states, 1e-9 * (expected + states));
}

// Transfers of gradients of the last backward of all layers; whether the network reduces any.
struct Reduced {
  bool on_network = false;
  double stored = 0, loaded = 0, loaded_together = 0;
};
Reduced reduced(const Program& program) {
  Reduced sum;
  for (const BlockUse& use : program.chunks.front().last_backward) {
    if (!use.reduce) { continue; }
    for (const Item& item : program.block(*use.reduce).items) {
      const CollectiveCall& call = item.collective()->call;
      sum.on_network |= call.group != GroupKind::host;
      const double bytes = static_cast<double>(use.repeat) * call.bytes.value();
      if (call.transfer == TierTransfer::store) {
        EXPECT_NE(call.sharers, GroupKind::host);
        sum.stored += bytes;
      } else {
        (call.sharers == GroupKind::host ? sum.loaded : sum.loaded_together) += bytes;
      }
    }
  }
  return sum;
}

// Every replica stores all its gradients, which the pool sums, and loads what it updates: all of it together with the
// others, or its shard; of two copies of shards the owners of the same one together. The pool has each sum once.
TEST(PoolLoads, gradients_are_stored_whole_and_loaded_by_shards) {
  struct Shape {
    int zero;
    std::int64_t shard;
    double together, alone;  // parts of the gradients
  };
  for (const Shape& shape :
       {Shape{0, 0, 1, 0}, Shape{1, 0, 0, 1.0 / 16}, Shape{3, 0, 0, 1.0 / 16}, Shape{1, 8, 1.0 / 8, 0}}) {
    test::Case c = job_on(pool_cluster(true, true));
    c.plan.offload = {.gradients = true};
    c.plan.zero = shape.zero;
    c.plan.shard = shape.shard;
    const Program program = program_of(c);
    const double gradients = c.stack.gradients.reduce_element.value() * program.classes.front().parameters;
    const Reduced found = reduced(program);
    EXPECT_FALSE(found.on_network);
    EXPECT_NEAR(found.stored, gradients, 1e-9 * gradients) << shape.zero;
    EXPECT_NEAR(found.loaded_together, shape.together * gradients, 1e-9 * gradients) << shape.zero;
    EXPECT_NEAR(found.loaded, shape.alone * gradients, 1e-9 * gradients) << shape.zero;
    EXPECT_NEAR(program.memory[0].offloaded.value(), gradients / 16.0, 1e-9 * gradients) << shape.zero;
    c.plan.offload = {};
    EXPECT_TRUE(reduced(program_of(c)).on_network);
  }
}

TEST(PoolLoads, gradients_need_a_pool_that_reduces_on_the_way) {
  test::Case c = job_on(pool_cluster(false, false));
  c.plan.offload = {.gradients = true};
  const auto found = problems(c.cluster, c.plan);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found.front().message.find("reduces on the way"), std::string::npos);
  c.cluster = pool_cluster(false, true);
  EXPECT_TRUE(problems(c.cluster, c.plan).empty());
}

}  // namespace
}  // namespace orrery::parallel::pool_loads_test
