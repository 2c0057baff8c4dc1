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
        request_(std::move(request)),
        inputs_(std::move(inputs)),
        plan_(std::move(plan)),
        job_(estimate::job_of(request_, inputs_.model, inputs_.stack)) {}
  PlanSpeed(const PlanSpeed&) = delete;
  PlanSpeed& operator=(const PlanSpeed&) = delete;

  double of(std::int64_t devices) {
    const std::int64_t most = job_.global_batch / plan_.micro_batch;  // each replica has a micro-batch
    const std::int64_t replicas = std::min(most, devices / (plan_.devices() / plan_.dp));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!own_) { own_ = tokens_per_s(plan_.dp).value_or(0.0); }
    const auto [at, is_new] = known_.emplace(replicas, 0.0);
    if (is_new) { at->second = speed(replicas); }
    return at->second;
  }

 private:
  // Of this many replicas or somewhat fewer: some numbers fall badly on the network, and a replica may stand idle.
  double speed(std::int64_t replicas) {
    constexpr std::int64_t kFewer = 3;
    double best = 0.0;
    for (std::int64_t count = replicas; count >= 1 && (best == 0.0 || count >= replicas - kFewer); --count) {
      best = std::max(best, rate(count));
    }
    return *own_ > 0.0 ? best / *own_ : 0.0;
  }

  double rate(std::int64_t replicas) {
    const auto [at, is_new] = rates_.emplace(replicas, 0.0);
    if (is_new) { at->second = tokens_per_s(replicas).value_or(0.0); }
    return at->second;
  }

  // In sequences of the global batch: with the least number of micro-batches that has all of them, and with the largest
  // that has no more than them.
  std::optional<double> tokens_per_s(std::int64_t replicas) {
    parallel::Plan plan = plan_;
    plan.dp = replicas;
    const std::int64_t each = replicas * plan.micro_batch;
    const std::int64_t all = (job_.global_batch + each - 1) / each, whole = job_.global_batch / each;
    std::optional<double> best;
    const auto consider = [&](std::int64_t micro_batches) {
      const auto rate = rate_of(plan, micro_batches * each);
      if (rate) { best = std::max(best.value_or(0.0), *rate); }
      return rate.has_value();
    };
    for (std::int64_t count = all; count <= 2 * all && !consider(count); ++count) {}
    for (std::int64_t count = whole; count >= 1 && whole < all && !consider(count); --count) {}
    return best;
  }

  std::optional<double> rate_of(const parallel::Plan& plan, std::int64_t sequences) {
    parallel::Job job = job_;
    job.global_batch = sequences;
    if (!parallel::is_valid(inputs_.model, job, plan, plan.devices())) { return std::nullopt; }
    const auto cluster = cluster_of(plan.devices());
    if (!cluster || !parallel::is_valid(*cluster, plan)) { return std::nullopt; }
    estimate::Estimator estimator(inputs_.model, *cluster, inputs_.stack, job);
    return static_cast<double>(std::min(sequences, job_.global_batch)) / estimator.step_time(plan).value();
  }

  // The description is read once: that takes longer than a price.
  Result<hardware::Cluster> cluster_of(std::int64_t devices) {
    if (!tree_) { tree_ = catalogue_.cluster_tree(request_.cluster); }
    if (!*tree_) { return tl::make_unexpected(tree_->error()); }
    return catalogue_.cluster_of_tree(**tree_, devices, hardware::UnlikeNodes::modelled);
  }

  hardware::Catalogue catalogue_;
  std::optional<Result<config::Node>> tree_;  // of the cluster
  estimate::Request request_;
  Inputs inputs_;
  parallel::Plan plan_;
  parallel::Job job_;
  std::map<std::int64_t, double> known_, rates_;  // by replicas
  std::mutex mutex_;
  std::optional<double> own_;  // of the plan itself
};

}  // namespace

std::function<double(std::int64_t devices)> plan_speed(const std::string& data_directory,
                                                       const estimate::Request& request, const Inputs& inputs,
                                                       const parallel::Plan& plan) {
  const auto speed = std::make_shared<PlanSpeed>(data_directory, request, inputs, plan);
  return [speed](std::int64_t devices) { return speed->of(devices); };
}

}  // namespace orrery::api
