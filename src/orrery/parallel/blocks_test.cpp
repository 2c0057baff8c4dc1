// Boundaries as collectives: which, how many, on which side of what; products and cores in pieces beside them.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel {
namespace {

using hardware::Kernel;
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
            : item.call.collective == Collective::all_to_all     ? "all_to_all"
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

// Two experts, one on each of two ranks, and shared ones.
workload::Model mixture() {
  workload::Model model = test::llama(2, 1024, 16, 8, 2048, 4096);
  model.experts = {.count = 4, .active = 2, .ffn = 512, .shared_ffn = 1024};
  return model;
}

std::vector<Operator> layer_of(const workload::Model& model, const Plan& plan, std::int64_t seq = 512) {
  Job job;
  job.seq = seq;
  return workload::layer_operators(model, {}, slice_of(job, plan), workload::layer_kind(model, 0));
}

// Lepikhin et al., "GShard" (arXiv:2006.16668), section 3.2: an all-to-all to the experts and one back, each its own
// mirror image. Megatron-LM gathers the copies over expert tensor parallelism and scatters what the experts make of
// them.
TEST(Blocks, experts_are_reached_by_an_all_to_all_and_left_by_another) {
  Plan plan;
  plan.dp = 4;
  plan.ep = 2;
  const hardware::Stack stack;
  auto operators = layer_of(mixture(), plan);
  EXPECT_EQ(collectives(forward_block("", operators, plan)), "all_to_all all_to_all");
  EXPECT_EQ(collectives(backward_block("", operators, plan, stack, Recompute::none)), "all_to_all all_to_all");
  EXPECT_EQ(collectives(backward_block("", operators, plan, stack, Recompute::full)),
            "all_to_all all_to_all all_to_all all_to_all");
  plan.etp = 2;
  operators = layer_of(mixture(), plan);
  EXPECT_EQ(collectives(forward_block("", operators, plan)), "all_to_all all_gather reduce_scatter all_to_all");
  EXPECT_EQ(collectives(backward_block("", operators, plan, stack, Recompute::none)),
            "all_to_all all_gather reduce_scatter all_to_all");
  const Block forward = forward_block("", operators, plan);
  const auto of = [&](Collective collective) {
    return std::find_if(forward.items.begin(), forward.items.end(),
                        [&](const Item& item) { return item.is_collective && item.call.collective == collective; })
        ->call;
  };
  // 512 tokens, 2 copies of each, 1024 x 2 bytes; gathered over 2.
  EXPECT_EQ(of(Collective::all_to_all).bytes, Bytes(512.0 * 2 * 1024 * 2));
  EXPECT_EQ(of(Collective::all_to_all).group, GroupKind::ep);
  EXPECT_EQ(of(Collective::all_gather).bytes, Bytes(2.0 * 512 * 2 * 1024 * 2));
  EXPECT_EQ(of(Collective::all_gather).group, GroupKind::etp);
}

const Item& named(const Block& block, std::string_view name, int which) {
  for (const auto& item : block.items) {
    if (item.name == name && !item.is_collective && which-- == 0) { return item; }
  }
  throw std::out_of_range("no such item");
}

// Liu et al., "Ring Attention" (arXiv:2310.01889): blocks of keys and values travel round the ring beside the attention
// to the block before; 3 of 4 blocks arrive beside work, the last one's work comes after. Backward passes them again,
// and their gradients: 16 sequences' heads in 8 key-value heads of 64, 2 bytes, keys and values: 512 x 8 x 64 x 2 x 2.
TEST(Blocks, ring_attention_passes_keys_and_values_beside_its_core) {
  Plan plan;
  plan.cp = 4;
  const hardware::Stack stack;
  const auto operators = layer_of(test::llama(2, 1024, 16, 8, 2048, 4096), plan);
  const Block forward = forward_block("", operators, plan);
  const Block backward = backward_block("", operators, plan, stack, Recompute::none);
  EXPECT_EQ(collectives(forward), "all_gather*");
  EXPECT_EQ(collectives(backward), "all_gather* reduce_scatter*");
  EXPECT_EQ(collectives(backward_block("", operators, plan, stack, Recompute::selective)),
            "all_gather* all_gather* reduce_scatter*");
  const auto core =
      std::find_if(operators.begin(), operators.end(), [](const Operator& op) { return op.name == "attention.flash"; });
  const Item& most = named(forward, "attention.flash", 0);
  const Item& last = named(forward, "attention.flash", 1);
  EXPECT_EQ(most.kernel.flops, 0.75 * core->forward.flops);
  EXPECT_EQ(last.kernel.flops, 0.25 * core->forward.flops);
  EXPECT_EQ(most.kernel.n, 128);
  EXPECT_EQ(most.kernel.launches + last.kernel.launches, 4);
  EXPECT_EQ(most.waits_for, -1);
  const Item& gather = forward.items[static_cast<std::size_t>(last.waits_for)];
  EXPECT_EQ(gather.call.group, GroupKind::cp);
  EXPECT_EQ(gather.call.bytes, Bytes(512.0 * 8 * 64 * 2 * 2));
  const Item& gradients = backward.items[static_cast<std::size_t>(named(backward, "attention.flash", 1).waits_for)];
  EXPECT_EQ(gradients.call.collective, Collective::reduce_scatter);
}

// Jacobs et al., "DeepSpeed-Ulysses" (arXiv:2309.14509), section 3.1.
TEST(Blocks, ulysses_goes_to_heads_before_the_core_and_back_to_the_sequence_behind_it) {
  Plan plan;
  plan.cp = 4;
  plan.cp_method = workload::ContextMethod::ulysses;
  const auto operators = layer_of(test::llama(2, 1024, 16, 8, 2048, 4096), plan);
  EXPECT_EQ(collectives(forward_block("", operators, plan)), "all_to_all all_to_all");
  EXPECT_EQ(collectives(backward_block("", operators, plan, {}, Recompute::none)), "all_to_all all_to_all");
}

// Over 4 ranks: a gather travels beside 3 of 4 pieces of the product that needs it, a scatter beside 3 of 4 pieces of
// the one that makes it. In pieces of the collective itself, the first or the last stands alone.
TEST(Blocks, overlapped_products_are_cut_in_pieces) {
  Plan plan = plan_of(4, true);
  plan.tp_overlap = TpOverlap::ring;
  EXPECT_EQ(collectives(forward_block("", layer(true), plan)),
            "all_gather* reduce_scatter* all_gather* reduce_scatter*");
  Block forward = forward_block("", layer(true), plan);
  const Kernel whole = layer(true)[2].forward;
  ASSERT_EQ(layer(true)[2].name, "attention.qkv");
  EXPECT_EQ(named(forward, "attention.qkv", 0).kernel.flops, 0.75 * whole.flops);
  EXPECT_EQ(named(forward, "attention.qkv", 0).kernel.m, whole.m / 4);
  EXPECT_EQ(named(forward, "attention.qkv", 0).kernel.launches, 3);
  EXPECT_GE(named(forward, "attention.qkv", 1).waits_for, 0);
  EXPECT_EQ(named(forward, "attention.output", 0).kernel.launches, 1);  // first the piece that nothing waits for
  EXPECT_EQ(named(forward, "attention.output", 1).kernel.launches, 3);
  plan.tp_overlap = TpOverlap::pipe;
  forward = forward_block("", layer(true), plan);
  const std::string once =
      "all_gather all_gather* all_gather* all_gather* reduce_scatter* reduce_scatter* "
      "reduce_scatter* reduce_scatter";
  EXPECT_EQ(collectives(forward), once + " " + once);
}

TEST(Blocks, without_a_weight_gradient_beside_it_the_sum_of_an_input_gradient_blocks) {
  const hardware::Stack stack;
  const auto block = [&](Gradients gradients) {
    return collectives(backward_block("", layer(true), plan_of(4, true), stack, Recompute::none, gradients));
  };
  EXPECT_EQ(block(Gradients::input), "all_gather reduce_scatter all_gather reduce_scatter");
  EXPECT_EQ(block(Gradients::weight), "all_gather* all_gather*");
}

// What a generated token adds to the cache makes the core's kernel longer, and nothing else.
TEST(Blocks, growth_goes_with_the_kernel_that_grows) {
  Job job;
  job.task = Task::inference;
  job.prompt = 64;
  job.generate = 8;
  const auto model = test::llama(2, 1024, 16, 8, 2048, 4096);
  const auto slice = slice_of(job, {}, workload::Pass::decode);
  const Block block = forward_block("", workload::layer_operators(model, {}, slice, {}), {});
  for (const auto& item : block.items) {
    EXPECT_EQ(item.growth == workload::Growth{}, item.name != "attention.decode") << item.name;
  }
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
  const test::Case c = test::any_case(draw);
  any.stack = c.stack;
  any.plan = c.plan;
  any.recompute = c.plan.recompute;
  const workload::Slice slice = slice_of(c.job, c.plan);
  const auto kind = workload::layer_kind(c.model, draw(0, c.model.depth()));
  switch (draw(0, 5)) {
    case 4:
      if (c.model.mtp_layers > 0) {
        any.operators = workload::mtp_operators(c.model, any.stack, slice);
        break;
      }
      [[fallthrough]];
    case 0: any.operators = workload::embedding_operators(c.model, any.stack, slice); break;
    case 1: any.operators = workload::head_operators(c.model, any.stack, slice); break;
    default: any.operators = workload::layer_operators(c.model, any.stack, slice, kind); break;
  }
  return any;
}

struct Work {
  double flops = 0, bytes = 0;

