#include "orrery/network/composition_run.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::network {

namespace {

bool in_switch(Pattern pattern) {
  return pattern == Pattern::switch_up || pattern == Pattern::switch_down || pattern == Pattern::multicast;
}

std::size_t extent_of(const InlineList<Extent, kMaxExtents>& extents, int dimension) {
  std::size_t e = 0;
  while (extents[e].dimension != dimension) { ++e; }
  return e;
}

}  // namespace

CompositionRun::CompositionRun(const Schedule& schedule, const Group& group, std::vector<char> both_ways)
    : schedule_(schedule), shape_(shape_of(schedule)) {
  make_phases(group, both_ways);
  make_stages();
  lanes_.resize(members_ * shape_.slots);
  progress_.resize(members_);
  unfinished_ = members_;
}

void CompositionRun::make_phases(const Group& group, const std::vector<char>& both_ways) {
  const auto extents = effective_extents(group);
  const auto chunks = static_cast<double>(schedule_.chunks);
  for (const Extent& extent : extents) { members_ *= static_cast<std::uint32_t>(extent.members); }
  for (const SchedulePhase& phase : schedule_.phases) {
    ORRERY_ASSERT(phase.pattern != Pattern::flat_ring && !phase.concurrent);
    const std::size_t e = extent_of(extents, phase.dimension);
    Phase made;
    made.line = line_schedule(schedule_.collective, phase);
    made.steps = line_steps(schedule_.collective, phase);
    made.in_switch = in_switch(phase.pattern);
    made.both_ways = both_ways[e] != 0 && phase.members > 2 && !made.in_switch;
    for (std::size_t i = 0; i < e; ++i) { made.stride *= static_cast<std::uint32_t>(extents[i].members); }
    // Inside a line, a member works on its part of the inner extents; an all-to-all has the whole buffer everywhere.
    const bool all_to_all = schedule_.collective == Collective::all_to_all;
    const double buffer = schedule_.bytes.value() / chunks / (all_to_all ? 1.0 : static_cast<double>(made.stride));
    made.block_bytes = buffer / static_cast<double>(block_count(made.line));
    phases_.push_back(made);
  }
}

void CompositionRun::make_stages() {
  stages_.resize(shape_.stages.size());
  for (std::size_t p = 0; p < phases_.size(); ++p) { stages_[shape_.stage_of_phase[p]].phases.push_back(p); }
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    std::uint32_t steps = 0;
    for (const std::size_t p : stages_[s].phases) { steps += phases_[p].in_switch ? 1 : phases_[p].steps.count; }
    stages_[s].steps = level_per_step(schedule_.phases[stages_[s].phases.front()].pattern) ? 1 : steps;
    most_steps_ = std::max(most_steps_, stages_[s].steps);
    rounds_ = std::max(rounds_, shape_.stages[s].first_level + shape_.stages[s].levels + schedule_.chunks - 1);
  }
}

std::vector<std::uint32_t> CompositionRun::line(std::size_t phase, std::uint32_t origin) const {
  std::vector<std::uint32_t> positions;
  for (std::uint32_t i = 0; i < phases_[phase].line.members; ++i) {
    positions.push_back(origin + i * phases_[phase].stride);
  }
  return positions;
}

void CompositionRun::start() {
  for (std::uint32_t member = 0; member < members_; ++member) { run_member(member); }
}

// Rounds until one has messages that have not arrived.
void CompositionRun::run_member(std::uint32_t member) {
  Member& progress = progress_[member];
  while (progress.busy == 0) {
    if (++progress.round == rounds_) {
      --unfinished_;
      return;
    }
    progress.busy = shape_.slots;
    for (std::size_t slot = 0; slot < shape_.slots; ++slot) {
      lane(member, slot) = {stages_.size(), 0, 0};
      if (run_lane(member, slot)) { --progress.busy; }
    }
  }
}

// Work of the round until a step has messages that have not arrived; whether the lane is at the end of the round.
bool CompositionRun::run_lane(std::uint32_t member, std::size_t slot) {
  Lane& at = lane(member, slot);
  const std::int64_t round = progress_[member].round;
  while (true) {
    if (at.stage == stages_.size() || at.step == stages_[at.stage].steps) {
      do {
        if (at.stage == 0) { return true; }
        --at.stage;  // later stages have older chunks
      } while (!is_active(at.stage, slot, round));
      at.step = 0;
    }
    begin_step(member, slot);
    if (at.missing > 0) { return false; }
    ++at.step;
  }
}

bool CompositionRun::is_active(std::size_t stage, std::size_t slot, std::int64_t round) const {
  const StageShape& shape = shape_.stages[stage];
  return shape.slot == slot && round >= shape.first_level &&
         round < shape.first_level + shape.levels + schedule_.chunks - 1;
}

