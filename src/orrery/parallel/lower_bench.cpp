// The cost of lowering: a search lowers every plan that it prices.
#include <benchmark/benchmark.h>

#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel {
namespace {

// GPT-3 175B on 512 devices: tp 8, pp 8, dp 8.
void lower_a_dense_plan(benchmark::State& state) {
  test::Case c;
  c.model = test::gpt(96, 12288, 96, 51200);
  c.job.global_batch = 1536;
  c.job.seq = 2048;
  c.plan = {.tp = 8, .pp = 8, .dp = 8, .sequence_parallel = true, .zero = 1};
  c.cluster = test::cluster_of({8, 64});
  for (auto _ : state) { benchmark::DoNotOptimize(lower(c.model, c.job, c.plan, c.cluster, c.stack)); }
}
BENCHMARK(lower_a_dense_plan);

// 61 layers, the first three dense, 256 experts over 64 ranks, 16 stages, DualPipe.
void lower_a_mixture_of_experts(benchmark::State& state) {
  test::Case c;
  c.model = test::llama(61, 7168, 128, 128, 18432, 129280);
  c.model.experts = {.count = 256, .active = 8, .ffn = 2048, .shared_ffn = 2048, .first_dense = 3};
  c.model.latent = {1536, 512, 128, 64, 128};
  c.model.mtp_layers = 1;
  c.job.global_batch = 15360;
  c.job.seq = 4096;
  c.plan = {.pp = 16, .dp = 128, .ep = 64, .zero = 1, .schedule = ScheduleKind::dualpipe};
  c.cluster = test::cluster_of({8, 256});
  for (auto _ : state) { benchmark::DoNotOptimize(lower(c.model, c.job, c.plan, c.cluster, c.stack)); }
}
BENCHMARK(lower_a_mixture_of_experts);

}  // namespace
}  // namespace orrery::parallel
