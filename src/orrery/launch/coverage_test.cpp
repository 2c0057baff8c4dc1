// Every choice of a plan changes the launch or its notes.
#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "orrery/core/text.hpp"
#include "orrery/launch/test_runs.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::launch::coverage_test {
namespace {

using parallel::Plan;
using parallel::PlanField;
using parallel::ScheduleKind;

// The part of a text that the program reads: without comments and without the plan that is repeated for people.
std::string read_by_program(Tool tool, const Launch& launch) {
  if (tool == Tool::deepspeed) {
    auto json = nlohmann::json::parse(launch.text);
    auto& ours = json["_orrery"];
    for (const char* key : {"plan", "run", "not_said_here"}) { ours.erase(key); }
    return json.dump();
  }
  std::string text, line;
  for (const char c : launch.text) {
    line += c;
    if (c != '\n') { continue; }
    if (!line.starts_with('#')) { text += line; }
    line.clear();
  }
  const auto said = text.find("description = ");  // torchtitan's description of the run, for people
  if (said != std::string::npos) { text.erase(said, text.find('\n', said) - said); }
  return text;
}

std::pair<std::string, std::string> said(Tool tool, const TrainingRun& run) {
  const auto launch = test::launched(tool, run);
  return {read_by_program(tool, launch), join(launch.notes, "\n")};
}

// A plan in which every field has an effect.
TrainingRun full_run() {
  TrainingRun run = test::mixtral();
  run.plan.cp = 2;
  run.plan.dp = 8;
  run.plan.ep = 4;
  run.plan.recompute = parallel::Recompute::full;
  return run;
}

using Change = std::function<void(Plan&)>;

struct Named {
  std::string_view name;
  Change change;
};

// Values that full_run() can change to; other numbers of a plan are incremented.
const std::map<PlanField, std::int64_t>& values() {
  using F = PlanField;
  static const std::map<F, std::int64_t> table = {{F::tp, 4},
                                                  {F::cp, 4},
                                                  {F::pp, 2},
                                                  {F::dp, 32},
                                                  {F::ep, 8},
                                                  {F::etp, 2},
                                                  {F::vpp, 7},
                                                  {F::zero, 3},
                                                  {F::recompute, 1},
                                                  {F::schedule, 0},
                                                  {F::shard, 4},
                                                  {F::tier_dp, 1},
                                                  {F::tier_pp, 1},
                                                  {F::first_stage_layers, 10},
                                                  {F::last_stage_layers, 10}};
  return table;
}

// One change per field, except tables of recommenders, which none of these tools trains.
std::vector<Named> changes() {
  std::vector<Named> list;
  for (const auto& choice : parallel::plan_choices()) {
    if (choice.of_recommenders) { continue; }
    for (const auto& part : choice.parts) {
      const auto value = values().find(part.field);
      list.push_back({part.axis, [&part, value](Plan& plan) {
                        const std::int64_t now = part.get(plan);
                        const bool is_switch = parallel::choice_of(part.field).kind == parallel::ChoiceKind::boolean;
                        part.set(plan, value != values().end() ? value->second : is_switch ? 1 - now : now + 1);
                        if (plan.recompute_modules.any()) { plan.recompute = parallel::Recompute::selective; }
                      }});
    }
  }
  return list;
}

TEST(LaunchCoverage, whatever_changes_in_a_plan_changes_the_launch_or_its_notes) {
  for (const Tool tool : kAllTools) {
    const auto before = said(tool, full_run());
    for (const auto& [name, change] : changes()) {
      TrainingRun run = full_run();
      change(run.plan);
      EXPECT_NE(said(tool, run), before) << name_of(tool) << " drops " << name;
    }
  }
}

// The same for plans that use other options: no stages, no experts, sharded weights.
TEST(LaunchCoverage, nothing_is_dropped_of_a_plan_without_stages_or_experts) {
  const auto simple = [] {
    TrainingRun run = full_run();
    run.model = test::catalogue_model("llama-3.1-8b");
    run.plan.pp = run.plan.vpp = run.plan.ep = 1;
    run.plan.schedule = ScheduleKind::one_f_one_b;
    run.plan.dp = 16;
    return run;
  };
  const std::vector<std::string_view> idle = {
      "ep",  // without experts
      "etp",
      "pp",  // still without stages
      "vpp", "first_stage_layers", "last_stage_layers", "embedding_as_layer", "head_as_layer"};
  for (const Tool tool : kAllTools) {
    const auto before = said(tool, simple());
    for (const auto& [name, change] : changes()) {
      if (std::find(idle.begin(), idle.end(), name) != idle.end()) { continue; }
      TrainingRun run = simple();
      change(run.plan);
      EXPECT_NE(said(tool, run), before) << name_of(tool) << " drops " << name;
    }
  }
}

// Every value of a choice gives a different launch.
void expect_all_distinct(const char* what, const std::vector<Change>& values,
                         const std::function<TrainingRun()>& base) {
  for (const Tool tool : kAllTools) {
    std::vector<std::pair<std::string, std::string>> seen;
    for (const auto& value : values) {
      TrainingRun run = base();
      value(run.plan);
      seen.push_back(said(tool, run));
      for (std::size_t i = 0; i + 1 < seen.size(); ++i) {
        EXPECT_NE(seen[i], seen.back()) << name_of(tool) << ": values " << i << " and " << seen.size() - 1 << " of "
                                        << what << " look the same";
      }
    }
  }
}

TEST(LaunchCoverage, every_value_of_a_choice_changes_the_launch) {
  const auto staged = [] {
    TrainingRun run = full_run();
    run.plan.vpp = 1;
    return run;
  };
  std::vector<Change> zeros, recomputes, schedules, overlaps;
  for (int zero = 0; zero <= 3; ++zero) {
    zeros.emplace_back([zero](Plan& p) { p.zero = zero; });
  }
  using parallel::Recompute;
  for (const auto value : {Recompute::none, Recompute::selective, Recompute::full}) {
    recomputes.emplace_back([value](Plan& p) { p.recompute = value; });
  }
  std::vector<Change> modules{[](Plan& p) { p.recompute = Recompute::selective; }};
  const auto& module_parts = parallel::find_choice("recompute_modules")->parts;
  for (std::size_t i = 1; i < module_parts.size(); ++i) {  // the first is the default
    modules.emplace_back([set = module_parts[i].set](Plan& p) {
      p.recompute = Recompute::selective;
      set(p, 1);
    });
  }
  for (const auto value :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble, ScheduleKind::dualpipe}) {
    schedules.emplace_back([value](Plan& p) { p.schedule = value; });
  }
  schedules.emplace_back([](Plan& p) {
    p.schedule = ScheduleKind::interleaved;
    p.vpp = 2;
  });
  using parallel::TpOverlap;
  for (const auto value : {TpOverlap::none, TpOverlap::ring, TpOverlap::pipe}) {
    overlaps.emplace_back([value](Plan& p) { p.tp_overlap = value; });
  }
  expect_all_distinct("zero", zeros, staged);
  expect_all_distinct("recompute", recomputes, staged);
  expect_all_distinct("recompute_modules", modules, staged);
  expect_all_distinct("schedule", schedules, staged);
  expect_all_distinct("tp_overlap", overlaps, staged);
}

