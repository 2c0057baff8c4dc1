// `orrery plan --sample`: random points of a space, each priced as in a search, with the flags of `orrery estimate` for
// the same plan.
#include "orrery/explore/sample.hpp"

#include <utility>

#include "orrery/api/orrery.hpp"
#include "orrery/api/planning.hpp"

namespace orrery::api {

namespace {

std::string flag_of(const std::string& field, std::string_view prefix) {
  std::string flag(prefix);
  for (const char c : field) { flag += c == '_' ? '-' : c; }
  return flag;
}

std::string verdict_of(explore::Verdict verdict) {
  return verdict == explore::Verdict::network ? "network" : "invalid";
}

class Sampler {
 public:
  Sampler(const PlanRequest& request, const Problem& problem, const explore::Space& space)
      : job_(request.job),
        evaluator_(problem.inputs, space),
        estimator_(problem.inputs.model, problem.inputs.cluster, problem.inputs.stack, space.job()) {}

  results::SampledPoint point(const explore::SampledPoint& sampled) {
    results::SampledPoint point;
    point.number = sampled.number;
    if (sampled.member.verdict != explore::Verdict::possible) {
      point.verdict = verdict_of(sampled.member.verdict);
      return point;
    }
    const explore::Point& at = sampled.member.point;
    const auto price = evaluator_.price(at);
    estimator_.set_global_batch(at.global_batch);
    point.verdict = price ? "priced" : "memory";
    point.step_time = price ? price->step_time : evaluator_.unlimited_step_time(at);
    point.memory = price ? price->memory : estimator_.memory(at.plan).need;
    point.global_batch = at.global_batch;
    const auto estimate = estimator_.estimate(at.plan);
    point.plan = estimate.plan;
    point.flags = flags_of(request_of(job_, estimate));
    return point;
  }

 private:
  const estimate::Request& job_;
  PlanEvaluator evaluator_;
  estimate::Estimator estimator_;
};

}  // namespace

std::vector<std::string> flags_of(const estimate::Request& request) {
  const auto& record = estimate::request_record();
  const config::Node fields = record.to_node(request), defaults = record.to_node(estimate::Request{});
  std::vector<std::string> flags;
  for (const auto& member : fields.members) {
    const config::Node* default_value = defaults.find(member.key);
    if (default_value != nullptr && *default_value == member.value) { continue; }
    if (member.value.kind == config::Kind::boolean) {
      flags.push_back(flag_of(member.key, member.value.scalar == "true" ? "--" : "--no-"));
      continue;
    }
    flags.push_back(flag_of(member.key, "--"));
    flags.push_back(member.value.scalar);
  }
  return flags;
}

Result<results::Sample> Orrery::sample(const PlanRequest& request, std::int64_t count, std::uint64_t seed) const {
  ORRERY_TRY(problem, read_problem(data_directory_, catalogue_, request));
  ORRERY_TRY(space, space_of(request, problem));
  const auto points = explore::sample_points(*explore::walks_of(space)(), count, seed);
  Sampler sampler(request, problem, space);
  results::Sample sample{points.points, seed, {}};
  for (const auto& one : points.sampled) { sample.sampled.push_back(sampler.point(one)); }
  return sample;
}

}  // namespace orrery::api
