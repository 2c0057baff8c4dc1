#include "orrery/estimate/program_simulation.hpp"
#include "orrery/estimate/priced.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/test_items.hpp"

namespace orrery::estimate {
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

// Block uses written out, one by one.
struct Execution {
  const Block* work = nullptr;
  const Block* gather = nullptr;
  const Block* reduce = nullptr;
  bool is_blocking_gather = false;
};

struct Rank {
  Seconds compute, beside, data;  // when each stream is free; beside: of collectives inside blocks
  Seconds gathered, reduced;      // once a step: time of collectives beside the work
  std::size_t next = 0;           // task of the stage's order
  std::vector<PipelineTask> order;
  std::vector<std::vector<Seconds>> asked;  // [chunk][execution]: arrival of weights that were asked for at the start
};

class Player {
 public:
  Player(const Program& program, const network::Fabric& fabric, double interference)
      : program_(program), fabric_(fabric), interference_(interference) {
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
      const Seconds outlasts = max(Seconds(0), rank.data - rank.compute);
      const Seconds under_work = rank.gathered + max(Seconds(0), rank.reduced - outlasts);
      rank.compute = max(rank.compute + interference_ * under_work, rank.data);
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
  const parallel::RankClass& class_of(std::size_t s) const { return program_.classes[program_.class_of_stage[s]]; }

  const ChunkProgram& chunk_of(std::size_t s, std::int32_t chunk) const {
    return program_.program_of(class_of(s).chunks[static_cast<std::size_t>(chunk)]);
  }

  std::vector<Execution> written_out(const Segment& segment) const {
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

  // Of what kernels beside it lose a part: collectives, not transfers of the second tier.
  Seconds held(const Block* collectives) {
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

  // Updated weights, asked for all at once when the step starts. Weights that every forward gathers are not among them.
  void ask_for_weights(std::size_t s) {
    Rank& rank = ranks_[s];
    for (const auto& place : class_of(s).chunks) {
      const ChunkProgram& chunk = program_.program_of(place);
      rank.asked.emplace_back();
      if (gathers(chunk.forward)) { continue; }
      for (const auto& execution : written_out(chunk.first_forward)) {
        if (execution.gather != nullptr) { rank.data += time_of(*execution.gather); }
        rank.gathered += held(execution.gather);
        rank.asked.back().push_back(execution.gather != nullptr ? rank.data : Seconds(0));
      }
    }
    rank.gathered -= wait_for_weights(s);
  }

  // What a rank waits for at most that goes through the first forwards of its chunks at once; interleaved, a group of
  // micro-batches goes through each.
  Seconds wait_for_weights(std::size_t s) {
    const bool in_groups = program_.pipeline.schedule == parallel::ScheduleKind::interleaved;
    const double group = in_groups ? static_cast<double>(ranks_.size()) : 1.0;
    Seconds before, wait;
    for (std::size_t c = 0; c < class_of(s).chunks.size(); ++c) {
      const ChunkProgram& chunk = chunk_of(s, static_cast<std::int32_t>(c));
      Rank alone, first;
      alone.asked = ranks_[s].asked;
      run_forward(alone, chunk, static_cast<std::int32_t>(c), 1);
      const auto& asked = ranks_[s].asked[c];
      if (!asked.empty()) { run_segment(first, chunk.first_forward, &asked); }
      wait = max(wait, first.compute - (before + alone.compute));
      before += group * alone.compute;
    }
    return wait;
  }

  // Runs the stage's next task if what it depends on has been run.
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

  // The chunk before and behind: interleaved chunks follow round the stages; DualPipe's chunk 1 walks them backwards.
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

  // Between two neighbouring chunks, in the direction of growing stages (from the last round to the first).
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
    const auto& asked = rank.asked[static_cast<std::size_t>(index)];
    const bool first = micro_batch == 0;
    run_segment(rank, first ? chunk.first_forward : chunk.forward, first && !asked.empty() ? &asked : nullptr);
    if (chunk.waits_for_store) { rank.compute = max(rank.compute, rank.data); }
  }

  // What completes a micro-batch's gradients.
  void run_weight(Rank& rank, const ChunkProgram& chunk, std::int64_t micro_batch) {
    const Segment& usual = chunk.weight.empty() ? chunk.backward : chunk.weight;
    run_segment(rank, is_last(micro_batch) ? chunk.last_backward : usual, nullptr, chunk.waits_for_reduce);
    if (chunk.waits_for_reduce) { rank.compute = max(rank.compute, rank.data); }
  }

  // One after the other, but waiting for experts of either under the other's work: the pair ends when both have run
  // without that waiting, or when that traffic has passed.
  void run_pair(Rank& rank, std::size_t s, const PipelineTask& task) {
    const Seconds start = rank.compute, data = rank.data;
    expert_waits_ = expert_traffic_ = Seconds(0);
    run_forward(rank, chunk_of(s, task.chunk), task.chunk, task.micro_batch);
    const ChunkProgram& other = chunk_of(s, 1 - task.chunk);
    run_segment(rank, other.backward, nullptr);
    run_weight(rank, other, task.paired_micro_batch);
    rank.compute = start + max(rank.compute - start - expert_waits_, expert_traffic_);
    rank.beside = min(rank.beside, rank.compute);  // nothing of the two is in flight behind the pair
    rank.data = min(rank.data, max(data, rank.compute));
  }

  // Unless `reduces_always`, reductions are of the last micro-batch alone, run under what is left of the backward pass,
  // and slow it as a whole.
  void run_segment(Rank& rank, const Segment& segment, const std::vector<Seconds>* asked, bool reduces_always = true) {
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
      if (executions[i].is_blocking_gather) {
        rank.compute = rank.data = max(rank.compute, rank.data) + time_of(*executions[i].work);
        gather(i + 1);
        continue;
      }
      gather(i + 1);
      const Seconds begun = rank.compute;
      run_block(rank, *executions[i].work);
      if (asked == nullptr) {
        const Block* next = i + 1 < executions.size() ? executions[i + 1].gather : nullptr;
        const Block* before = i > 0 && reduces_always ? executions[i - 1].reduce : nullptr;
        const Seconds beside = held(next) + held(before);
        const Seconds work = rank.compute - begun;
        rank.compute += min(interference_ * beside, interference_ / (1.0 - interference_) * work);
      }
      if (executions[i].reduce != nullptr) {
        rank.data = max(rank.data, rank.compute) + time_of(*executions[i].reduce);
        if (!reduces_always) { rank.reduced += held(executions[i].reduce); }
      }
    }
  }

  void run_block(Rank& rank, const Block& block) {
    const Seconds start = rank.compute;
    Seconds waits;  // for experts
    std::vector<Seconds> ends(block.items.size());
    for (std::size_t i = 0; i < block.items.size(); ++i) {
      const Item& item = block.items[i];
      if (const auto other = item.waits_for()) { rank.compute = max(rank.compute, ends[(*other).index()]); }
      if (!is_collective(item)) {
        rank.compute += time_of(item);
        continue;
      }
      rank.beside = max(rank.beside, rank.compute) + time_of(item);
      ends[i] = rank.beside;
      if (call_of(item).group == GroupKind::ep) { expert_traffic_ += time_of(item); }
      if (is_asynchronous(item)) { continue; }
      if (call_of(item).group == GroupKind::ep && item.purpose != parallel::Purpose::recompute) {
        waits += rank.beside - rank.compute;
      }
      rank.compute = rank.beside;
    }
    for (const Seconds end : ends) { rank.compute = max(rank.compute, end); }
    expert_waits_ += min(waits, max(Seconds(0), rank.compute - (start + block.launch)));
    rank.compute = max(rank.compute, start + block.launch);
  }

  // Where a rank is in a segment that all stages walk side by side.
  struct Walk {
    std::vector<const Block*> blocks;
    std::size_t block = 0, item = 0;
    std::vector<Seconds> ends;  // of the block's items

    [[nodiscard]] bool done() const { return block == blocks.size(); }
    [[nodiscard]] const Item& next() const { return blocks[block]->items[item]; }
    [[nodiscard]] bool meets() const {  // in front of a collective of several stages
      if (done() || item == blocks[block]->items.size() || !is_collective(next())) { return false; }
      return call_of(next()).group == GroupKind::embedding || call_of(next()).group == GroupKind::world;
    }
  };

  // Items of a segment of every stage, side by side; collectives of several stages start when the last one has come.
  void run_together(Segment parallel::RankClass::* segment) {
    std::vector<Walk> walks(ranks_.size());
    for (std::size_t s = 0; s < ranks_.size(); ++s) {
      for (const auto& execution : written_out(class_of(s).*segment)) { walks[s].blocks.push_back(execution.work); }
    }
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t s = 0; s < ranks_.size(); ++s) {
        while (!walks[s].done() && !walks[s].meets()) { step(ranks_[s], walks[s]); }
      }
      for (const GroupKind group : {GroupKind::embedding, GroupKind::world}) {
        moved = run_meeting(group, walks) || moved;
      }
    }
    for (const auto& walk : walks) { ORRERY_ASSERT(walk.done()); }
  }

