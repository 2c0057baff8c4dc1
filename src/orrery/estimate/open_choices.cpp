#include "orrery/estimate/open_choices.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>

#include "orrery/parallel/plan_fields.hpp"

namespace orrery::estimate {

namespace {

using parallel::Plan;
using parallel::PlanField;

constexpr std::array kOpenFields = {PlanField::vpp, PlanField::schedule, PlanField::micro_batch,
                                    PlanField::sequence_parallel, PlanField::recompute};

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) { continue; }
    found.push_back(d);
    if (d != number / d) { found.push_back(number / d); }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::int64_t> chunk_counts(const Request& request, const workload::Model& model, const Plan& plan,
                                       bool inference) {
  const bool has_one =
      inference || plan.pp == 1 || (request.schedule && *request.schedule != parallel::ScheduleKind::interleaved);
  if (request.vpp || has_one) { return {plan.vpp}; }
  const std::int64_t layers = model.depth() + (plan.embedding_as_layer ? 1 : 0) + (plan.head_as_layer ? 1 : 0);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(std::max<std::int64_t>(1, layers / plan.pp)));
  std::iota(counts.begin(), counts.end(), 1);
  return counts;
}

}  // namespace

std::vector<Plan> open_plans(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
                             const hardware::Stack& stack, const Plan& plan) {
  const parallel::Job job = job_of(request, model, stack);
  using parallel::Recompute;
  const std::int64_t replica = plan.dp > 0 ? job.global_batch / plan.dp : 0;
  const auto micro_batches = request.micro_batch ? std::vector{*request.micro_batch} : divisors(replica);
  const auto sequence_parallel = request.sequence_parallel || plan.tp == 1 ? std::vector<bool>{plan.sequence_parallel}
                                                                           : std::vector<bool>{false, true};
  const bool keeps_recompute = request.recompute || plan.recompute_modules.any() || job.is_inference();
  const auto recompute = keeps_recompute ? std::vector{plan.recompute}
                                         : std::vector{Recompute::none, Recompute::selective, Recompute::full};
  std::vector<Plan> plans;
  for (const std::int64_t vpp : chunk_counts(request, model, plan, job.is_inference())) {
    for (const std::int64_t micro_batch : micro_batches) {
      for (const bool parallel_sequence : sequence_parallel) {
        for (const Recompute one : recompute) {
          Plan next = plan;
          next.vpp = vpp;
          if (!request.schedule) {
            next.schedule = vpp > 1 ? parallel::ScheduleKind::interleaved : parallel::ScheduleKind::one_f_one_b;
          }
          next.micro_batch = micro_batch;
          next.sequence_parallel = parallel_sequence;
          next.recompute = one;
          if (!parallel::is_valid(model, job, next, cluster.devices) || !parallel::is_valid(cluster, next)) {
            continue;
          }
          plans.push_back(next);
        }
      }
    }
  }
  return plans;
}

namespace {

class Fastest {
 public:
  Fastest(Estimator& estimator, const std::vector<Plan>& plans) : estimator_(estimator), plans_(plans) {}

  OpenChoice find() {
    std::vector<Seconds> bounds;
    bounds.reserve(plans_.size());
    for (const Plan& plan : plans_) { bounds.push_back(estimator_.step_time_bound(plan)); }
    std::vector<std::size_t> order(plans_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
    for (const std::size_t i : order) {
      if (!matters(plans_[i], bounds[i])) { continue; }
      if (const auto price = estimator_.price(plans_[i])) { enter(i, price->step_time); }
    }
    return answer();
  }

 private:
  struct Entry {
    Seconds time{std::numeric_limits<double>::infinity()};
    std::size_t plan = 0;
    [[nodiscard]] bool before(const Entry& other) const {
      return time < other.time || (time == other.time && plan < other.plan);
    }
  };
  using ByValue = std::map<std::int64_t, Entry>;  // the fastest plan with each value of a field

  static std::int64_t value(PlanField field, const Plan& plan) { return parallel::part_of(field).get(plan); }

  // Whether a plan with this bound could be the fastest with one of its values.
  [[nodiscard]] bool matters(const Plan& plan, Seconds bound) const {
    for (std::size_t f = 0; f < kOpenFields.size(); ++f) {
      const auto found = fastest_[f].find(value(kOpenFields[f], plan));
      if (found == fastest_[f].end() || bound <= found->second.time) { return true; }
    }
    return false;
  }

  void enter(std::size_t plan, Seconds time) {
    const Entry entry{time, plan};
    if (!any_ || entry.before(best_)) { best_ = entry; }
    any_ = true;
    for (std::size_t f = 0; f < kOpenFields.size(); ++f) {
      Entry& known = fastest_[f][value(kOpenFields[f], plans_[plan])];
      if (entry.before(known)) { known = entry; }
    }
  }

  // If nothing fits. A batch of requests needs its keys and values whatever the micro-batch is, and small micro-batches
  // read the weights again and again: the fastest is named. Else the plan with the lowest memory.
  [[nodiscard]] const Plan& if_none_fits() const {
    if (!estimator_.job().is_inference()) { return lowest_memory(); }
    return *std::min_element(plans_.begin(), plans_.end(), [&](const Plan& a, const Plan& b) {
      return estimator_.step_time(a) < estimator_.step_time(b);
    });
  }

  [[nodiscard]] const Plan& lowest_memory() const {
    const Plan* lowest = &plans_.front();
    Bytes least = estimator_.memory(*lowest).need;
    for (const Plan& plan : plans_) {
      const Bytes need = estimator_.memory(plan).need;
      if (need < least) {
        least = need;
        lowest = &plan;
      }
    }
    return *lowest;
  }

  [[nodiscard]] bool varies(PlanField field) const {
    return std::any_of(plans_.begin(), plans_.end(),
                       [&](const Plan& plan) { return value(field, plan) != value(field, plans_.front()); });
  }

  OpenChoice answer() {
    OpenChoice choice{any_ ? plans_[best_.plan] : if_none_fits(), any_, {}};
    for (std::size_t f = 0; f < kOpenFields.size(); ++f) {
      if (!varies(kOpenFields[f])) { continue; }
      OpenChoice::Field field{kOpenFields[f], std::nullopt};
      std::optional<Entry> second;
      for (const auto& [with, entry] : fastest_[f]) {
        if (with != value(kOpenFields[f], choice.plan) && (!second || entry.before(*second))) { second = entry; }
      }
      if (second) {
        field.runner_up = OpenChoice::Field::RunnerUp{plans_[second->plan], second->time / best_.time - 1.0};
      }
      choice.fields.push_back(field);
    }
    return choice;
  }

  Estimator& estimator_;
  const std::vector<Plan>& plans_;
  std::array<ByValue, kOpenFields.size()> fastest_;
  Entry best_;
  bool any_ = false;
};

}  // namespace

OpenChoice fastest(Estimator& estimator, const std::vector<Plan>& plans) { return Fastest(estimator, plans).find(); }

}  // namespace orrery::estimate
