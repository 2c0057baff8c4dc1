// Recompute by module: what is dropped, what runs again, and laws over sets of modules.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/recompute.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/parallel/test_totals.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel::recompute_modules_test {
namespace {

using test::any_case;
using test::Case;
using test::SeededRandom;
using testing::ElementsAre;

const PlanChoice& modules_choice() { return *find_choice("recompute_modules"); }

// Llama: h 1024, 16 heads, 8 key-value heads of 64, MLP of 2048.
const workload::Model kModel = test::llama(2, 1024, 16, 8, 2048, 4096);

std::vector<workload::Operator> layer_of(const workload::Model& model, const hardware::Stack& stack = {}) {
  Job job;
  job.seq = 512;
  return workload::layer_operators(model, stack, slice_of(job, Plan{}), workload::layer_kind(model, 0));
}

std::vector<std::string> replayed(const workload::Model& model, const RecomputeModules& modules,
                                  const hardware::Stack& stack = {}) {
  std::vector<std::string> names;
  const auto operators = layer_of(model, stack);
  const auto tags = replayed_tags(Recompute::selective, modules);
  for (const auto& item : backward_block("", operators, {}, stack, tags).items) {
    if (item.purpose == Purpose::recompute) { names.emplace_back(item.name); }
  }
  return names;
}

Bytes dropped(const workload::Model& model, const RecomputeModules& modules) {
  const auto sizes = activations(layer_of(model), replayed_tags(Recompute::selective, modules), Bytes(0));
  return sizes.whole - sizes.kept;
}

TEST(RecomputeModules, no_module_means_the_attention_core) {
  EXPECT_EQ(replayed_tags(Recompute::selective), replayed_tags(Recompute::selective, {.core_attention = true}));
  EXPECT_EQ(replayed_tags(Recompute::full, {.norms = true}), workload::TagSet::all());
  EXPECT_TRUE(replayed_tags(Recompute::none, {.norms = true}).empty());
}

// 512 tokens. Norms: the inputs of qkv and of the MLP, 2 x 512 h x 2 bytes; their own inputs are kept. Activation: its
// output, 512 x 2048 x 2 bytes; with the whole MLP also its input, twice as wide.
TEST(RecomputeModules, drop_what_they_make_and_keep_what_they_read) {
  EXPECT_EQ(dropped(kModel, {.norms = true}), Bytes(2.0 * 512 * 1024 * 2));
  EXPECT_EQ(dropped(kModel, {.activations = true}), Bytes(512.0 * 2048 * 2));
  EXPECT_EQ(dropped(kModel, {.mlp = true}), Bytes(3.0 * 512 * 2048 * 2));
  EXPECT_EQ(dropped(kModel, {.experts = true}), Bytes(0.0));
}

TEST(RecomputeModules, run_again_before_the_operators_that_read_them) {
  EXPECT_THAT(replayed(kModel, {.norms = true}), ElementsAre("mlp.norm", "attention.norm"));
  EXPECT_THAT(replayed(kModel, {.activations = true}), ElementsAre("mlp.activation"));
  EXPECT_THAT(replayed(kModel, {.mlp = true}), ElementsAre("mlp.in", "mlp.activation", "mlp.out"));
  EXPECT_TRUE(replayed(kModel, {.mla_up_projection = true, .expert_activations = true}).empty());
}

// Queries, keys and values are made before the backward pass of the core reads them.
TEST(RecomputeModules, up_projections_of_latent_attention_run_again_before_the_core) {
  workload::Model model = test::llama(2, 1024, 16, 16, 2048, 4096);
  model.latent = {.query_rank = 384, .kv_rank = 128, .nope_dim = 64, .rope_dim = 32, .value_dim = 64};
  EXPECT_THAT(replayed(model, {.mla_up_projection = true}),
              ElementsAre("attention.query_up", "attention.kv_up", "attention.rotary"));
  const auto block =
      backward_block("", layer_of(model), {}, {}, replayed_tags(Recompute::selective, {.mla_up_projection = true}));
  const auto at = [&](std::string_view name, Purpose purpose) {
    return std::find_if(block.items.begin(), block.items.end(),
                        [&](const Item& item) { return item.name == name && item.purpose == purpose; });
  };
  EXPECT_LT(at("attention.rotary", Purpose::recompute), at("attention.flash", Purpose::backward));
  // 16 heads of queries and keys (96 wide) and values (64), 2 bytes.
  EXPECT_EQ(dropped(model, {.mla_up_projection = true}), Bytes(512.0 * 16 * (96 + 96 + 64) * 2));
}

// With separate weight gradients, queries, keys and values are needed until the input gradients only; inputs of GEMMs
// that norms have made, until the weight gradients.
TEST(RecomputeModules, only_what_weight_gradients_read_is_kept_for_them) {
  workload::Model model = test::llama(2, 1024, 16, 16, 2048, 4096);
  model.latent = {.query_rank = 384, .kv_rank = 128, .nope_dim = 64, .rope_dim = 32, .value_dim = 64};
  const auto sizes = [&](const RecomputeModules& modules) {
    return activations(layer_of(model), replayed_tags(Recompute::selective, modules), Bytes(0));
  };
  EXPECT_EQ(sizes({.mla_up_projection = true}).transient, dropped(model, {.mla_up_projection = true}));
  EXPECT_EQ(sizes({.norms = true}).transient, Bytes(0));
}

// An activation inside the GEMMs of the experts is a pass of its own if it runs again alone.
TEST(RecomputeModules, an_activation_fused_with_gemms_is_not_free) {
  workload::Model model = kModel;
  model.experts = {.count = 4, .active = 2, .ffn = 512};
  hardware::Stack fused;
  fused.fusion.experts = true;
  for (const auto& stack : {hardware::Stack{}, fused}) {
    EXPECT_THAT(replayed(model, {.expert_activations = true}, stack), ElementsAre("experts.activation"));
  }
}

// Turns on one module after another: what is kept never grows, FLOPs never fall, and full recompute bounds both.
TEST(RecomputeModules, more_modules_keep_less_and_compute_more) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.plan.recompute_layers = 0;
    const auto now = [&](Recompute recompute) {
      c.plan.recompute = recompute;
      return lower(c.model, c.job, c.plan, c.cluster, c.stack);
    };
    Program before = now(Recompute::none);
    const auto expect_after = [&](const Program& program, std::string_view what) {
      for (std::size_t i = 0; i < before.memory.size(); ++i) {
        ASSERT_LE(program.memory[i].activations.value(), before.memory[i].activations.value() * (1.0 + 1e-12))
            << "seed " << seed << ", " << what << "\n"
            << test::to_text(c);
      }
      ASSERT_GE(test::flops_of(program), test::flops_of(before) * (1.0 - 1e-12)) << "seed " << seed << ", " << what;
    };
    for (const PlanPart& module : modules_choice().parts) {
      module.set(c.plan, 1);
      const bool inside = c.plan.cp > 1 && c.plan.cp_method == workload::ContextMethod::ulysses;
      if (module.word == "mla_up_proj" && inside) { module.set(c.plan, 0); }
      if (!c.plan.recompute_modules.any()) { continue; }
      Program program = now(Recompute::selective);
      expect_after(program, module.word);
      before = std::move(program);
    }
    c.plan.recompute_modules = {};
    expect_after(now(Recompute::full), "full");
  }
}

