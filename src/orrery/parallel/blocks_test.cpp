// Boundaries as collectives: which, how many, on which side; GEMMs and attention cores in chunks that overlap with
// them.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/test_items.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::blocks_test {
namespace {

using hardware::Kernel;
using test::call_of;
using test::is_asynchronous;
using test::is_collective;
using test::kernel_of;
using workload::Operator;

const workload::Model kModel = test::gpt(2, 1024, 16, 4096);
constexpr workload::Slice kSlice{2, 512, 4, true, hardware::Precision::bf16};

Plan plan_of(std::int64_t tp, bool sequence_parallel) {
  Plan plan;
  plan.tp = tp;
  plan.sequence_parallel = sequence_parallel;
  return plan;
}

// "all_gather all_reduce", with a star after asynchronous ones.
std::string collectives(const Block& block) {
  std::string text;
  for (const auto& item : block.items) {
    if (!is_collective(item)) { continue; }
    if (!text.empty()) { text += ' '; }
    text += call_of(item).collective == Collective::all_reduce       ? "all_reduce"
            : call_of(item).collective == Collective::reduce_scatter ? "reduce_scatter"
            : call_of(item).collective == Collective::all_to_all     ? "all_to_all"
                                                                     : "all_gather";
    if (is_asynchronous(item)) { text += '*'; }
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
  EXPECT_EQ(collectives(backward_block("", layer(false), plan_of(4, false), stack, {})), "all_reduce* all_reduce*");
  EXPECT_EQ(collectives(backward_block("", layer(true), plan_of(4, true), stack, {})),
            "all_gather all_gather* reduce_scatter* all_gather all_gather* reduce_scatter*");
  EXPECT_EQ(collectives(forward_block("", layer(false), plan_of(1, false))), "");
}

TEST(Blocks, without_overlap_backward_has_the_same_collectives_in_the_foreground) {
  hardware::Stack stack;
  stack.overlap.tp_backward = false;
  EXPECT_EQ(collectives(backward_block("", layer(false), plan_of(4, false), stack, {})), "all_reduce all_reduce");
  EXPECT_EQ(collectives(backward_block("", layer(true), plan_of(4, true), stack, {})),
            "all_gather all_gather reduce_scatter all_gather all_gather reduce_scatter");
}

TEST(Blocks, full_recompute_runs_the_whole_forward_again_and_selective_the_attention_core) {
  hardware::Stack stack;
  stack.attention.kernel = hardware::AttentionKernel::plain;
  const auto operators = layer(true, stack);
  const auto again = [&](Recompute recompute) {
    std::vector<std::string> names;
    for (const auto& item : backward_block("", operators, plan_of(4, true), stack, replayed_tags(recompute)).items) {
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

// The vocabulary-parallel loss reduces three numbers per token in the forward pass, and nothing in the backward.
TEST(Blocks, the_loss_is_reduced_in_the_forward_pass_only) {
  hardware::Stack stack;
  auto slice = kSlice;
  slice.sequence_parallel = false;
  const auto head = workload::head_operators(kModel, stack, slice);
  const auto plan = plan_of(4, false);
  const Block forward = forward_block("", head, plan);
  EXPECT_EQ(call_of(forward.items.back()).bytes, Bytes(3.0 * 4.0 * 2 * 512));
  EXPECT_EQ(collectives(forward), "all_reduce");
  EXPECT_EQ(collectives(backward_block("", head, plan, stack, {})), "all_reduce*");
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

// Lepikhin et al., "GShard" (arXiv:2006.16668), section 3.2: an all-to-all to the experts and one back, each the mirror
// of the other. Megatron-LM gathers the copies over expert tensor parallelism and scatters the experts' outputs.
TEST(Blocks, experts_are_reached_by_an_all_to_all_and_left_by_another) {
  Plan plan;
  plan.dp = 4;
  plan.ep = 2;
  const hardware::Stack stack;
  auto operators = layer_of(mixture(), plan);
  EXPECT_EQ(collectives(forward_block("", operators, plan)), "all_to_all all_to_all");
  EXPECT_EQ(collectives(backward_block("", operators, plan, stack, {})), "all_to_all all_to_all");
  EXPECT_EQ(collectives(backward_block("", operators, plan, stack, replayed_tags(Recompute::full))),
            "all_to_all all_to_all all_to_all all_to_all");
  plan.etp = 2;
  operators = layer_of(mixture(), plan);
  EXPECT_EQ(collectives(forward_block("", operators, plan)), "all_to_all all_gather reduce_scatter all_to_all");
  EXPECT_EQ(collectives(backward_block("", operators, plan, stack, {})),
            "all_to_all all_gather reduce_scatter all_to_all");
  const Block forward = forward_block("", operators, plan);
  const auto of = [&](Collective collective) {
    return call_of(*std::find_if(forward.items.begin(), forward.items.end(), [&](const Item& item) {
      return is_collective(item) && call_of(item).collective == collective;
    }));
  };
  // 512 tokens, 2 copies of each, 1024 x 2 bytes; gathered over 2.
  EXPECT_EQ(of(Collective::all_to_all).bytes, Bytes(512.0 * 2 * 1024 * 2));
  EXPECT_EQ(of(Collective::all_to_all).group, GroupKind::ep);
  EXPECT_EQ(of(Collective::all_gather).bytes, Bytes(2.0 * 512 * 2 * 1024 * 2));
  EXPECT_EQ(of(Collective::all_gather).group, GroupKind::etp);
}

const Item& named(const Block& block, std::string_view name, int which) {
  for (const auto& item : block.items) {
    if (item.name == name && !is_collective(item) && which-- == 0) { return item; }
  }
  throw std::out_of_range("no such item");
}

// Liu et al., "Ring Attention" (arXiv:2310.01889): blocks of keys and values are sent around the ring, overlapped with
// attention on the previous block; 3 of 4 blocks overlap, the last block's work follows. Backward sends them again with
// their gradients: 16 heads in 8 key-value heads of 64, 2 bytes, keys and values: 512 x 8 x 64 x 2 x 2.
TEST(Blocks, ring_attention_overlaps_keys_and_values_with_its_core) {
  Plan plan;
  plan.cp = 4;
  const hardware::Stack stack;
  const auto operators = layer_of(test::llama(2, 1024, 16, 8, 2048, 4096), plan);
  const Block forward = forward_block("", operators, plan);
  const Block backward = backward_block("", operators, plan, stack, {});
  EXPECT_EQ(collectives(forward), "all_gather*");
  EXPECT_EQ(collectives(backward), "all_gather* reduce_scatter*");
  EXPECT_EQ(collectives(backward_block("", operators, plan, stack, replayed_tags(Recompute::selective))),
            "all_gather* all_gather* reduce_scatter*");
  const auto core =
      std::find_if(operators.begin(), operators.end(), [](const Operator& op) { return op.name == "attention.flash"; });
  const Item& most = named(forward, "attention.flash", 0);
  const Item& last = named(forward, "attention.flash", 1);
  EXPECT_EQ(kernel_of(most).flops, 0.75 * core->forward.flops);
  EXPECT_EQ(kernel_of(last).flops, 0.25 * core->forward.flops);
  EXPECT_EQ(kernel_of(most).n, 64);  // of 256 that a query sees on average, a piece of four
  EXPECT_EQ(kernel_of(most).launches + kernel_of(last).launches, 4);
  EXPECT_FALSE(most.waits_for());
  const Item& gather = forward.item(*last.waits_for());
  EXPECT_EQ(call_of(gather).group, GroupKind::cp);
  EXPECT_EQ(call_of(gather).bytes, Bytes(512.0 * 8 * 64 * 2 * 2));
  const Item& gradients = backward.item(*named(backward, "attention.flash", 1).waits_for());
  EXPECT_EQ(call_of(gradients).collective, Collective::reduce_scatter);
}

// Jacobs et al., "DeepSpeed-Ulysses" (arXiv:2309.14509), section 3.1.
TEST(Blocks, ulysses_has_an_all_to_all_before_and_after_the_core) {
  Plan plan;
  plan.cp = 4;
  plan.cp_method = workload::ContextMethod::ulysses;
  const auto operators = layer_of(test::llama(2, 1024, 16, 8, 2048, 4096), plan);
  EXPECT_EQ(collectives(forward_block("", operators, plan)), "all_to_all all_to_all");
  EXPECT_EQ(collectives(backward_block("", operators, plan, {}, {})), "all_to_all all_to_all");
}

// Over 4 ranks: a gather overlaps with 3 of 4 chunks of the GEMM that needs it, a scatter with 3 of 4 chunks of the
// GEMM that makes it. With chunks of the collective itself, the first or the last does not overlap.
TEST(Blocks, overlapped_products_are_cut_in_pieces) {
  Plan plan = plan_of(4, true);
  plan.tp_overlap = TpOverlap::ring;
  EXPECT_EQ(collectives(forward_block("", layer(true), plan)),
            "all_gather* reduce_scatter* all_gather* reduce_scatter*");
  Block forward = forward_block("", layer(true), plan);
  const Kernel whole = layer(true)[2].forward;
  ASSERT_EQ(layer(true)[2].name, "attention.qkv");
  EXPECT_EQ(kernel_of(named(forward, "attention.qkv", 0)).flops, 0.75 * whole.flops);
  EXPECT_EQ(kernel_of(named(forward, "attention.qkv", 0)).m, whole.m / 4);
  EXPECT_EQ(kernel_of(named(forward, "attention.qkv", 0)).launches, 3);
  EXPECT_TRUE(named(forward, "attention.qkv", 1).waits_for());
  EXPECT_EQ(kernel_of(named(forward, "attention.output", 0)).launches, 1);  // first the chunk without dependency
  EXPECT_EQ(kernel_of(named(forward, "attention.output", 1)).launches, 3);
  plan.tp_overlap = TpOverlap::pipe;
  forward = forward_block("", layer(true), plan);
  const std::string once =
      "all_gather all_gather* all_gather* all_gather* reduce_scatter* reduce_scatter* "
      "reduce_scatter* reduce_scatter";
  EXPECT_EQ(collectives(forward), once + " " + once);
}

TEST(Blocks, without_a_weight_gradient_the_reduction_of_an_input_gradient_blocks) {
  const hardware::Stack stack;
  const auto block = [&](Gradients gradients) {
    return collectives(backward_block("", layer(true), plan_of(4, true), stack, {}, gradients));
  };
  EXPECT_EQ(block(Gradients::input), "all_gather reduce_scatter all_gather reduce_scatter");
  EXPECT_EQ(block(Gradients::weight), "all_gather* all_gather*");
}

// A generated token makes the core's kernel longer, through the KV cache, and no other kernel.
TEST(Blocks, growth_is_written_with_its_kernel) {
  Job job;
  job.task = Task::inference;
  job.prompt = 64;
  job.generate = 8;
  job.global_batch = 1;
  const auto model = test::llama(2, 1024, 16, 8, 2048, 4096);
  const auto slice = slice_of(job, {}, workload::Pass::decode);
  const Block block = forward_block("", workload::layer_operators(model, {}, slice, {}), {});
  for (const auto& item : block.items) {
    const KernelLaunch* launch = item.kernel();
    EXPECT_EQ(launch == nullptr || launch->growth == workload::Growth{}, item.name != "attention.decode") << item.name;
  }
}

struct Any {
  hardware::Stack stack;
  Plan plan;
  std::vector<Operator> operators;
  workload::TagSet replayed;
};

template <class Draw>
workload::TagSet any_tags(const Draw& draw) {
  workload::TagSet tags;
  for (std::size_t i = 0; i < workload::kOperatorTags; ++i) {
    if (test::any_flag(draw)) { tags.insert(static_cast<workload::OperatorTag>(i)); }
  }
  return tags;
}

Any any_part() {
  const auto draw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };
  Any any;
  const test::Case c = test::any_case(draw);
  any.stack = c.stack;
  any.plan = c.plan;
  any.replayed = test::any_flag(draw) ? workload::TagSet::all() : workload::TagSet();
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
    default:
      any.operators = workload::layer_operators(c.model, any.stack, slice, kind);
      if (!test::any_flag(draw)) { any.replayed = any_tags(draw); }
      break;
  }
  return any;
}

struct Work {
  double flops = 0, bytes = 0;

  void add(const Kernel& kernel) {
    flops += kernel.flops.value();
    bytes += kernel.bytes.value();
  }
  friend Work operator+(Work a, const Work& b) {
    a.flops += b.flops;
    a.bytes += b.bytes;
    return a;
  }
  friend bool operator==(const Work& a, const Work& b) {
    const auto same = [](double x, double y) { return std::abs(x - y) <= 1e-12 * std::max(x, y); };
    return same(a.flops, b.flops) && same(a.bytes, b.bytes);
  }
};

Work work_of(const Block& block, Purpose purpose) {
  Work work;
  for (const auto& item : block.items) {
    if (item.purpose == purpose) { work.add(kernel_of(item)); }
  }
  return work;
}

// Every kernel of every operator, in any order and any number of chunks.
RC_GTEST_PROP(Blocks, no_kernel_is_lost_and_none_is_invented, ()) {
  const Any any = any_part();
  Work forward, backward, weight, again;
  bool follows = false;  // the operator before is replayed
  for (const auto& op : any.operators) {
    forward.add(op.forward);
    backward.add(op.backward_input);
    backward.add(op.backward_weight);
    weight.add(op.backward_weight);
    const bool is_replayed = any.replayed.contains(op.tag);
    if (is_replayed) { again.add(op.forward); }
    if (is_replayed && !follows) { again.add(op.alone); }
    follows = is_replayed;
  }
  const Block block = backward_block("", any.operators, any.plan, any.stack, any.replayed);
  RC_ASSERT(work_of(forward_block("", any.operators, any.plan), Purpose::forward) == forward);
  RC_ASSERT(work_of(block, Purpose::backward) + work_of(block, Purpose::weight_gradient) == backward);
  RC_ASSERT(work_of(block, Purpose::weight_gradient) == weight);
  RC_ASSERT(work_of(block, Purpose::recompute) == again);
}

// The position of the first or last item with that name and purpose.
std::optional<std::size_t> position_of(const Block& block, std::string_view name, Purpose purpose, bool last) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < block.items.size(); ++i) {
    const Item& item = block.items[i];
    if (item.name != name || item.purpose != purpose || item.kernel() == nullptr) { continue; }
    if (last || !found) { found = i; }
  }
  return found;
}

// An operator is replayed before its own backward pass, and before that of the next operator that reads its results.
RC_GTEST_PROP(Blocks, what_is_replayed_is_there_before_it_is_read, ()) {
  const Any any = any_part();
  const Block block = backward_block("", any.operators, any.plan, any.stack, any.replayed);
  const auto expect_before = [&](const Operator& maker, const Operator& reader) {
    const auto made = position_of(block, maker.name, Purpose::recompute, true);
    for (const Purpose gradient : {Purpose::backward, Purpose::weight_gradient}) {
      const auto read = position_of(block, reader.name, gradient, false);
      if (made && read) { RC_ASSERT(*made < *read); }
    }
  };
  for (std::size_t i = 0; i < any.operators.size(); ++i) {
    const Operator& op = any.operators[i];
    if (any.replayed.contains(op.tag)) { expect_before(op, op); }
    if (op.saved_input == Bytes(0) || !any.replayed.contains(op.input_from)) { continue; }
    for (std::size_t k = i; k-- > 0;) {
      if (any.operators[k].tag != op.input_from) { continue; }
      expect_before(any.operators[k], op);
      break;
    }
  }
}

// Every saved tensor by the operator that makes it: kept unless that operator is replayed. If the first replayed
// operator's input is itself replayed, the input of the part is kept instead.
RC_GTEST_PROP(Blocks, what_is_kept_is_what_no_replayed_operator_makes, ()) {
  const Any any = any_part();
  const Bytes input(12345.0);
  std::map<workload::OperatorTag, double> saved;  // bytes, by the tag of the operator that makes them
  double whole = 0.0;
  for (const auto& op : any.operators) {
    saved[op.input_from] += op.saved_input.value();
    saved[op.tag] += op.saved.value() - op.saved_input.value();
    whole += op.saved.value();
  }
  double kept = 0.0;
  for (const auto& [tag, bytes] : saved) { kept += any.replayed.contains(tag) ? 0.0 : bytes; }
  const bool from_input = !any.operators.empty() && any.replayed.contains(any.operators.front().tag) &&
                          any.replayed.contains(any.operators.front().input_from);
  if (from_input) { kept += input.value(); }
  const Activations found = activations(any.operators, any.replayed, input);
  RC_ASSERT(found.whole.value() == whole);
  RC_ASSERT(std::abs(found.kept.value() - kept) <= 1e-12 * (whole + input.value()));
}

using Traffic = std::map<std::pair<GroupKind, Collective>, double>;

void add_traffic(Traffic& traffic, const Block& block) {
  for (const auto& item : block.items) {
    if (is_collective(item)) {
      traffic[{call_of(item).group, call_of(item).collective}] += call_of(item).bytes.value();
    }
  }
}

RC_GTEST_PROP(Blocks, input_and_weight_gradients_apart_are_all_of_them, ()) {
  const Any any = any_part();
  const auto block = [&](Gradients gradients) {
    return backward_block("", any.operators, any.plan, any.stack, any.replayed, gradients);
  };
  const Block all = block(Gradients::all), input = block(Gradients::input), weight = block(Gradients::weight);
  Work together = work_of(input, Purpose::backward) + work_of(input, Purpose::weight_gradient);
  for (const auto& item : weight.items) { together.add(kernel_of(item)); }
  RC_ASSERT(together == work_of(all, Purpose::backward) + work_of(all, Purpose::weight_gradient));
  RC_ASSERT(work_of(input, Purpose::recompute) == work_of(all, Purpose::recompute));
  Traffic whole, parts;
  add_traffic(whole, all);
  add_traffic(parts, input);
  add_traffic(parts, weight);
  RC_ASSERT(whole.size() == parts.size());
  for (const auto& [what, bytes] : whole) { RC_ASSERT(std::abs(parts[what] - bytes) <= 1e-12 * bytes); }
  for (const auto& item : weight.items) {
    if (is_collective(item)) { RC_ASSERT(call_of(item).collective == Collective::all_gather); }
  }
}

// The gradient of a collective's result goes through the mirror collective: as many bytes are reduced backward as are
// gathered forward, and vice versa. Inputs that were kept scattered are gathered once more.
RC_GTEST_PROP(Blocks, backward_moves_what_forward_did, ()) {
  const Any any = any_part();
  RC_PRE(std::any_of(any.operators.begin(), any.operators.end(),
                     [](const Operator& op) { return op.backward_input.kind != hardware::KernelKind::none; }));
  Traffic forward, backward;
  add_traffic(forward, forward_block("", any.operators, any.plan));
  add_traffic(backward, backward_block("", any.operators, any.plan, any.stack, {}, Gradients::input));
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

// Three kernels and a collective, 10 us each; or two operators of 10 us, whose other two kernels and fifteen of single
// experts take 2 us each. Two more pieces of the same product and one of its collective take 2 us each. A wait takes
// none.
TEST(Blocks, the_host_issues_every_kernel_and_collective) {
  Kernel kernel;
  kernel.kind = hardware::KernelKind::stream;
  kernel.launches = 3;
  kernel.extra_kernels = 15;
  Block block{"",
              {{"a", Purpose::forward, KernelLaunch{kernel}},
               {"b", Purpose::forward, CollectiveLaunch{}},
               {"b", {}, CollectiveWait{ItemId(1)}}},
              {}};
  hardware::Stack stack;
  EXPECT_EQ(host_time(block, stack), Seconds(0));
  stack.host.launch_time = Seconds(10e-6);
  EXPECT_DOUBLE_EQ(host_time(block, stack).value(), 40e-6);
  stack.host.kernel_launch_time = Seconds(2e-6);
  EXPECT_DOUBLE_EQ(host_time(block, stack).value(), 54e-6);
  kernel.launches = 2;
  kernel.extra_kernels = 0;
  block.items.push_back({"a", Purpose::forward, KernelLaunch{kernel}});
  block.items.push_back({"b", Purpose::forward, CollectiveLaunch{}});
  EXPECT_DOUBLE_EQ(host_time(block, stack).value(), 60e-6);
  block.items.push_back({"a", Purpose::recompute, KernelLaunch{kernel}});  // another operator
  EXPECT_DOUBLE_EQ(host_time(block, stack).value(), 72e-6);
  block.items.push_back({"a", Purpose::backward, KernelLaunch{kernel}});
  EXPECT_DOUBLE_EQ(host_time(block, stack).value(), 84e-6);
  block.items.push_back({"a", Purpose::weight_gradient, KernelLaunch{kernel}});  // of the same call
  EXPECT_DOUBLE_EQ(host_time(block, stack).value(), 88e-6);
}

// Pricing keeps the ends of a block's collectives in a list of this length.
RC_GTEST_PROP(Blocks, no_block_is_longer_than_its_readers_expect, ()) {
  const Any any = any_part();
  for (const auto gradients : {Gradients::all, Gradients::input, Gradients::weight}) {
    RC_ASSERT(backward_block("", any.operators, any.plan, any.stack, any.replayed, gradients).items.size() <=
              kMostItems);
  }
}

// Overlap may move a wait, but not the order: an item waits for a collective that was issued before it.
RC_GTEST_PROP(Blocks, items_wait_for_asynchronous_collectives_before_them, ()) {
  const Any any = any_part();
  const auto gradients = *rc::gen::element(Gradients::all, Gradients::input, Gradients::weight);
  const Block block = backward_block("", any.operators, any.plan, any.stack, any.replayed, gradients);
  for (std::size_t i = 0; i < block.items.size(); ++i) {
    const OptionalItemId other = block.items[i].waits_for();
    if (!other) { continue; }
    RC_ASSERT((*other).index() < i);
    RC_ASSERT(is_asynchronous(block.item(*other)));
  }
}

}  // namespace
}  // namespace orrery::parallel::blocks_test
