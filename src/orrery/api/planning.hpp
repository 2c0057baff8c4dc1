// One search: what it is over, read and checked; what it finds, estimated and explained.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "orrery/api/explanation.hpp"
#include "orrery/api/inputs.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/api/plan_evaluator.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/explore/search.hpp"
#include "orrery/explore/space_walk.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::api {

struct Problem {
  Inputs inputs;
  explore::SpaceFile file;
  parallel::Job job;
};

[[nodiscard]] Result<Problem> read_problem(const std::string& data_directory, const hardware::Catalogue& catalogue,
                                           const PlanRequest& request);
// Of inputs that are read.
[[nodiscard]] Result<Problem> problem_of(const std::string& data_directory, const PlanRequest& request, Inputs inputs);
[[nodiscard]] Result<explore::Space> space_of(const PlanRequest& request, const Problem& problem);
// What is wrong with the fixed values of a space without points.
[[nodiscard]] std::vector<Diagnostic> fixed_problems(const PlanRequest& request, const Problem& problem);
[[nodiscard]] explore::SearchOptions search_options(const PlanRequest& request);

// Keeps references to the request and the problem, which must outlive it.
class Planning {
 public:
  Planning(const PlanRequest& request, const Problem& problem, explore::Space space);

  // Best and front are as the objective step_time has them; nothing is explained.
  [[nodiscard]] results::PlanSearch run();
  // Of what `run` found, which must not be nothing.
  [[nodiscard]] std::vector<std::string> explained(const std::vector<results::Estimate>& best);
  [[nodiscard]] const explore::Candidate& winner() const { return found_.best.front(); }

 private:
  [[nodiscard]] results::Estimate estimate(const explore::Point& point);
  [[nodiscard]] std::vector<Alternative> alternatives_to(const explore::Point& best);
  [[nodiscard]] std::optional<explore::Point> under_schedule(parallel::ScheduleKind schedule,
                                                             const explore::Point& best, explore::Walk& walk,
                                                             PlanEvaluator& evaluator) const;

  const PlanRequest& request_;
  const Inputs& inputs_;
  explore::Space space_;
  estimate::Estimator estimator_;
  explore::SearchResult found_;
};

}  // namespace orrery::api
