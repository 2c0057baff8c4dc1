#include "orrery/estimate/program_simulation.hpp"
#include "orrery/estimate/priced.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/test_items.hpp"

namespace orrery::estimate::program_simulation_test {
namespace {

using parallel::Block;
using parallel::ChunkProgram;
using parallel::GroupKind;
using parallel::Item;
using parallel::PipelineTask;
using Kind = parallel::PipelineTask::Kind;
using parallel::Program;
using parallel::Segment;
using parallel::test::call_of;
using parallel::test::is_asynchronous;
using parallel::test::is_collective;
using parallel::test::kernel_of;

// One execution of a block, with its gather and reduction.
struct Execution {
  const Block* work = nullptr;
  const Block* gather = nullptr;
  const Block* reduce = nullptr;
  bool is_blocking_gather = false;
};

struct Rank {
  Seconds compute, collectives, side;  // when each stream is free: compute, collectives inside blocks, side stream
  Seconds gathered, reduced;  // time of gathers at the start and of the last reductions, which overlap with compute
  std::size_t next = 0;       // index in `order`
  std::vector<PipelineTask> order;
  std::vector<std::vector<Seconds>>
      arrivals;  // [chunk][execution]: arrival of the weights that are gathered from the start
};

class ProgramSimulator {
 public:
  ProgramSimulator(const Program& program, const network::Fabric& fabric, double interference)
      : program_(program), fabric_(fabric), interference_(interference) {
    ranks_.resize(static_cast<std::size_t>(program.plan.pp));
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      ranks_[s].order = parallel::stage_order(program.pipeline, static_cast<std::int64_t>(s));
    }
  }

