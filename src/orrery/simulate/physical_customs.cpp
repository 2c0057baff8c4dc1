#include "orrery/simulate/physical_customs.hpp"

namespace orrery::simulate {

void PhysicalCustoms::start(const Start& start) {
  const std::uint32_t id = runs_.take();
  Run& run = runs_[id];
  run.start = start;
  run.program = &start.programs->at(start.group->position(start.rank));
  run.unended = static_cast<std::uint32_t>(run.program->steps.size());
  run.parents.clear();
  for (const CustomStep& step : run.program->steps) { run.parents.push_back(step.parents); }
  for (std::uint32_t step = 0; step < run.program->steps.size(); ++step) {
    if (run.program->steps[step].parents == 0) { start_step(id, step); }
  }
}

void PhysicalCustoms::start_step(std::uint32_t id, std::uint32_t which) {
  const Run& run = runs_[id];
  const Start& start = run.start;
  const CustomStep& step = run.program->steps[which];
  const std::uint32_t peer = start.group->rank(step.peer), scope = start.collective + 1;
  const Continuation self{Continuation::Kind::custom_step, start.rank, id, which};
  switch (step.act) {
    case CustomStep::Act::send: {
      Order order;
      order.priority = start.priority;
      order.node = start.node;
      order.step = which;
      return messages_.send({step.tag, step.amount, start.rank, peer, scope}, self, order);
    }
    case CustomStep::Act::receive:
      return messages_.receive({step.tag, step.amount, peer, start.rank, scope}, self, start.node);
    case CustomStep::Act::compute:
      if (step.amount > kMostTime - rounds_.now()) { throw TooLong{}; }
      return rounds_.at(rounds_.now() + step.amount, {PhysicalEventKind::custom_step_end, id, which});
  }
}

std::optional<PhysicalCustoms::Start> PhysicalCustoms::end_step(std::uint32_t id, std::uint32_t which) {
  Run& run = runs_[id];
  for (const std::uint32_t child : run.program->steps[which].children) {
    if (--run.parents[child] == 0) { start_step(id, child); }
  }
  if (--run.unended != 0) { return std::nullopt; }
  runs_.give_back(id);
  return run.start;
}

}  // namespace orrery::simulate
