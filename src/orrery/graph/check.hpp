// Whether a graph can be run: ids, dependencies, types and attributes of one rank. What ranks owe to each other is the
// job's business (job_check.hpp).
//
// Left out: whether times, sizes and shapes are plausible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/graph/finding.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::graph {

struct CheckOptions {
  std::size_t examples = 3;           // how many of a problem are told; the rest is counted
  std::optional<std::uint64_t> rank;  // whose graph it is, if that is known
  bool alone = false;                 // no graph of another rank is checked with it: sends, receives and collectives are
                                      // then a finding, not_compared
};

// In the order of Problem; none of them: the graph is sound.
//   duplicate_id          a node has the id of one before it
//   missing_parent        a parent (each time it is named) is no node
//   cycle                 one of them, by its ids; dependencies of a node on itself are a problem of their own
//   self_dependency, duplicate_dependency (data and control apart; a duplicate is told once per node and parent)
//   unknown_type          of a node (INVALID_NODE too) or of a collective
//   missing_attribute     comm_type, comm_size of a COMM_COLL_NODE (a BARRIER has no size); comm_dst, comm_size of a
//                         COMM_SEND_NODE; comm_src, comm_size of a COMM_RECV_NODE; tensor_size of a MEM_*_NODE
//   unusable_attribute    there is one of these, and it is no number of that kind
//   group_members         the rank list of a group names a rank twice, or lacks the rank whose graph uses it
//   not_compared          not unsound: how many sends, receives and collectives nobody compares with other ranks
//   odd_attribute         not unsound: comm_size or comm_type is no int64, which some readers take for 0
[[nodiscard]] std::vector<Finding> check(const Graph& graph, const CheckOptions& options = {});

// The name of the process group of a collective: pg_name as a text, also where it is written as a number.
[[nodiscard]] std::optional<std::string> group_name(const std::optional<Value>& pg_name);

}  // namespace orrery::graph
