#include "orrery/api/orrery.hpp"

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

Result<Inputs> read_inputs(const std::string& data_directory, const hardware::Catalogue& catalogue,
                           const Request& request) {
  Failure failure{estimate::not_built(request)};
  auto model = keep(workload::load_model(data_directory, request.model), "--model", failure);
  auto cluster = keep(catalogue.cluster(request.cluster, request.devices), "--cluster", failure);
  auto stack = keep(catalogue.stack(request.stack), "--stack", failure);
  if (cluster && !(cluster->accelerator.peak(request.precision) > FlopsPerSecond(0))) {
    std::vector<std::string> known;
    for (const auto& [name, peak] : cluster->accelerator.matrix_peak) { known.push_back(name); }
    failure.diagnostics.push_back({{"", 0, 0, "--precision"},
                                   fmt::format("{} has no {} matrix units; it has {}", cluster->accelerator.name,
                                               quoted(hardware::name_of(request.precision)), join(known, ", "))});
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return Inputs{std::move(*model), std::move(*cluster), std::move(*stack)};
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

tl::unexpected<Failure> nothing_fits(const results::SpaceCounts& space, const Inputs& inputs) {
  Failure failure;
  failure.answer_is_no = true;
  const std::string why =
      space.points == 0
          ? "no plan is valid: the degrees must multiply to the devices and divide heads and batch"
          : fmt::format("none of {} plans fits in the memory of {}", space.evaluated, inputs.cluster.accelerator.name);
  failure.diagnostics.push_back(
      {{},
       fmt::format("{} on {} devices of {}: {}", inputs.model.name, inputs.cluster.devices, inputs.cluster.name, why)});
  return tl::make_unexpected(std::move(failure));
}

}  // namespace

Orrery::Orrery(std::string data_directory) : data_directory_(std::move(data_directory)), catalogue_(data_directory_) {}

Result<EstimateAnswer> Orrery::estimate(const Request& request, bool terms) const {
  ORRERY_TRY(inputs, read_inputs(data_directory_, catalogue_, request));
  ORRERY_TRY(settled, estimate::settle(request, inputs.model, inputs.cluster, inputs.stack));
  Estimator estimator(inputs.model, inputs.cluster, inputs.stack, estimate::job_of(request));
  return EstimateAnswer{estimator.estimate(settled.plan, {terms}), settled.chosen};
}

Result<results::PlanSearch> Orrery::plan(const PlanRequest& request) const {
  ORRERY_TRY(inputs, read_inputs(data_directory_, catalogue_, request.job));
  const parallel::Job job = estimate::job_of(request.job);
  if (auto wrong = parallel::problems(inputs.model, job); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  const auto space =
      explore::enumerate(inputs.model, job, inputs.cluster, request.fixed, inputs.stack.overlap_gradient_reduce);
  const auto found = explore::search(space, [&] { return std::make_unique<PlanEvaluator>(inputs, job); },
                                     {request.top, request.exhaustive, request.threads, request.progress});
  if (found.best.empty()) { return nothing_fits(found.space, inputs); }

  results::PlanSearch answer;
  answer.space = found.space;
  Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  for (const auto& candidate : found.best) { answer.best.push_back(estimator.estimate(candidate.plan)); }
  if (request.explain) { answer.explanation = explanation(answer.best); }
  return answer;
}

Result<results::Validation> Orrery::validate(const std::vector<std::string>& files,
                                             const std::vector<std::string>& families) const {
  const std::vector<std::string> shipped = {data_directory_ + "/validation/training.csv"};
  return validate::validate_training(catalogue_, files.empty() ? shipped : files, families);
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
  return catalogue_.description(name);
}

}  // namespace orrery::api
