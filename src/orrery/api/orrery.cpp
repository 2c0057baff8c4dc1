#include "orrery/api/orrery.hpp"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "orrery/api/expanded_search.hpp"
#include "orrery/api/inputs.hpp"
#include "orrery/api/planning.hpp"
#include "orrery/api/topology.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/astra_network.hpp"
#include "orrery/madmax/system.hpp"
#include "orrery/network/names.hpp"
#include "orrery/serving/engine_settings.hpp"
#include "orrery/validate/validate.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::api {

using estimate::Estimator;
using estimate::Request;

Orrery::Orrery(std::string data_directory) : data_directory_(std::move(data_directory)), catalogue_(data_directory_) {}

Result<EstimateAnswer> Orrery::estimate(const Request& request, estimate::Detail detail) const {
  // The division of memory between a device and its second tier is found for one accelerator.
  const auto unlike = request.expansion ? hardware::UnlikeNodes{"--expansion"} : hardware::UnlikeNodes::modelled;
  ORRERY_TRY(inputs, read_inputs(data_directory_, catalogue_, without_expansion(request), unlike));
  if (auto wrong = estimate::problems(request); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  if (request.expansion) {
    ORRERY_TRY(best, expanded_plan(request, inputs, detail));
    const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
    best.estimate = with_uncertainty(std::move(best.estimate), inputs, job);
    return best;
  }
  ORRERY_TRY(resolved, estimate::resolve(request, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
  Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  return EstimateAnswer{with_uncertainty(estimator.estimate(resolved.plan, detail), inputs, job), resolved.chosen};
}

namespace {

Result<parallel::Plan> fastest_plan(const std::string& data_directory, const hardware::Catalogue& catalogue,
                                    const Request& job) {
  PlanRequest request;
  request.job = job;
  request.top = 1;
  request.threads = 1;
  ORRERY_TRY(problem, read_problem(data_directory, catalogue, request));
  ORRERY_TRY(space, space_of(request, problem));
  Planning planning(request, problem, std::move(space));
  if (planning.run().best.empty()) { return fail("no plan fits in memory"); }
  return planning.winner().point.plan;
}

}  // namespace

Result<results::Validation> Orrery::validate(const std::vector<std::string>& files,
                                             const std::vector<std::string>& families, std::size_t worst) const {
  return validate::validate_tables(data_directory_, files, families, worst, [this](const Request& request) {
    return fastest_plan(data_directory_, catalogue_, request);
  });
}

namespace {

std::vector<hardware::EntrySummary> algorithms() {
  std::vector<hardware::EntrySummary> entries;
  for (const auto& [algorithm, name] : config::EnumNames<CollectiveAlgorithm>::value) {
    entries.push_back({std::string(name), std::string(network::description_of(algorithm)), 0, 0});
  }
  return entries;
}

Result<std::string> description_of_model(const std::string& data_directory, const std::string& name,
                                         const std::string& as) {
  ORRERY_TRY(model, workload::load_model(data_directory, name, as));
  return workload::describe(model);
}

using Entries = Result<std::vector<hardware::EntrySummary>>;

Entries both(Entries first, const Entries& second) {
  if (first && !second) { return second; }
  if (first) { first->insert(first->end(), second->begin(), second->end()); }
  return first;
}

}  // namespace

Result<std::vector<hardware::EntrySummary>> Orrery::list(const std::string& kind) const {
  if (kind == "models") {
    return both(workload::list_models(data_directory_), workload::list_mad_max_models(data_directory_));
  }
  if (kind == "clusters") { return both(catalogue_.clusters(), madmax::list_systems(data_directory_)); }
  if (kind == "accelerators") { return catalogue_.accelerators(); }
  if (kind == "stacks") { return catalogue_.stacks(); }
  if (kind == "engines") { return serving::list_engines(data_directory_); }
  if (kind == "algorithms") { return algorithms(); }
  const std::vector<std::string> kinds = {"models", "clusters", "accelerators", "stacks", "engines", "algorithms"};
  const auto near = nearest(kind, kinds);
  return fail(fmt::format("{} is not a kind of catalogue entry; {}", quote(kind),
                          near ? fmt::format("did you mean {}?", quote(*near)) : "valid: " + join(kinds, ", ")));
}

Result<std::string> Orrery::describe(const std::string& name, const std::string& as) const {
  const bool is_file = workload::is_model_file(name);
  if (!as.empty() && !is_file) {
    return fail(Place{"", 0, 0, "--as"},
                fmt::format("{} is for a Hugging Face config.json; {} is not one", quote(as), quote(name)));
  }
  if (name.starts_with(kEnginePrefix)) {
    return serving::load_engine(data_directory_, name.substr(kEnginePrefix.size())).map(serving::yaml_of);
  }
  if (hardware::is_astra_network(name)) { return describe_astra_network(name); }
  if (madmax::is_system(data_directory_, name)) {
    return madmax::load_system(data_directory_, name, 0).map(madmax::describe);
  }
  auto models = workload::model_names(data_directory_);
  const auto more = hardware::entry_names(data_directory_, hardware::kMadMaxModels);
  models.insert(models.end(), more.begin(), more.end());
  std::sort(models.begin(), models.end());
  if (std::binary_search(models.begin(), models.end(), name)) {
    return description_of_model(data_directory_, name, as);
  }
  for (const auto& algorithm : algorithms()) {
    if (algorithm.name == name) { return fmt::format("{}: {}\n", algorithm.name, algorithm.description); }
  }
  const auto known = catalogue_.names();
  if (!std::binary_search(known.begin(), known.end(), name) && is_file) {
    return description_of_model(data_directory_, name, as);
  }
  auto others = hardware::entry_names(data_directory_, hardware::kMadMaxSystems);
  others.insert(others.end(), models.begin(), models.end());
  return catalogue_.description(name, std::move(others));
}

}  // namespace orrery::api
