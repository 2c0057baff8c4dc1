#include "orrery/api/inputs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/estimate/stack_choice.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::api {

using estimate::Request;

namespace {

// Collects the errors of several independent inputs, so that all are reported together. An error without a place gets
// `flag`.
template <class T>
std::optional<T> keep(Result<T> result, const char* flag, Failure& failure) {
  if (result) { return std::move(*result); }
  for (auto& diagnostic : result.error().diagnostics) {
    if (diagnostic.place == Place{}) { diagnostic.place = {"", 0, 0, flag}; }
    failure.diagnostics.push_back(std::move(diagnostic));
  }
  return std::nullopt;
}

// A cluster that is valid, but not for this number of devices, is an error of --devices.
Result<hardware::Cluster> read_cluster(const hardware::Catalogue& catalogue, const Request& request,
                                       hardware::UnlikeNodes unlike) {
  auto cluster = catalogue.cluster(request.cluster, request.devices.value_or(0), unlike);
  if (cluster || !request.devices || !catalogue.cluster(request.cluster, 0, unlike)) { return cluster; }
  for (auto& diagnostic : cluster.error().diagnostics) {
    if (diagnostic.place == Place{}) { diagnostic.place = {"", 0, 0, "--devices"}; }
  }
  return cluster;
}

// The images of the request are part of a sequence, or of a prompt.
Result<workload::Model> with_images_of(const Request& request, workload::Model model) {
  const bool serves = request.task == parallel::Task::inference;
  const std::int64_t length = (serves ? request.prompt : request.seq).value_or(model.max_seq);
  return workload::with_images(std::move(model), request.images, request.image_size, length);
}

void check_precisions(const Request& request, const hardware::Accelerator& accelerator, Failure& failure) {
  if (!(accelerator.peak(request.precision) > FlopsPerSecond(0))) {
    std::vector<std::string> known;
    const bool trains = request.task != parallel::Task::inference;
    for (const auto& [name, peak] : accelerator.matrix_peak) {
      if (!trains || name != hardware::name_of(hardware::Precision::int8)) { known.push_back(name); }
    }
    failure.diagnostics.push_back({{"", 0, 0, "--precision"},
                                   fmt::format("{} has no {} matrix units; valid: {}", accelerator.name,
                                               quote(hardware::name_of(request.precision)), join(known, ", "))});
  }
  if (request.attention_precision && !(accelerator.peak(*request.attention_precision) > FlopsPerSecond(0))) {
    failure.diagnostics.push_back({{"", 0, 0, "--attention-precision"},
                                   fmt::format("{} has no {} matrix units", accelerator.name,
                                               quote(hardware::name_of(*request.attention_precision)))});
  }
}

// Of the nodes behind the first ones: one stack runs on all of them.
void check_kinds_of_nodes(const Request& request, const Inputs& inputs, const InputSources& sources, Failure& failure) {
  const auto& [model, cluster, stack, spreads] = inputs;
  const std::string asked = estimate::stack_name(request, model, cluster.accelerator);
  for (std::size_t i = 1; i < cluster.nodes.size(); ++i) {
    const hardware::Accelerator& other = cluster.nodes[i].accelerator;
    check_precisions(request, other, failure);
    const auto there = sources.stack(asked, &other);
    if (there && there->name != stack.name) {
      failure.diagnostics.push_back(
          {{"", 0, 0, "--stack"},
           fmt::format("is {} on {} and {} on {}; nodes with different software are not modelled: give one profile",
                       stack.name, cluster.accelerator.name, there->name, other.name)});
      return;
    }
    for (auto& wrong : estimate::stack_problems(request, model, other, stack)) {
      const auto& known = failure.diagnostics;
      const bool is_known =
          std::any_of(known.begin(), known.end(), [&](const Diagnostic& one) { return one.message == wrong.message; });
      if (!is_known) { failure.diagnostics.push_back(std::move(wrong)); }
    }
  }
  if (model.has_experts() && stack.overlap.dispatch) {
    failure.diagnostics.push_back({{"", 0, 0, "--stack"},
                                   fmt::format("{} overlaps the dispatch with another micro-batch, which is not "
                                               "modelled on nodes of several kinds of accelerators",
                                               quote(stack.name))});
  }
}

}  // namespace

