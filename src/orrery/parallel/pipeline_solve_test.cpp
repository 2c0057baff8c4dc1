// PipelineSolver against a slow, obvious solution of the same system.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_test_cases.hpp"

namespace orrery::parallel::pipeline_solve_test {
namespace {

using Kind = PipelineTask::Kind;

struct Run {
  PipelineSolution solution;
  bool finished = false;
};

// The output of a forward or backward: activations or gradients of a micro-batch after a virtual stage. `pipe`
// distinguishes the two directions of DualPipe.
struct Output {
  bool forward;
  std::int64_t pipe, virtual_stage, micro_batch;
};

// Dependencies of tasks as data: what a task of a stage requires and produces.
class Dependencies {
 public:
  explicit Dependencies(const PipelineShape& shape) : shape_(shape), dual_(shape.schedule == ScheduleKind::dualpipe) {}

  [[nodiscard]] std::vector<Output> made(const PipelineTask& task, std::int64_t stage) const {
    switch (task.kind) {
      case Kind::forward: return {output(true, stage, task.chunk, task.micro_batch)};
      case Kind::backward: return {output(false, stage, task.chunk, task.micro_batch)};
      case Kind::weight: return {};
      case Kind::pair:
        return {output(true, stage, task.chunk, task.micro_batch),
                output(false, stage, task.paired_chunk, task.paired_micro_batch)};
    }
    return {};
  }

  [[nodiscard]] std::vector<Output> needed(const PipelineTask& task, std::int64_t stage) const {
    if (task.kind == Kind::weight) { return {output(false, stage, task.chunk, task.micro_batch)}; }
    std::vector<Output> needs;
    for (Output output : made(task, stage)) {
      if (output.forward) {
        if (--output.virtual_stage < 0) { continue; }
      } else if (output.virtual_stage == virtual_stages() - 1) {
        output.forward = true;
      } else {
        ++output.virtual_stage;
      }
      needs.push_back(output);
    }
    return needs;
  }

  // The stage that receives an output, and the link that carries it; nothing if it stays on its stage.
  [[nodiscard]] std::optional<std::pair<std::int64_t, std::int64_t>> route(const Output& output) const {
    const std::int64_t to = output.virtual_stage + (output.forward ? 1 : -1);
    if (to < 0 || to == virtual_stages()) { return std::nullopt; }
    if (dual_) {
      return std::pair{stage_of(output.pipe, to),
                       std::min(stage_of(output.pipe, to), stage_of(output.pipe, output.virtual_stage))};
    }
    return std::pair{to % shape_.stages, std::min(to, output.virtual_stage) % shape_.stages};
  }

 private:
  [[nodiscard]] std::int64_t virtual_stages() const { return dual_ ? shape_.stages : shape_.stages * shape_.chunks; }
  [[nodiscard]] std::int64_t stage_of(std::int64_t pipe, std::int64_t virtual_stage) const {
    return pipe == 0 ? virtual_stage : shape_.stages - 1 - virtual_stage;
  }
  [[nodiscard]] Output output(bool forward, std::int64_t stage, std::int64_t chunk, std::int64_t micro_batch) const {
    if (dual_) { return {forward, chunk, chunk == 0 ? stage : shape_.stages - 1 - stage, micro_batch}; }
    return {forward, 0, chunk * shape_.stages + stage, micro_batch};
  }

  PipelineShape shape_;
  bool dual_;
};

// An event simulation of tasks, dependencies and transfers that does not use steps, skews or periods.
class Simulation {
 public:
  Simulation(const PipelineShape& shape, const PipelineTestTimes& times)
      : shape_(shape), times_(times), dependencies_(shape) {
    for (std::int64_t i = 0; i < shape.stages; ++i) { orders_.push_back(stage_order(shape, i)); }
    position_.assign(orders_.size(), 0);
    busy_.assign(orders_.size(), false);
    made_.assign(4 * times.forward.size() * at(shape.micro_batches), kNotYet);  // one entry per output, with spare ones
    arrival_ = made_;
    run_.solution.stage_end.assign(orders_.size(), 0);
    run_.solution.last_backward_start.assign(times.forward.size(), 0);
    ends_.resize(orders_.size());
  }

  Run run() {
    for (std::int64_t i = 0; i < shape_.stages; ++i) { try_start(i, 0); }
    while (!events_.empty()) {
      const auto [time, stage, ends_task] = events_.top();
      events_.pop();
      if (ends_task) { busy_[at(stage)] = false; }
      try_start(stage, time);
    }
    run_.finished = true;
    for (std::size_t i = 0; i < orders_.size(); ++i) {
      run_.finished = run_.finished && position_[i] == orders_[i].size();
      run_.solution.makespan = std::max(run_.solution.makespan, run_.solution.stage_end[i]);
    }
    if (run_.finished && shape_.schedule == ScheduleKind::interleaved && shape_.chunks > 1) { find_aligned_starts(); }
    return run_;
  }

