// From a row of measurements to a model, a cluster, a job, a plan and a stack, by rule. docs/models/validation.md has
// the table of rules and their reasons.
//
// A row that needs what is not modelled, or that lacks required columns, is skipped with a reason, never guessed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/kernel.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/validate/facts.hpp"
#include "orrery/validate/rows.hpp"
#include "orrery/validate/skip.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::validate {

using AnyRow = std::variant<TrainingRow, ExpertRow, InferenceRow, KernelRow, CollectiveRow, CommandRow>;

// The fastest plan of a job in the space that ships for its task. Errors: as of `orrery plan`; nothing fits.
using BestPlan = std::function<Result<parallel::Plan>(const estimate::Request&)>;

// Catalogue entries that rows refer to, by catalogue name; each is read once.
struct Parts {
  std::string data_directory;
  BestPlan best_plan = {};                                         // not given: rows of `plan` are skipped
  std::map<std::string, hardware::Cluster, std::less<>> clusters;  // templates
  std::map<std::string, hardware::Stack, std::less<>> stacks;
  std::map<std::string, workload::Model, std::less<>> models;
  std::map<std::string, hardware::LinkClass, std::less<>> links;
};

// Everything that `rows` need of the catalogue in a data directory. Errors: entries that cannot be read.
[[nodiscard]] Result<Parts> parts_for(const std::string& data_directory, const std::vector<AnyRow>& rows);

// The job of a row.
struct Scenario {
  workload::Model model;
  hardware::Cluster cluster;
  const hardware::Stack* stack = nullptr;  // in Parts
  parallel::Job job;
  parallel::Plan plan;
  std::string taken_as = {};  // columns that contradict each other, and what they were taken as: "dp 3 -> 4"
};

// `longest`: tokens of the longest sequence, for models whose table of learned positions has a row for each.
[[nodiscard]] Skippable<workload::Model> model_of(const NetworkColumns& row, std::int64_t longest, const Parts& parts);
// The machine's accelerator.
[[nodiscard]] hardware::Accelerator accelerator_of(const MachineFacts& machine, const Parts& parts);
// Equal numbers of devices per node: twelve devices on nodes of eight are two times six. A single dimension connects
// all.
void fill_nodes(std::vector<hardware::NetworkDimension>& dimensions, std::int64_t gpus);
[[nodiscard]] Skippable<hardware::Cluster> cluster_of(const MachineColumns& row, const Parts& parts);
// "fp8 -> bf16" where `precision` is not among the formats in `text`; else empty.
[[nodiscard]] std::string taken_as(std::string_view text, hardware::Precision precision);
// The format of GEMMs for a table's `text` (formats.hpp). Blank: the stack's default, or bf16 (fp16 on older
// accelerators) where the accelerator does not support that.
[[nodiscard]] Skippable<hardware::Precision> precision_of(std::string_view text, const StackFacts& defaults,
                                                          const hardware::Accelerator& accelerator);

// The stack of a Megatron-Bridge MoE recipe where it differs from the family's; else null.
[[nodiscard]] const StackFacts* recipe_of(const TrainingRow& row);

// The defaults of the row's stack.
[[nodiscard]] const StackFacts& defaults_of(const TrainingRow& row);
[[nodiscard]] const StackFacts& defaults_of(const InferenceRow& row);

// The requested job; the estimator chooses what the request does not state.
[[nodiscard]] Skippable<Scenario> resolved(const estimate::Request& request, workload::Model model,
                                           hardware::Cluster cluster, const StackFacts& defaults, const Parts& parts);

[[nodiscard]] Skippable<Scenario> scenario_of(const TrainingRow& row, const Parts& parts);
[[nodiscard]] Skippable<Scenario> scenario_of(const InferenceRow& row, const Parts& parts);

// One pass over the expert half of the only layer of a job.
struct PassScenario {
  Scenario job;
  bool backward = false;
};
[[nodiscard]] Skippable<PassScenario> pass_of(const ExpertRow& row, const Parts& parts);

// Dispatch or combine between the ranks of a plan.
struct AllToAllScenario {
  hardware::Cluster cluster;
  parallel::Plan plan;
  parallel::CollectiveCall call;
};
[[nodiscard]] Skippable<AllToAllScenario> all_to_all_of(const ExpertRow& row, const Parts& parts);

// A kernel and what it runs on.
struct KernelScenario {
  hardware::Kernel kernel;
  hardware::Accelerator accelerator;
  std::string taken_as = {};  // as of Scenario
};
[[nodiscard]] Skippable<KernelScenario> scenario_of(const KernelRow& row, const Parts& parts);

// A collective of all devices of a cluster.
struct CollectiveScenario {
  hardware::Cluster cluster;
  std::optional<Collective> collective;  // nullopt: one message, over the outermost dimension
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  Bytes bytes;
};
[[nodiscard]] Skippable<CollectiveScenario> scenario_of(const CollectiveRow& row, const Parts& parts);

// The job of a command, with what its flags leave open chosen as `orrery estimate` chooses it.
struct CommandScenario {
  workload::Model model;
  hardware::Cluster cluster;
  hardware::Stack stack;
  parallel::Job job;
  parallel::Plan plan;
  bool attention_only = false;  // only the attention core of a layer, forward
};
[[nodiscard]] Skippable<CommandScenario> scenario_of(const CommandRow& row, const Parts& parts);

// Adds the catalogue entries that `row` needs to `parts`.
[[nodiscard]] Result<std::monostate> add_parts(Parts& parts, const hardware::Catalogue& catalogue,
                                               const CollectiveRow& row);

}  // namespace orrery::validate
