// From a row of measurements to a model, a cluster, a job, a plan and a stack, by rule. docs/models/validation.md has
// the table of rules and their reasons.
//
// A row that needs what is not built, or that does not say enough, is skipped with a reason and never guessed at.
#pragma once

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

using AnyRow = std::variant<TrainingRow, ExpertRow, InferenceRow, KernelRow, CollectiveRow>;

// Catalogue entries that rows refer to, read once, by catalogue name.
struct Parts {
  std::map<std::string, hardware::Cluster, std::less<>> clusters;  // templates
  std::map<std::string, hardware::Stack, std::less<>> stacks;
  std::map<std::string, workload::Model, std::less<>> models;
  std::map<std::string, hardware::LinkClass, std::less<>> links;
};

// Everything that `rows` need of the catalogue in a data directory. Errors: entries that cannot be read.
[[nodiscard]] Result<Parts> parts_for(const std::string& data_directory, const std::vector<AnyRow>& rows);

// What a row stands for.
struct Scenario {
  workload::Model model;
  hardware::Cluster cluster;
  const hardware::Stack* stack = nullptr;  // in Parts
  parallel::Job job;
  parallel::Plan plan;
  bool least_recompute = false;  // not stated: of as many layers as must be
  std::string taken_as = {};     // what of the row does not go together, and what it was taken as: "dp 3 -> 4"
};

// `longest`: tokens of the longest sequence, for models whose table of learned positions has a row for each.
[[nodiscard]] OrSkip<workload::Model> model_of(const NetworkColumns& row, std::int64_t longest, const Parts& parts);
// As the table's machine has it.
[[nodiscard]] hardware::Accelerator accelerator_of(const MachineFacts& machine, const Parts& parts);
// As many devices of each node as make up the job with alike ones: twelve of nodes of eight are two times six. A
// single dimension joins all.
void fill_nodes(std::vector<hardware::NetworkDimension>& dimensions, std::int64_t gpus);
[[nodiscard]] OrSkip<hardware::Cluster> cluster_of(const MachineColumns& row, const Parts& parts);
// The number format in which products are made that a table calls `text` (formats.hpp). A blank one is the stack's
// habit, or bf16 (fp16 before it) where the accelerator has no products of that.
// Says by itself where it is none of those that the text names.
[[nodiscard]] std::string taken_as(std::string_view text, hardware::Precision precision);
[[nodiscard]] OrSkip<hardware::Precision> precision_of(std::string_view text, const StackFacts& habits,
                                                       const hardware::Accelerator& accelerator);

// The software of the recipe that a row of Megatron-Bridge's mixtures is; null where it is the family's.
[[nodiscard]] const StackFacts* recipe_of(const TrainingRow& row);

// What the row's software does where the row says nothing.
[[nodiscard]] const StackFacts& habits_of(const TrainingRow& row);
[[nodiscard]] const StackFacts& habits_of(const InferenceRow& row);

// The job that is asked for, with what the request leaves open.
[[nodiscard]] OrSkip<Scenario> settled(const estimate::Request& request, workload::Model model,
                                       hardware::Cluster cluster, const StackFacts& habits, const Parts& parts);

[[nodiscard]] OrSkip<Scenario> scenario_of(const TrainingRow& row, const Parts& parts);
[[nodiscard]] OrSkip<Scenario> scenario_of(const InferenceRow& row, const Parts& parts);

// One pass over the expert half of the only layer of a job.
struct PassScenario {
  Scenario job;
  bool backward = false;
};
[[nodiscard]] OrSkip<PassScenario> pass_of(const ExpertRow& row, const Parts& parts);

// Tokens on their way between the ranks of a plan.
struct ExchangeScenario {
  hardware::Cluster cluster;
  parallel::Plan plan;
  parallel::CollectiveCall call;
};
[[nodiscard]] OrSkip<ExchangeScenario> exchange_of(const ExpertRow& row, const Parts& parts);

// A kernel and what it runs on.
struct KernelScenario {
  hardware::Kernel kernel;
  hardware::Accelerator accelerator;
  std::string taken_as = {};  // as of Scenario
};
[[nodiscard]] OrSkip<KernelScenario> scenario_of(const KernelRow& row, const Parts& parts);

// A call and the devices that take part, which are the whole cluster.
struct CollectiveScenario {
  hardware::Cluster cluster;
  std::optional<Collective> collective;  // nullopt: one message, between devices as far apart as there are
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  Bytes bytes;
};
[[nodiscard]] OrSkip<CollectiveScenario> scenario_of(const CollectiveRow& row, const Parts& parts);

// What `row` needs of the catalogue is added to `parts`.
[[nodiscard]] Result<std::monostate> add_parts(Parts& parts, const hardware::Catalogue& catalogue,
                                               const CollectiveRow& row);

}  // namespace orrery::validate
