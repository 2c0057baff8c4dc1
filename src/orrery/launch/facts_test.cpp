// Whatever a description says of a model is in the emitted text or in its notes, for every model and tool.
#include "orrery/launch/facts.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/entry.hpp"
#include "orrery/launch/test_runs.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::launch::facts_test {
namespace {

using config::Node;
using test::launched;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using workload::Model;

// One rank, so that every model has a valid plan; pp 2 sends the plan to Megatron-DeepSpeed.
TrainingRun run_of(Model model, std::int64_t pp = 1) {
  TrainingRun run;
  run.job.global_batch = 16;
  run.job.seq = std::min<std::int64_t>(model.max_seq, 512);
  run.model = std::move(model);
  run.plan.pp = pp;
  run.stack = test::megatron_core();
  run.devices_per_node = 8;
  return run;
}

bool is_launched(const Model& model) {
  return !model.is_recommender() && !model.is_vision() && model.encoder_layers == 0 && model.causal;
}

std::vector<Model> launched_models() {
  std::vector<Model> models;
  for (const auto& name : hardware::entry_names(ORRERY_SOURCE_DATA_DIR, hardware::kModelEntries)) {
    Model model = test::catalogue_model(name);
    if (is_launched(model)) { models.push_back(std::move(model)); }
  }
  return models;
}

// The field's node with other values: a number doubled, a switch turned, each other name.
std::vector<Node> others(const Node& node, const std::vector<std::string>& names) {
  std::vector<Node> list;
  switch (node.kind) {
    case config::Kind::integer: return {config::integer_node(2 * std::stoll(node.scalar))};
    case config::Kind::real: return {config::real_node(0.5 * std::stod(node.scalar))};
    case config::Kind::boolean: return {config::boolean_node(node.scalar != "true")};
    case config::Kind::text:
      for (const auto& name : names) {
        if (name != node.scalar) { list.push_back(config::text_node(name)); }
      }
      return list;
    case config::Kind::null:
    case config::Kind::sequence:
    case config::Kind::mapping: return {};
  }
  return {};
}

std::vector<std::string> names_of(const std::string& field) {
  if (field == "activation") { return {"gelu", "relu", "silu", "squared_relu"}; }
  if (field == "norm") { return {"layernorm", "rmsnorm"}; }
  if (field == "position") { return {"learned", "rotary", "alibi"}; }
  if (field == "rope.scaling") { return {"none", "linear", "llama3", "yarn", "longrope", "dynamic"}; }
  if (field == "mixer.kind") { return {"attention", "mamba", "mamba2", "gated_delta"}; }
  if (field == "experts.score") { return {"softmax", "sigmoid"}; }
  return {};
}

// The model with another value of one field, unchecked, as no rule between fields is about a launch. Empty: the record
// does not read it.
std::vector<Model> changed(const Model& model, const std::string& field) {
  if (field == "pattern" || (field == "layers" && !model.pattern.empty())) {
    Model next = model;
    next.pattern.front() = next.pattern.front() == 'M' ? '*' : 'M';
    if (field == "layers") {
      next.layers *= 2;
      next.pattern = model.pattern + model.pattern;
    }
    return {next};
  }
  if (field == "tower") {
    Model next = model;
    ++next.tower.layers;
    return {next};
  }
  const auto& record = config::Described<Model>::record();
  const Node whole = record.to_node(model);
  const auto dot = field.find('.');
  const Node* found = whole.find(field.substr(0, dot));
  if (found != nullptr && dot != std::string::npos) { found = found->find(field.substr(dot + 1)); }
  if (found == nullptr) { return {}; }
  std::vector<Model> models;
  for (const auto& other : others(*found, names_of(field))) {
    Model next = model;
    if (record.set(next, field, config::inline_text(other), {})) { models.push_back(std::move(next)); }
  }
  return models;
}

// emitted + not said = described: a fact without a note changes the text; a fact with one changes the notes.
void expect_all_said(Tool tool, const TrainingRun& run) {
  const Launch before = launched(tool, run);
  for (const auto& fact : described(run.model)) {
    const bool noted = std::find(before.not_said.begin(), before.not_said.end(), fact.field) != before.not_said.end();
    const auto models = changed(run.model, fact.field);
    EXPECT_FALSE(models.empty()) << fact.field << " " << fact.value;
    bool differs = false;
    for (const auto& model : models) {
      TrainingRun other = run;
      other.model = model;
      const Launch after = launched(tool, other);
      differs = differs || after.notes != before.notes || (!noted && after.text != before.text);
    }
    EXPECT_TRUE(differs) << name_of(tool) << " drops " << fact.field << " of " << run.model.name
                         << (noted ? " from its notes" : "");
  }
}

TEST(LaunchFacts, every_field_of_every_model_is_emitted_or_noted_by_every_tool) {
  constexpr int kStride = orrery::test::kSanitizers ? 5 : 1;
  int models = 0;
  for (const auto& model : launched_models()) {
    if (models++ % kStride != 0) { continue; }
    for (const Tool tool : kAllTools) { expect_all_said(tool, run_of(model)); }
    expect_all_said(Tool::deepspeed, run_of(model, 2));
  }
  EXPECT_GT(models, 90);
}

std::vector<std::string> fields_of(const Model& model) {
  std::vector<std::string> fields;
  for (const auto& fact : described(model)) { fields.push_back(fact.field); }
  return fields;
}

TEST(LaunchFacts, described_are_the_fields_that_differ_from_the_default) {
  const auto fields = fields_of(test::catalogue_model("llama-3.1-8b"));
  for (const char* field : {"layers", "kv_heads", "norm_eps", "rope.base", "rope.scaling", "rope.factor"}) {
    EXPECT_THAT(fields, Contains(field));
  }
  EXPECT_THAT(fields, Not(Contains("qkv_bias")));
  EXPECT_THAT(fields_of(test::catalogue_model("deepseek-v3")), Not(Contains("kv_heads")));
}

TEST(LaunchFacts, latent_attention_has_norms_of_its_latents) {
  const TrainingRun run = run_of(test::catalogue_model("deepseek-v3"));
  const std::string megatron = launched(Tool::megatron, run).text;
  for (const char* line : {"\n  --qk-layernorm\n", "\n  --rope-type yarn\n", "\n  --rotary-base 10000\n",
                           "\n  --rotary-scaling-factor 40\n", "\n  --norm-epsilon 1e-06\n", "\n  --mscale 1\n",
                           "\n  --moe-router-score-function sigmoid\n", "\n  --moe-router-topk-scaling-factor 2.5\n",
                           "\n  --moe-router-enable-expert-bias\n"}) {
    EXPECT_THAT(megatron, HasSubstr(line));
  }
  const std::string bridge = launched(Tool::nemo, run).text;
  for (const char* line : {"\n  model.qk_layernorm=true\n", "\n  model.rotary_scaling_factor=40\n",
                           "\n  model.original_max_position_embeddings=4096\n", "\n  model.beta_fast=32\n"}) {
    EXPECT_THAT(bridge, HasSubstr(line));
  }
}

TEST(LaunchFacts, positions_norms_and_sinks_are_options_of_megatron) {
  const auto text = [](const char* name) { return launched(Tool::megatron, run_of(test::catalogue_model(name))).text; };
  EXPECT_THAT(text("llama-3.1-8b"),
              HasSubstr("--rotary-base 500000\n  --use-rope-scaling\n  --rope-scaling-factor 8\n"));
  EXPECT_THAT(text("gpt-oss-20b"), HasSubstr("--softmax-type learnable"));
  EXPECT_THAT(text("gpt-oss-20b"), HasSubstr("--position-embedding-type yarn"));
  EXPECT_THAT(text("llama-4-scout"), HasSubstr("--no-rope-freq 4"));
  EXPECT_THAT(text("phi-2"), HasSubstr("--rotary-percent 0.4"));
  EXPECT_THAT(text("nemotron-4-15b"), HasSubstr("--squared-relu"));
}

TEST(LaunchFacts, linear_attention_is_an_option_of_megatron_and_state_spaces_are_a_note) {
  const auto delta = launched(Tool::megatron, run_of(test::catalogue_model("qwen3-next-80b-a3b")));
  EXPECT_THAT(delta.text, HasSubstr("--experimental-attention-variant gdn\n  --linear-attention-freq 4\n"));
  EXPECT_THAT(delta.text, HasSubstr("--attention-output-gate"));
  const auto hybrid = launched(Tool::megatron, run_of(test::catalogue_model("nemotron-h-56b")));
  EXPECT_THAT(join(hybrid.notes, "\n"),
              HasSubstr("its Mamba-2 layers need pretrain_hybrid.py with --hybrid-layer-pattern"));
}

TEST(LaunchFacts, what_a_tool_has_no_option_for_is_named_with_its_value) {
  const auto notes = [](Tool tool, const char* name) {
    return join(launched(tool, run_of(test::catalogue_model(name))).notes, "\n");
  };
  EXPECT_THAT(notes(Tool::megatron, "gemma-2-9b"), HasSubstr("attention_soft_cap 50, logit_soft_cap 30"));
  EXPECT_THAT(notes(Tool::deepspeed, "llama-3.1-8b"), HasSubstr("rope.base 500000"));
  EXPECT_THAT(notes(Tool::torchtitan, "gemma-2-9b"), HasSubstr("logit_soft_cap 30"));
  EXPECT_THAT(notes(Tool::megatron, "palm-8b"), HasSubstr("rope.base (Megatron-LM launches 10000)"));
}

// A flavor is found by sizes, whatever a model is called, and differences of the rest are named.
TEST(LaunchFacts, a_flavor_of_torchtitan_is_compared_field_by_field) {
  TrainingRun run = run_of(test::catalogue_model("llama-3.1-8b"));
  run.model.name = "mine";
  EXPECT_THAT(launched(Tool::torchtitan, run).text, HasSubstr("flavor = \"8B\""));
  run.model.ffn = 8192;
  EXPECT_THAT(launched(Tool::torchtitan, run).text, Not(HasSubstr("flavor =")));
  const auto deepseek = join(launched(Tool::torchtitan, run_of(test::catalogue_model("deepseek-v3"))).notes, "\n");
  EXPECT_THAT(deepseek, HasSubstr("norm_eps 1e-06 (launched: 1e-05)"));
  EXPECT_THAT(deepseek, HasSubstr("experts.groups 8 (launched: none)"));
  const auto llama3 = join(launched(Tool::torchtitan, run_of(test::catalogue_model("llama-3-8b"))).notes, "\n");
  EXPECT_THAT(llama3, HasSubstr("rope.scaling not described (launched: llama3)"));
}

}  // namespace
}  // namespace orrery::launch::facts_test
