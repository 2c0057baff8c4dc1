#include "orrery/launch/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "orrery/core/text.hpp"
#include "orrery/launch/layout.hpp"
#include "orrery/launch/sheet.hpp"
#include "orrery/launch/test_runs.hpp"
#include "orrery/launch/test_texts.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::launch {

workload::Model test::catalogue_model(const std::string& name) {
  const auto model = workload::load_model(ORRERY_SOURCE_DATA_DIR, name);
  EXPECT_TRUE(model.has_value()) << name;
  return model ? *model : workload::Model{};
}

}  // namespace orrery::launch

namespace orrery::launch::launch_test {
namespace {

using test::toml;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Launch, scales_of_fp8_have_an_option_or_a_note) {
  TrainingRun run = test::llama_405b();
  run.job.precision = hardware::Precision::fp8;
  const auto says = [&](Tool tool, hardware::Fp8Recipe recipe, const char* text) {
    run.stack.fp8_recipe = recipe;
    const Launch launch = test::launched(tool, run);
    std::string all = launch.text;
    for (const auto& note : launch.notes) { all += note; }
    EXPECT_THAT(all, testing::HasSubstr(text)) << name_of(tool);
  };
  using hardware::Fp8Recipe;
  says(Tool::megatron, Fp8Recipe::delayed, "--fp8-recipe delayed");
  says(Tool::megatron, Fp8Recipe::current, "--fp8-recipe tensorwise");
  says(Tool::megatron, Fp8Recipe::block, "--fp8-recipe blockwise");
  says(Tool::nemo, Fp8Recipe::delayed, "bf16_with_fp8_delayed_scaling_mixed");
  says(Tool::nemo, Fp8Recipe::block, "bf16_with_fp8_subchannel_scaling_mixed");
  says(Tool::torchtitan, Fp8Recipe::block, "--fp8-recipe block");
}

TEST(Launch, every_tool_says_which_optimizer_it_launches) {
  for (const Tool tool : kAllTools) {
    std::vector<std::string> seen;
    for (const auto kind : {hardware::OptimizerKind::adam, hardware::OptimizerKind::adam8bit,
                            hardware::OptimizerKind::sgd, hardware::OptimizerKind::muon}) {
      TrainingRun run = test::llama_405b();
      run.stack.optimizer.kind = kind;
      const Launch launch = test::launched(tool, run);
      std::string all = launch.text;
      for (const auto& note : launch.notes) { all += note; }
      EXPECT_THAT(seen, testing::Not(testing::Contains(all))) << name_of(tool) << " " << hardware::name_of(kind);
      seen.push_back(all);
    }
  }
}

TEST(Launch, muon_shards_whole_matrices_without_the_distributed_optimizer) {
  TrainingRun run = test::llama_405b();
  run.stack.optimizer.kind = hardware::OptimizerKind::muon;
  const Launch launch = test::launched(Tool::megatron, run);
  EXPECT_THAT(launch.text, testing::HasSubstr("--optimizer dist_muon"));
  EXPECT_THAT(launch.text, testing::Not(testing::HasSubstr("--use-distributed-optimizer")));
  EXPECT_THAT(test::launched(Tool::nemo, run).text, testing::HasSubstr("optimizer.optimizer=dist_muon"));
}

TEST(Launch, the_published_plan_of_llama_405b_is_said_whole_by_megatron) {
  const auto launch = test::launched(Tool::megatron, test::llama_405b());
  EXPECT_THAT(launch.notes, IsEmpty());
  for (const char* line : {
           "  --num-layers 126\n",
           "  --hidden-size 16384\n",
           "  --ffn-hidden-size 53248\n",
           "  --num-attention-heads 128\n",
           "  --group-query-attention\n",
           "  --num-query-groups 8\n",
           "  --seq-length 8192\n",
           "  --position-embedding-type rope\n",
           "  --normalization RMSNorm\n",
           "  --swiglu\n",
           "  --disable-bias-linear\n",
           "  --untie-embeddings-and-output-weights\n",
           "  --tensor-model-parallel-size 8\n",
           "  --pipeline-model-parallel-size 16\n",
           "  --sequence-parallel\n",
           "  --account-for-embedding-in-pipeline-split\n",
           "  --account-for-loss-in-pipeline-split\n",
           "  --micro-batch-size 1\n",
           "  --global-batch-size 2048\n",
           "  --use-distributed-optimizer\n",
           "  --overlap-grad-reduce\n",
           "  --overlap-param-gather\n",
           "  --bf16\n",
           "  --nnodes 2048\n",
           "  --nproc-per-node 8\n",
           "export CUDA_DEVICE_MAX_CONNECTIONS=1\n",
           // 128256 = 16032 x 8, and gcd(16032, 128) = 32: nothing is padded.
           "  --make-vocab-size-divisible-by 32\n",
       }) {
    EXPECT_THAT(launch.text, HasSubstr(line));
  }
  EXPECT_THAT(launch.text, Not(HasSubstr("--recompute")));
}

TEST(Launch, interleaving_is_so_many_virtual_stages) {
  auto run = test::llama_405b();
  run.plan.vpp = 8;
  run.plan.schedule = parallel::ScheduleKind::interleaved;
  EXPECT_THAT(test::launched(Tool::megatron, run).text, HasSubstr("  --num-virtual-stages-per-pipeline-rank 8\n"));
  EXPECT_THAT(test::launched(Tool::nemo, run).text, HasSubstr("  model.virtual_pipeline_model_parallel_size=8\n"));
  const auto titan = toml(test::launched(Tool::torchtitan, run).text);
  EXPECT_EQ(titan.at("parallelism.pipeline_parallel_schedule"), "\"Interleaved1F1B\"");
  EXPECT_EQ(titan.at("parallelism.pipeline_parallel_layers_per_stage"), "1");  // (126 + 2) / (16 x 8)
}

TEST(Launch, deepseek_v3_has_experts_latent_attention_and_a_layout) {
  const auto launch = test::launched(Tool::megatron, test::deepseek_v3());
  for (const char* line : {
           "  --multi-latent-attention\n",
           "  --q-lora-rank 1536\n",
           "  --kv-lora-rank 512\n",
           "  --qk-head-dim 128\n",
           "  --qk-pos-emb-head-dim 64\n",
           "  --v-head-dim 128\n",
           "  --mtp-num-layers 1\n",
           "  --num-experts 256\n",
           "  --moe-router-topk 8\n",
           "  --moe-ffn-hidden-size 2048\n",
           "  --moe-shared-expert-intermediate-size 2048\n",
           "  --moe-layer-freq '([0]*3+[1]*58)'\n",
           "  --moe-router-num-groups 8\n",
           "  --moe-router-group-topk 4\n",
           "  --moe-token-dispatcher-type flex\n",
           "  --moe-enable-deepep\n",
           "  --expert-model-parallel-size 64\n",
           "  --expert-tensor-parallel-size 1\n",
           "  --fp8-format hybrid\n",
           "  --pipeline-model-parallel-layout 'Et",
       }) {
    EXPECT_THAT(launch.text, HasSubstr(line));
  }
  EXPECT_THAT(launch.notes, ElementsAre(HasSubstr("--schedule dualpipe")));
  EXPECT_THAT(launch.text, HasSubstr("# - --schedule dualpipe"));
}

TEST(Launch, nemo_says_what_is_off_and_takes_adapters) {
  const auto mixtral = test::launched(Tool::nemo, test::mixtral());
  for (const char* line : {
           "  model.tensor_model_parallel_size=2\n",
           "  model.pipeline_model_parallel_size=4\n",
           "  model.virtual_pipeline_model_parallel_size=2\n",
           "  model.expert_model_parallel_size=8\n",
           "  model.num_moe_experts=8\n",
           "  model.sequence_parallel=true\n",
           "  model.add_bias_linear=false\n",
           "  model.share_embeddings_and_output_weights=false\n",
           "  model.gated_linear_unit=true\n",
           "  model.activation_func=silu\n",
           "  model.recompute_granularity=null\n",
           "  ddp.use_distributed_optimizer=true\n",
           "  mixed_precision=bf16_mixed\n",
       }) {
    EXPECT_THAT(mixtral.text, HasSubstr(line));
  }
  EXPECT_THAT(mixtral.notes, IsEmpty());
  const auto lora = test::launched(Tool::nemo, test::lora());
  EXPECT_THAT(lora.text, HasSubstr("  peft.dim=16\n"));
  EXPECT_THAT(lora.text, HasSubstr("  'peft.target_modules=[linear_qkv,linear_proj]'\n"));
  EXPECT_THAT(lora.notes, ElementsAre("--model llama-2-70b: its 4096 positions are launched as 8192"));
}

// Megatron-Core's own default, written out: max(40 million, 1 million x dp x cp) weights.
TEST(Launch, the_bucket_is_that_of_the_stack_for_the_run_s_replicas) {
  auto run = test::lora();
  run.stack.gradients.bucket_parameters_per_replica = 1'000'000;
  EXPECT_THAT(test::launched(Tool::megatron, run).text, HasSubstr("  --ddp-bucket-size 40000000\n"));
  run.plan.dp = 64;
  run.job.global_batch = 64;
  EXPECT_THAT(test::launched(Tool::megatron, run).text, HasSubstr("  --ddp-bucket-size 128000000\n"));
  EXPECT_THAT(test::launched(Tool::nemo, run).text, HasSubstr("  ddp.bucket_size=128000000\n"));
  EXPECT_THAT(test::launched(Tool::deepspeed, run).text, HasSubstr("\"reduce_bucket_size\": 128000000"));
}

// DeepSpeed and Megatron-FSDP reduce sharded gradients in every micro-batch; torchtitan does without pipeline stages
// and reduces once a step with them. With one micro-batch a step there is no difference.
TEST(Launch, reductions_at_another_time_than_the_stack_s_are_noted) {
  const auto noted = [](Tool tool, const TrainingRun& run) {
    for (const auto& note : test::launched(tool, run).notes) {
      if (note.starts_with("--reduce-every")) { return note.substr(0, note.find(':')); }
    }
    return std::string();
  };
  auto run = test::hybrid_shards();
  run.stack.gradients.reduce_every = hardware::ReduceEvery::step;
  for (const Tool tool : kAllTools) { EXPECT_EQ(noted(tool, run), "--reduce-every step"); }
  run.stack.gradients.reduce_every = hardware::ReduceEvery::step_if_stages;
  for (const Tool tool : kAllTools) { EXPECT_EQ(noted(tool, run), ""); }
  run.plan.shard = 0;
  run.plan.dp = 32;
  run.plan.pp = 2;
  EXPECT_EQ(noted(Tool::torchtitan, run), "");
  EXPECT_EQ(noted(Tool::megatron, run), "--reduce-every step");
  run.stack.gradients.reduce_every = hardware::ReduceEvery::micro_batch;
  EXPECT_EQ(noted(Tool::torchtitan, run), "--reduce-every micro-batch");
  run.job.global_batch = 32;
  EXPECT_EQ(noted(Tool::torchtitan, run), "");
}

// Megatron's "block" recomputes the first layers of a chunk, as the plan does. The others recompute in all layers and
// say so.
TEST(Launch, recompute_of_some_layers_is_an_option_or_a_note) {
  using parallel::Recompute;
  auto run = test::llama_405b();
  run.plan.recompute = Recompute::full;
  EXPECT_THAT(test::launched(Tool::megatron, run).text,
              HasSubstr("  --recompute-granularity full\n  --recompute-method uniform\n  --recompute-num-layers 1\n"));
  run.plan.recompute_layers = 3;
  const auto megatron = test::launched(Tool::megatron, run);
  EXPECT_THAT(megatron.text,
              HasSubstr("  --recompute-granularity full\n  --recompute-method block\n  --recompute-num-layers 3\n"));
  EXPECT_THAT(megatron.notes, IsEmpty());
  EXPECT_THAT(megatron.text, HasSubstr("recompute full, recompute-layers 3"));
  const auto nemo = test::launched(Tool::nemo, run);
  EXPECT_THAT(nemo.text, HasSubstr("  model.recompute_method=block\n  model.recompute_num_layers=3\n"));
  const auto noted = HasSubstr("--recompute-layers 3: ");
  for (const Tool tool : {Tool::deepspeed, Tool::torchtitan}) {
    EXPECT_THAT(test::launched(tool, run).notes, testing::Contains(noted)) << name_of(tool);
  }
  run.plan.recompute = Recompute::selective;
  for (const Tool tool : kAllTools) {
    EXPECT_THAT(test::launched(tool, run).notes, testing::Contains(noted)) << name_of(tool);
  }
}

// Torchtitan recomputes every n-th layer: 16 of 32 layers on two stages are every second one, 5 are none such.
TEST(Launch, recompute_of_every_nth_layer_is_an_option_of_torchtitan) {
  auto run = test::llama_405b();
  run.plan.recompute = parallel::Recompute::full;
  run.model.layers = 32;
  run.plan.pp = 2;
  run.plan.vpp = 1;
  run.plan.recompute_layers = 8;
  auto launched = test::launched(Tool::torchtitan, run);
  EXPECT_THAT(launched.text, HasSubstr("mode = \"selective\"\nselective_ac_option = \"2\"\n"));
  EXPECT_THAT(launched.notes, testing::Not(testing::Contains(HasSubstr("--recompute-layers"))));
  run.plan.recompute_layers = 5;
  launched = test::launched(Tool::torchtitan, run);
  EXPECT_THAT(launched.text, HasSubstr("mode = \"full\"\n"));
  EXPECT_THAT(launched.notes, testing::Contains(HasSubstr("--recompute-layers 5: ")));
}

// Megatron's names, separated as each tool reads them; a module that it does not have is a note.
TEST(Launch, recomputed_modules_are_options_of_megatron_and_notes_elsewhere) {
  auto run = test::llama_405b();
  run.plan.recompute = parallel::Recompute::selective;
  EXPECT_THAT(test::launched(Tool::megatron, run).text, HasSubstr("  --recompute-modules core_attn\n"));
  run.plan.recompute_modules = {.norms = true, .mlp = true};
  const auto megatron = test::launched(Tool::megatron, run);
  EXPECT_THAT(megatron.text, HasSubstr("  --recompute-modules layernorm mlp\n"));
  EXPECT_THAT(megatron.text, HasSubstr("recompute selective, recompute-modules layernorm,mlp"));
  const auto noted = testing::Contains(HasSubstr("--recompute-modules layernorm,"));
  EXPECT_THAT(megatron.notes, testing::Not(noted));
  EXPECT_THAT(test::launched(Tool::nemo, run).text, HasSubstr("  'model.recompute_modules=[layernorm,mlp]'\n"));
  EXPECT_THAT(test::launched(Tool::torchtitan, run).notes, noted);
  EXPECT_THAT(test::launched(Tool::deepspeed, run).notes, noted);
  run.plan.recompute_modules.activations = true;
  EXPECT_THAT(test::launched(Tool::megatron, run).text, HasSubstr("  --recompute-modules layernorm moe_act mlp\n"));
  EXPECT_THAT(test::launched(Tool::megatron, run).notes, noted);
}

// Without stages Megatron-DeepSpeed checkpoints layers one by one.
TEST(Launch, megatron_deepspeed_recomputes_some_layers_without_a_pipeline) {
  auto run = test::mixtral();
  run.plan.pp = run.plan.vpp = 1;
  run.plan.schedule = parallel::ScheduleKind::one_f_one_b;
  run.plan.dp = 64;
  run.plan.recompute = parallel::Recompute::full;
  run.plan.recompute_layers = 5;
  const auto launch = test::launched(Tool::deepspeed, run);
  EXPECT_THAT(launch.text, HasSubstr("--recompute-method block --recompute-num-layers 5 "));
  EXPECT_THAT(launch.notes, testing::Not(testing::Contains(HasSubstr("--recompute-layers"))));
}

TEST(Launch, a_gated_mlp_stays_gated_whatever_its_activation) {
  auto run = test::llama_405b();
  run.model.activation = workload::Activation::gelu;
  const auto megatron = test::launched(Tool::megatron, run).text;
  EXPECT_THAT(megatron, HasSubstr("  --quick-geglu\n"));
  EXPECT_THAT(megatron, Not(HasSubstr("--swiglu")));
  const auto nemo = test::launched(Tool::nemo, run).text;
  EXPECT_THAT(nemo, HasSubstr("  model.gated_linear_unit=true\n  model.activation_func=gelu\n"));
  EXPECT_THAT(nemo, Not(HasSubstr("gated_linear_unit=false")));
}

TEST(Launch, adapters_are_missed_loudly_where_there_are_none) {
  for (const Tool tool : {Tool::megatron, Tool::deepspeed, Tool::torchtitan}) {
    EXPECT_THAT(test::launched(tool, test::lora()).notes, testing::Contains(HasSubstr("--lora 16"))) << name_of(tool);
  }
}

TEST(Launch, formats_without_an_option_become_notes) {
  auto run = test::lora();
  run.job.formats.weights = hardware::StorageFormat::nf4;
  run.job.formats.attention = hardware::Precision::fp8;
  for (const Tool tool : kAllTools) {
    const auto notes = test::launched(tool, run).notes;
    EXPECT_THAT(notes, testing::Contains(HasSubstr("--weight-format nf4: "))) << name_of(tool);
    EXPECT_THAT(notes, testing::Contains(HasSubstr("--attention-precision fp8: "))) << name_of(tool);
  }
}

// DeepSpeed asserts train_batch_size = micro-batch x accumulation x data-parallel ranks.
TEST(Launch, deepspeeds_batch_sizes_multiply) {
  for (const auto& run : test::published_runs()) {
    const auto json = nlohmann::json::parse(test::launched(Tool::deepspeed, run).text);
    EXPECT_EQ(json["train_batch_size"].get<std::int64_t>(),
              json["train_micro_batch_size_per_gpu"].get<std::int64_t>() *
                  json["gradient_accumulation_steps"].get<std::int64_t>() * run.plan.dp);
    EXPECT_EQ(json["zero_optimization"]["stage"], run.plan.zero);
  }
}

TEST(Launch, deepspeed_cuts_by_itself_what_it_can_and_takes_megatron_for_the_rest) {
  auto run = test::lora();
  run.plan.cp_method = workload::ContextMethod::ulysses;
  const auto alone = nlohmann::json::parse(test::launched(Tool::deepspeed, run).text);
  EXPECT_EQ(alone["tensor_parallel"]["autotp_size"], 4);
  EXPECT_EQ(alone["sequence_parallel_size"], 2);
  EXPECT_THAT(alone["_orrery"]["command"].get<std::string>(), HasSubstr("train.py"));
  const auto staged = nlohmann::json::parse(test::launched(Tool::deepspeed, test::llama_405b()).text);
  EXPECT_FALSE(staged.contains("tensor_parallel"));
  const auto command = staged["_orrery"]["command"].get<std::string>();
  EXPECT_THAT(command, HasSubstr("--tensor-model-parallel-size 8 "));
  EXPECT_THAT(command, HasSubstr("--pipeline-model-parallel-size 16 "));
}

TEST(Launch, deepspeed_has_zero_bubbles_and_no_interleaving) {
  auto run = test::llama_405b();
  run.plan.schedule = parallel::ScheduleKind::zero_bubble;
  const auto bubbles = test::launched(Tool::deepspeed, run);
  EXPECT_THAT(bubbles.text, HasSubstr("--enable-zbh1-pipeline"));
  run.plan.schedule = parallel::ScheduleKind::interleaved;
  run.plan.vpp = 8;
  EXPECT_THAT(test::launched(Tool::deepspeed, run).notes, testing::Contains(HasSubstr("--vpp 8")));
}

// replicate x shard x tp x cp x pp = devices; weights are shared by shard x cp ranks.
TEST(Launch, torchtitans_degrees_multiply_to_the_devices) {
  for (const auto& run : test::published_runs()) {
    const auto job = toml(test::launched(Tool::torchtitan, run).text);
    std::int64_t product = 1;
    for (const char* key : {"data_parallel_replicate_degree", "data_parallel_shard_degree", "tensor_parallel_degree",
                            "context_parallel_degree", "pipeline_parallel_degree"}) {
      product *= std::stoll(job.at(std::string("parallelism.") + key));
    }
    EXPECT_EQ(product, run.plan.devices()) << run.model.name;
  }
}

TEST(Launch, hybrid_sharding_is_replicas_of_shards) {
  const auto launch = test::launched(Tool::torchtitan, test::hybrid_shards());
  const auto job = toml(launch.text);
  EXPECT_THAT(launch.notes, ElementsAre(HasSubstr("differs in max_seq 131072 (launched: 8192)")));
  EXPECT_EQ(job.at("parallelism.data_parallel_replicate_degree"), "8");
  EXPECT_EQ(job.at("parallelism.data_parallel_shard_degree"), "8");
  EXPECT_EQ(job.at("parallelism.fsdp_reshard_after_forward"), "\"always\"");
  EXPECT_EQ(job.at("activation_checkpoint.mode"), "\"full\"");
  EXPECT_EQ(job.at("model.flavor"), "\"8B\"");
  const auto megatron = test::launched(Tool::megatron, test::hybrid_shards()).text;
  EXPECT_THAT(megatron, HasSubstr("  --use-megatron-fsdp\n"));
  EXPECT_THAT(megatron, HasSubstr("  --data-parallel-sharding-strategy optim_grads_params\n"));
  EXPECT_THAT(megatron, HasSubstr("  --num-distributed-optimizer-instances 8\n"));
  EXPECT_THAT(megatron, HasSubstr("unset CUDA_DEVICE_MAX_CONNECTIONS"));
}

TEST(Launch, notes_stand_in_the_text) {
  for (const Tool tool : kAllTools) {
    for (const auto& run : test::published_runs()) {
      const auto launch = test::launched(tool, run);
      for (const auto& note : launch.notes) {
        const std::string flag = note.substr(0, note.find(": "));
        EXPECT_THAT(launch.text, HasSubstr(flag)) << name_of(tool);
      }
    }
  }
}

TEST(Launch, no_tool_pads_heads) {
  auto run = test::llama_405b();
  run.job.pads_heads = true;
  EXPECT_TRUE(emit(Tool::megatron, run));  // tp 8 divides them
  run.model.heads = run.model.kv_heads = 124;
  for (const Tool tool : kAllTools) {
    const auto refused = emit(tool, run);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().diagnostics.front().place.path, "--tp");
    EXPECT_THAT(refused.error().text(), HasSubstr("does not divide the 124 attention heads"));
    EXPECT_THAT(refused.error().text(), HasSubstr("does not pad heads"));
  }
}

