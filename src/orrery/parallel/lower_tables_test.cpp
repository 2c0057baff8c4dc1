// Programs of recommenders: traffic, compute and memory for every sharding.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/parallel/test_totals.hpp"
#include "orrery/workload/tables.hpp"
#include "orrery/workload/test_recommenders.hpp"

namespace orrery::parallel::lower_tables_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using workload::TableSharding;

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

struct Work {
  workload::Model model;
  Job job;
  Plan plan;
  hardware::Cluster cluster;
  hardware::Stack stack;
};

Work any_work() {
  Work w;
  w.model = workload::test::completed_recommender(workload::test::any_recommender(kDraw));
  w.cluster = test::any_case(kDraw).cluster;
  w.stack = test::any_stack(kDraw);
  const std::int64_t ranks = w.cluster.devices;
  w.plan.dp = ranks;
  w.plan.zero = static_cast<int>(kDraw(0, 4));
  w.plan.recompute = kDraw(0, 2) == 0 ? Recompute::none : Recompute::full;
  w.plan.micro_batch = kDraw(1, 9);
  w.plan.tables.sharding = static_cast<TableSharding>(kDraw(1, 6));
  if (w.plan.tables.sharding != TableSharding::replicated && ranks % 2 == 0) { w.plan.tables.ranks = kDraw(0, 3); }
  w.plan.tables.replicated_below = *rc::gen::element<std::int64_t>(0, 1000, 1'000'000);
  w.job.seq = 1;
  w.job.global_batch = ranks * w.plan.micro_batch * kDraw(1, 4);
  RC_PRE(!workload::inconsistency(w.model));
  RC_PRE(is_valid(w.model, w.job, w.plan, ranks));
  return w;
}

Program lowered(const Work& w) { return lower(w.model, w.job, w.plan, w.cluster, w.stack); }

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

const Block& embedding(const Program& program, bool forward) {
  const ChunkProgram& chunk = program.chunks.front();
  const auto& segment = forward ? chunk.forward : chunk.last_backward;
  return program.block((forward ? segment.front() : segment.back()).work);
}

double bytes_of(const Block& block, GroupKind group, Collective collective, std::string_view name = {}) {
  double sum = 0;
  for (const Item& item : block.items) {
    if (!test::is_collective(item)) { continue; }
    const CollectiveCall& call = test::call_of(item);
    const bool counts = call.group == group && call.collective == collective;
    if (counts && (name.empty() || item.name == name)) { sum += call.bytes.value(); }
  }
  return sum;
}

