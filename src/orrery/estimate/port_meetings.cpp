#include "orrery/estimate/port_meetings.hpp"

#include <algorithm>
#include <cstddef>

namespace orrery::estimate {

using parallel::ChunkProgram;
using parallel::ChunkProgramId;

void PortMeetings::find(const parallel::Program& program, const std::vector<Cost>& blocks,
                        std::span<const FirstGathers> gathers, WorkPrice* known) {
  program_ = &program;
  blocks_ = &blocks;
  known_ = known;
  dimensions_ = shared_dimensions();
  if (!any()) { return; }
  if (known != nullptr) { known->port_uses.resize(known->blocks.size()); }
  find_blocks();
  find_chunks(gathers);
}

void PortMeetings::clear() { dimensions_ = 0; }

// Dimensions that the groups use, a bit each.
unsigned PortMeetings::dimensions_of(std::initializer_list<parallel::GroupKind> groups) const {
  unsigned bits = 0;
  for (const auto kind : groups) {
    for (const auto& extent : program_->mesh.group(kind).extents) {
      bits |= 1U << static_cast<unsigned>(extent.dimension);
    }
  }
  return bits;
}

unsigned PortMeetings::shared_dimensions() const {
  using enum parallel::GroupKind;
  const unsigned shared = dimensions_of({dp}) & dimensions_of({tp, cp, tables, table_copies});
  const bool has_experts = std::any_of(program_->classes.begin(), program_->classes.end(), [](const auto& rank_class) {
    return rank_class.expert_parameters > 0.0 || rank_class.frozen_expert > 0.0;
  });
  return has_experts ? shared | (dimensions_of({dp, expert_dp}) & dimensions_of({tp, cp, ep, etp})) : shared;
}

void PortMeetings::find_blocks() {
  ports_.assign(program_->blocks.size(), nullptr);
  own_.resize(std::max(own_.size(), program_->blocks.size()));
  for (const auto& chunk : program_->chunks) {
    for (const auto* segment : {&chunk.forward, &chunk.backward, &chunk.weight, &chunk.last_backward}) {
      if (std::none_of(segment->begin(), segment->end(),
                       [](const auto& use) { return use.gather.has_value() || use.reduce.has_value(); })) {
        continue;
      }
      for (const auto& use : *segment) {
        find_block(use.work, true);
        if (use.gather) { find_block(*use.gather, false); }
        if (use.reduce) { find_block(*use.reduce, false); }
      }
    }
  }
}

// Of tasks that run concurrently with gathers of updated weights, or with reductions of other chunks of their stage.
// Both matter on the dimensions that they have in common.
void PortMeetings::find_chunks(std::span<const FirstGathers> gathers) {
  chunks_.resize(program_->chunks.size());
  classes_.resize(program_->classes.size());
  for (auto& of : classes_) { of.gathers.known = of.reductions.known = false; }
  gathered_on_ = reduced_on_ = 0;
  unsigned forwards_on = 0, backwards_on = 0;
  const auto used_by = [&](const parallel::Segment& tasks) {
    unsigned bits = 0;
    for (const auto& use : tasks) {
      find_block(use.work, true);
      bits |= ports_[use.work.index()]->used;
    }
    return bits;
  };
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const ChunkProgram& chunk = program_->chunks[ChunkProgramId(i)];
    auto& [gathered, reduced] = chunks_[i];
    gathered.known = gathers[i].updated;
    reduced.known = reduces_beside_others(chunk);
    if (gathered.known) {
      gathered = {.tasks = {}, .concurrent = {}, .known = true};
      for (const auto& use : chunk.first_forward) { add_call(gathered.concurrent, use, use.gather); }
      gathered_on_ |= gathered.concurrent.used;
      forwards_on |= used_by(chunk.forward);
    }
    if (reduced.known) {
      reduced = {.tasks = {}, .concurrent = {}, .known = true};
      for (const auto& use : chunk.last_backward) { add_call(reduced.concurrent, use, use.reduce); }
      reduced_on_ |= reduced.concurrent.used;
      backwards_on |= used_by(chunk.backward) | used_by(chunk.weight);
    }
  }
  gathered_on_ &= forwards_on;
  reduced_on_ &= backwards_on;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const ChunkProgram& chunk = program_->chunks[ChunkProgramId(i)];
    if (chunks_[i].gathers.known) { add_tasks(chunks_[i].gathers.tasks, chunk.forward, gathered_on_); }
    if (!chunks_[i].reductions.known) { continue; }
    add_tasks(chunks_[i].reductions.tasks, chunk.backward, reduced_on_);
    add_tasks(chunks_[i].reductions.tasks, chunk.weight, reduced_on_);
  }
}

bool PortMeetings::reduces_beside_others(const ChunkProgram& chunk) const {
  return program_->pipeline.chunks > 1 && !chunk.waits_for_reduce;
}

void PortMeetings::add_tasks(PortUses& sum, const parallel::Segment& segment, unsigned dimensions) {
  if (dimensions == 0) { return; }
  for (const auto& use : segment) {
    find_block(use.work, true);
    add_executions(sum, static_cast<double>(use.repeat), *ports_[use.work.index()], dimensions);
  }
}

void PortMeetings::add_call(PortUses& sum, const parallel::BlockUse& use, parallel::OptionalBlockId call) {
  if (!call) { return; }
  find_block(*call, false);
  add_executions(sum, static_cast<double>(use.repeat), *ports_[(*call).index()], dimensions_);
}

void PortMeetings::find_block(parallel::BlockId id, bool is_work) {
  const PortUses*& uses = ports_[id.index()];
  if (uses != nullptr) { return; }
  if (known_ == nullptr || id.index() >= known_->blocks.size()) {
    own_[id.index()] = computed_uses(id, is_work);
    uses = &own_[id.index()];
    return;
  }
  auto& kept = known_->port_uses[id.index()];
  if (!kept) { kept = computed_uses(id, false); }
  if (is_work && (kept->used & dimensions_ & ~kept->contended_on) != 0) {
    find_contended_times(*kept, dimensions_, program_->block(id), program_->mesh, prices_);
  }
  uses = &*kept;
}

PortUses PortMeetings::computed_uses(parallel::BlockId id, bool is_work) {
  const parallel::Block& block = program_->block(id);
  PortUses uses = port_uses(block, (*blocks_)[id.index()].time, program_->mesh, prices_);
  if (is_work) { find_contended_times(uses, dimensions_, block, program_->mesh, prices_); }
  return uses;
}

const PortMeeting& PortMeetings::of_class(parallel::RankClassId of, PortMeeting Meetings::* kind, unsigned dimensions,
                                          double in_a_row) {
  PortMeeting& sum = classes_[of.index()].*kind;
  if (sum.known) { return sum; }
  sum = {.tasks = {}, .concurrent = {}, .known = true};
  if (dimensions == 0) { return sum; }
  const auto count = static_cast<std::size_t>(program_->pipeline.chunks);
  for (std::size_t c = 0; c < count; ++c) {
    const PortMeeting& chunk = chunks_[program_->classes[of].chunks[c].program.index()].*kind;
    if (!chunk.known) { continue; }
    add_executions(sum.tasks, c + 1 == count ? 1.0 : in_a_row, chunk.tasks, dimensions);
    add_executions(sum.concurrent, 1.0, chunk.concurrent, dimensions);
  }
  return sum;
}

}  // namespace orrery::estimate