Result<void> require_routes(const hardware::Cluster& cluster, bool by_message) {
  if (!by_message || cluster.topology) { return {}; }
  return fail(Place{"", 0, 0, "--by-message"},
              fmt::format("needs a topology, whose routes messages take; cluster {} has none", quote(cluster.name)));
}

InputSources catalogue_sources(const std::string& data_directory, const hardware::Catalogue& catalogue,
                               hardware::UnlikeNodes unlike) {
  return {[&](const Request& request) { return workload::load_model(data_directory, request.model, request.as); },
          [&catalogue, unlike](const Request& request) { return read_cluster(catalogue, request, unlike); },
          [&](const std::string& name, const hardware::Accelerator* on) {
            return on != nullptr ? catalogue.stack_on(name, *on) : catalogue.stack(name);
          },
          [&] { return estimate::load_spreads(data_directory); }};
}

Result<Inputs> read_inputs(const std::string& data_directory, const hardware::Catalogue& catalogue,
                           const Request& request, hardware::UnlikeNodes unlike, Length length) {
  return read_inputs(catalogue_sources(data_directory, catalogue, unlike), request, length);
}

Result<Inputs> read_inputs(const InputSources& sources, const Request& request, Length length) {
  Failure failure{estimate::problems(request)};
  if (request.semantics == estimate::Semantics::mad_max) {
    failure.diagnostics.push_back(
        {{"", 0, 0, "--semantics"}, "\"mad-max\" is valid with plain estimate and plan only"});
  }
  if (request.expansion) {
    failure.diagnostics.push_back({{"", 0, 0, "--expansion"}, "is valid with estimate, plan and studies only"});
  }
  auto model = keep(sources.model(request), "--model", failure);
  if (model) { model = keep(with_images_of(request, std::move(*model)), "--images", failure); }
  auto cluster = keep(sources.cluster(request), "--cluster", failure);
  std::optional<hardware::Stack> stack;
  if (model && cluster) {
    stack = keep(sources.stack(estimate::stack_name(request, *model, cluster->accelerator), &cluster->accelerator),
                 "--stack", failure);
  } else if (!request.stack.empty()) {
    stack = keep(sources.stack(request.stack, nullptr), "--stack", failure);
  }
  if (model && cluster && stack) {
    for (auto& wrong : estimate::stack_problems(request, *model, cluster->accelerator, *stack)) {
      failure.diagnostics.push_back(std::move(wrong));
    }
  }
  if (cluster) { check_precisions(request, cluster->accelerator, failure); }
  if (cluster && !cluster->nodes.empty() && model && stack) {
    check_kinds_of_nodes(request, {*model, *cluster, *stack, {}}, sources, failure);
  }
  const bool serves = request.task == parallel::Task::inference;
  const auto ask = [&](bool given, const char* flag, const char* what) {
    if (model && !given) { failure.diagnostics.push_back({{"", 0, 0, flag}, fmt::format("is missing: {}", what)}); }
  };
  if (model && model->own_seq() == 0) {
    ask(serves || length == Length::longest || request.seq, "--seq", "tokens per sequence, for example 8192");
  }
  if (model && !model->is_recommender()) {
    ask(!serves || request.prompt, "--prompt", "prompt tokens per sequence, for example 1024");
    ask(!serves || request.generate, "--generate", "generated tokens per sequence, for example 128");
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  ORRERY_TRY(spreads, sources.spreads());
  return Inputs{std::move(*model), std::move(*cluster), estimate::stack_of(request, std::move(*stack)),
                std::move(spreads)};
}

results::Estimate with_uncertainty(results::Estimate estimate, const Inputs& inputs, const parallel::Job& job) {
  const auto kinds = estimate::kinds_of(job, inputs.model, inputs.cluster);
  estimate.uncertainty = estimate::uncertainty_of(inputs.spreads, kinds, estimate.step_time);
  return estimate;
}

}  // namespace orrery::api