// Identical tables that divide evenly: all ranks together send batch x tables x width x element x (n - 1) / n; the
// nccl-tests size of an all-to-all also counts what stays on the rank, and is one rank's buffer.
TEST(LowerTables, exchanged_vectors_are_batch_times_tables_times_width) {
  for (const std::int64_t ranks : {2, 4, 8}) {
    Work w;
    workload::Recommender r = workload::test::small_recommender();
    r.tables = {{16, 100'000, 8, 3.0}};
    w.model = workload::test::completed_recommender(r);
    w.cluster = test::cluster_of({ranks});
    w.plan.dp = ranks;
    w.plan.micro_batch = 32;
    w.plan.tables.sharding = TableSharding::table;
    w.job.seq = 1;
    w.job.global_batch = 32 * ranks;
    const Program program = lowered(w);
    const double n = static_cast<double>(ranks), batch = static_cast<double>(w.job.global_batch);
    for (const bool forward : {true, false}) {
      const double buffer =
          bytes_of(embedding(program, forward), GroupKind::tables, Collective::all_to_all, "tables.exchange");
      EXPECT_DOUBLE_EQ(n * buffer * (n - 1) / n, batch * 16 * 8 * 2 * (n - 1) / n);
    }
  }
}

RC_GTEST_PROP(LowerTables, flops_are_those_of_the_model_whatever_the_sharding, ()) {
  Work w = any_work();
  w.plan.recompute = Recompute::none;
  w.stack.attention.kernel = hardware::AttentionKernel::plain;  // fused attention repeats a GEMM of its forward pass
  const Program program = lowered(w);
  const double model = workload::model_flops(w.model, w.stack, w.job.global_batch, 1).value();
  RC_ASSERT(near(test::flops_of(program), model));
}

// The ranks of one copy together hold every table once, and there are as many copies as fit the ranks. The fullest rank
// holds at least an even share.
RC_GTEST_PROP(LowerTables, memory_of_tables_is_an_even_part_at_least_and_all_of_them_at_most, ()) {
  Work w = any_work();
  const Program program = lowered(w);
  const auto& r = w.model.recommender;
  const double weights = r.table_elements() * hardware::element_size(r.table_precision).value();
  const double shards = static_cast<double>(w.plan.table_ranks());
  w.stack.tables.state_element = w.stack.tables.row_state_element = Bytes(0);
  RC_ASSERT(program.memory.front().tables.value() >= weights / shards * (1.0 - 1e-9));
  const Program without_state = lowered(w);
  if (w.plan.tables.sharding == TableSharding::replicated && w.plan.dp == 1) {
    RC_ASSERT(near(without_state.memory.front().tables.value(), weights));
  }
  RC_ASSERT(without_state.memory.front().tables <= program.memory.front().tables);
}

// Dense gradients are reduced over all ranks by the ZeRO stage's collective, table gradients never with them.
RC_GTEST_PROP(LowerTables, dense_weights_are_those_of_the_model_and_tables_are_not_among_them, ()) {
  const Work w = any_work();
  const Program program = lowered(w);
  const auto& rank = program.classes.front();
  const double ep = static_cast<double>(w.plan.ep);
  const auto count = workload::parameter_count(w.model);
  RC_ASSERT(near(rank.parameters + ep * rank.expert_parameters, static_cast<double>(count.layers)));
}

// The all-to-all overlaps with the bottom MLP in both directions, and the first operator that reads it waits for it.
TEST(LowerTables, the_exchange_stands_around_the_bottom_mlp_in_both_passes) {
  Work w;
  w.model = workload::test::completed_recommender(workload::test::small_recommender());
  w.cluster = test::cluster_of({4});
  w.plan.dp = 4;
  w.plan.micro_batch = 8;
  w.plan.tables.sharding = TableSharding::table;
  w.job.seq = 1;
  w.job.global_batch = 32;
  const Program program = lowered(w);
  const auto names = [](const Block& block) {
    std::vector<std::string_view> list;
    for (const Item& item : block.items) { list.push_back(item.name); }
    return list;
  };
  EXPECT_THAT(names(embedding(program, true)), ElementsAre("tables.spread", "tables.lookup", "tables.exchange",
                                                           "bottom.gemm", "bottom.gemm", "tables.exchange"));
  const Block& backward = embedding(program, false);
  EXPECT_THAT(names(backward), ElementsAre("tables.exchange", "bottom.gemm", "bottom.gemm", "bottom.gemm",
                                           "tables.exchange", "tables.lookup", "tables.update"));
  EXPECT_TRUE(test::is_asynchronous(backward.items[0]));
  EXPECT_EQ(backward.items[4].waits_for(), ItemId(0));
}

// Four tables of 1,000 rows of 8 fp32 numbers, three lookups in each by the one sample of a micro-batch: 2.997 distinct
// rows of 32 bytes of each table are loaded; they are updated with their state, a number for each row, of which memory
// is read and written in sectors of 32 bytes.
TEST(LowerTables, offloaded_tables_move_the_rows_of_the_lookups) {
  Work w;
  w.model = workload::test::completed_recommender(workload::test::small_recommender());
  w.cluster = test::cluster_of({1});
  w.cluster.second_tier.memory = Bytes(1e12);
  w.cluster.second_tier.bandwidth = BytesPerSecond(1e10);
  w.plan.tables.sharding = TableSharding::table;
  w.stack.tables.state_element = Bytes(0);
  w.stack.tables.row_state_element = Bytes(4);
  w.job.seq = w.job.global_batch = 1;
  const Program before = lowered(w);
  w.plan.offload.tables = true;
  const Program program = lowered(w);
  const double rows = 4 * 1000 * (1 - std::pow(1 - 1.0 / 1000, 3));
  const auto moved = [&](bool forward, std::string_view name) {
    return bytes_of(embedding(program, forward), GroupKind::host, Collective::broadcast, name);
  };
  EXPECT_NEAR(moved(true, "tables.fetch"), rows * 32, 1e-6);
  EXPECT_NEAR(moved(false, "tables.stream"), rows * (32 + 32), 1e-6);
  EXPECT_EQ(moved(true, "tables.stream") + moved(false, "tables.fetch"), 0.0);
  EXPECT_DOUBLE_EQ(test::flops_of(program), test::flops_of(before));
  const MemoryNeed &need = program.memory.front(), &all = before.memory.front();
  EXPECT_DOUBLE_EQ(need.offloaded.value(), 4 * 1000 * (8 * 4 + 4));
  EXPECT_NEAR(need.tables.value(), rows * (32 + 32), 1e-6);
  EXPECT_NEAR((all.total() - need.total()).value(), (all.tables - need.tables).value(), 1e-6);
}

std::string first_problem(const Work& w) {
  const auto found = problems(w.model, w.job, w.plan, w.cluster.devices);
  return found.empty() ? "" : found.front().place.path + ": " + found.front().message;
}

TEST(LowerTables, plans_that_cannot_be_are_explained) {
  Work w;
  w.model = workload::test::completed_recommender(workload::test::small_recommender());
  w.cluster = test::cluster_of({8});
  w.plan.dp = 8;
  w.plan.tables.sharding = TableSharding::table;
  w.job.seq = 1;
  w.job.global_batch = 64;
  EXPECT_THAT(first_problem(w), HasSubstr("4 whole tables are fewer than the 8 ranks"));
  EXPECT_THAT(first_problem(w), HasSubstr("--table-ranks 4"));
  w.plan.tables.ranks = 4;
  EXPECT_EQ(first_problem(w), "");
  w.plan.tables.ranks = 3;
  EXPECT_THAT(first_problem(w), HasSubstr("does not divide the 8 ranks"));
  w.plan.tables.ranks = 4;
  w.plan.offload.weights = true;
  EXPECT_THAT(first_problem(w), HasSubstr("is not modelled for recommenders; valid: tables"));
  w.plan.offload = {.tables = true};
  EXPECT_EQ(first_problem(w), "");
  w.plan.tables = {};
  EXPECT_THAT(first_problem(w), HasSubstr("is missing"));
  w.plan.tables.sharding = TableSharding::row;
  w.plan.tp = 2;
  w.plan.dp = 4;
  EXPECT_THAT(first_problem(w), HasSubstr("not built yet for recommenders"));
}

}  // namespace
}  // namespace orrery::parallel::lower_tables_test
