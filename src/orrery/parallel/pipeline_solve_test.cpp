// PipelineSolver against the same system solved the slow and obvious way.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pipeline.hpp"

namespace orrery::parallel {
namespace {

struct Times {
  std::vector<Ticks> forward;  // [stage * chunks + chunk]
  std::vector<Ticks> backward;
  std::vector<Ticks> transfer;  // [stage that sends forward], always p of them

  [[nodiscard]] PipelineTimes view() const { return {forward, backward, transfer}; }
};

struct Run {
  PipelineSolution solution;
  std::vector<std::vector<Ticks>> start;  // [stage][position in its order]
  bool finished = false;
};

// An event simulation that knows tasks, dependencies and transfers by name, and nothing of steps, skews or periods.
class Simulation {
 public:
  Simulation(const PipelineShape& shape, const Times& times) : shape_(shape), times_(times) {
    for (std::int64_t i = 0; i < shape.stages; ++i) { orders_.push_back(stage_order(shape, i)); }
    position_.assign(orders_.size(), 0);
    busy_.assign(orders_.size(), false);
    run_.start.resize(orders_.size());
    run_.solution.stage_end.assign(orders_.size(), 0);
    run_.solution.last_backward_start.assign(times.forward.size(), 0);
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
    return run_;
  }

 private:
  using Key = std::tuple<bool, std::int64_t, std::int64_t>;  // forward, virtual stage, micro-batch
  struct Event {
    Ticks time;
    std::int64_t stage;
    bool ends_task;
    bool operator>(const Event& other) const { return time > other.time; }
  };

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  // Whether the task's input is on the stage at `time`.
  bool ready(const PipelineTask& task, std::int64_t stage, Ticks time) const {
    const std::int64_t q = task.chunk * shape_.stages + stage;
    if (task.forward && q == 0) { return true; }
    const bool turn = !task.forward && q == shape_.stages * shape_.chunks - 1;
    const Key key =
        turn ? Key{true, q, task.micro_batch} : Key{task.forward, task.forward ? q - 1 : q + 1, task.micro_batch};
    const auto found = arrival_.find(key);
    return found != arrival_.end() && found->second <= time;
  }

  void try_start(std::int64_t stage, Ticks time) {
    const auto i = at(stage);
    if (busy_[i] || position_[i] == orders_[i].size()) { return; }
    const PipelineTask task = orders_[i][position_[i]];
    if (!ready(task, stage, time)) { return; }
    const auto cell = at(stage * shape_.chunks + task.chunk);
    const Ticks end = time + (task.forward ? times_.forward[cell] : times_.backward[cell]);
    run_.start[i].push_back(time);
    busy_[i] = true;
    ++position_[i];
    run_.solution.stage_end[i] = std::max(run_.solution.stage_end[i], end);
    auto& last = run_.solution.last_backward_start[cell];
    if (!task.forward) { last = std::max(last, time); }
    events_.push({end, stage, true});
    send(task, stage, end);
  }

  // Notes when the task's result reaches the stage that needs it, and wakes that stage then.
  void send(const PipelineTask& task, std::int64_t stage, Ticks end) {
    const std::int64_t p = shape_.stages;
    const std::int64_t q = task.chunk * p + stage;
    const Key key{task.forward, q, task.micro_batch};
    const bool last = task.forward ? q == p * shape_.chunks - 1 : q == 0;
    if (last) {
      arrival_[key] = end;
      return;
    }
    const std::int64_t receiver = task.forward ? (stage + 1) % p : (stage + p - 1) % p;
    arrival_[key] = end + times_.transfer[at(task.forward ? stage : receiver)];
    events_.push({arrival_[key], receiver, false});
  }