 private:
  struct Event {
    Ticks time;
    std::int64_t stage;
    bool ends_task;
    bool operator>(const Event& other) const { return time > other.time; }
  };

  static constexpr Ticks kNotYet = std::numeric_limits<Ticks>::max();

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] std::size_t at(const Output& output) const {
    const std::int64_t virtual_stages = shape_.stages * shape_.chunks;
    const std::int64_t cell = (output.pipe * virtual_stages + output.virtual_stage) * 2 + (output.forward ? 1 : 0);
    return at(cell * shape_.micro_batches + output.micro_batch);
  }

  [[nodiscard]] bool ready(const PipelineTask& task, std::int64_t stage, Ticks time) const {
    const auto needs = dependencies_.needed(task, stage);
    return std::ranges::all_of(needs, [&](const Output& output) {
      const auto& there = task.kind == Kind::weight ? made_ : arrival_;
      return there[at(output)] <= time;
    });
  }

  [[nodiscard]] Ticks duration(const PipelineTask& task, std::size_t cell) const {
    switch (task.kind) {
      case Kind::forward: return times_.forward[cell];
      case Kind::weight: return times_.weight[cell];
      case Kind::pair: return times_.pair[cell * at(shape_.chunks) + at(task.paired_chunk)];
      case Kind::backward: break;
    }
    const bool whole = splits_backward(shape_.schedule) && !task.splits;
    return times_.backward[cell] + (whole ? times_.weight[cell] : 0);
  }

  void try_start(std::int64_t stage, Ticks time) {
    const auto i = at(stage);
    if (busy_[i] || position_[i] == orders_[i].size()) { return; }
    const PipelineTask task = orders_[i][position_[i]];
    if (!ready(task, stage, time)) { return; }
    const auto cell = at(stage * shape_.chunks + task.chunk);
    Ticks end = time + duration(task, cell);
    const bool forward = task.kind == Kind::forward || task.kind == Kind::pair;
    if (forward && task.micro_batch == 0 && !times_.first_forward_end.empty()) {
      end = std::max(end, times_.first_forward_end[cell]);
    }
    busy_[i] = true;
    ++position_[i];
    ends_[i].push_back(end);
    run_.solution.stage_end[i] = std::max(run_.solution.stage_end[i], end);
    note_gradients(task, stage, time, end);
    events_.push({end, stage, true});
    for (const Output& output : dependencies_.made(task, stage)) { send(output, end); }
  }

  // The end of the backward that stage i runs i backwards after the last one of the chunk, or of its last task.
  void find_aligned_starts() {
    for (std::size_t i = 0; i < orders_.size(); ++i) {
      for (std::int64_t c = 0; c < shape_.chunks; ++c) {
        std::size_t t = orders_[i].size() - 1;
        while (orders_[i][t].kind != Kind::backward || orders_[i][t].chunk != c) { --t; }
        for (std::size_t more = i; more > 0 && t + 1 < orders_[i].size();) {
          more -= orders_[i][++t].kind == Kind::backward ? 1 : 0;
        }
        run_.solution.aligned_reduce_start.push_back(ends_[i][t]);
      }
    }
  }

  // The start of the latest task that completes the chunk's gradients; for a task that does more, the start of its last
  // part.
  void note_gradients(const PipelineTask& task, std::int64_t stage, Ticks start, Ticks end) {
    if (task.kind == Kind::forward || task.splits) { return; }
    const std::int64_t chunk = task.kind == Kind::pair ? task.paired_chunk : task.chunk;
    const auto cell = at(stage * shape_.chunks + chunk);
    const bool more = splits_backward(shape_.schedule) && task.kind != Kind::weight;
    run_.solution.last_backward_start[cell] = more ? end - times_.weight[cell] : start;
  }

  // Marks an output as available on its own stage and, after the transfer, on the receiving stage, which is then
  // checked.
  void send(const Output& output, Ticks end) {
    made_[at(output)] = end;
    arrival_[at(output)] = end;
    if (const auto way = dependencies_.route(output)) {
      arrival_[at(output)] += times_.transfer[at(way->second)];
      events_.push({arrival_[at(output)], way->first, false});
    }
  }

