// All strategies of one model on one system, for each task. Target: less than 10 ms for the three tasks.
#include <benchmark/benchmark.h>

#include "orrery/madmax/answer.hpp"

namespace orrery::madmax {
namespace {

void search_every_task(benchmark::State& state, const char* model_name, const char* system_name, std::int64_t batch) {
  const auto model = workload::load_model(ORRERY_DATA_DIR, model_name);
  const SampleWork work = work_of(*model, hardware::Precision::bf16, 0).value();
  const System system = load_system(ORRERY_DATA_DIR, system_name, 0).value();
  std::int64_t points = 0;
  for (auto _ : state) {
    for (const Task task : {Task::pretrain, Task::finetune, Task::inference}) {
      Evaluator evaluator(work, system, {task, {}, batch, true});
      points += search(evaluator, {}).points;
    }
  }
  state.counters["points"] = benchmark::Counter(static_cast<double>(points), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(search_every_task, recommender, "madmax/dlrm_i_transformer", "madmax/zionex_128", 65536)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search_every_task, language_model, "madmax/gpt4_1.8t", "madmax/dc_A_2048", 2048)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::madmax
