// Planned ranks as Chakra graphs, and the attributes that a replay reads. Other simulators ignore these and read plain
// graphs: they lose launch latencies and gaps, and take the recorded time of collectives.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/profile/job_plan.hpp"

namespace orrery::profile {

// Names of attributes of imported graphs.
namespace keys {
inline constexpr std::string_view schema = "schema";             // of a file: kGraphSchema
inline constexpr std::string_view rank = "rank";                 // of a file
inline constexpr std::string_view world_size = "world_size";     // of a file
inline constexpr std::string_view device_name = "device_name";   // of a file: "NVIDIA A100-SXM4-80GB"
inline constexpr std::string_view host_start = "host_start_ns";  // of a file: as recorded
inline constexpr std::string_view host_end = "host_end_ns";      // of a file: as recorded
inline constexpr std::string_view device_end = "device_end_ns";  // of a file: as recorded
inline constexpr std::string_view imported = "imported_ranks";   // of a file: all ranks of the import
// Of a file, if there is any: time that calls were blocked for no known reason.
inline constexpr std::string_view blocked_without_cause = "blocked_without_cause_ns";
inline constexpr std::string_view lags = "dependency_lag_ns";          // ns after each of data_deps
inline constexpr std::string_view step_begin = "step_begin";           // number of the step
inline constexpr std::string_view step_end = "step_end";               // number of the step
inline constexpr std::string_view collective = "collective_instance";  // equal on the ranks of a collective
inline constexpr std::string_view wire = "wire_time_ns";               // of a collective, without waiting
// Ranks whose start a member waits for, if these are not all members.
inline constexpr std::string_view waits_for = "collective_waits_for";
inline constexpr std::string_view kind = "collective_kind";              // as in reports
inline constexpr std::string_view called = "collective_call";            // kind of the call, if the kernel has none
inline constexpr std::string_view group = "collective_group";            // as in reports
inline constexpr std::string_view number = "collective_number";          // as in reports
inline constexpr std::string_view members = "collective_members";        // ranks with a file
inline constexpr std::string_view group_size = "collective_group_size";  // ranks of the group
inline constexpr std::string_view unexplained = "unexplained_idle_ns";   // idle time before the node without a cause
inline constexpr std::string_view uncertain = "uncertain";               // what is guessed about the node
inline constexpr std::string_view operation = "operator";                // innermost operator around the call
inline constexpr std::string_view recorded_duration = "recorded_duration_ns";  // of a call: with waiting
}  // namespace keys

inline constexpr std::string_view kGraphSchema = "orrery.profile-graph/1";

// The schema's type of a kind of collective ("all_reduce"); nothing for messages and unknown kinds.
[[nodiscard]] std::optional<graph::CollectiveType> collective_type_of(std::string_view kind);

[[nodiscard]] Result<graph::Graph> graph_of(const JobPlan& job, std::size_t rank);

// The same node by node, for graphs that need not be in memory: first the metadata, with the process groups. What is
// passed is valid during the call. Stops at the first error that a call returns.
struct GraphSink {
  std::function<Result<void>(const graph::Metadata&)> metadata;
  std::function<Result<void>(const graph::NodeRecord&)> node;
};
[[nodiscard]] Result<void> write_graph(const JobPlan& job, std::size_t rank, const GraphSink& sink);

}  // namespace orrery::profile
