#include "orrery/api/nearest.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::api {

using explore::Point;
using parallel::Plan;

namespace {

constexpr std::int64_t kMostTimesDevices = 64;

// Choices that need less memory than any other value of theirs: the plan with the lowest memory has them, so only those
// are searched where they are axes that nothing fixes.
explore::SpaceFile lowest_memory_space(const Problem& problem, const PlanRequest& request) {
  explore::SpaceFile file = problem.file;
  const auto keep = [&](explore::Axis axis, std::string_view name, const char* value) {
    const bool is_axis =
        std::any_of(file.axes.begin(), file.axes.end(), [&](const auto& one) { return one.axis == axis; });
    const bool is_given = parallel::fixed_value(axis, request.job) || request.values.find(name) != nullptr;
    if (!is_axis || is_given) { return; }
    config::Node values = config::mapping_node();
    config::add(values, std::string(name), config::plain_node(value, {}));
    if (auto restricted = explore::with_values(file, values)) { file = std::move(*restricted); }
  };
  // Modules and layers that a flag gives belong to the kind of recompute that they are valid with.
  const bool has_parts = request.job.recompute_modules.has_value() || request.job.recompute_layers.value_or(0) > 0;
  if (!has_parts) { keep(explore::Axis::recompute, "recompute", "full"); }
  keep(explore::Axis::micro_batch, "micro_batch", "1");
  return file;
}

struct LowestMemoryPlan {
  Point point;
  Bytes need, capacity;
  bool fits = false;
};

// The plan with the lowest memory.
std::optional<LowestMemoryPlan> lowest_memory_plan(const PlanRequest& request, Problem problem) {
  problem.file = lowest_memory_space(problem, request);
  const auto space = space_of(request, problem);
  if (!space || space->points() == 0) { return std::nullopt; }
  const Inputs& inputs = problem.inputs;
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, space->job());
  std::optional<LowestMemoryPlan> least;
  explore::SpaceWalk walk(*space), of_members(*space);
  walk.families([&](const explore::Family& family) {
    if (family.verdict != explore::Verdict::possible) { return true; }
    of_members.members(family, [&](const explore::Member& member) {
      if (member.verdict != explore::Verdict::possible) { return; }
      estimator.set_global_batch(member.point.global_batch);
      const auto memory = estimator.memory(member.point.plan);
      if (!least || memory.need < least->need) {
        least = LowestMemoryPlan{member.point, memory.need, memory.capacity, memory.fits};
      }
    });
    return true;
  });
  return least;
}

class Changes {
 public:
  Changes(const std::string& data_directory, const hardware::Catalogue& catalogue, const PlanRequest& request)
      : data_directory_(data_directory), catalogue_(catalogue), request_(request) {}

  std::vector<results::FittingChange> found(std::int64_t devices) {
    more_devices(devices);
    without_flags();
    with_offload();
    with_8_bit_adam();
    with_narrower_formats();
    with_narrower_weights();
    return std::move(found_);
  }

 private:
  bool try_change(const PlanRequest& changed, std::string flags) {
    const auto problem = read_problem(data_directory_, catalogue_, changed);
    if (!problem) { return false; }
    const auto least = lowest_memory_plan(changed, *problem);
    if (!least || !least->fits) { return false; }
    found_.push_back({std::move(flags), least->need});
    return true;
  }

  void more_devices(std::int64_t devices) {
    for (std::int64_t times = 2; times <= kMostTimesDevices; times *= 2) {
      PlanRequest changed = request_;
      changed.job.devices = times * devices;
      changed.device_counts.clear();
      if (changed.job.dp) { changed.job.dp.reset(); }
      if (try_change(changed, fmt::format("--devices {}", times * devices))) { return; }
    }
  }

  // A choice that a flag fixes, free.
  void without_flags() {
    for (const parallel::PlanChoice& choice : parallel::plan_choices()) {
      const bool is_fixed = std::any_of(choice.parts.begin(), choice.parts.end(), [&](const auto& part) {
        return parallel::fixed_value(part.field, request_.job).has_value();
      });
      const bool is_listed = request_.values.find(choice.name) != nullptr;
      if (!is_fixed && !is_listed) { continue; }
      PlanRequest changed = request_;
      choice.take_back(changed.job);
      std::erase_if(changed.values.members, [&](const config::Member& member) { return member.key == choice.name; });
      (void)try_change(changed, fmt::format("another {}", parallel::flag_of(choice)));
    }
  }

