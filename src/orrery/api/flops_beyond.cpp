#include "orrery/api/flops_beyond.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>

#include "orrery/core/integers.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::api {

namespace {

using parallel::Purpose;

// FLOPs of all ranks by operator.
struct Passes {
  double forward = 0, backward = 0, recompute = 0, optimizer = 0;

  [[nodiscard]] double all() const { return forward + backward + recompute + optimizer; }
};

class PassSums {
 public:
  explicit PassSums(const parallel::Program& program) : program_(program) {
    const bool has_two_ways = program.plan.schedule == parallel::ScheduleKind::dualpipe;
    const double m = real(program.pipeline.micro_batches) * (has_two_ways ? 0.5 : 1.0);
    for (const parallel::RankClass& ranks : program.classes) {
      const double count = real(ranks.stages) * real(program.plan.stage_ranks());
      add(ranks.finish_reduce, count);
      add(ranks.finish, count);
      for (const parallel::Chunk& place : ranks.chunks) {
        const parallel::ChunkProgram& chunk = program.program_of(place);
        add(chunk.first_forward, count);
        add(chunk.forward, count * (m - 1.0));
        add(chunk.backward, count * (chunk.weight.empty() ? m - 1.0 : m));
        add(chunk.weight, count * (m - 1.0));
        add(chunk.last_backward, count);
      }
    }
  }

  [[nodiscard]] const std::map<std::string, Passes>& all() const { return sums_; }

 private:
  void add(const parallel::Segment& segment, double times) {
    for (const parallel::BlockUse& use : segment) {
      for (const parallel::Item& item : program_.block(use.work).items) {
        if (item.kernel() == nullptr) { continue; }
        pass_of(sums_[std::string(item.name)], item.purpose) +=
            times * real(use.repeat) * item.kernel()->kernel.flops.value();
      }
    }
  }

  static double& pass_of(Passes& passes, Purpose purpose) {
    switch (purpose) {
      case Purpose::forward: return passes.forward;
      case Purpose::backward:
      case Purpose::weight_gradient: return passes.backward;
      case Purpose::recompute: return passes.recompute;
      case Purpose::optimizer: break;
    }
    return passes.optimizer;
  }

  const parallel::Program& program_;
  std::map<std::string, Passes> sums_;
};

}  // namespace

std::vector<results::FlopsPart> flops_beyond_hfu(const parallel::Program& program, const workload::Model& model,
                                                 double executed, double hfu) {
  if (program.job.is_inference()) { return {}; }
  const double notable = 1e-6 * executed;  // nodes round to whole operations
  std::vector<results::FlopsPart> parts;
  double left = executed - hfu;
  const auto add = [&](std::string name, double flops) {
    if (!(flops > notable)) { return; }
    left -= flops;
    parts.push_back({std::move(name), flops});
  };
  const double rows = real(workload::vocabulary_rows(model, program.plan.tp) * program.plan.tp);
  const PassSums sums(program);
  for (const auto& [name, passes] : sums.all()) {
    add(fmt::format("{}: the backward pass computes parts of the forward pass again", name),
        passes.backward - 2.0 * passes.forward);
    add(name + ": optimizer", passes.optimizer);
    if (name == "head.logits") {
      add(name + ": padded rows of the vocabulary", passes.all() * (1.0 - real(model.vocab) / rows));
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.flops > b.flops; });
  if (std::abs(left) > notable) { parts.push_back({"other", left}); }
  return parts;
}

}  // namespace orrery::api