TEST(LaunchCoverage, whatever_changes_in_a_job_changes_the_launch_or_its_notes) {
  const parallel::Job job;
  const auto& [global_batch, seq, precision, task, adapter, formats, prompt, generate, pads_heads, expert_imbalance,
               replicates_tokens] = job;
  (void)prompt, (void)generate;                     // inference only, which is an error
  (void)pads_heads;                                 // an error where it has an effect (launch_test.cpp)
  (void)expert_imbalance, (void)replicates_tokens;  // of serving engines, which no launcher here starts
  std::vector<std::pair<const char*, std::function<void(parallel::Job&)>>> list;
  const auto add = [&](const auto& /*field*/, const char* name, std::function<void(parallel::Job&)> change) {
    list.emplace_back(name, std::move(change));
  };
  add(global_batch, "global_batch", [](parallel::Job& j) { j.global_batch = 512; });
  add(seq, "seq", [](parallel::Job& j) { j.seq = 8192; });
  add(task, "task", [](parallel::Job& j) { j.task = parallel::Task::finetune; });
  add(adapter, "adapter", [](parallel::Job& j) { j.adapter.rank = 8; });
  add(formats, "formats.weights", [](parallel::Job& j) { j.formats.weights = hardware::StorageFormat::nf4; });
  add(formats, "formats.attention", [](parallel::Job& j) { j.formats.attention = hardware::Precision::fp8; });
  for (const auto p : {hardware::Precision::fp32, hardware::Precision::tf32, hardware::Precision::fp16,
                       hardware::Precision::fp8, hardware::Precision::fp4}) {
    add(precision, "precision", [p](parallel::Job& j) { j.precision = p; });
  }
  for (const Tool tool : kAllTools) {
    const auto before = said(tool, full_run());
    for (const auto& [name, change] : list) {
      TrainingRun run = full_run();
      change(run.job);
      EXPECT_NE(said(tool, run), before) << name_of(tool) << " drops " << name;
    }
  }
}

