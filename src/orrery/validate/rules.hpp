// From a row of measurements to a model, a cluster, a job, a plan and a stack, by rule. docs/models/validation.md has
// the table of rules and their reasons.
//
// A row that needs what is not built, or that does not say enough, is skipped with a reason and never guessed at.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/validate/training_row.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::validate {

// Catalogue entries that rows refer to, read once.
struct Parts {
  std::map<std::string, hardware::Cluster, std::less<>> clusters;  // templates, by catalogue name
  std::map<std::string, hardware::Stack, std::less<>> stacks;
};

// Everything that `rows` need of the catalogue. Errors: entries that cannot be read.
[[nodiscard]] Result<Parts> parts_for(const hardware::Catalogue& catalogue, const std::vector<TrainingRow>& rows);

// What a row stands for.
struct Scenario {
  workload::Model model;
  hardware::Cluster cluster;
  const hardware::Stack* stack = nullptr;  // in Parts
  parallel::Job job;
  parallel::Plan plan;
};

template <class T>
using OrSkip = tl::expected<T, std::string>;  // or the reason why the row is skipped

[[nodiscard]] OrSkip<workload::Model> model_of(const TrainingRow& row);
[[nodiscard]] OrSkip<hardware::Precision> precision_of(const TrainingRow& row);
[[nodiscard]] OrSkip<hardware::Cluster> cluster_of(const TrainingRow& row, const Parts& parts);
[[nodiscard]] OrSkip<Scenario> scenario_of(const TrainingRow& row, const Parts& parts);

}  // namespace orrery::validate