  // The next item of a walk, or the end of its block.
  void step(Rank& rank, Walk& walk) {
    const Block& block = *walk.blocks[walk.block];
    if (walk.item == block.items.size()) {
      for (const Seconds end : walk.ends) { rank.compute = max(rank.compute, end); }
      walk.ends.clear();
      walk.item = 0;
      ++walk.block;
      return;
    }
    const Item& item = walk.next();
    if (const auto other = item.waits_for()) { rank.compute = max(rank.compute, walk.ends[(*other).index()]); }
    if (is_collective(item)) {
      rank.beside = max(rank.beside, rank.compute) + time_of(item);
      walk.ends.push_back(rank.beside);
      if (!is_asynchronous(item)) { rank.compute = rank.beside; }
    } else {
      rank.compute += time_of(item);
      walk.ends.push_back(rank.compute);
    }
    ++walk.item;
  }

  bool run_meeting(GroupKind group, std::vector<Walk>& walks) {
    std::vector<std::size_t> members = {0, ranks_.size() - 1};
    if (group == GroupKind::world) {
      members.clear();
      for (std::size_t s = 0; s < ranks_.size(); ++s) { members.push_back(s); }
    }
    Seconds start;
    for (const std::size_t s : members) {
      if (!walks[s].meets() || call_of(walks[s].next()).group != group) { return false; }
      start = max(start, max(ranks_[s].compute, ranks_[s].beside));
    }
    for (const std::size_t s : members) {
      ranks_[s].compute = start;
      step(ranks_[s], walks[s]);
    }
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
  double interference_;
  std::vector<Rank> ranks_;
  std::map<std::tuple<bool, std::size_t, std::int32_t, std::int64_t>, Seconds> ends_;  // forward?, stage, chunk, number
  Seconds expert_waits_, expert_traffic_;                                              // of the pair at work
  std::map<const Item*, Seconds> times_;
};

}  // namespace

Played play(const Program& program, const network::Fabric& fabric, const hardware::Stack& stack) {
  Played played = Player(program, fabric, stack.overlap.interference).run();
  played.time += stack.host.step_overhead;
  return played;
}

}  // namespace orrery::estimate
