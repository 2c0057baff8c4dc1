// A space file: a scenario and the axes of the plans to search (docs/format/space.md).
//
// Reading does not depend on model and cluster; Space::make (space_walk.hpp) combines them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/explore/expression.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::explore {

// The axes of a space: fields of a plan (parallel/plan_table.cpp), and axes of published search problems, which are
// other names for choices of a plan or have no effect on Orrery's model.
using Axis = parallel::PlanField;
inline constexpr Axis kOptimizerSharding = static_cast<Axis>(parallel::kPlanFields);  // zero 0 or 1
inline constexpr Axis kTpComm = static_cast<Axis>(parallel::kPlanFields + 1);         // sequence parallelism
inline constexpr Axis kAgRedo = static_cast<Axis>(parallel::kPlanFields + 2);
inline constexpr Axis kFusedActivation = static_cast<Axis>(parallel::kPlanFields + 3);
inline constexpr std::size_t kAxes = parallel::kPlanFields + 4;

[[nodiscard]] constexpr bool is_field(Axis axis) { return static_cast<std::size_t>(axis) < parallel::kPlanFields; }
[[nodiscard]] std::string_view axis_name(Axis axis);  // "tier.tp"
[[nodiscard]] const ValueKind& kind_of(Axis axis);

// Names that expressions can use but that are not axes: facts of model, job and cluster.
enum class Fact : std::uint8_t {
  devices,
  node_size,
  hidden,
  heads,
  kv_heads,
  layers,
  experts,
  tables,
  seq,
  batch,
  dp,
  max_batch
};
inline constexpr std::size_t kFacts = 12;

[[nodiscard]] std::string_view fact_name(Fact fact);

[[nodiscard]] constexpr Slot slot_of(Axis axis) { return static_cast<Slot>(axis); }
[[nodiscard]] constexpr Slot slot_of(Fact fact) { return static_cast<Slot>(kAxes + static_cast<std::size_t>(fact)); }

struct WrittenAxis {
  Axis axis = Axis::tp;
  Place place;
  AxisValues values;
};

// An axis of which only some values are searched, whatever the file says.
struct AllowedValues {
  Axis axis = Axis::tp;
  std::vector<std::int64_t> values;
};

struct SpaceFile {
  // The header as a scenario: fields of estimate::Request with their places; `cluster: {use, devices}` is split into
  // two fields. Each value has been checked; any may be missing, and flags override them.
  config::Node scenario;
  std::optional<std::int64_t> max_batch;  // the batch is the largest multiple of dp up to this
  bool count_invalid = true;              // whether impossible combinations count as (rejected) points
  std::vector<WrittenAxis> axes;          // in the order written
  std::vector<AllowedValues> allowed;     // what the software has; not part of the file
};

[[nodiscard]] Result<SpaceFile> space_of(const config::Node& root);
[[nodiscard]] Result<SpaceFile> read_space_file(const std::string& path);

// The file with other values of some axes: a mapping of names of axes to values as in a file. An axis that the file has
// keeps its place in the order, another one is the last; an axis of the file that sets the same choice is dropped.
[[nodiscard]] Result<SpaceFile> with_values(SpaceFile file, const config::Node& values);

}  // namespace orrery::explore