TEST(Launch, inference_and_encoders_are_refused_by_name) {
  auto serving = test::llama_405b();
  serving.job.task = parallel::Task::inference;
  auto encoder = test::llama_405b();
  encoder.model.encoder_layers = 12;
  for (const Tool tool : kAllTools) {
    const auto refused = emit(tool, serving);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().diagnostics.front().place.path, "--task");
    EXPECT_THAT(refused.error().text(), HasSubstr("runs training"));
    const auto other = emit(tool, encoder);
    ASSERT_FALSE(other.has_value());
    EXPECT_EQ(other.error().diagnostics.front().place.path, "--model");
  }
}

TEST(Launch, tools_are_named_and_the_nearest_is_offered) {
  for (const Tool tool : kAllTools) { EXPECT_EQ(tool_named(name_of(tool)).value(), tool); }
  EXPECT_THAT(tool_named("megatrn").error().text(), HasSubstr("did you mean \"megatron\"?"));
  EXPECT_THAT(tool_named("x").error().text(), HasSubstr("valid: megatron, deepspeed, nemo, torchtitan"));
}

TEST(LaunchLayout, layout_text_repeats_identical_stages) {
  EXPECT_EQ(layout_text({LayerSplit::listed, {3, 4, 4, 4, 3}}, 0), "Ettt|(tttt|)*3tttL");
  EXPECT_EQ(layout_text({LayerSplit::listed, {1, 2, 1, 0}}, 2), "Et|tt|t|mmL");
  EXPECT_EQ(layout_text({LayerSplit::listed, {2, 2}}, 0), "Ett|ttL");
}