  PipelineShape shape_;
  Times times_;
  std::vector<std::vector<PipelineTask>> orders_;
  std::vector<std::size_t> position_;
  std::vector<bool> busy_;
  std::map<Key, Ticks> arrival_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Run run_;
};

Run simulate(const PipelineShape& shape, const Times& times) { return Simulation(shape, times).run(); }

// How the durations of a case are drawn; each is a way in which the steady state can differ.
enum class Mood : std::uint8_t { any, equal, no_transfer, huge_transfer, one_slow_stage, nearly_equal };
constexpr int kMoods = 6;

struct Case {
  PipelineShape shape;
  Mood mood = Mood::any;
  std::uint64_t seed = 0;
};

void show(const Case& c, std::ostream& out) {
  out << "schedule " << static_cast<int>(c.shape.schedule) << " p " << c.shape.stages << " v " << c.shape.chunks
      << " m " << c.shape.micro_batches << " mood " << static_cast<int>(c.mood) << " seed " << c.seed;
}

// Rounds m up to what an interleaved order needs.
PipelineShape shape_of(ScheduleKind schedule, std::int64_t p, std::int64_t v, std::int64_t m) {
  if (schedule != ScheduleKind::interleaved) { v = 1; }
  if (v > 1) { m = (m + p - 1) / p * p; }
  return {schedule, p, v, m};
}

Times times_of(const Case& c) {
  std::mt19937_64 random(c.seed);
  const auto below = [&random](Ticks limit) {
    return static_cast<Ticks>(random() % static_cast<std::uint64_t>(limit));
  };
  const Ticks span = below(2) == 0 ? 12 : 1'000'000;  // small numbers make ties, large ones make long transients
  const Ticks forward = below(span);
  const Ticks backward = below(span);
  const Ticks transfer = below(span);
  const auto duration = [&](Ticks usual) {
    if (c.mood == Mood::equal) { return usual; }
    return c.mood == Mood::nearly_equal ? span + below(2) : below(span);
  };
  Times times;
  for (std::int64_t i = 0; i < c.shape.stages * c.shape.chunks; ++i) {
    times.forward.push_back(duration(forward));
    times.backward.push_back(duration(backward));
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
  }
  return times;
}

rc::Gen<Case> any_case(std::int64_t micro_batches) {
  return rc::gen::exec([micro_batches] {
    const auto schedule = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved);
    const auto p = *rc::gen::inRange<std::int64_t>(1, 9);
    const auto v = *rc::gen::inRange<std::int64_t>(1, 5);
    const auto m = *rc::gen::inRange<std::int64_t>(1, micro_batches + 1);
    const auto mood = static_cast<Mood>(*rc::gen::inRange(0, kMoods));
    return Case{shape_of(schedule, p, v, m), mood, *rc::gen::arbitrary<std::uint64_t>()};
  });
}

bool equal(const PipelineSolution& a, const PipelineSolution& b) {
  return a.makespan == b.makespan && a.stage_end == b.stage_end && a.last_backward_start == b.last_backward_start;
}

void expect_exact(PipelineSolver& solver, const Case& c) {
  const Times times = times_of(c);
  const Run run = simulate(c.shape, times);
  ASSERT_TRUE(run.finished);
  const PipelineSolution& solved = solver.solve(c.shape, times.view());
  EXPECT_EQ(solved.makespan, run.solution.makespan);
  EXPECT_EQ(solved.stage_end, run.solution.stage_end);
  EXPECT_EQ(solved.last_backward_start, run.solution.last_backward_start);
}

RC_GTEST_PROP(PipelineSolve, equals_the_event_simulation, ()) {
  const auto c = *any_case(40);
  const Times times = times_of(c);
  const Run run = simulate(c.shape, times);
  RC_ASSERT(run.finished);
  RC_ASSERT(equal(PipelineSolver().solve(c.shape, times.view()), run.solution));
}

RC_GTEST_PROP(PipelineSolve, equals_the_event_simulation_on_long_schedules, ()) {
  const auto c = *any_case(600);
  const Times times = times_of(c);
  const Run run = simulate(c.shape, times);
  RC_ASSERT(run.finished);
  RC_ASSERT(equal(PipelineSolver().solve(c.shape, times.view()), run.solution));
}

// One solver for all shapes: nothing of an earlier problem may leak into a later one.
TEST(PipelineSolve, equals_the_event_simulation_on_every_small_shape) {
  PipelineSolver solver;
  std::uint64_t seed = 0;
  for (const auto schedule : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    for (std::int64_t p = 1; p <= 6; ++p) {
      for (std::int64_t v = 1; v <= (schedule == ScheduleKind::interleaved ? 4 : 1); ++v) {
        for (std::int64_t m = 1; m <= 14; ++m) {
          for (int mood = 0; mood < kMoods; ++mood) {
            const Case c{shape_of(schedule, p, v, m), static_cast<Mood>(mood), ++seed};
            expect_exact(solver, c);
            ASSERT_FALSE(::testing::Test::HasFailure()) << ::rc::toString(c.seed) << " " << p << " " << v << " " << m;
          }
        }
      }
    }
  }
}

// Larger than a search meets often: long transients, periods of p rounds.
TEST(PipelineSolve, equals_the_event_simulation_on_deep_pipelines) {
  PipelineSolver solver;
  for (int mood = 0; mood < kMoods; ++mood) {
    expect_exact(solver, {shape_of(ScheduleKind::one_f_one_b, 16, 1, 256), static_cast<Mood>(mood), 7});
    expect_exact(solver, {shape_of(ScheduleKind::one_f_one_b, 33, 1, 200), static_cast<Mood>(mood), 8});
    expect_exact(solver, {shape_of(ScheduleKind::interleaved, 16, 4, 160), static_cast<Mood>(mood), 9});
    expect_exact(solver, {shape_of(ScheduleKind::interleaved, 5, 7, 100), static_cast<Mood>(mood), 10});
  }
}

}  // namespace
}  // namespace orrery::parallel
