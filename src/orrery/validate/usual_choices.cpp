#include "orrery/validate/usual_choices.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "orrery/estimate/estimator.hpp"

namespace orrery::validate {

namespace {

class FitSearch {
 public:
  FitSearch(const estimate::Request& request, const workload::Model& model, const hardware::Cluster& cluster,
            const hardware::Stack& stack, parallel::Plan plan)
      : request_(request),
        model_(model),
        job_(estimate::job_of(request, model, stack)),
        devices_(cluster.devices),
        estimator_(model, cluster, stack, job_),
        plan_(plan) {}

  // If nothing fits: the choice with the lowest memory.
  parallel::Plan find() {
    for (const auto recompute : recompute_choices()) {
      for (const std::int64_t micro_batch : micro_batch_choices()) {
        plan_.recompute = recompute;
        plan_.micro_batch = micro_batch;
        if (!parallel::is_valid(model_, job_, plan_, devices_)) { continue; }
        if (estimator_.memory(plan_).fits) { return plan_; }
      }
    }
    plan_.recompute = recompute_choices().back();
    plan_.micro_batch = micro_batch_choices().back();
    return plan_;
  }

 private:
  [[nodiscard]] std::vector<parallel::Recompute> recompute_choices() const {
    if (request_.recompute) { return {*request_.recompute}; }
    if (job_.is_inference()) { return {parallel::Recompute::none}; }
    return {parallel::Recompute::none, parallel::Recompute::selective, parallel::Recompute::full};
  }

  [[nodiscard]] std::vector<std::int64_t> micro_batch_choices() const {
    if (request_.micro_batch) { return {*request_.micro_batch}; }
    if (job_.is_inference()) {
      // As many micro-batches as stages, or the largest smaller divisor of the batch: every stage has work.
      const std::int64_t replica = job_.global_batch / plan_.dp;
      std::int64_t count = std::min(plan_.pp, replica);
      while (replica % count != 0) { --count; }
      return {replica / count};
    }
    if (model_.is_recommender()) { return whole_batch_and_halves(job_.global_batch / plan_.dp); }
    return {8, 7, 6, 5, 4, 3, 2, 1};  // values that do not divide the batch are invalid plans
  }

  // A recommender's kernels are faster with larger micro-batches.
  static std::vector<std::int64_t> whole_batch_and_halves(std::int64_t batch) {
    std::vector<std::int64_t> sizes{batch};
    while (sizes.back() % 2 == 0) { sizes.push_back(sizes.back() / 2); }
    return sizes;
  }

  const estimate::Request& request_;
  const workload::Model& model_;
  parallel::Job job_;
  std::int64_t devices_;
  estimate::Estimator estimator_;
  parallel::Plan plan_;
};

}  // namespace

parallel::Plan usual_choices(const estimate::Request& request, const workload::Model& model,
                             const hardware::Cluster& cluster, const hardware::Stack& stack,
                             const parallel::Plan& plan) {
  return FitSearch(request, model, cluster, stack, plan).find();
}

}  // namespace orrery::validate
