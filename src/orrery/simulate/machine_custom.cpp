// Collectives given as graphs: sends, receives and computing, all of which start as soon as nothing holds them back.
#include <algorithm>

#include "orrery/simulate/machine.hpp"
#include "orrery/simulate/rate.hpp"

namespace orrery::simulate {

void Machine::start_custom(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const GroupState& group = groups_[chunk.group];
  std::size_t position = chunk.rank;
  if (group.small) {  // among the ranks in ascending order, whatever the order of the list
    position = static_cast<std::size_t>(
        std::lower_bound(group.places.begin(), group.places.end(), std::pair{chunk.rank, 0U}) - group.places.begin());
  }
  chunk.custom = customs_.take();
  CustomRun& run = customs_[chunk.custom];
  run.chunk = id;
  run.program = &job_.customs.at(running_[chunk.collective].plan->custom).at(position);
  run.running = 0;
  run.free = {};
  run.parents.clear();
  for (const CustomStep& step : run.program->steps) { run.parents.push_back(step.parents); }
  for (const std::uint32_t step : run.program->start) { run.free.insert(run.program->steps[step].id, step); }
  issue_custom(chunk.custom);
}

void Machine::issue_custom(std::uint32_t number) {
  CustomRun& run = customs_[number];
  const std::vector<std::uint32_t> now = run.free.values();
  for (const std::uint32_t step : now) {
    run.free.erase(run.program->steps[step].id);
    ++run.running;
    start_custom_step(number, step);
  }
}

void Machine::start_custom_step(std::uint32_t number, std::uint32_t which) {
  const CustomRun& run = customs_[number];
  const CustomStep& step = run.program->steps[which];
  const Chunk& chunk = chunks_[run.chunk];
  const GroupState& group = groups_[chunk.group];
  const std::uint32_t peer = group.ranks != nullptr ? (*group.ranks)[step.peer] : step.peer;
  const Party party{Party::Kind::custom, chunk.rank, number, which};
  switch (step.act) {
    case CustomStep::Act::send: return send({step.amount, step.tag, chunk.rank, peer, party});
    case CustomStep::Act::receive: return expect(party, {step.tag, step.amount, peer, chunk.rank});
    case CustomStep::Act::compute:
      return kernel_.after(chunk.rank, step.amount / kPicosecondsPerNs,
                           {Happening::custom_over, 0, chunk.rank, number, which});
  }
}

void Machine::custom_step_over(std::uint32_t number, std::uint32_t which) {
  CustomRun& run = customs_[number];
  --run.running;
  for (const std::uint32_t child : run.program->steps[which].children) {
    if (--run.parents[child] == 0) { run.free.insert(run.program->steps[child].id, child); }
  }
  issue_custom(number);
  if (run.running != 0 || !run.free.empty()) { return; }
  const std::uint32_t chunk = run.chunk;
  customs_.give_back(number);
  phase_over(chunk);
}

}  // namespace orrery::simulate
