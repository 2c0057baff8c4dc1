// The cost of a search: one plan lowered and priced, its lower bound, and a whole search, on one thread.
#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include "orrery/api/orrery.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/explore/space_file.hpp"
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
  estimate::Estimator estimator{model, cluster, stack, {.global_batch = 1536, .seq = 2048}};
  parallel::Plan plan = {.tp = 8, .pp = 8, .dp = 8, .sequence_parallel = true, .zero = 1};
};

// Mixtral 8x22B on 512 H100s, sequence cut in two, interleaved: tp 2, cp 2, pp 4, ep 8, vpp 8.
struct Mixtral {
  workload::Model model = *workload::load_model(ORRERY_DATA_DIR, "mixtral-8x22b");
  hardware::Catalogue catalogue{ORRERY_DATA_DIR};
  hardware::Cluster cluster = *catalogue.cluster("dgx-h100", 512);
  hardware::Stack stack = *catalogue.stack("megatron-core");
  estimate::Estimator estimator{model, cluster, stack, {.global_batch = 1024, .seq = 8192}};
  parallel::Plan plan = {.tp = 2,
                         .cp = 2,
                         .pp = 4,
                         .dp = 32,
                         .ep = 8,
                         .vpp = 7,
                         .sequence_parallel = true,
                         .zero = 1,
                         .schedule = parallel::ScheduleKind::interleaved};
};

// Read once, before any benchmark is measured.
Gpt3& gpt3 = *new Gpt3;
Mixtral& mixtral = *new Mixtral;

void step_time_of_one_plan(benchmark::State& state) {
  for (auto _ : state) { benchmark::DoNotOptimize(gpt3.estimator.step_time(gpt3.plan)); }
}
BENCHMARK(step_time_of_one_plan);

void step_time_of_a_mixture(benchmark::State& state) {
  for (auto _ : state) { benchmark::DoNotOptimize(mixtral.estimator.step_time(mixtral.plan)); }
}
BENCHMARK(step_time_of_a_mixture);

// Without cached slices: the cost of the first plan of a slice.
template <class Job>
void fresh_step_time(benchmark::State& state, const Job& job, const parallel::Job& work) {
  for (auto _ : state) {
    estimate::Estimator estimator(job.model, job.cluster, job.stack, work);
    benchmark::DoNotOptimize(estimator.step_time(job.plan));
  }
}
void first_step_time_of_one_plan(benchmark::State& state) {
  fresh_step_time(state, gpt3, {.global_batch = 1536, .seq = 2048});
}
BENCHMARK(first_step_time_of_one_plan);

void first_step_time_of_a_mixture(benchmark::State& state) {
  fresh_step_time(state, mixtral, {.global_batch = 1024, .seq = 8192});
}
BENCHMARK(first_step_time_of_a_mixture);

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

// The published problems (examples/spaces), searched as by the command. Benchmarks in real time are too long to count
// instructions, or use several threads.
api::PlanRequest published(const std::string& name) {
  api::PlanRequest request;
  request.space = *explore::read_space_file(std::string(ORRERY_DATA_DIR) + "/../examples/spaces/" + name + ".yaml");
  request.job = *estimate::request_record().read_over(estimate::Request{}, request.space->scenario);
  request.top = 10;
  request.threads = 1;
  return request;
}

void run_search(benchmark::State& state, const api::PlanRequest& request) {
  const api::Orrery orrery(ORRERY_DATA_DIR);
  std::int64_t points = 0, priced = 0, plans = 0;
  for (auto _ : state) {
    const auto found = *orrery.plan(request);
    points += found.space.points;
    priced += found.space.priced;
    plans += found.space.plans;
  }
  const auto rate = [](std::int64_t count) {
    return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
  };
  state.counters["points/s"] = rate(points);
  state.counters["priced/s"] = rate(priced);  // points whose plan fits; points that mean the same plan are priced once
  state.counters["plans/s"] = rate(plans);    // different plans evaluated
}

void search_p_a(benchmark::State& state) {
  auto request = published("p-a");
  request.exhaustive = state.range(0) != 0;
  run_search(state, request);
}
BENCHMARK(search_p_a)->ArgName("exhaustive")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void search_p_b(benchmark::State& state) { run_search(state, published("p-b")); }
BENCHMARK(search_p_b)->Unit(benchmark::kMillisecond);

void search_p_c(benchmark::State& state) { run_search(state, published("p-c")); }
BENCHMARK(search_p_c)->Unit(benchmark::kMillisecond);

void exhaustive_search(benchmark::State& state, const char* name) {
  auto request = published(name);
  request.exhaustive = true;
  request.threads = static_cast<int>(state.range(0));
  run_search(state, request);
}
BENCHMARK_CAPTURE(exhaustive_search, p_b, "p-b")
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(exhaustive_search, p_c, "p-c")
    ->ArgName("threads")
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace orrery
