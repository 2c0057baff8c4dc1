#include "orrery/api/orrery.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "orrery/api/explanation.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/explore/search.hpp"
#include "orrery/validate/validate.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::api {

using estimate::Estimator;
using estimate::Request;

namespace {

// What a request names, read and checked.
struct Inputs {
  workload::Model model;
  hardware::Cluster cluster;
  hardware::Stack stack;
};

// Collects the mistakes of several independent readings, so that a user sees all of them at once. A mistake without a
// place of its own is `flag`'s.
template <class T>
std::optional<T> keep(Result<T> result, const char* flag, Failure& failure) {
  if (result) { return std::move(*result); }
  for (auto& diagnostic : result.error().diagnostics) {
    if (diagnostic.place == Place{}) { diagnostic.place = {"", 0, 0, flag}; }
    failure.diagnostics.push_back(std::move(diagnostic));
  }
  return std::nullopt;
}

// A cluster that can be read, but not with so many devices, is a mistake of --devices.
Result<hardware::Cluster> read_cluster(const hardware::Catalogue& catalogue, const Request& request) {
  auto cluster = catalogue.cluster(request.cluster, request.devices);
  if (cluster || request.devices == 0 || !catalogue.cluster(request.cluster, 0)) { return cluster; }
  for (auto& diagnostic : cluster.error().diagnostics) {
    if (diagnostic.place == Place{}) { diagnostic.place = {"", 0, 0, "--devices"}; }
  }
  return cluster;
}

Result<Inputs> read_inputs(const std::string& data_directory, const hardware::Catalogue& catalogue,
                           const Request& request) {
  Failure failure{estimate::not_built(request)};
  for (auto& problem : estimate::problems(request)) { failure.diagnostics.push_back(std::move(problem)); }
  for (const auto& field : estimate::missing_fields(request)) {
    failure.diagnostics.push_back({{}, fmt::format("{} is missing", field)});
  }
  auto model = keep(workload::load_model(data_directory, request.model), "--model", failure);
  auto cluster = keep(read_cluster(catalogue, request), "--cluster", failure);
  auto stack = keep(catalogue.stack(request.stack), "--stack", failure);
  if (cluster && !(cluster->accelerator.peak(request.precision) > FlopsPerSecond(0))) {
    std::vector<std::string> known;
    for (const auto& [name, peak] : cluster->accelerator.matrix_peak) { known.push_back(name); }
    failure.diagnostics.push_back({{"", 0, 0, "--precision"},
                                   fmt::format("{} has no {} matrix units; it has {}", cluster->accelerator.name,
                                               quoted(hardware::name_of(request.precision)), join(known, ", "))});
  }
  const bool has_length = request.seq > 0 || request.task == parallel::Task::inference;
  if (model && !has_length && !model->is_vision()) {
    failure.diagnostics.push_back({{"", 0, 0, "--seq"}, "is missing: tokens per sequence, for example 8192"});
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return Inputs{std::move(*model), std::move(*cluster), estimate::stack_of(request, std::move(*stack))};
}

class PlanEvaluator final : public explore::Evaluator {
 public:
  PlanEvaluator(const Inputs& inputs, const parallel::Job& job)
      : estimator_(inputs.model, inputs.cluster, inputs.stack, job) {}

  Seconds bound(const parallel::Plan& plan) override { return estimator_.step_time_bound(plan); }
  std::optional<Seconds> step_time(const parallel::Plan& plan) override { return estimator_.feasible_step_time(plan); }

 private:
  Estimator estimator_;
};

// The plan that stands for a space without points: what is fixed, and beside it the least that it asks of the others.
parallel::Plan plan_around(const explore::Fixed& fixed, std::int64_t devices) {
  parallel::Plan plan;
  const std::int64_t wanted_tp = fixed.sequence_parallel.value_or(false) && devices % 2 == 0 ? 2 : 1;
  plan.tp = fixed.tp.value_or(wanted_tp);
  plan.vpp = fixed.vpp.value_or(1);
  const std::int64_t per_stage = std::max<std::int64_t>(1, plan.tp * fixed.dp.value_or(1));
  const std::int64_t stages = devices % per_stage == 0 ? devices / per_stage : 1;
  const std::int64_t wanted_pp = fixed.dp ? stages : plan.vpp > 1 && stages % 2 == 0 ? 2 : 1;
  plan.pp = fixed.pp.value_or(wanted_pp);
  plan.dp = fixed.dp.value_or(std::max<std::int64_t>(1, devices / std::max<std::int64_t>(1, plan.tp * plan.pp)));
  plan.micro_batch = fixed.micro_batch.value_or(1);
  plan.sequence_parallel = fixed.sequence_parallel.value_or(false);
  plan.zero = fixed.zero.value_or(0);
  plan.schedule = plan.vpp > 1 ? parallel::ScheduleKind::interleaved : parallel::ScheduleKind::one_f_one_b;
  return plan;
}

// What makes fixed values impossible; nothing where they are not to blame, such as for a batch that suits no plan.
std::vector<Diagnostic> problems_of(const explore::Fixed& fixed, const Inputs& inputs, const parallel::Job& job) {
  if (!fixed.tp && !fixed.pp && !fixed.dp && !fixed.vpp && !fixed.micro_batch && !fixed.sequence_parallel) {
    return {};
  }
  auto found =
      parallel::problems(inputs.model, job, plan_around(fixed, inputs.cluster.devices), inputs.cluster.devices);
  const bool dp_is_fixed = fixed.dp || (fixed.tp && fixed.pp);
  std::erase_if(found, [&](const Diagnostic& d) { return !dp_is_fixed && d.place.path == "--global-batch"; });
  for (auto& diagnostic : found) {  // schedule and an open dp follow from what is fixed
    auto& flag = diagnostic.place.path;
    if (flag == "--schedule") { flag = "--vpp"; }
    if (flag == "--dp" && !fixed.dp && (fixed.pp || fixed.tp)) { flag = fixed.pp ? "--pp" : "--tp"; }
  }
  return found;
}

std::string why_nothing_fits(const results::SpaceCounts& space, const Inputs& inputs) {
  const std::string why =
      space.points == 0
          ? "no plan is valid: the degrees must multiply to the devices and divide heads and batch"
          : fmt::format("none of {} plans fits in the memory of {}", space.evaluated, inputs.cluster.accelerator.name);
  return fmt::format("{} on {} devices of {}: {}", inputs.model.name, inputs.cluster.devices, inputs.cluster.name, why);
}

}  // namespace

Orrery::Orrery(std::string data_directory) : data_directory_(std::move(data_directory)), catalogue_(data_directory_) {}

Result<EstimateAnswer> Orrery::estimate(const Request& request, bool terms) const {
  ORRERY_TRY(inputs, read_inputs(data_directory_, catalogue_, request));
  ORRERY_TRY(settled, estimate::settle(request, inputs.model, inputs.cluster, inputs.stack));
  Estimator estimator(inputs.model, inputs.cluster, inputs.stack, estimate::job_of(request, inputs.model));
  return EstimateAnswer{estimator.estimate(settled.plan, {terms}), settled.chosen};
}

Result<results::PlanSearch> Orrery::plan(const PlanRequest& request) const {
  ORRERY_TRY(inputs, read_inputs(data_directory_, catalogue_, request.job));
  const parallel::Job job = estimate::job_of(request.job, inputs.model);
  if (auto wrong = parallel::problems(inputs.model, job); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  const auto space =
      explore::enumerate(inputs.model, job, inputs.cluster, request.fixed, inputs.stack.overlap_gradient_reduce);
  if (space.empty()) {
    if (auto wrong = problems_of(request.fixed, inputs, job); !wrong.empty()) {
      return tl::make_unexpected(Failure{std::move(wrong)});
    }
  }
  const auto found = explore::search(space, [&] { return std::make_unique<PlanEvaluator>(inputs, job); },
                                     {request.top, request.exhaustive, request.threads, request.progress});

  results::PlanSearch answer;
  answer.space = found.space;
  if (found.best.empty()) {
    answer.nothing_fits = why_nothing_fits(found.space, inputs);
    return answer;
  }
  Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  for (const auto& candidate : found.best) { answer.best.push_back(estimator.estimate(candidate.plan)); }
  if (request.explain) { answer.explanation = explanation(answer.best); }
  return answer;
}

Result<results::Validation> Orrery::validate(const std::vector<std::string>& files,
                                             const std::vector<std::string>& families) const {
  return validate::validate_tables(data_directory_, files, families);
}

namespace {

std::vector<hardware::EntrySummary> algorithms() {
  return {
      {"ring", "neighbour to neighbour; all collectives", 0, 0},
      {"tree", "double binary tree, pipelined; all_reduce and broadcast", 0, 0},
      {"direct", "everyone to everyone at once; all_to_all and small messages", 0, 0},
      {"in_switch", "the switch reduces and multicasts; where the link class can", 0, 0},
      {"auto", "the cheapest of those, per size and group", 0, 0},
  };
}

}  // namespace

Result<std::vector<hardware::EntrySummary>> Orrery::list(const std::string& kind) const {
  if (kind == "models") { return workload::list_models(data_directory_); }
  if (kind == "clusters") { return catalogue_.clusters(); }
  if (kind == "accelerators") { return catalogue_.accelerators(); }
  if (kind == "stacks") { return catalogue_.stacks(); }
  if (kind == "algorithms") { return algorithms(); }
  const std::vector<std::string> kinds = {"models", "clusters", "accelerators", "stacks", "algorithms"};
  const auto near = nearest(kind, kinds);
  return fail(
      fmt::format("{} is no kind of entry; {}", orrery::quoted(kind),
                  near ? fmt::format("did you mean {}?", orrery::quoted(*near)) : "there are " + join(kinds, ", ")));
}

Result<std::string> Orrery::describe(const std::string& name) const {
  const auto model_file = std::filesystem::path(data_directory_) / "models" / (name + ".yaml");
  if (std::filesystem::exists(model_file)) {
    ORRERY_TRY(model, workload::load_model(data_directory_, name));
    return workload::describe(model);
  }
  for (const auto& algorithm : algorithms()) {
    if (algorithm.name == name) { return fmt::format("{}: {}\n", algorithm.name, algorithm.description); }
  }
  const auto known = catalogue_.names();
  if (!std::binary_search(known.begin(), known.end(), name) && workload::is_model_file(name)) {
    return workload::load_model(data_directory_, name).map(workload::describe);
  }
  return catalogue_.description(name, workload::model_names(data_directory_));
}

}  // namespace orrery::api
