// Checks whether a graph can be executed: ids, dependencies, types and attributes of one rank. job_check.hpp checks the
// ranks of a job together.
//
// Not checked: whether times, sizes and shapes are plausible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/graph/finding.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::graph {

struct CheckOptions {
  std::size_t examples = 3;           // examples of each problem; all are counted
  std::optional<std::uint64_t> rank;  // whose graph it is, if known
  bool alone = false;  // without graphs of other ranks: sends, receives and collectives are reported as not_compared
};

// Findings in the order of Problem; none: the graph is sound.
//   duplicate_id          a node has the same id as an earlier one
//   missing_parent        a parent (each time it is named) does not exist
//   cycle                 one cycle, by its ids; dependencies of a node on itself are a separate problem
//   self_dependency, duplicate_dependency (data and control separately; once per node and parent)
//   unknown_type          of a node (INVALID_NODE too) or of a collective
//   missing_attribute     comm_type, comm_size of a COMM_COLL_NODE (a BARRIER has no size); comm_dst, comm_size of a
//                         COMM_SEND_NODE; comm_src, comm_size of a COMM_RECV_NODE; tensor_size of a MEM_*_NODE
//   unusable_attribute    one of these is not a number of that kind
//   group_members         the rank list of a group has a rank twice, or lacks the rank whose graph uses it
//   not_compared          not unsound: sends, receives and collectives that are not compared with other ranks
//   odd_attribute         not unsound: comm_size or comm_type is not int64, which some readers read as 0
[[nodiscard]] std::vector<Finding> check(const Graph& graph, const CheckOptions& options = {});

// The name of the process group of a collective: pg_name as a text, also where it is written as a number.
[[nodiscard]] std::optional<std::string> group_name(const std::optional<Value>& pg_name);

}  // namespace orrery::graph
