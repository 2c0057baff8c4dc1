#include "orrery/api/what_if.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"

namespace orrery::api {

using parallel::Plan;
using results::Flip;

namespace {

constexpr std::array kFactors = {1.25, 1.5, 2.0, 3.0, 4.0};
constexpr double kPrecision = 1.02;

// A figure that can be varied: its name, its value, and a function that sets it.
struct Parameter {
  std::string id, name;
  double value = 0;
  std::function<std::string(double)> text;
  std::function<void(Problem&, double)> set;
  // The possible factor nearest to one; nothing: all factors are possible.
  std::function<double(double)> possible = {};
};

bool same_layout(const Plan& a, const Plan& b) {
  return a.tp == b.tp && a.cp == b.cp && a.pp == b.pp && a.dp == b.dp && a.ep == b.ep && a.etp == b.etp;
}

// On nodes of several kinds, a figure is that of the first nodes, and those of the others change in proportion.
void add_accelerator_parameters(const Problem& problem, std::vector<Parameter>& parameters) {
  const auto& chip = problem.inputs.cluster.accelerator;
  const std::string of = problem.inputs.cluster.nodes.empty() ? "" : " of all nodes, in proportion to " + chip.name;
  const auto add = [&](const char* id, const char* name, double value, std::function<std::string(double)> text,
                       std::function<void(hardware::Accelerator&, double)> scale) {
    parameters.push_back({id, name + of, value, std::move(text), [=](Problem& changed, double to) {
                            changed.inputs.cluster.change_accelerators(
                                [&](hardware::Accelerator& one) { scale(one, to / value); });
                          }});
  };
  add(
      "device_memory", "device memory", chip.memory.value(),
      [](double value) { return config::format_bytes(Bytes(value)); },
      [](hardware::Accelerator& one, double factor) { one.memory = one.memory * factor; });
  add(
      "matrix_peak", "GEMM peak", chip.peak(problem.job.precision).value(),
      [](double value) { return config::format_rate(FlopsPerSecond(value)); },
      [](hardware::Accelerator& one, double factor) {
        for (auto& [precision, rate] : one.matrix_peak) { rate = rate * factor; }
        one.vector_peak = one.vector_peak * factor;  // fp32 GEMMs
      });
  add(
      "memory_bandwidth", "memory bandwidth", chip.memory_bandwidth.value(),
      [](double value) { return config::format_rate(BytesPerSecond(value)); },
      [](hardware::Accelerator& one, double factor) { one.memory_bandwidth = one.memory_bandwidth * factor; });
}

void add_network_parameters(const Problem& problem, std::vector<Parameter>& parameters) {
  const auto& dimensions = problem.inputs.cluster.dimensions;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].size <= 1) { continue; }
    parameters.push_back({"bandwidth." + dimensions[i].name, "bandwidth of " + dimensions[i].name,
                          dimensions[i].bandwidth.value(),
                          [](double value) { return config::format_rate(BytesPerSecond(value)); },
                          [i](Problem& changed, double value) {
                            changed.inputs.cluster.dimensions[i].bandwidth = BytesPerSecond(value);
                          }});
  }
}

// The batch nearest to `factor` times `batch`: a multiple of what every number of replicas divides, or a whole
// fraction.
double possible_batch(std::int64_t batch, std::int64_t multiple, double factor) {
  const auto whole = static_cast<double>(batch), step = static_cast<double>(multiple);
  double nearest = std::max(1.0, std::round(factor * whole / step)) * step;
  const auto distance = [&](double other) { return std::abs(std::log(other / whole / factor)); };
  for (const std::int64_t part : {2, 3, 4}) {
    const double other = whole / static_cast<double>(part);
    if (batch % part == 0 && distance(other) < distance(nearest)) { nearest = other; }
  }
  return nearest / whole;
}

void add_batch_parameter(const Problem& problem, std::vector<Parameter>& parameters) {
  const std::int64_t batch = problem.job.global_batch;
  if (batch < 1) { return; }  // the plan determines the batch
  const std::int64_t multiple = std::gcd(batch, problem.inputs.cluster.devices);
  parameters.push_back({"global_batch", "batch", static_cast<double>(batch),
                        [](double value) { return fmt::format("{} sequences", std::llround(value)); },
                        [](Problem& changed, double value) { changed.job.global_batch = std::llround(value); },
                        [batch, multiple](double factor) { return possible_batch(batch, multiple, factor); }});
}