// All ranks and micro-batches together compute the model, and again each operator of the modules.
TEST(RecomputeModules, flops_are_those_of_the_model_and_of_the_operators_that_run_again) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    if (c.plan.tp > 1 || c.plan.etp > 1) { c.job.adapter = {}; }
    c.plan.recompute = Recompute::selective;
    for (const PlanPart& module : modules_choice().parts) { module.set(c.plan, random(0, 2)); }
    if (!is_valid(c.model, c.job, c.plan, c.cluster.devices)) { continue; }
    const double expected = real(c.job.global_batch) * test::whole_model(c, test::undivided(c)).flops;
    const double computed = test::flops_of(lower(c.model, c.job, c.plan, c.cluster, c.stack));
    ASSERT_NEAR(computed, expected, 1e-11 * expected) << "seed " << seed << "\n" << test::to_text(c);
  }
}

TEST(RecomputeModules, are_refused_without_selective_recompute) {
  Job job;
  job.global_batch = 1;
  job.seq = 512;
  Plan plan;
  plan.recompute_modules.norms = true;
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    plan.recompute = recompute;
    const auto found = problems(kModel, job, plan, 1);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_THAT(found[0].text(), testing::HasSubstr("--recompute-modules"));
  }
  plan.recompute = Recompute::selective;
  EXPECT_TRUE(problems(kModel, job, plan, 1).empty());
}

}  // namespace
}  // namespace orrery::parallel::recompute_modules_test