// A text that is read back has the plan's stages with the plan's layers.
TEST(LaunchLayout, layout_text_has_every_layer_of_any_plan) {
  parallel::test::SeededRandom random(11);
  for (int i = 0; i < 300; ++i) {
    const auto c = parallel::test::any_case(random);
    const Layout layout = layout_of(c.model, c.plan);
    std::string text = layout_text(layout, 0);
    for (auto open = text.find('('); open != std::string::npos; open = text.find('(')) {
      const auto close = text.find(")*", open);
      std::size_t digits = 0;
      const int times = std::stoi(text.substr(close + 2), &digits);
      std::string repeated;
      for (int k = 0; k < times; ++k) { repeated += text.substr(open + 1, close - open - 1); }
      text.replace(open, close + 2 + digits - open, repeated);
    }
    std::vector<std::int64_t> layers(1, 0);
    for (const char letter : text) {
      if (letter == '|') { layers.push_back(0); }
      if (letter == 't') { ++layers.back(); }
    }
    EXPECT_EQ(layers, layout.layers) << layout_text(layout, 0);
  }
}

TEST(LaunchLayout, patterns_of_experts_are_short_python) {
  EXPECT_EQ(expert_pattern({false, false, false, true, true}), "([0]*3+[1]*2)");
  EXPECT_EQ(expert_pattern({false, true, false, true, false, true}), "([0]+[1])*3");
  EXPECT_EQ(expert_pattern({false, false, true, false, true}), "([0]+([0]+[1])*2)");
  EXPECT_EQ(expert_list({false, true, true}), "[0,1,1]");
}

TEST(LaunchSheet, words_are_quoted_where_a_shell_would_touch_them) {
  EXPECT_EQ(bash_word("--tp"), "--tp");
  EXPECT_EQ(bash_word("([0]*3+[1]*58)"), "'([0]*3+[1]*58)'");
  EXPECT_EQ(bash_word("a=${B:?}"), "\"a=${B:?}\"");
}

}  // namespace
}  // namespace orrery::launch::launch_test
