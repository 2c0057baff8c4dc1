#include "orrery/api/memory_over_time.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace orrery::api {

namespace {

using TaskKind = parallel::PipelineTask::Kind;
using Row = results::SimulatedSpan::Row;

// Times of the kernels of a task.
struct TaskTime {
  std::optional<std::uint64_t> start;
  std::uint64_t end = 0;
};

// Bytes that come (or go, negative) at a time. At the same time, what goes is first: the task before has ended.
struct Change {
  std::uint64_t time_ns = 0;
  double bytes = 0;
};

class StageMemory {
 public:
  StageMemory(const PlanMemory& plan, std::int64_t stage)
      : need_(plan.program.memory[static_cast<std::size_t>(stage)]),
        is_offloaded_(plan.program.plan.offload.activations),
        frees_later_(plan.program.pipeline.schedule == parallel::ScheduleKind::dualpipe),
        tasks_(plan.graphs.tasks(plan.graphs.first_rank(stage))),
        kept_(tasks_.empty() ? std::vector<double>() : plan.lowerer.kept_activations(stage)) {}

  // `spans`: of a rank of the stage, in any order. `end_ns`: of the run.
  [[nodiscard]] results::MemoryRank of(const std::vector<const results::SimulatedSpan*>& spans,
                                       std::uint64_t end_ns) const {
    results::MemoryRank made;
    const bool is_constant = is_offloaded_ || tasks_.empty();
    made.held = (is_constant ? need_.total() : need_.total() - need_.activations).value();
    made.peak = made.held;
    made.points.push_back({0, made.held});
    double load = 0, sum = 0;
    std::uint64_t before = 0;
    for (const Change& change : is_constant ? std::vector<Change>() : changes(spans)) {
      sum += load * static_cast<double>(change.time_ns - before);
      before = change.time_ns;
      load += change.bytes;
      const double bytes = made.held + load;
      if (made.points.back().time_ns == change.time_ns) {
        made.points.back().bytes = bytes;
      } else {
        made.points.push_back({change.time_ns, bytes});
      }
      if (bytes > made.peak) { made.peak = bytes, made.peak_ns = change.time_ns; }
    }
    sum += load * static_cast<double>(end_ns - before);
    made.mean = made.held + (end_ns > 0 ? sum / static_cast<double>(end_ns) : 0.0);
    return made;
  }

 private:
  [[nodiscard]] std::vector<Change> changes(const std::vector<const results::SimulatedSpan*>& spans) const {
    const std::vector<TaskTime> times = times_of(spans);
    std::vector<Change> changes;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (!times[i].start) { continue; }
      add_changes(tasks_[i].task, *times[i].start, times[i].end, changes);
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return std::pair(a.time_ns, a.bytes) < std::pair(b.time_ns, b.bytes);
    });
    return changes;
  }

  void add_changes(const parallel::PipelineTask& task, std::uint64_t start, std::uint64_t end,
                   std::vector<Change>& changes) const {
    const double own = kept_[static_cast<std::size_t>(task.chunk)];
    switch (task.kind) {
      case TaskKind::forward: changes.push_back({start, own}); return;
      case TaskKind::weight: changes.push_back({end, -own}); return;
      case TaskKind::backward:
        if (!task.splits) { changes.push_back({end, -own}); }
        return;
      case TaskKind::pair:
        const double other = kept_[static_cast<std::size_t>(task.paired_chunk)];
        if (frees_later_) {
          changes.push_back({start, own});
          changes.push_back({end, -other});
        } else {
          changes.push_back({end, own - other});
        }
        return;
    }
  }

  // By task. Nodes of a task have consecutive ids, and tasks ascending ones.
  [[nodiscard]] std::vector<TaskTime> times_of(const std::vector<const results::SimulatedSpan*>& spans) const {
    std::vector<TaskTime> times(tasks_.size());
    for (const results::SimulatedSpan* span : spans) {
      if (span->row != Row::accelerator) { continue; }
      const auto after = std::upper_bound(tasks_.begin(), tasks_.end(), span->node,
                                          [](std::uint64_t node, const auto& task) { return node < task.first; });
      if (after == tasks_.begin()) { continue; }
      const auto task = std::prev(after);
      if (span->node >= task->end) { continue; }
      TaskTime& time = times[static_cast<std::size_t>(task - tasks_.begin())];
      time.start = std::min(time.start.value_or(span->start_ns), span->start_ns);
      time.end = std::max(time.end, span->end_ns);
    }
    return times;
  }

  const parallel::MemoryNeed& need_;
  bool is_offloaded_, frees_later_;
  std::vector<generate::TaskNodes> tasks_;
  std::vector<double> kept_;  // by chunk
};

}  // namespace

results::MemoryOverTime memory_over_time(const PlanMemory& plan, const CapacityOf& capacity_of,
                                         const results::RankRuns<std::uint32_t>& simulated,
                                         const results::Simulation& simulation) {
  std::map<std::uint32_t, std::vector<const results::SimulatedSpan*>> spans;  // by the rank that they name
  for (const results::SimulatedSpan& span : simulation.spans) { spans[span.rank].push_back(&span); }
  const auto& names = simulation.representatives;
  const auto stage_ranks = static_cast<std::uint64_t>(plan.graphs.stage_ranks());
  const std::uint64_t end = simulation.makespan_ns();
  std::map<std::uint64_t, StageMemory> stages;
  results::MemoryOverTime made;
  for (const auto& run : simulated.runs()) {
    const std::uint32_t rank = names.empty() ? run.value : names[run.value];
    const std::uint64_t stage = rank / stage_ranks;
    const StageMemory& memory = stages.try_emplace(stage, plan, static_cast<std::int64_t>(stage)).first->second;
    results::MemoryRank row = memory.of(spans[rank], end);
    row.capacity = capacity_of(rank).value();
    made.ranks.add(run.end - run.first, std::move(row));
  }
  return made;
}

}  // namespace orrery::api