  void add(const Kernel& kernel) {
    flops += kernel.flops.value();
    bytes += kernel.bytes.value();
  }
  friend bool operator==(const Work& a, const Work& b) {
    const auto same = [](double x, double y) { return std::abs(x - y) <= 1e-12 * std::max(x, y); };
    return same(a.flops, b.flops) && same(a.bytes, b.bytes);
  }
};

Work work_of(const Block& block, Purpose purpose) {
  Work work;
  for (const auto& item : block.items) {
    if (item.purpose == purpose) { work.add(item.kernel); }
  }
  return work;
}

// Every kernel of every operator, in whichever order and in however many pieces.
RC_GTEST_PROP(Blocks, no_kernel_is_lost_and_none_is_invented, ()) {
  const Any any = any_part();
  Work forward, backward, again;
  for (const auto& op : any.operators) {
    forward.add(op.forward);
    backward.add(op.backward_input);
    backward.add(op.backward_weight);
    const bool dropped =
        any.recompute == Recompute::full || (any.recompute == Recompute::selective && op.attention_core);
    if (dropped) { again.add(op.forward); }
  }
  const Block block = backward_block("", any.operators, any.plan, any.stack, any.recompute);
  RC_ASSERT(work_of(forward_block("", any.operators, any.plan), Purpose::forward) == forward);
  RC_ASSERT(work_of(block, Purpose::backward) == backward);
  RC_ASSERT(work_of(block, Purpose::recompute) == again);
}

using Traffic = std::map<std::pair<GroupKind, Collective>, double>;

void add_traffic(Traffic& traffic, const Block& block) {
  for (const auto& item : block.items) {
    if (item.is_collective) { traffic[{item.call.group, item.call.collective}] += item.call.bytes.value(); }
  }
}

RC_GTEST_PROP(Blocks, input_and_weight_gradients_apart_are_all_of_them, ()) {
  const Any any = any_part();
  const auto block = [&](Gradients gradients) {
    return backward_block("", any.operators, any.plan, any.stack, any.recompute, gradients);
  };
  const Block all = block(Gradients::all), input = block(Gradients::input), weight = block(Gradients::weight);
  Work together = work_of(input, Purpose::backward);
  for (const auto& item : weight.items) { together.add(item.kernel); }
  RC_ASSERT(together == work_of(all, Purpose::backward));
  RC_ASSERT(work_of(input, Purpose::recompute) == work_of(all, Purpose::recompute));
  Traffic whole, parts;
  add_traffic(whole, all);
  add_traffic(parts, input);
  add_traffic(parts, weight);
  RC_ASSERT(whole.size() == parts.size());
  for (const auto& [what, bytes] : whole) { RC_ASSERT(std::abs(parts[what] - bytes) <= 1e-12 * bytes); }
  for (const auto& item : weight.items) {
    RC_ASSERT(!item.is_collective || item.call.collective == Collective::all_gather);
  }
}

// The gradient of what came through a collective goes back through its mirror image: as many bytes are summed backward
// as are gathered forward, and the other way round. Inputs that were kept scattered are gathered once more.
RC_GTEST_PROP(Blocks, backward_moves_what_forward_did, ()) {
  const Any any = any_part();
  RC_PRE(std::any_of(any.operators.begin(), any.operators.end(),
                     [](const Operator& op) { return op.backward_input.kind != hardware::KernelKind::none; }));
  Traffic forward, backward;
  add_traffic(forward, forward_block("", any.operators, any.plan));
  add_traffic(backward, backward_block("", any.operators, any.plan, any.stack, Recompute::none, Gradients::input));
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(a, b); };
  for (const GroupKind group : {GroupKind::tp, GroupKind::etp}) {
    if (group == GroupKind::tp && !any.plan.sequence_parallel) { continue; }
    RC_ASSERT(same((forward[{group, Collective::all_gather}]), (backward[{group, Collective::reduce_scatter}])));
    RC_ASSERT(same((forward[{group, Collective::reduce_scatter}]), (backward[{group, Collective::all_gather}])));
  }
  for (const GroupKind group : {GroupKind::ep, GroupKind::cp}) {
    RC_ASSERT(same((forward[{group, Collective::all_to_all}]), (backward[{group, Collective::all_to_all}])));
  }
  RC_ASSERT(
      same((forward[{GroupKind::cp, Collective::all_gather}]), (backward[{GroupKind::cp, Collective::all_gather}])));
  RC_ASSERT(same((forward[{GroupKind::cp, Collective::all_gather}]),
                 (backward[{GroupKind::cp, Collective::reduce_scatter}])));
}