void CompositionRun::begin_step(std::uint32_t member, std::size_t slot) {
  Lane& at = lane(member, slot);
  at.missing = 0;
  const Stage& stage = stages_[at.stage];
  const StageShape& shape = shape_.stages[at.stage];
  if (level_per_step(schedule_.phases[stage.phases.front()].pattern)) {
    for (std::int64_t level = 0; level < shape.levels; ++level) {
      const std::int64_t chunk = progress_[member].round - shape.first_level - level;
      const std::size_t phase = stage.phases.front();
      if (chunk < 0 || chunk >= schedule_.chunks) { continue; }
      add_step(member, slot, phase, phases_[phase].steps.first + static_cast<std::uint32_t>(level));
    }
  } else {
    std::uint32_t step = at.step;
    for (const std::size_t p : stage.phases) {
      const std::uint32_t count = phases_[p].in_switch ? 1 : phases_[p].steps.count;
      if (step < count) {
        add_step(member, slot, p, phases_[p].steps.first + step);
        break;
      }
      step -= count;
    }
  }
  if (const auto early = early_.find(key_of(member, slot, place_of(member, slot))); early != early_.end()) {
    at.missing -= early->second;
    early_.erase(early);
  }
}

void CompositionRun::add_step(std::uint32_t member, std::size_t slot, std::size_t phase, std::uint32_t step) {
  const Phase& on = phases_[phase];
  if (on.in_switch) { return add_switch_step(member, slot, phase); }
  // Before a scatter, only the line of the root's coordinates on outer extents has data.
  if (on.line.collective == Collective::scatter && member / (on.stride * on.line.members) != 0) { return; }
  add_line_step(member, slot, phase, step, false);
  if (on.both_ways) { add_line_step(member, slot, phase, step, true); }
}

void CompositionRun::add_line_step(std::uint32_t member, std::size_t slot, std::size_t phase, std::uint32_t step,
                                   bool mirrored) {
  const Phase& on = phases_[phase];
  const std::uint32_t n = on.line.members, own = member / on.stride % n;
  const auto name = [&](std::uint32_t p) { return mirrored && p != 0 ? n - p : p; };
  const std::uint32_t sends = send_count(on.line, name(own), step);
  lane(member, slot).missing += sends + receive_count(on.line, name(own), step);
  for (std::uint32_t i = 0; i < sends; ++i) {
    const StepMessage message = send(on.line, name(own), step, i);
    const double bytes = on.block_bytes * message.count * (on.both_ways ? 0.5 : 1.0);
    messages_.push_back({member, member - own * on.stride + name(message.peer) * on.stride,
                         static_cast<std::uint16_t>(phase), static_cast<std::uint16_t>(slot), bytes,
                         place_of(member, slot)});
  }
}

// Up and down at once. What a switch copies to the member that sent it loads the port, too.
void CompositionRun::add_switch_step(std::uint32_t member, std::size_t slot, std::size_t phase) {
  const Phase& on = phases_[phase];
  const std::uint32_t n = on.line.members, own = member / on.stride % n, origin = member - own * on.stride;
  const std::uint64_t place = place_of(member, slot);
  const std::uint32_t sends = send_count(on.line, own, 0);
  lane(member, slot).missing += sends + receive_count(on.line, own, 1);
  const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint32_t blocks) {
    messages_.push_back({from, to, static_cast<std::uint16_t>(phase), static_cast<std::uint16_t>(slot),
                         on.block_bytes * blocks, place});
  };
  for (std::uint32_t i = 0; i < sends; ++i) { add(member, members_ + origin, send(on.line, own, 0, i).count); }
  const std::uint64_t key = key_of(members_ + origin, slot, place);
  if (++begun_[key] < n) { return; }
  begun_.erase(key);
  for (std::uint32_t i = 0; i < send_count(on.line, n, 1); ++i) {
    const StepMessage message = send(on.line, n, 1, i);
    const bool copies = on.line.collective == Collective::all_gather;
    add(members_ + origin, origin + message.peer * on.stride, copies ? n : message.count);
  }
}

void CompositionRun::arrive(const Message& message) {
  if (message.from < members_) { notify(message.from, message); }
  if (message.to < members_) { notify(message.to, message); }
}

void CompositionRun::notify(std::uint32_t member, const Message& message) {
  Member& progress = progress_[member];
  Lane& at = lane(member, message.lane);
  const bool is_begun = progress.round >= 0 && at.stage < stages_.size() && at.missing > 0;
  if (!is_begun || place_of(member, message.lane) != message.place) {
    ++early_[key_of(member, message.lane, message.place)];
    return;
  }
  if (--at.missing > 0) { return; }
  ++at.step;
  if (!run_lane(member, message.lane)) { return; }
  if (--progress.busy == 0) { run_member(member); }
}

// Older chunks are in later stages and come first.
std::uint64_t CompositionRun::place_of(std::uint32_t member, std::size_t slot) const {
  const Lane& at = lane(member, slot);
  const auto round = static_cast<std::uint64_t>(progress_[member].round);
  return (round * stages_.size() + (stages_.size() - 1 - at.stage)) * most_steps_ + at.step;
}

}  // namespace orrery::network