  SimulatedStep run() {
    SimulatedStep simulated;
    for (std::size_t s = 0; s < ranks_.size(); ++s) { issue_gathers(s); }
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t s = 0; s < ranks_.size(); ++s) { moved = run_next_task(s) || moved; }
    }
    for (auto& rank : ranks_) {
      ORRERY_ASSERT(rank.next == rank.order.size());
      simulated.stage_end.push_back(rank.compute);
      const Seconds tail = max(Seconds(0), rank.side - rank.compute);
      const Seconds overlapped = rank.gathered + max(Seconds(0), rank.reduced - tail);
      rank.compute = max(rank.compute + interference_ * overlapped, rank.side);
    }
    run_together(&parallel::RankClass::finish_reduce);
    for (const auto& rank : ranks_) { simulated.synchronised.push_back(rank.compute); }
    synchronise();
    run_together(&parallel::RankClass::finish);
    synchronise();
    simulated.time = ranks_[0].compute;
    return simulated;
  }

 private:
  const parallel::RankClass& class_of(std::size_t s) const { return program_.classes[program_.class_of_stage[s]]; }

  const ChunkProgram& chunk_of(std::size_t s, std::int32_t chunk) const {
    return program_.program_of(class_of(s).chunks[static_cast<std::size_t>(chunk)]);
  }

  std::vector<Execution> executions_of(const Segment& segment) const {
    const auto block = [&](parallel::OptionalBlockId id) { return id ? &program_.block(*id) : nullptr; };
    std::vector<Execution> list;
    for (const auto& use : segment) {
      for (std::int64_t i = 0; i < use.repeat; ++i) {
        list.push_back({block(use.work), block(use.gather), block(use.reduce), use.is_blocking_gather});
      }
    }
    return list;
  }

  Seconds time_of(const Item& item) {
    const auto [found, is_new] = times_.try_emplace(&item);
    if (is_new) {
      found->second = is_collective(item) ? price_call(call_of(item), fabric_, program_.mesh)
                                          : cost::kernel_cost(kernel_of(item), fabric_.cluster().accelerator).time;
    }
    return found->second;
  }

  Seconds time_of(const Block& collectives) {
    Seconds sum;
    for (const auto& item : collectives.items) { sum += time_of(item); }
    return sum;
  }

  // Time during which collectives slow concurrent kernels; transfers of the second tier do not.
  Seconds core_time(const Block* collectives) {
    Seconds sum;
    if (collectives == nullptr) { return sum; }
    for (const auto& item : collectives->items) {
      if (call_of(item).group != GroupKind::host) { sum += time_of(item); }
    }
    return sum;
  }

  static bool gathers(const Segment& segment) {
    return std::any_of(segment.begin(), segment.end(), [](const auto& use) { return use.gather.has_value(); });
  }

  // Issues the gathers of updated weights, all when the step starts. Weights that every forward gathers are not
  // included.
  void issue_gathers(std::size_t s) {
    Rank& rank = ranks_[s];
    for (const auto& place : class_of(s).chunks) {
      const ChunkProgram& chunk = program_.program_of(place);
      rank.arrivals.emplace_back();
      if (gathers(chunk.forward)) { continue; }
      for (const auto& execution : executions_of(chunk.first_forward)) {
        if (execution.gather != nullptr) { rank.side += time_of(*execution.gather); }
        rank.gathered += core_time(execution.gather);
        rank.arrivals.back().push_back(execution.gather != nullptr ? rank.side : Seconds(0));
      }
    }
    rank.gathered -= exposed_gathers(s);
  }

  // Waiting for these gathers if the first forwards of a rank's chunks run without a pause; under interleaving a group
  // of pp micro-batches passes each chunk.
  Seconds exposed_gathers(std::size_t s) {
    const bool in_groups = program_.pipeline.schedule == parallel::ScheduleKind::interleaved;
    const double group = in_groups ? static_cast<double>(ranks_.size()) : 1.0;
    Seconds before, wait;
    for (std::size_t c = 0; c < class_of(s).chunks.size(); ++c) {
      const ChunkProgram& chunk = chunk_of(s, static_cast<std::int32_t>(c));
      Rank alone, first;
      alone.arrivals = ranks_[s].arrivals;
      run_forward(alone, chunk, static_cast<std::int32_t>(c), 1);
      const auto& gathered = ranks_[s].arrivals[c];
      if (!gathered.empty()) { run_segment(first, chunk.first_forward, &gathered); }
      wait = max(wait, first.compute - (before + alone.compute));
      before += group * alone.compute;
    }
    return wait;
  }

  // Runs the stage's next task if its dependencies have ended.
  bool run_next_task(std::size_t s) {
    Rank& rank = ranks_[s];
    if (rank.next == rank.order.size()) { return false; }
    const PipelineTask task = rank.order[rank.next];
    const std::int64_t other = task.paired_micro_batch;
    const bool pair = task.kind == Kind::pair;
    const auto input = task.kind == Kind::weight     ? std::optional(Seconds(0))
                       : task.kind == Kind::backward ? input_arrival(s, false, task.chunk, task.micro_batch)
                                                     : input_arrival(s, true, task.chunk, task.micro_batch);
    const auto second = pair ? input_arrival(s, false, 1 - task.chunk, other) : std::optional(Seconds(0));
    if (!input || !second) { return false; }
    rank.compute = max(rank.compute, max(*input, *second));
    if (pair) {
      run_pair(rank, s, task);
      ends_[{true, s, task.chunk, task.micro_batch}] = rank.compute;
      ends_[{false, s, 1 - task.chunk, other}] = rank.compute;
    } else {
      run_task(rank, s, task);
      if (task.kind != Kind::weight) {
        ends_[{task.kind == Kind::forward, s, task.chunk, task.micro_batch}] = rank.compute;
      }
    }
    ++rank.next;
    return true;
  }

  // The previous or next chunk: interleaved chunks continue from the last stage to the first; DualPipe's chunk 1 passes
  // the stages in reverse order.
  struct Neighbour {
    std::size_t stage;
    std::int32_t chunk;
  };
  std::optional<Neighbour> neighbour(std::size_t s, std::int32_t chunk, int step) const {
    const auto p = static_cast<std::int64_t>(ranks_.size());
    if (is_dualpipe()) {
      const std::int64_t to = static_cast<std::int64_t>(s) + (chunk == 0 ? step : -step);
      if (to < 0 || to >= p) { return std::nullopt; }
      return Neighbour{static_cast<std::size_t>(to), chunk};
    }
    const std::int64_t q = chunk * p + static_cast<std::int64_t>(s) + step;
    if (q < 0 || q >= p * program_.pipeline.chunks) { return std::nullopt; }
    return Neighbour{static_cast<std::size_t>(q % p), static_cast<std::int32_t>(q / p)};
  }

  std::optional<Seconds> input_arrival(std::size_t s, bool forward, std::int32_t chunk,
                                       std::int64_t micro_batch) const {
    const auto from = neighbour(s, chunk, forward ? -1 : 1);
    if (!from && forward) { return Seconds(0); }
    const auto end =
        from ? ends_.find({forward, from->stage, from->chunk, micro_batch}) : ends_.find({true, s, chunk, micro_batch});
    if (end == ends_.end()) { return std::nullopt; }
    if (!from) { return end->second; }
    const Neighbour to{s, chunk};
    return end->second + (forward == (chunk == 0 || !is_dualpipe()) ? hop(*from) : hop(to));
  }

  [[nodiscard]] bool is_dualpipe() const { return program_.pipeline.schedule == parallel::ScheduleKind::dualpipe; }

  // Transfer time between two neighbouring chunks; `lower` is the one that sends activations.
  Seconds hop(const Neighbour& lower) const {
    if (ranks_.size() == 1) { return Seconds(0); }
    const Seconds sent = fabric_.transfer(program_.transfer_bytes, program_.mesh.transfer_dimension[lower.stage]);
    if (!program_.gathers_transfers) { return sent; }
    const auto parts = static_cast<double>(program_.plan.tp);
    return sent +
           fabric_.price(Collective::all_gather, parts * program_.transfer_bytes, program_.mesh.group(GroupKind::tp))
               .time;
  }

  [[nodiscard]] bool is_last(std::int64_t micro_batch) const {
    const auto m = program_.pipeline.micro_batches;
    switch (program_.pipeline.schedule) {
      case parallel::ScheduleKind::gpipe: return micro_batch == 0;
      case parallel::ScheduleKind::dualpipe: return micro_batch == m / 2 - 1;
      case parallel::ScheduleKind::one_f_one_b:
      case parallel::ScheduleKind::interleaved:
      case parallel::ScheduleKind::zero_bubble: return micro_batch == m - 1;
    }
    return false;
  }

  void run_task(Rank& rank, std::size_t s, const PipelineTask& task) {
    const ChunkProgram& chunk = chunk_of(s, task.chunk);
    if (task.kind == Kind::forward) {
      run_forward(rank, chunk, task.chunk, task.micro_batch);
    } else if (task.kind == Kind::weight || chunk.weight.empty()) {
      run_weight(rank, chunk, task.micro_batch);
    } else {
      run_segment(rank, chunk.backward, nullptr);
      if (!task.splits) { run_weight(rank, chunk, task.micro_batch); }
    }
  }

  void run_forward(Rank& rank, const ChunkProgram& chunk, std::int32_t index, std::int64_t micro_batch) {
    const auto& gathered = rank.arrivals[static_cast<std::size_t>(index)];
    const bool first = micro_batch == 0;
    run_segment(rank, first ? chunk.first_forward : chunk.forward, first && !gathered.empty() ? &gathered : nullptr);
    if (chunk.waits_for_store) { rank.compute = max(rank.compute, rank.side); }
  }

  // The task that completes a micro-batch's gradients.
  void run_weight(Rank& rank, const ChunkProgram& chunk, std::int64_t micro_batch) {
    const Segment& usual = chunk.weight.empty() ? chunk.backward : chunk.weight;
    run_segment(rank, is_last(micro_batch) ? chunk.last_backward : usual, nullptr, chunk.waits_for_reduce);
    if (chunk.waits_for_reduce) { rank.compute = max(rank.compute, rank.side); }
  }

  // Both in sequence, without the exposed expert all-to-alls; at least as long as these all-to-alls take.
  void run_pair(Rank& rank, std::size_t s, const PipelineTask& task) {
    const Seconds start = rank.compute, side = rank.side;
    expert_waits_ = expert_traffic_ = Seconds(0);
    run_forward(rank, chunk_of(s, task.chunk), task.chunk, task.micro_batch);
    const ChunkProgram& other = chunk_of(s, 1 - task.chunk);
    run_segment(rank, other.backward, nullptr);
    run_weight(rank, other, task.paired_micro_batch);
    rank.compute = start + max(rank.compute - start - expert_waits_, expert_traffic_);
    rank.collectives = min(rank.collectives, rank.compute);  // no collective of the pair is in flight after it
    rank.side = min(rank.side, max(side, rank.compute));
  }

  // If not `reduces_always`, only the last micro-batch reduces. Its reductions overlap with the rest of the backward
  // pass and slow it as a whole.
  void run_segment(Rank& rank, const Segment& segment, const std::vector<Seconds>* gathered,
                   bool reduces_always = true) {
    const auto executions = executions_of(segment);
    std::vector<Seconds> weights(executions.size(), Seconds(0));
    if (gathered != nullptr) { weights = *gathered; }
    const auto gather = [&](std::size_t i) {
      if (gathered != nullptr || i >= executions.size() || executions[i].gather == nullptr) { return; }
      rank.side = max(rank.side, rank.compute) + time_of(*executions[i].gather);
      weights[i] = rank.side;
    };
    gather(0);
    for (std::size_t i = 0; i < executions.size(); ++i) {
      rank.compute = max(rank.compute, weights[i]);
      if (executions[i].is_blocking_gather) {
        rank.compute = rank.side = max(rank.compute, rank.side) + time_of(*executions[i].work);
        gather(i + 1);
        continue;
      }
      gather(i + 1);
      const Seconds begun = rank.compute;
      run_block(rank, *executions[i].work);
      if (gathered == nullptr) {
        const Block* next = i + 1 < executions.size() ? executions[i + 1].gather : nullptr;
        const Block* before = i > 0 && reduces_always ? executions[i - 1].reduce : nullptr;
        const Seconds concurrent = core_time(next) + core_time(before);
        const Seconds work = rank.compute - begun;
        rank.compute += min(interference_ * concurrent, interference_ / (1.0 - interference_) * work);
      }
      if (executions[i].reduce != nullptr) {
        rank.side = max(rank.side, rank.compute) + time_of(*executions[i].reduce);
        if (!reduces_always) { rank.reduced += core_time(executions[i].reduce); }
      }
    }
  }

  void run_block(Rank& rank, const Block& block) {
    const Seconds start = rank.compute;
    Seconds waits;  // exposed expert all-to-alls
    std::vector<Seconds> ends(block.items.size());
    for (std::size_t i = 0; i < block.items.size(); ++i) {
      const Item& item = block.items[i];
      if (const auto other = item.waits_for()) { rank.compute = max(rank.compute, ends[(*other).index()]); }
      if (!is_collective(item)) {
        rank.compute += time_of(item);
        continue;
      }
      rank.collectives = max(rank.collectives, rank.compute) + time_of(item);
      ends[i] = rank.collectives;
      if (call_of(item).group == GroupKind::ep) { expert_traffic_ += time_of(item); }
      if (is_asynchronous(item)) { continue; }
      if (call_of(item).group == GroupKind::ep && item.purpose != parallel::Purpose::recompute) {
        waits += rank.collectives - rank.compute;
      }
      rank.compute = rank.collectives;
    }
    for (const Seconds end : ends) { rank.compute = max(rank.compute, end); }
    expert_waits_ += min(waits, max(Seconds(0), rank.compute - (start + block.launch)));
    rank.compute = max(rank.compute, start + block.launch);
  }

  // A rank's position in a segment that all stages run together.
  struct Cursor {
    std::vector<const Block*> blocks;
    std::size_t block = 0, item = 0;
    std::vector<Seconds> ends;  // of the block's items

    [[nodiscard]] bool done() const { return block == blocks.size(); }
    [[nodiscard]] const Item& next() const { return blocks[block]->items[item]; }
    [[nodiscard]] bool at_collective() const {  // the next item is a collective over several stages
      if (done() || item == blocks[block]->items.size() || !is_collective(next())) { return false; }
      return call_of(next()).group == GroupKind::embedding || call_of(next()).group == GroupKind::world;
    }
  };

  // Runs a segment on all stages; a collective over several stages starts when its last member has reached it.
  void run_together(Segment parallel::RankClass::* segment) {
    std::vector<Cursor> cursors(ranks_.size());
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      for (const auto& execution : executions_of(class_of(s).*segment)) { cursors[s].blocks.push_back(execution.work); }
    }
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t s = 0; s < ranks_.size(); ++s) {
        while (!cursors[s].done() && !cursors[s].at_collective()) { step(ranks_[s], cursors[s]); }
      }
      for (const GroupKind group : {GroupKind::embedding, GroupKind::world}) {
        moved = run_collective(group, cursors) || moved;
      }
    }
    for (const auto& cursor : cursors) { ORRERY_ASSERT(cursor.done()); }
  }

  // Runs the next item, or ends the block.
  void step(Rank& rank, Cursor& cursor) {
    const Block& block = *cursor.blocks[cursor.block];
    if (cursor.item == block.items.size()) {
      for (const Seconds end : cursor.ends) { rank.compute = max(rank.compute, end); }
      cursor.ends.clear();
      cursor.item = 0;
      ++cursor.block;
      return;
    }
    const Item& item = cursor.next();
    if (const auto other = item.waits_for()) { rank.compute = max(rank.compute, cursor.ends[(*other).index()]); }
    if (is_collective(item)) {
      rank.collectives = max(rank.collectives, rank.compute) + time_of(item);
      cursor.ends.push_back(rank.collectives);
      if (!is_asynchronous(item)) { rank.compute = rank.collectives; }
    } else {
      rank.compute += time_of(item);
      cursor.ends.push_back(rank.compute);
    }
    ++cursor.item;
  }

  bool run_collective(GroupKind group, std::vector<Cursor>& cursors) {
    std::vector<std::size_t> members = {0, ranks_.size() - 1};
    if (group == GroupKind::world) {
      members.clear();
      for (std::size_t s = 0; s < ranks_.size(); ++s) { members.push_back(s); }
    }
    Seconds start;
    for (const std::size_t s : members) {
      if (!cursors[s].at_collective() || call_of(cursors[s].next()).group != group) { return false; }
      start = max(start, max(ranks_[s].compute, ranks_[s].collectives));
    }
    for (const std::size_t s : members) {
      ranks_[s].compute = start;
      step(ranks_[s], cursors[s]);
    }
    return true;
  }

  // All ranks wait for the slowest.
  void synchronise() {
    Seconds latest;
    for (const auto& rank : ranks_) { latest = max(latest, rank.compute); }
    for (auto& rank : ranks_) { rank.compute = latest; }
  }

  const Program& program_;
  const network::Fabric& fabric_;
  double interference_;
  std::vector<Rank> ranks_;
  std::map<std::tuple<bool, std::size_t, std::int32_t, std::int64_t>, Seconds>
      ends_;                               // (is_forward, stage, chunk, micro-batch)
  Seconds expert_waits_, expert_traffic_;  // of the current pair
  std::map<const Item*, Seconds> times_;
};

}  // namespace
}  // namespace orrery::estimate::program_simulation_test

namespace orrery::estimate {

SimulatedStep simulate(const parallel::Program& program, const network::Fabric& fabric, const hardware::Stack& stack) {
  SimulatedStep simulated =
      program_simulation_test::ProgramSimulator(program, fabric, stack.overlap.interference).run();
  simulated.time += stack.host.step_overhead;
  return simulated;
}

}  // namespace orrery::estimate
