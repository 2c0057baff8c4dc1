// Boundaries of tensor parallelism as collectives: which, how many, on which side of what.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel {
namespace {

using network::Collective;
using workload::Operator;

const workload::Model kModel = test::gpt(2, 1024, 16, 4096);
constexpr workload::Slice kSlice{2, 512, 4, true, hardware::Precision::bf16};

Plan plan_of(std::int64_t tp, bool sequence_parallel) {
  Plan plan;
  plan.tp = tp;
  plan.sequence_parallel = sequence_parallel;
  return plan;
}

// "all_gather all_reduce", a star behind asynchronous ones.
std::string collectives(const Block& block) {
  std::string text;
  for (const auto& item : block.items) {
    if (!item.is_collective) { continue; }
    if (!text.empty()) { text += ' '; }
    text += item.call.collective == Collective::all_reduce       ? "all_reduce"
            : item.call.collective == Collective::reduce_scatter ? "reduce_scatter"
                                                                 : "all_gather";
    if (item.asynchronous) { text += '*'; }
  }
  return text;
}

std::vector<Operator> layer(bool sequence_parallel, const hardware::Stack& stack = {}) {
  auto slice = kSlice;
  slice.sequence_parallel = sequence_parallel;
  return workload::layer_operators(kModel, stack, slice);
}

// Shoeybi et al. (arXiv:1909.08053), figure 3: two all-reduces in the forward pass of a layer (g), two in its backward
// (f). Korthikanti et al. (arXiv:2205.05198), section 4.2.2: with sequence parallelism each becomes an all-gather and a
// reduce-scatter, and backward gathers the two scattered inputs once more.
TEST(Blocks, a_layer_has_the_collectives_of_megatron) {
  hardware::Stack stack;
  EXPECT_EQ(collectives(forward_block("", layer(false), plan_of(4, false))), "all_reduce all_reduce");
  EXPECT_EQ(collectives(forward_block("", layer(true), plan_of(4, true))),
            "all_gather reduce_scatter all_gather reduce_scatter");
  EXPECT_EQ(collectives(backward_block("", layer(false), plan_of(4, false), stack, Recompute::none)),
            "all_reduce* all_reduce*");
  EXPECT_EQ(collectives(backward_block("", layer(true), plan_of(4, true), stack, Recompute::none)),
            "all_gather all_gather* reduce_scatter* all_gather all_gather* reduce_scatter*");
  EXPECT_EQ(collectives(forward_block("", layer(false), plan_of(1, false))), "");
}

TEST(Blocks, without_overlap_backward_has_the_same_collectives_in_the_foreground) {
  hardware::Stack stack;
  stack.overlap_tp_backward = false;
  EXPECT_EQ(collectives(backward_block("", layer(false), plan_of(4, false), stack, Recompute::none)),
            "all_reduce all_reduce");
  EXPECT_EQ(collectives(backward_block("", layer(true), plan_of(4, true), stack, Recompute::none)),
            "all_gather all_gather reduce_scatter all_gather all_gather reduce_scatter");
}

TEST(Blocks, full_recompute_runs_the_whole_forward_again_and_selective_the_attention_core) {
  hardware::Stack stack;
  stack.attention = hardware::AttentionKernel::plain;
  const auto operators = layer(true, stack);
  const auto again = [&](Recompute recompute) {
    std::vector<std::string> names;
    for (const auto& item : backward_block("", operators, plan_of(4, true), stack, recompute).items) {
      if (item.purpose == Purpose::recompute) { names.emplace_back(item.name); }
    }
    return names;
  };
  std::vector<std::string> forward;
  for (const auto& item : forward_block("", operators, plan_of(4, true)).items) { forward.emplace_back(item.name); }
  EXPECT_EQ(again(Recompute::full), forward);
  EXPECT_EQ(again(Recompute::selective), (std::vector<std::string>{"attention.scores", "attention.softmax",
                                                                   "attention.dropout", "attention.context"}));
  EXPECT_TRUE(again(Recompute::none).empty());
}

// The vocabulary-parallel loss sums three numbers of each token in the forward pass, and nothing in the backward.
TEST(Blocks, the_loss_is_reduced_in_the_forward_pass_only) {
  hardware::Stack stack;
  auto slice = kSlice;
  slice.sequence_parallel = false;
  const auto head = workload::head_operators(kModel, stack, slice);
  const auto plan = plan_of(4, false);
  const Block forward = forward_block("", head, plan);
  EXPECT_EQ(forward.items.back().call.bytes, Bytes(3.0 * 4.0 * 2 * 512));
  EXPECT_EQ(collectives(forward), "all_reduce");
  EXPECT_EQ(collectives(backward_block("", head, plan, stack, Recompute::none)), "all_reduce*");
}

struct Any {
  hardware::Stack stack;
  Plan plan;
  std::vector<Operator> operators;
  Recompute recompute = Recompute::none;
};

Any any_part() {
  const auto draw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };
  Any any;
  any.stack = test::any_stack(draw);
  any.plan = test::any_plan(draw);
  any.recompute = static_cast<Recompute>(draw(0, 3));
  const workload::Model model = test::any_model(draw, any.plan);
  const workload::Slice slice{draw(1, 4), any.plan.tp * draw(1, 100), any.plan.tp, any.plan.sequence_parallel,
                              hardware::Precision::bf16};
  switch (draw(0, 3)) {
    case 0: any.operators = workload::embedding_operators(model, any.stack, slice); break;
    case 1: any.operators = workload::layer_operators(model, any.stack, slice); break;
    default: any.operators = workload::head_operators(model, any.stack, slice); break;
  }
  return any;
}

// Every kernel of every operator, in whichever order.
RC_GTEST_PROP(Blocks, no_kernel_is_lost_and_none_is_invented, ()) {
  const Any any = any_part();
  double forward = 0.0, backward = 0.0, again = 0.0;
  for (const auto& op : any.operators) {
    forward += op.forward.bytes.value();
    backward += op.backward_input.bytes.value() + op.backward_weight.bytes.value();
    const bool dropped =
        any.recompute == Recompute::full || (any.recompute == Recompute::selective && op.attention_core);
    if (dropped) { again += op.forward.bytes.value(); }
  }
  double forward_seen = 0.0, backward_seen = 0.0, again_seen = 0.0;
  for (const auto& item : forward_block("", any.operators, any.plan).items) {
    forward_seen += item.kernel.bytes.value();
  }
  for (const auto& item : backward_block("", any.operators, any.plan, any.stack, any.recompute).items) {
    (item.purpose == Purpose::recompute ? again_seen : backward_seen) += item.kernel.bytes.value();
  }
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-12 * a; };
  RC_ASSERT(same(forward, forward_seen));
  RC_ASSERT(same(backward, backward_seen));
  RC_ASSERT(same(again, again_seen));
}

// Overlap may move the waiting, never the order: an item waits for a collective that was issued before it.
RC_GTEST_PROP(Blocks, items_wait_for_asynchronous_collectives_before_them, ()) {
  const Any any = any_part();
  const Block block = backward_block("", any.operators, any.plan, any.stack, any.recompute);
  for (std::size_t i = 0; i < block.items.size(); ++i) {
    if (block.items[i].waits_for < 0) { continue; }
    const auto other = static_cast<std::size_t>(block.items[i].waits_for);
    RC_ASSERT(other < i);
    RC_ASSERT(block.items[other].is_collective);
    RC_ASSERT(block.items[other].asynchronous);
  }
}

}  // namespace
}  // namespace orrery::parallel
