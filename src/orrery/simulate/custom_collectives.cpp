#include "orrery/simulate/custom_collectives.hpp"

#include "orrery/simulate/rate.hpp"

namespace orrery::simulate {

void CustomCollectives::start(std::uint32_t id, const Chunk& chunk, const GroupMembers& group,
                              const std::string& prefix) {
  const std::uint32_t number = runs_.take();
  Run& run = runs_[number];
  run.chunk = id;
  run.rank = chunk.rank;
  run.group = &group;
  run.program = &job_.customs.at(prefix).at(group.ascending_position(chunk.rank));
  run.running = 0;
  run.free = {};
  run.parents.clear();
  for (const CustomStep& step : run.program->steps) { run.parents.push_back(step.parents); }
  for (const std::uint32_t step : run.program->start) { run.free.insert(run.program->steps[step].id, step); }
  issue(number);
}

void CustomCollectives::issue(std::uint32_t number) {
  Run& run = runs_[number];
  const std::vector<std::uint32_t> now = run.free.values();
  for (const std::uint32_t step : now) {
    run.free.erase(run.program->steps[step].id);
    ++run.running;
    start_step(number, step);
  }
}

void CustomCollectives::start_step(std::uint32_t number, std::uint32_t which) {
  const Run& run = runs_[number];
  const CustomStep& step = run.program->steps[which];
  const std::uint32_t peer = run.group->rank_at(step.peer);
  const Continuation self{Continuation::Kind::custom_step, run.rank, number, which};
  switch (step.act) {
    case CustomStep::Act::send: return messenger_.send({step.amount, step.tag, run.rank, peer, self});
    case CustomStep::Act::receive: return messenger_.receive(self, {step.tag, step.amount, peer, run.rank});
    case CustomStep::Act::compute:
      return events_.after(run.rank, step.amount / kPicosecondsPerNs,
                           {EventKind::custom_step_end, 0, run.rank, number, which});
  }
}

std::optional<std::uint32_t> CustomCollectives::end_step(std::uint32_t number, std::uint32_t which) {
  Run& run = runs_[number];
  --run.running;
  for (const std::uint32_t child : run.program->steps[which].children) {
    if (--run.parents[child] == 0) { run.free.insert(run.program->steps[child].id, child); }
  }
  issue(number);
  if (run.running != 0 || !run.free.empty()) { return std::nullopt; }
  runs_.give_back(number);
  return run.chunk;
}

}  // namespace orrery::simulate