// Megatron's launchers read the model's shape from the text.
TEST(LaunchCoverage, a_models_shape_is_part_of_a_megatron_launch) {
  using workload::Model;
  const std::vector<std::pair<const char*, std::function<void(Model&)>>> list = {
      {"layers", [](Model& m) { m.layers = 48; }},
      {"hidden", [](Model& m) { m.hidden = 4096; }},
      {"heads", [](Model& m) { m.heads = 32; }},
      {"kv_heads", [](Model& m) { m.kv_heads = 4; }},
      {"head_dim", [](Model& m) { m.head_dim = 64; }},
      {"ffn", [](Model& m) { m.ffn = 512; }},
      {"vocab", [](Model& m) { m.vocab = 32002; }},
      {"max_seq", [](Model& m) { m.max_seq = 1 << 20; }},
      {"gated_mlp", [](Model& m) { m.gated_mlp = false; }},
      {"tied_embeddings", [](Model& m) { m.tied_embeddings = true; }},
      {"qkv_bias", [](Model& m) { m.qkv_bias = true; }},
      {"attention_output_bias", [](Model& m) { m.attention_output_bias = true; }},
      {"mlp_bias", [](Model& m) { m.mlp_bias = true; }},
      {"qk_norm", [](Model& m) { m.qk_norm = true; }},
      {"post_norms", [](Model& m) { m.post_norms = true; }},
      {"parallel_residual", [](Model& m) { m.parallel_residual = true; }},
      {"embedding_norm", [](Model& m) { m.embedding_norm = true; }},
      {"final_norm", [](Model& m) { m.final_norm = false; }},
      {"sliding_window", [](Model& m) { m.sliding_window = 1024; }},
      {"dropout", [](Model& m) { m.dropout = 0.1; }},
      {"norm", [](Model& m) { m.norm = workload::Normalisation::layernorm; }},
      {"activation", [](Model& m) { m.activation = workload::Activation::gelu; }},
      {"position", [](Model& m) { m.position = workload::Position::alibi; }},
      {"mtp_layers", [](Model& m) { m.mtp_layers = 1; }},
      {"experts.count", [](Model& m) { m.experts.count = 16; }},
      {"experts.active", [](Model& m) { m.experts.active = 4; }},
      {"experts.ffn", [](Model& m) { m.experts.ffn = 1024; }},
      {"experts.shared_ffn", [](Model& m) { m.experts.shared_ffn = 1024; }},
      {"experts.shared_gate", [](Model& m) { m.experts.shared_gate = true; }},
      {"experts.first_dense", [](Model& m) { m.experts.first_dense = 1; }},
      {"experts.every", [](Model& m) { m.experts.every = 2; }},
      {"experts.groups", [](Model& m) { m.experts.groups = 4; }},
      {"experts.capacity_factor", [](Model& m) { m.experts.capacity_factor = 1.5; }},
      {"latent", [](Model& m) { m.latent = {1536, 512, 128, 64, 128}; }},
  };
  for (const Tool tool : {Tool::megatron, Tool::nemo}) {
    const auto before = said(tool, full_run());
    for (const auto& [name, change] : list) {
      TrainingRun run = full_run();
      change(run.model);
      EXPECT_NE(said(tool, run), before) << name_of(tool) << " drops " << name;
    }
  }
}

}  // namespace
}  // namespace orrery::launch::coverage_test
