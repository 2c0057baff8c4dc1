// What a search costs: one plan lowered and priced, its lower bound, and a whole search, on one thread.
#include <benchmark/benchmark.h>

#include "orrery/api/orrery.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery {
namespace {

// GPT-3 175B on 512 A100s: tp 8, pp 8, dp 8, 192 micro-batches, 1f1b.
struct Gpt3 {
  workload::Model model = *workload::load_model(ORRERY_DATA_DIR, "gpt3-175b");
  hardware::Catalogue catalogue{ORRERY_DATA_DIR};
  hardware::Cluster cluster = *catalogue.cluster("dgx-a100", 512);
  hardware::Stack stack = *catalogue.stack("megatron-core");
  estimate::Estimator estimator{model, cluster, stack, {1536, 2048, hardware::Precision::bf16}};
  parallel::Plan plan = {.tp = 8, .pp = 8, .dp = 8, .sequence_parallel = true, .zero = 1};
};

// Read once, before any benchmark is counted.
Gpt3& gpt3 = *new Gpt3;

void step_time_of_one_plan(benchmark::State& state) {
  for (auto _ : state) { benchmark::DoNotOptimize(gpt3.estimator.step_time(gpt3.plan)); }
}
BENCHMARK(step_time_of_one_plan);

void bound_of_one_plan(benchmark::State& state) {
  for (auto _ : state) { benchmark::DoNotOptimize(gpt3.estimator.step_time_bound(gpt3.plan)); }
}
BENCHMARK(bound_of_one_plan);

void search_llama_405b_on_16384(benchmark::State& state) {
  const api::Orrery orrery(ORRERY_DATA_DIR);
  api::PlanRequest request;
  request.job.model = "llama-3.1-405b";
  request.job.cluster = "dgx-h100";
  request.job.devices = 16384;
  request.job.global_batch = 2048;
  request.job.seq = 8192;
  request.threads = 1;
  request.exhaustive = state.range(0) != 0;
  std::int64_t points = 0;
  for (auto _ : state) { points += orrery.plan(request)->space.points; }
  state.counters["points/s"] = benchmark::Counter(static_cast<double>(points), benchmark::Counter::kIsRate);
}
BENCHMARK(search_llama_405b_on_16384)->ArgName("exhaustive")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
