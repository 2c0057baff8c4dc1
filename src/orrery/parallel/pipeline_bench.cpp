// One solve as in a plan search: the solver's buffers are allocated, shape and durations are ordinary.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "orrery/parallel/pipeline.hpp"

namespace orrery::parallel {
namespace {

// A transformer in equal chunks, the last one longer by the vocabulary projection; a transfer takes 1 % of a chunk, and
// four times that between every fourth stage and the next, where it leaves the node.
void solve(benchmark::State& state, const PipelineShape& shape) {
  const auto cells = static_cast<std::size_t>(shape.stages * shape.chunks);
  std::vector<Ticks> forward(cells, 10'000'000'000);
  std::vector<Ticks> backward(cells, 20'000'000'000);
  std::vector<Ticks> weight, pair;
  if (splits_backward(shape.schedule)) {
    backward.assign(cells, 10'000'000'000);
    weight.assign(cells, 9'000'000'000);
  }
  if (shape.schedule == ScheduleKind::dualpipe) { pair.assign(2 * cells, 26'000'000'000); }
  std::vector<Ticks> transfer(static_cast<std::size_t>(shape.stages), 100'000'000);
  forward.back() += static_cast<Ticks>(state.range(0)) * 100'000'000;
  backward.back() += static_cast<Ticks>(state.range(0)) * 200'000'000;
  for (std::size_t i = 3; i < transfer.size(); i += 4) { transfer[i] *= 4; }
  PipelineSolver solver;
  for (auto unused : state) {
    benchmark::DoNotOptimize(solver.solve(shape, {forward, backward, transfer, {}, weight, pair}).makespan);
  }
}

void one_f_one_b_p16_m256(benchmark::State& state) { solve(state, {ScheduleKind::one_f_one_b, 16, 1, 256}); }
void interleaved_p16_v4_m64(benchmark::State& state) { solve(state, {ScheduleKind::interleaved, 16, 4, 64}); }
void zero_bubble_p16_m64(benchmark::State& state) { solve(state, {ScheduleKind::zero_bubble, 16, 1, 64}); }
void dualpipe_p16_m64(benchmark::State& state) { solve(state, {ScheduleKind::dualpipe, 16, 2, 64}); }

// Argument: how much longer the last chunk is, in percent.
BENCHMARK(one_f_one_b_p16_m256)->Arg(0)->Arg(1)->Arg(20);
BENCHMARK(interleaved_p16_v4_m64)->Arg(0)->Arg(1)->Arg(20);
BENCHMARK(zero_bubble_p16_m64)->Arg(0)->Arg(1)->Arg(20);
BENCHMARK(dualpipe_p16_m64)->Arg(0)->Arg(20);

}  // namespace
}  // namespace orrery::parallel
