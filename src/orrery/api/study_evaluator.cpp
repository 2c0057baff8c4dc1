#include "orrery/api/study_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/api/expanded_search.hpp"
#include "orrery/api/planning.hpp"
#include "orrery/api/study_tree.hpp"
#include "orrery/config/record.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/stack_choice.hpp"
#include "orrery/hardware/expenses.hpp"
#include "orrery/report/json.hpp"
#include "orrery/report/mad_max.hpp"
#include "orrery/report/text.hpp"

namespace orrery::api {

using results::Metric;
using results::StudyRow;
using results::StudyStatus;

std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U; }
  return fmt::format("{:016x}", hash);
}

StudyEvaluator::StudyEvaluator(const std::string& data_directory, const study::Study& study, std::string base_hash)
    : data_directory_(data_directory),
      study_(study),
      base_hash_(std::move(base_hash)),
      inputs_(data_directory, study) {}

namespace {

std::string one_line(const Failure& failure) {
  std::vector<std::string> lines;
  for (const auto& diagnostic : failure.diagnostics) { lines.push_back(diagnostic.text()); }
  return join(lines, "; ");
}

void set_failed(StudyRow& row, const Failure& failure) {
  row.status = failure.answer_is_no ? StudyStatus::infeasible : StudyStatus::failed;
  row.reason = one_line(failure);
}

double node_count(const hardware::Cluster& cluster) {
  return static_cast<double>(cluster.devices) / static_cast<double>(cluster.node_size());
}

// Figures of the machine, which do not depend on the plan.
void set_machine(StudyRow& row, const hardware::Cluster& cluster) {
  row.of(Metric::devices) = static_cast<double>(cluster.devices);
  if (const auto power = hardware::power(cluster)) { row.of(Metric::power_W) = power->value; }
  if (cluster.node_price_usd > 0) { row.of(Metric::price_usd) = node_count(cluster) * cluster.node_price_usd; }
  const double price = cluster.accelerator.price_usd;
  if (!(cluster.node_price_usd > 0) && price > 0) {
    row.of(Metric::price_usd) = static_cast<double>(cluster.devices) * price;
  }
}

std::string memory_reason(const results::Estimate& estimate) {
  const auto& memory = estimate.memory;
  if (memory.total() > memory.capacity) {
    return fmt::format("memory: a device needs {} of {}", config::format_bytes(memory.total()),
                       config::format_bytes(memory.capacity));
  }
  return fmt::format("memory: a device needs {} of the second tier's {}", config::format_bytes(memory.offloaded),
                     config::format_bytes(memory.second_tier));
}

void set_estimate(StudyRow& row, const results::Estimate& estimate) {
  row.of(Metric::step_time_s) = estimate.step_time.value();
  row.of(Metric::samples_per_s) = estimate.samples_per_s;
  row.of(Metric::tokens_per_s) = estimate.tokens_per_s;
  row.of(Metric::mfu) = estimate.mfu;
  if (estimate.cost) { row.of(Metric::cost_usd) = estimate.cost->amount; }
  if (estimate.energy) { row.of(Metric::energy_J) = estimate.energy->amount; }
  const auto& memory = estimate.memory;
  row.of(Metric::memory_B) = memory.total().value();
  row.of(Metric::memory_capacity_B) = memory.capacity.value();
  row.of(Metric::model_states_B) = (memory.weights + memory.gradients + memory.optimizer).value();
  row.of(Metric::second_tier_B) = memory.offloaded.value();
  auto parts = report::estimate_parts(estimate);
  row.plan = std::move(parts.plan);
  row.breakdown = std::move(parts.breakdown);
  row.comm = std::move(parts.comm);
  row.memory = std::move(parts.memory);
  row.passes = std::move(parts.passes);
  if (!estimate.feasible) {
    row.status = StudyStatus::infeasible;
    row.reason = memory_reason(estimate);
  }
}

// Of a plan that uses the second tier in place: what is in which tier. One that fits in neither has no time: its
// kernels would run at the rate of memory that does not exist.
void set_expansion(StudyRow& row, const results::Estimate& estimate) {
  using C = hardware::TensorClass;
  const auto& there = estimate.expansion->bytes;
  *row.of(Metric::model_states_B) +=
      (there[C::weights] + there[C::gradients] + there[C::optimizer] + there[C::tables]).value();
  if (estimate.feasible) {
    row.reason = report::expansion_text(estimate);
    return;
  }
  for (const Metric metric : {Metric::step_time_s, Metric::samples_per_s, Metric::tokens_per_s, Metric::mfu,
                              Metric::cost_usd, Metric::energy_J}) {
    row.of(metric).reset();
  }
  row.breakdown.clear();
  row.comm.clear();
  row.passes.clear();
}

}  // namespace

