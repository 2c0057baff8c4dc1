#include "orrery/estimate/program_simulation.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/cost/kernel_cost.hpp"

namespace orrery::estimate {
namespace {

using parallel::Block;
using parallel::ChunkProgram;
using parallel::GroupKind;
using parallel::Item;
using parallel::PipelineTask;
using parallel::Program;
using parallel::Segment;

// Block uses written out, one by one.
struct Execution {
  const Block* work = nullptr;
  const Block* gather = nullptr;
  const Block* reduce = nullptr;
};

struct Rank {
  Seconds compute, tensor, data;  // when each stream is free
  std::size_t next = 0;           // task of the stage's order
  std::vector<PipelineTask> order;
  std::vector<std::vector<Seconds>> asked;  // [chunk][execution]: arrival of weights that were asked for at the start
};

class Player {
 public:
  Player(const Program& program, const network::Fabric& fabric) : program_(program), fabric_(fabric) {
    ranks_.resize(static_cast<std::size_t>(program.plan.pp));
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      ranks_[s].order = parallel::stage_order(program.pipeline, static_cast<std::int64_t>(s));
    }
  }

  Played run() {
    Played played;
    for (std::size_t s = 0; s < ranks_.size(); ++s) { ask_for_weights(s); }
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t s = 0; s < ranks_.size(); ++s) { moved = run_next_task(s) || moved; }
    }
    for (auto& rank : ranks_) {
      ORRERY_ASSERT(rank.next == rank.order.size());
      played.stage_end.push_back(rank.compute);
      rank.compute = max(rank.compute, rank.data);
    }
    run_together(&parallel::RankClass::finish_reduce);
    for (const auto& rank : ranks_) { played.synchronised.push_back(rank.compute); }
    meet();
    run_together(&parallel::RankClass::finish);
    meet();
    played.time = ranks_[0].compute;
    return played;
  }

 private:
  const parallel::RankClass& class_of(std::size_t s) const {
    return program_.classes[static_cast<std::size_t>(program_.class_of_stage[s])];
  }

  std::vector<Execution> written_out(const Segment& segment) const {
    const auto block = [&](std::int32_t i) { return i < 0 ? nullptr : &program_.blocks[static_cast<std::size_t>(i)]; };
    std::vector<Execution> list;
    for (const auto& use : segment) {
      for (std::int64_t i = 0; i < use.repeat; ++i) {
        list.push_back({block(use.work), block(use.gather), block(use.reduce)});
      }
    }
    return list;
  }

  Seconds time_of(const Item& item) {
    const auto [found, is_new] = times_.try_emplace(&item);
    if (is_new) {
      found->second =
          item.is_collective
              ? fabric_.price(item.call.collective, item.call.bytes, program_.mesh.group(item.call.group)).time
              : cost::kernel_cost(item.kernel, fabric_.cluster().accelerator).time;
    }
    return found->second;
  }

  Seconds time_of(const Block& collectives) {
    Seconds sum;
    for (const auto& item : collectives.items) { sum += time_of(item); }
    return sum;
  }

  static bool gathers(const Segment& segment) {
    return std::any_of(segment.begin(), segment.end(), [](const auto& use) { return use.gather >= 0; });
  }

  // Updated weights, asked for all at once when the step starts. Weights that every forward gathers are not among them.
  void ask_for_weights(std::size_t s) {
    Rank& rank = ranks_[s];
    for (const auto& chunk : class_of(s).chunks) {
      rank.asked.emplace_back();
      if (gathers(chunk.forward)) { continue; }
      for (const auto& execution : written_out(chunk.first_forward)) {
        if (execution.gather != nullptr) { rank.data += time_of(*execution.gather); }
        rank.asked.back().push_back(execution.gather != nullptr ? rank.data : Seconds(0));
      }
    }
  }

  // Runs the stage's next task if what it depends on has been run.
  bool run_next_task(std::size_t s) {
    Rank& rank = ranks_[s];
    if (rank.next == rank.order.size()) { return false; }
    const PipelineTask task = rank.order[rank.next];
    const auto input = input_arrival(s, task);
    if (!input) { return false; }
    rank.compute = max(rank.compute, *input);
    run_task(s, task);
    ends_[{task.forward, task.chunk * program_.plan.pp + static_cast<std::int64_t>(s), task.micro_batch}] =
        rank.compute;
    ++rank.next;
    return true;
  }

  std::optional<Seconds> input_arrival(std::size_t s, const PipelineTask& task) const {
    const std::int64_t p = program_.plan.pp;
    const std::int64_t q = task.chunk * p + static_cast<std::int64_t>(s);
    const bool first = q == 0, last = q == p * program_.plan.vpp - 1;
    if (task.forward && first) { return Seconds(0); }
    const std::int64_t from = task.forward ? q - 1 : last ? q : q + 1;
    const auto end = ends_.find({task.forward || last, from, task.micro_batch});
    if (end == ends_.end()) { return std::nullopt; }
    if (from == q) { return end->second; }
    const auto hop = static_cast<std::size_t>(std::min(from, q) % p);  // the stage that sends it forward
    return end->second + fabric_.transfer(program_.transfer_bytes, program_.mesh.transfer_dimension[hop]);
  }

  void run_task(std::size_t s, const PipelineTask& task) {
    Rank& rank = ranks_[s];
    const ChunkProgram& chunk = class_of(s).chunks[static_cast<std::size_t>(task.chunk)];
    const bool reversed = program_.plan.schedule == parallel::ScheduleKind::gpipe;
    const std::int64_t last = reversed ? 0 : program_.pipeline.micro_batches - 1;
    if (task.forward) {
      const auto& asked = rank.asked[static_cast<std::size_t>(task.chunk)];
      const bool first = task.micro_batch == 0;
      run_segment(rank, first ? chunk.first_forward : chunk.forward, first && !asked.empty() ? &asked : nullptr);
      return;
    }
    run_segment(rank, task.micro_batch == last ? chunk.last_backward : chunk.backward, nullptr);
    if (chunk.waits_for_reduce) { rank.compute = max(rank.compute, rank.data); }
  }

  void run_segment(Rank& rank, const Segment& segment, const std::vector<Seconds>* asked) {
    const auto executions = written_out(segment);
    std::vector<Seconds> weights(executions.size(), Seconds(0));
    if (asked != nullptr) { weights = *asked; }
    const auto gather = [&](std::size_t i) {
      if (asked != nullptr || i >= executions.size() || executions[i].gather == nullptr) { return; }
      rank.data = max(rank.data, rank.compute) + time_of(*executions[i].gather);
      weights[i] = rank.data;
    };
    gather(0);
    for (std::size_t i = 0; i < executions.size(); ++i) {
      rank.compute = max(rank.compute, weights[i]);
      gather(i + 1);
      run_block(rank, *executions[i].work);
      if (executions[i].reduce != nullptr) {
        rank.data = max(rank.data, rank.compute) + time_of(*executions[i].reduce);
      }
    }
  }

  void run_block(Rank& rank, const Block& block) {
    std::vector<Seconds> ends(block.items.size());
    for (std::size_t i = 0; i < block.items.size(); ++i) {
      const Item& item = block.items[i];
      if (item.waits_for >= 0) { rank.compute = max(rank.compute, ends[static_cast<std::size_t>(item.waits_for)]); }
      if (!item.is_collective) {
        rank.compute += time_of(item);
        continue;
      }
      Seconds& stream = item.call.group == GroupKind::tp ? rank.tensor : rank.data;
      stream = max(stream, rank.compute) + time_of(item);
      ends[i] = stream;
      if (!item.asynchronous) { rank.compute = stream; }
    }
    for (const Seconds end : ends) { rank.compute = max(rank.compute, end); }
  }

  // Items of a segment of every stage, side by side; collectives of several stages start when the last one has come.
  void run_together(Segment parallel::RankClass::* segment) {
    std::vector<std::vector<const Item*>> items(ranks_.size());
    std::vector<std::size_t> next(ranks_.size(), 0);
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      for (const auto& execution : written_out(class_of(s).*segment)) {
        for (const auto& item : execution.work->items) { items[s].push_back(&item); }
      }
    }
    const auto waiting = [&](std::size_t s) {  // in front of a collective of several stages
      return next[s] < items[s].size() && items[s][next[s]]->is_collective &&
             (items[s][next[s]]->call.group == GroupKind::embedding ||
              items[s][next[s]]->call.group == GroupKind::world);
    };
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t s = 0; s < ranks_.size(); ++s) {
        for (; next[s] < items[s].size() && !waiting(s); ++next[s]) {
          ranks_[s].compute += time_of(*items[s][next[s]]);
        }
      }
      for (const GroupKind group : {GroupKind::embedding, GroupKind::world}) {
        moved = run_meeting(group, items, next, waiting) || moved;
      }
    }
    for (std::size_t s = 0; s < ranks_.size(); ++s) { ORRERY_ASSERT(next[s] == items[s].size()); }
  }

  template <class Waiting>
  bool run_meeting(GroupKind group, const std::vector<std::vector<const Item*>>& items, std::vector<std::size_t>& next,
                   Waiting waiting) {
    std::vector<std::size_t> members = {0, ranks_.size() - 1};
    if (group == GroupKind::world) {
      members.clear();
      for (std::size_t s = 0; s < ranks_.size(); ++s) { members.push_back(s); }
    }
    Seconds start;
    for (const std::size_t s : members) {
      if (!waiting(s) || items[s][next[s]]->call.group != group) { return false; }
      start = max(start, ranks_[s].compute);
    }
    for (const std::size_t s : members) { ranks_[s].compute = start + time_of(*items[s][next[s]++]); }
    return true;
  }

  // Everybody waits for everybody.
  void meet() {
    Seconds latest;
    for (const auto& rank : ranks_) { latest = max(latest, rank.compute); }
    for (auto& rank : ranks_) { rank.compute = latest; }
  }

  const Program& program_;
  const network::Fabric& fabric_;
  std::vector<Rank> ranks_;
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, Seconds> ends_;  // by direction, virtual stage, micro-batch
  std::map<const Item*, Seconds> times_;
};

}  // namespace

Played play(const Program& program, const network::Fabric& fabric, const hardware::Stack& stack) {
  Played played = Player(program, fabric).run();
  played.time += stack.host_overhead;
  return played;
}

}  // namespace orrery::estimate