  // What is moved first costs least: optimizer state is read once a step, activations once a layer, weights once a
  // pass. Recommenders offload their tables.
  void with_offload() {
    if (request_.job.offload) { return; }
    const auto problem = read_problem(data_directory_, catalogue_, request_);
    if (problem && problem->inputs.model.is_recommender()) {
      PlanRequest changed = request_;
      changed.job.offload = parallel::Offload{.tables = true};
      (void)try_change(changed, "--offload tables");
      return;
    }
    const bool serves = request_.job.task == parallel::Task::inference;
    const std::array<std::pair<parallel::Offload, const char*>, 3> steps{
        {{{.weights = false, .activations = false, .optimizer = true}, "optimizer"},
         {{.weights = false, .activations = true, .optimizer = true}, "activations,optimizer"},
         {{.weights = true, .activations = true, .optimizer = true}, "weights,activations,optimizer"}}};
    for (const auto& [offload, name] : steps) {
      PlanRequest changed = request_;
      changed.job.offload = serves ? parallel::Offload{.weights = true} : offload;
      if (try_change(changed, fmt::format("--offload {}", serves ? "weights" : name)) || serves) { return; }
    }
  }

  // Moments of 8 bits, where the stack has them.
  void with_8_bit_adam() {
    if (request_.job.task == parallel::Task::inference || request_.job.optimizer) { return; }
    const auto problem = read_problem(data_directory_, catalogue_, request_);
    if (!problem) { return; }
    const auto& has = problem->inputs.stack.limits.optimizers;
    const auto name = hardware::name_of(hardware::OptimizerKind::adam8bit);
    if (!has.empty() && std::find(has.begin(), has.end(), name) == has.end()) { return; }
    PlanRequest changed = request_;
    changed.job.optimizer = hardware::OptimizerKind::adam8bit;
    (void)try_change(changed, fmt::format("--optimizer {}", name));
  }

  // Weights that are not trained in fewer bits, where the arithmetic cannot be narrower.
  void with_narrower_weights() {
    const bool frozen = request_.job.task == parallel::Task::inference || request_.job.lora > 0;
    if (!frozen || request_.job.weight_format) { return; }
    for (const auto format : {hardware::StorageFormat::int8, hardware::StorageFormat::int4}) {
      PlanRequest changed = request_;
      changed.job.weight_format = format;
      if (try_change(changed, fmt::format("--weight-format {}", hardware::name_of(format)))) { return; }
    }
  }

  void with_narrower_formats() {
    if (hardware::element_size(request_.job.precision) < Bytes(2.0)) { return; }
    const bool serves = request_.job.task == parallel::Task::inference;
    for (const auto precision : {hardware::Precision::fp8, hardware::Precision::int8, hardware::Precision::fp4}) {
      if (hardware::is_integer(precision) && !serves) { continue; }
      PlanRequest changed = request_;
      changed.job.precision = precision;
      if (try_change(changed, fmt::format("--precision {}", hardware::name_of(precision)))) { return; }
    }
  }

  const std::string& data_directory_;
  const hardware::Catalogue& catalogue_;
  const PlanRequest& request_;
  std::vector<results::FittingChange> found_;
};

}  // namespace

std::optional<results::NearestPlan> nearest_plan(const std::string& data_directory,
                                                 const hardware::Catalogue& catalogue, const PlanRequest& request) {
  const auto problem = read_problem(data_directory, catalogue, request);
  if (!problem) { return std::nullopt; }
  const auto least = lowest_memory_plan(request, *problem);
  if (!least || least->fits) { return std::nullopt; }
  const Inputs& inputs = problem->inputs;
  parallel::Job job = problem->job;
  job.global_batch = least->point.global_batch;
  if (job.seq == 0) { job.seq = inputs.model.max_seq; }
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  results::NearestPlan nearest;
  nearest.estimate = estimator.estimate(least->point.plan);
  nearest.need = least->need;
  nearest.capacity = least->capacity;
  nearest.changes = Changes(data_directory, catalogue, request).found(inputs.cluster.devices);
  return nearest;
}

std::string sentence_of(const results::NearestPlan& nearest) {
  const results::PlanSummary& plan = nearest.estimate.plan;
  std::vector<std::string> words;
  for (const char* name : {"tp", "cp", "ep", "pp", "dp", "zero", "recompute", "micro_batch"}) {
    const bool is_one = plan.find(name) == nullptr || plan.text(name) == "1";
    const bool is_named = std::string_view(name) == "tp" || std::string_view(name) == "zero";
    if (!is_one || is_named) { words.push_back(fmt::format("{} {}", name, plan.text(name))); }
  }
  std::string text =
      fmt::format("nearest: {} needs {} a device, {} more than it has", join(words, ", "),
                  config::format_bytes(nearest.need), config::format_bytes(nearest.need - nearest.capacity));
  if (nearest.changes.empty()) {
    return text + "; no single change of devices, flags, offload or format makes one fit";
  }
  std::vector<std::string> flags;
  for (const auto& change : nearest.changes) { flags.push_back(change.flags); }
  return text + "; a plan fits with " + join(flags, ", or with ");
}

}  // namespace orrery::api