  PipelineShape shape_;
  PipelineTestTimes times_;
  Dependencies dependencies_;
  std::vector<std::vector<PipelineTask>> orders_;
  std::vector<std::vector<Ticks>> ends_;  // [stage], as far as its tasks have started
  std::vector<std::size_t> position_;
  std::vector<bool> busy_;
  std::vector<Ticks> made_, arrival_;  // [at(output)]
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Run run_;
};

Run simulate(const PipelineShape& shape, const PipelineTestTimes& times) { return Simulation(shape, times).run(); }

// How random durations are distributed; each kind gives a different steady state.
enum class Mood : std::uint8_t { any, equal, no_transfer, huge_transfer, one_slow_stage, nearly_equal };
constexpr int kMoods = 6;

struct Case {
  PipelineShape shape;
  Mood mood = Mood::any;
  std::uint64_t seed = 0;
};

void show(const Case& c, std::ostream& out) {
  out << "schedule " << static_cast<int>(c.shape.schedule) << " p " << c.shape.stages << " v " << c.shape.chunks
      << " m " << c.shape.micro_batches << " mood " << static_cast<int>(c.mood) << " seed " << c.seed << " pairs "
      << c.shape.pairs;
}

PipelineTestTimes times_of(const Case& c) {
  std::mt19937_64 random(c.seed);
  const auto below = [&random](Ticks limit) {
    return static_cast<Ticks>(random() % static_cast<std::uint64_t>(limit));
  };
  const Ticks span = below(2) == 0 ? 12 : 1'000'000;  // small numbers give ties, large ones long transients
  const Ticks forward = below(span);
  const Ticks backward = below(span);
  const Ticks transfer = below(span);
  const auto duration = [&](Ticks usual) {
    if (c.mood == Mood::equal) { return usual; }
    return c.mood == Mood::nearly_equal ? span + below(2) : below(span);
  };
  PipelineTestTimes times;
  for (std::int64_t i = 0; i < c.shape.stages * c.shape.chunks; ++i) {
    times.forward.push_back(duration(forward));
    times.backward.push_back(duration(backward));
    if (splits_backward(c.shape.schedule)) { times.weight.push_back(duration(forward)); }
    for (std::int64_t other = 0; has_pairs(c.shape) && other < c.shape.chunks; ++other) {
      times.pair.push_back(duration(2 * forward + backward));
    }
  }
  if (below(3) == 0) {
    for (std::size_t i = 0; i < times.forward.size(); ++i) { times.first_forward_end.push_back(below(8 * span)); }
  }
  for (std::int64_t i = 0; i < c.shape.stages; ++i) {
    times.transfer.push_back(c.mood == Mood::no_transfer ? 0 : duration(transfer));
    if (c.mood == Mood::huge_transfer) { times.transfer.back() *= 100; }
  }
  if (c.mood == Mood::one_slow_stage) {
    const std::int64_t slow = below(c.shape.stages) * c.shape.chunks;
    for (std::int64_t k = 0; k < c.shape.chunks; ++k) {
      times.forward[static_cast<std::size_t>(slow + k)] += 3 * span;
      times.backward[static_cast<std::size_t>(slow + k)] += 5 * span;
    }
    for (std::int64_t k = 0; has_pairs(c.shape) && k < c.shape.chunks * c.shape.chunks; ++k) {
      times.pair[static_cast<std::size_t>(slow * c.shape.chunks + k)] += 7 * span;
    }
  }
  return times;
}

rc::Gen<Case> any_case(std::int64_t micro_batches) {
  return rc::gen::exec([micro_batches] {
    const auto schedule = *rc::gen::elementOf(kEverySchedule);
    const auto p = *rc::gen::inRange<std::int64_t>(1, 9);
    const auto v = *rc::gen::inRange<std::int64_t>(1, 5);
    const auto m = *rc::gen::inRange<std::int64_t>(1, micro_batches + 1);
    const auto mood = static_cast<Mood>(*rc::gen::inRange(0, kMoods));
    const auto shape = shape_near(schedule, p, v, m);
    const bool pairs = *rc::gen::arbitrary<bool>();
    return Case{pairs ? with_pairs(shape) : shape, mood, *rc::gen::arbitrary<std::uint64_t>()};
  });
}

bool equal(const PipelineSolution& a, const PipelineSolution& b) {
  return a.makespan == b.makespan && a.stage_end == b.stage_end && a.last_backward_start == b.last_backward_start &&
         a.aligned_reduce_start == b.aligned_reduce_start;
}

void expect_exact(PipelineSolver& solver, const Case& c) {
  const PipelineTestTimes times = times_of(c);
  const Run run = simulate(c.shape, times);
  ASSERT_TRUE(run.finished);
  const PipelineSolution& solved = solver.solve(c.shape, times.view());
  EXPECT_EQ(solved.makespan, run.solution.makespan);
  EXPECT_EQ(solved.stage_end, run.solution.stage_end);
  EXPECT_EQ(solved.last_backward_start, run.solution.last_backward_start);
  EXPECT_EQ(solved.aligned_reduce_start, run.solution.aligned_reduce_start);
}

RC_GTEST_PROP(PipelineSolve, equals_the_event_simulation, ()) {
  const auto c = *any_case(40);
  const PipelineTestTimes times = times_of(c);
  const Run run = simulate(c.shape, times);
  RC_ASSERT(run.finished);
  RC_ASSERT(equal(PipelineSolver().solve(c.shape, times.view()), run.solution));
}

RC_GTEST_PROP(PipelineSolve, equals_the_event_simulation_on_long_schedules, ()) {
  const auto c = *any_case(600);
  const PipelineTestTimes times = times_of(c);
  const Run run = simulate(c.shape, times);
  RC_ASSERT(run.finished);
  RC_ASSERT(equal(PipelineSolver().solve(c.shape, times.view()), run.solution));
}

// One solver for all shapes: state of an earlier problem must not affect a later one.
TEST(PipelineSolve, equals_the_event_simulation_on_every_small_shape) {
  PipelineSolver solver;
  std::uint64_t seed = 0;
  for (const auto schedule : kEverySchedule) {
    for (std::int64_t p = 1; p <= 6; ++p) {
      for (std::int64_t v = 1; v <= (schedule == ScheduleKind::interleaved ? 4 : 1); ++v) {
        for (std::int64_t m = 1; m <= 14; ++m) {
          if (schedule == ScheduleKind::dualpipe && (p % 2 != 0 || m % 2 != 0 || m < 2 * p)) { continue; }
          for (int mood = 0; mood < kMoods; ++mood) {
            const PipelineShape shape = shape_near(schedule, p, v, m);
            const Case c{seed % 2 == 0 ? shape : with_pairs(shape), static_cast<Mood>(mood), ++seed};
            expect_exact(solver, c);
            ASSERT_FALSE(::testing::Test::HasFailure()) << ::rc::toString(c.seed) << " " << p << " " << v << " " << m;
          }
        }
      }
    }
  }
}

// Larger than usual in a search: long transients, periods of p rounds.
TEST(PipelineSolve, equals_the_event_simulation_on_deep_pipelines) {
  PipelineSolver solver;
  for (int mood = 0; mood < kMoods; ++mood) {
    expect_exact(solver, {shape_near(ScheduleKind::one_f_one_b, 16, 1, 256), static_cast<Mood>(mood), 7});
    expect_exact(solver, {shape_near(ScheduleKind::one_f_one_b, 33, 1, 200), static_cast<Mood>(mood), 8});
    expect_exact(solver, {shape_near(ScheduleKind::interleaved, 16, 4, 160), static_cast<Mood>(mood), 9});
    expect_exact(solver, {shape_near(ScheduleKind::interleaved, 5, 7, 100), static_cast<Mood>(mood), 10});
    expect_exact(solver, {with_pairs(shape_near(ScheduleKind::interleaved, 16, 4, 160)), static_cast<Mood>(mood), 9});
    expect_exact(solver, {shape_near(ScheduleKind::zero_bubble, 16, 1, 100), static_cast<Mood>(mood), 11});
    expect_exact(solver, {shape_near(ScheduleKind::zero_bubble, 33, 1, 50), static_cast<Mood>(mood), 12});
    expect_exact(solver, {shape_near(ScheduleKind::dualpipe, 16, 2, 146), static_cast<Mood>(mood), 13});
    expect_exact(solver, {shape_near(ScheduleKind::dualpipe, 6, 2, 240), static_cast<Mood>(mood), 14});
  }
}

// The list of all tasks is consistent: each stage's order, one task after another, up to the stage's end.
RC_GTEST_PROP(PipelineSolve, the_timeline_has_every_task_in_order_and_ends_as_solved, ()) {
  const auto c = *any_case(40);
  const PipelineTestTimes times = times_of(c);
  const auto stages = timeline(c.shape, times.view());
  PipelineSolver solver;
  const PipelineSolution& solved = solver.solve(c.shape, times.view());
  for (std::int64_t i = 0; i < c.shape.stages; ++i) {
    const auto& tasks = stages[static_cast<std::size_t>(i)];
    const auto order = stage_order(c.shape, i);
    RC_ASSERT(tasks.size() == order.size());
    Ticks free = 0;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      RC_ASSERT(tasks[t].task == order[t]);
      RC_ASSERT(free <= tasks[t].start);
      RC_ASSERT(tasks[t].start <= tasks[t].end);
      free = tasks[t].end;
    }
    RC_ASSERT(free == solved.stage_end[static_cast<std::size_t>(i)]);
  }
}

}  // namespace
}  // namespace orrery::parallel::pipeline_solve_test
