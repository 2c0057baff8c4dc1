#include "orrery/api/plan_speed.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "orrery/estimate/estimator.hpp"

namespace orrery::api {

namespace {

class PlanSpeed {
 public:
  PlanSpeed(std::string data_directory, estimate::Request request, Inputs inputs, parallel::Plan plan)
      : catalogue_(data_directory),
        sources_(catalogue_sources(data_directory, catalogue_)),
        request_(std::move(request)),
        inputs_(std::move(inputs)),
        plan_(std::move(plan)),
        job_(estimate::job_of(request_, inputs_.model, inputs_.stack)),
        own_(tokens_per_s(plan_.dp).value_or(0.0)) {}
  PlanSpeed(const PlanSpeed&) = delete;
  PlanSpeed& operator=(const PlanSpeed&) = delete;

  double of(std::int64_t devices) {
    const std::int64_t most = job_.global_batch / plan_.micro_batch;  // each replica has a micro-batch
    const std::int64_t replicas = std::min(most, devices / (plan_.devices() / plan_.dp));
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [at, is_new] = known_.emplace(replicas, 0.0);
    if (is_new) { at->second = speed(replicas); }
    return at->second;
  }

 private:
  double speed(std::int64_t replicas) {
    for (std::int64_t count = replicas; count >= 1 && own_ > 0.0; --count) {
      if (const auto rate = tokens_per_s(count)) { return *rate / own_; }
    }
    return 0.0;
  }

  // In sequences of the global batch that is kept.
  std::optional<double> tokens_per_s(std::int64_t replicas) {
    parallel::Plan plan = plan_;
    plan.dp = replicas;
    const std::int64_t each = replicas * plan.micro_batch, batch = job_.global_batch;
    std::optional<double> best;
    for (const std::int64_t sequences : {(batch + each - 1) / each * each, batch / each * each}) {
      parallel::Job job = job_;
      job.global_batch = sequences;
      if (sequences == 0 || !parallel::is_valid(inputs_.model, job, plan, plan.devices())) { continue; }
      estimate::Request request = request_;
      request.devices = plan.devices();
      const auto cluster = sources_.cluster(request);
      if (!cluster || !parallel::is_valid(*cluster, plan)) { continue; }
      estimate::Estimator estimator(inputs_.model, *cluster, inputs_.stack, job);
      const double rate = static_cast<double>(std::min(sequences, batch)) / estimator.step_time(plan).value();
      best = std::max(best.value_or(0.0), rate);
    }
    return best;
  }

  hardware::Catalogue catalogue_;
  InputSources sources_;
  estimate::Request request_;
  Inputs inputs_;
  parallel::Plan plan_;
  parallel::Job job_;
  std::map<std::int64_t, double> known_;  // by replicas
  std::mutex mutex_;
  double own_;
};

}  // namespace

std::function<double(std::int64_t devices)> plan_speed(const std::string& data_directory,
                                                       const estimate::Request& request, const Inputs& inputs,
                                                       const parallel::Plan& plan) {
  const auto speed = std::make_shared<PlanSpeed>(data_directory, request, inputs, plan);
  return [speed](std::int64_t devices) { return speed->of(devices); };
}

}  // namespace orrery::api