class WhatIf {
 public:
  WhatIf(PlanRequest request, const Problem& problem, const Plan& winner)
      : request_(std::move(request)), problem_(problem), winner_(winner) {
    request_.progress = nullptr;
    request_.front = request_.exhaustive = request_.explain = false;
    request_.top = 1;
  }

  Flip flip(const Parameter& parameter, bool up) {
    Flip flip{parameter.id, parameter.name, up, 0, 1.0, {}, parameter.value, {}, {}, 1.0};
    for (const double tried : kFactors) {
      const double factor = possible(parameter, up ? tried : 1.0 / tried);
      if (up ? factor <= flip.farthest : factor >= flip.farthest) { continue; }
      const Outcome outcome = outcome_at(parameter, factor, flip);
      if (outcome == Outcome::no_job) { continue; }
      flip.farthest = factor;
      if (outcome == Outcome::same) {
        flip.same_until = factor;
        continue;
      }
      flip.factor = factor;
      narrow(parameter, flip);
      flip.winner = winner_at(parameter, *flip.factor);
      break;
    }
    flip.value = parameter.value * flip.factor.value_or(flip.farthest);
    flip.value_text = parameter.text(flip.value);
    return flip;
  }

 private:
  enum class Outcome : std::uint8_t { same, other, no_job };

  static double possible(const Parameter& parameter, double factor) {
    return parameter.possible ? parameter.possible(factor) : factor;
  }

  // Halves the interval between a factor with the same winner and one with another.
  void narrow(const Parameter& parameter, Flip& flip) {
    double &same = flip.same_until, &other = *flip.factor;
    while (std::max(other / same, same / other) > kPrecision) {
      const double middle = possible(parameter, std::sqrt(same * other));
      if (middle == same || middle == other) { break; }
      const Outcome outcome = outcome_at(parameter, middle, flip);
      if (outcome == Outcome::no_job) { break; }
      (outcome == Outcome::other ? other : same) = middle;
    }
  }

  Problem changed(const Parameter& parameter, double factor) const {
    Problem problem = problem_;
    parameter.set(problem, parameter.value * factor);
    return problem;
  }

  Outcome outcome_at(const Parameter& parameter, double factor, Flip& flip) const {
    ++flip.searches;
    const Problem problem = changed(parameter, factor);
    const auto space = space_of(request_, problem);
    if (!space || space->points() == 0) { return Outcome::no_job; }
    const auto found = searched(problem, *space);
    const bool is_same = !found.empty() && same_layout(found.front().point.plan, winner_);
    return is_same ? Outcome::same : Outcome::other;
  }

  [[nodiscard]] std::vector<explore::Candidate> searched(const Problem& problem, const explore::Space& space) const {
    const auto evaluators = [&] { return std::make_unique<PlanEvaluator>(problem.inputs, space); };
    return explore::search(explore::walks_of(space), evaluators, search_options(request_)).best;
  }

  std::optional<results::Estimate> winner_at(const Parameter& parameter, double factor) const {
    const Problem problem = changed(parameter, factor);
    const auto space = space_of(request_, problem);
    if (!space) { return std::nullopt; }
    const auto found = searched(problem, *space);
    if (found.empty()) { return std::nullopt; }
    const auto& inputs = problem.inputs;
    estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, problem.job);
    estimator.set_global_batch(found.front().point.global_batch);
    return estimator.estimate(found.front().point.plan);
  }

  PlanRequest request_;
  const Problem& problem_;
  Plan winner_;
};

}  // namespace

std::vector<Flip> what_if(const PlanRequest& request, const Problem& problem, const Plan& winner,
                          const std::function<void(std::int64_t, std::int64_t)>& progress) {
  std::vector<Parameter> parameters;
  add_accelerator_parameters(problem, parameters);
  add_network_parameters(problem, parameters);
  add_batch_parameter(problem, parameters);
  WhatIf asker(request, problem, winner);
  std::vector<Flip> flips;
  const auto all = static_cast<std::int64_t>(2 * parameters.size());
  if (progress) { progress(0, all); }
  for (const Parameter& parameter : parameters) {
    for (const bool up : {true, false}) {
      flips.push_back(asker.flip(parameter, up));
      if (progress) { progress(static_cast<std::int64_t>(flips.size()), all); }
    }
  }
  return flips;
}

}  // namespace orrery::api
