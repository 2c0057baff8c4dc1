// Runs to launch, for tests.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "orrery/launch/launch.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::launch::test {

// A model of the catalogue; launch_test.cpp defines the data directory.
[[nodiscard]] workload::Model catalogue_model(const std::string& name);

inline hardware::Stack megatron_core() {
  hardware::Stack stack;
  stack.name = "megatron-core";
  stack.gradients.bucket_parameters = 40'000'000;
  return stack;
}

// The published plan of Llama 3.1 405B (arXiv:2407.21783, table 4: 16,384 GPUs, 8,192 tokens): tp 8, cp 1, pp 16, dp
// 128, a batch of 2048; a layer fewer on the first and the last stage.
inline TrainingRun llama_405b() {
  TrainingRun run;
  run.model = catalogue_model("llama-3.1-405b");
  run.job.global_batch = 2048;
  run.job.seq = 8192;
  run.plan.tp = 8;
  run.plan.pp = 16;
  run.plan.dp = 128;
  run.plan.sequence_parallel = true;
  run.plan.zero = 1;
  run.plan.embedding_as_layer = run.plan.head_as_layer = true;
  run.stack = megatron_core();
  run.devices_per_node = 8;
  return run;
}

// DeepSeek-V3 (arXiv:2412.19437): 16 stages, 64-way expert parallelism, DualPipe, fp8, dispatch once per node.
inline TrainingRun deepseek_v3() {
  TrainingRun run;
  run.model = catalogue_model("deepseek-v3-mtp");
  run.job.global_batch = 15360;
  run.job.seq = 4096;
  run.job.precision = hardware::Precision::fp8;
  run.plan.pp = 16;
  run.plan.dp = 128;
  run.plan.ep = 64;
  run.plan.zero = 1;
  run.plan.schedule = parallel::ScheduleKind::dualpipe;
  run.stack = megatron_core();
  run.stack.dispatch.copies = hardware::TokenCopies::per_node;
  run.devices_per_node = 8;
  return run;
}

inline TrainingRun mixtral() {
  TrainingRun run;
  run.model = catalogue_model("mixtral-8x22b");
  run.job.global_batch = 256;
  run.job.seq = 4096;
  run.plan.tp = 2;
  run.plan.pp = 4;
  run.plan.dp = 16;
  run.plan.ep = 8;
  run.plan.vpp = 2;
  run.plan.schedule = parallel::ScheduleKind::interleaved;
  run.plan.sequence_parallel = true;
  run.plan.zero = 1;
  run.stack = megatron_core();
  run.devices_per_node = 8;
  return run;
}

inline TrainingRun lora() {
  TrainingRun run;
  run.model = catalogue_model("llama-2-70b");
  run.job = {.global_batch = 8, .seq = 8192, .task = parallel::Task::finetune, .adapter = {.rank = 16}};
  run.plan.tp = 4;
  run.plan.cp = 2;
  run.plan.zero = 1;
  run.stack = megatron_core();
  run.devices_per_node = 8;
  return run;
}

// HSDP: weights sharded within a node of 8, eight copies.
inline TrainingRun hybrid_shards() {
  TrainingRun run;
  run.model = catalogue_model("llama-3.1-8b");
  run.job.global_batch = 128;
  run.job.seq = 8192;
  run.plan.dp = 64;
  run.plan.zero = 3;
  run.plan.shard = 8;
  run.plan.recompute = parallel::Recompute::full;
  run.stack = megatron_core();
  run.stack.gradients.bucket_parameters = 0;
  run.devices_per_node = 8;
  return run;
}

inline Launch launched(Tool tool, const TrainingRun& run) {
  const auto launch = emit(tool, run);
  EXPECT_TRUE(launch.has_value());
  return launch ? *launch : Launch{};
}

inline std::vector<TrainingRun> published_runs() {
  return {llama_405b(), deepseek_v3(), mixtral(), lora(), hybrid_shards()};
}

}  // namespace orrery::launch::test