Result<StudyEvaluator::Ready*> StudyEvaluator::ready(const Settings& settings, const estimate::Request& request) {
  std::string text = StudyInputs::job_text(settings);
  if (ready_ && ready_->text == text) { return ready_.get(); }
  ORRERY_TRY(read, inputs_.inputs(settings, request, Length::typed));
  auto next = std::make_unique<Ready>(Ready{std::move(text), std::move(read), nullptr});
  const Inputs& in = next->inputs;
  next->estimator = std::make_unique<estimate::Estimator>(in.model, in.cluster, in.stack,
                                                          estimate::job_of(request, in.model, in.stack));
  ready_ = std::move(next);
  return ready_.get();
}

Result<results::Estimate> StudyEvaluator::physical(const Settings& settings, const estimate::Request& request,
                                                   hardware::Cluster& cluster) {
  ORRERY_TRY(now, ready(settings, request));
  const Inputs& in = now->inputs;
  cluster = in.cluster;
  if (auto wrong = estimate::stack_problems(request, in.model, in.cluster.accelerator, in.stack); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  ORRERY_TRY(resolved, estimate::resolve(request, in.model, in.cluster, in.stack, *now->estimator));
  return now->estimator->estimate(resolved.plan);
}

Result<results::Estimate> StudyEvaluator::expanded_physical(const Settings& settings, const estimate::Request& request,
                                                            hardware::Cluster& cluster) {
  if (auto wrong = estimate::problems(request); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  ORRERY_TRY(in, inputs_.inputs(settings, without_expansion(request), Length::typed));
  cluster = in.cluster;
  ORRERY_TRY(best, expanded_plan(request, in));
  return std::move(best.estimate);
}

Result<results::Estimate> StudyEvaluator::searched(const Settings& settings, const estimate::Request& request,
                                                   hardware::Cluster& cluster) {
  PlanRequest asked;
  asked.job = request;
  asked.values = study_.search;
  asked.wide = study_.space == "wide";
  asked.top = 1;
  asked.threads = 1;
  if (!study_.space.empty() && study_.space != "wide" && study_.space != "default") {
    ORRERY_TRY(file, explore::read_space_file(study_.space));
    asked.space = std::move(file);
  }
  const auto length = asked.space ? Length::longest : Length::typed;
  ORRERY_TRY(read, inputs_.inputs(settings, without_expansion(request), length));
  cluster = read.cluster;
  if (request.expansion) {
    if (auto wrong = estimate::problems(request); !wrong.empty()) {
      return tl::make_unexpected(Failure{std::move(wrong)});
    }
    ORRERY_TRY(found, expanded_search(data_directory_, asked, std::move(read)));
    if (found.best.empty()) { return tl::make_unexpected(Failure{{{{}, found.nothing_fits}}, true}); }
    return std::move(found.best.front());
  }
  ORRERY_TRY(problem, problem_of(data_directory_, asked, std::move(read)));
  ORRERY_TRY(space, space_of(asked, problem));
  if (space.points() == 0) {
    if (auto mistakes = fixed_problems(asked, problem); !mistakes.empty()) {
      return tl::make_unexpected(Failure{std::move(mistakes)});
    }
  }
  auto answer = Planning(asked, problem, std::move(space)).run();
  if (answer.best.empty()) { return tl::make_unexpected(Failure{{{{}, answer.nothing_fits}}, true}); }
  return std::move(answer.best.front());
}

void StudyEvaluator::price_mad_max(const Settings& settings, const estimate::Request& request, StudyRow& row) {
  const auto in = inputs_.mad_max_inputs(settings, request);
  if (!in) { return set_failed(row, in.error()); }
  row.of(Metric::devices) = static_cast<double>(in->system.devices);
  if (in->system.watts_per_device > 0) {
    row.of(Metric::power_W) = in->system.watts_per_device * static_cast<double>(in->system.devices);
  }
  Result<results::MadMaxEstimate> estimate = tl::make_unexpected(Failure{});
  if (study_.inner == study::Inner::search) {
    auto search = mad_max_plan(*in, request, 1);
    if (!search) { return set_failed(row, search.error()); }
    if (search->best.empty()) {
      const char* why = search->evaluated == 0 ? "no strategies give every replica a whole number of samples"
                                               : "no strategies fit in memory by MAD-Max's rule";
      return set_failed(row, Failure{{{{}, why}}, true});
    }
    estimate = std::move(search->best.front());
  } else {
    estimate = mad_max_estimate(*in, request);
  }
  if (!estimate) { return set_failed(row, estimate.error()); }
  not_modelled_ = estimate->not_modelled;
  row.of(Metric::step_time_s) = estimate->step_time.value();
  row.of(Metric::samples_per_s) = estimate->samples_per_s;
  row.of(Metric::tokens_per_s) = estimate->tokens_per_s;
  row.of(Metric::mfu) = estimate->mfu;
  row.of(Metric::memory_B) = estimate->needed.value();
  row.of(Metric::memory_capacity_B) = estimate->capacity.value();
  const double devices = static_cast<double>(estimate->devices);
  if (estimate->usd_per_device_hour > 0) {
    row.of(Metric::cost_usd) = estimate->usd_per_device_hour * devices * estimate->step_time.value() / 3600.0;
  }
  if (estimate->watts_per_device > 0) {
    row.of(Metric::energy_J) = estimate->watts_per_device * devices * estimate->step_time.value();
  }
  auto parts = report::mad_max_parts(*estimate);
  row.plan = std::move(parts.plan);
  row.breakdown = std::move(parts.breakdown);
  if (!estimate->feasible) {
    row.status = StudyStatus::infeasible;
    row.reason = estimate->infeasible_reason;
  }
}

void StudyEvaluator::price(const Settings& settings, StudyRow& row) {
  const auto request = inputs_.request(settings);
  if (!request) { return set_failed(row, request.error()); }
  if (request->semantics == estimate::Semantics::mad_max) { return price_mad_max(settings, *request, row); }
  hardware::Cluster cluster;
  const bool searches = study_.inner == study::Inner::search;
  const auto estimate = searches             ? searched(settings, *request, cluster)
                        : request->expansion ? expanded_physical(settings, *request, cluster)
                                             : physical(settings, *request, cluster);
  if (cluster.devices > 0) { set_machine(row, cluster); }
  if (!estimate) { return set_failed(row, estimate.error()); }
  set_estimate(row, *estimate);
  not_modelled_ = estimate->not_modelled;
  if (estimate->expansion) { set_expansion(row, *estimate); }
}

namespace {

Settings with_settings(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

double time_or_infinity(const StudyRow& row) {
  const auto& time = row.of(Metric::step_time_s);
  return row.status == StudyStatus::ok && time ? *time : std::numeric_limits<double>::infinity();
}

}  // namespace

// The first plan against the second at samples of the range; where the winner changes once, bisection.
void StudyEvaluator::find_threshold(const Settings& settings, StudyRow& row) {
  const study::Threshold& asked = *study_.threshold;
  StudyRow first, second;
  const auto wins = [&](double value) {
    const Settings at = with_settings(settings, {{asked.path, asked.range.node(value)}});
    first = second = StudyRow{};
    price(with_settings(at, asked.first), first);
    price(with_settings(at, asked.second), second);
    return time_or_infinity(first) < time_or_infinity(second);
  };
  const auto sample = [&](std::int64_t i) {
    return asked.range.at(static_cast<double>(i) / static_cast<double>(asked.samples - 1));
  };
  std::vector<bool> winners;
  std::vector<std::int64_t> changes;
  for (std::int64_t i = 0; i < asked.samples; ++i) {
    winners.push_back(wins(sample(i)));
    const auto now = static_cast<std::size_t>(i);
    if (i > 0 && winners[now] != winners[now - 1]) { changes.push_back(i); }
  }
  const auto finish = [&](double value, std::string found) {
    (void)wins(value);
    const bool is_first = first.of(Metric::step_time_s).has_value();
    const StudyRow& shown = is_first ? first : second;
    settings_of_row_ = with_settings(with_settings(settings, {{asked.path, asked.range.node(value)}}),
                                     is_first ? asked.first : asked.second);
    const auto columns = row.columns;
    const auto id = row.id;
    row = shown;
    row.columns = columns;
    row.id = id;
    row.reason = std::move(found) + (row.reason.empty() ? "" : "; first plan: " + row.reason);
  };
  if (changes.empty()) {
    const bool first_wins = winners.front();
    return finish(asked.range.high, first_wins ? "no threshold: the first plan wins at all samples"
                                               : "no threshold: the second plan wins at all samples");
  }
  // The first change in favour of the first plan; else the first change.
  std::int64_t change = changes.front();
  for (const std::int64_t i : changes) {
    if (winners[static_cast<std::size_t>(i)]) {
      change = i;
      break;
    }
  }
  const bool becomes_winner = winners[static_cast<std::size_t>(change)];
  double low = sample(change - 1), high = sample(change);
  while (high - low > asked.tolerance * high) {
    const double middle = asked.range.is_log ? std::sqrt(low * high) : 0.5 * (low + high);
    (wins(middle) == becomes_winner ? high : low) = middle;
  }
  const double value = becomes_winner ? high : low;
  std::string found =
      becomes_winner ? "the first plan wins from the threshold on" : "the first plan wins up to the threshold";
  if (changes.size() > 1) {
    found =
        fmt::format("not monotone: the winner changes {} times between samples; the threshold is {}", changes.size(),
                    becomes_winner ? "the first change in favour of the first plan" : "the first change");
  }
  finish(value, std::move(found));
  const double size = asked.range.unit.empty() ? 1.0 : study::quantity_of("1 " + asked.range.unit)->value;
  row.of(Metric::threshold) = value * size;
}

void StudyEvaluator::evaluate(const study::Point& point, StudyRow& row) {
  settings_of_row_ = point.settings;
  if (study_.threshold) {
    find_threshold(point.settings, row);
  } else {
    price(point.settings, row);
  }
  std::string text = base_hash_;
  for (const auto& setting : point.settings) { text += '\n' + setting.path + '=' + config::inline_text(setting.value); }
  row.input_hash = hash_of(text);
}

results::Sensitivity StudyEvaluator::sensitivity(const study::Point& point, const std::string& path, double factor,
                                                 double base_step_time) {
  results::Sensitivity found{point.id, path, factor, std::nullopt, base_step_time, {}};
  const auto value = inputs_.value(point.settings, path);
  const auto scaled = value ? scaled_value(*value, factor) : value;
  if (!scaled) {
    found.reason = scaled.error().diagnostics.front().message;
    return found;
  }
  StudyRow row;
  price(with_settings(point.settings, {{path, *scaled}}), row);
  if (row.status == StudyStatus::ok) { found.step_time_s = row.of(Metric::step_time_s); }
  found.reason = row.reason;
  return found;
}

}  // namespace orrery::api