// Three launches and a collective, 10 us each; fifteen further experts' kernels, 2 us each; the last item is no kernel.
TEST(Blocks, the_host_issues_every_kernel_and_collective) {
  Block block{"", {}, {}};
  block.items.resize(3);
  block.items[0].kernel.kind = hardware::KernelKind::stream;
  block.items[0].kernel.launches = 3;
  block.items[0].kernel.further = 15;
  block.items[1].is_collective = true;
  hardware::Stack stack;
  EXPECT_EQ(host_time(block, stack), Seconds(0));
  stack.launch_time = Seconds(10e-6);
  stack.expert_launch_time = Seconds(2e-6);
  EXPECT_DOUBLE_EQ(host_time(block, stack).value(), 70e-6);
}

// Who prices a block keeps the ends of its collectives in a list of this length.
RC_GTEST_PROP(Blocks, no_block_is_longer_than_its_readers_expect, ()) {
  const Any any = any_part();
  for (const auto gradients : {Gradients::all, Gradients::input, Gradients::weight}) {
    RC_ASSERT(backward_block("", any.operators, any.plan, any.stack, any.recompute, gradients).items.size() <=
              kMostItems);
  }
}

// Overlap may move the waiting, never the order: an item waits for a collective that was issued before it.
RC_GTEST_PROP(Blocks, items_wait_for_asynchronous_collectives_before_them, ()) {
  const Any any = any_part();
  const auto gradients = *rc::gen::element(Gradients::all, Gradients::input, Gradients::weight);
  const Block block = backward_block("", any.operators, any.plan, any.stack, any.recompute, gradients);
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
