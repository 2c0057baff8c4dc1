// Reads imported graphs for a replay, node by node: a graph does not have to be in memory.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "orrery/graph/record.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/profile/replay.hpp"

namespace orrery::profile {

// For each rank: begin(), add() for every node in the order of the file, end(). Then finish().
class ReplayJob::Reader {
 public:
  // Fails if the metadata are not those of an imported profile, or are of a rank or of an import that does not belong
  // to those read before.
  Result<void> begin(const graph::Metadata& metadata);
  void add(const graph::NodeRecord& node);

  // Fails if a node depends on one that is not in the file.
  Result<void> end();

  // Fails if a rank of a collective has no file: without it, the time of the others' waiting is not known.
  [[nodiscard]] Result<ReplayJob> finish();

 private:
  [[nodiscard]] std::uint32_t kernel(const graph::NodeRecord& node, std::int64_t duration);
  void add_step(std::uint64_t number, std::uint32_t node, bool begins);
  void add_member(const graph::NodeRecord& node, std::int64_t instance, std::int64_t wire, std::uint32_t position);
  void resolve_members();
  [[nodiscard]] Result<void> check_partners() const;

  ReplayJob job_;
  std::vector<std::int64_t> together_;                      // ranks of the import
  std::set<std::uint64_t> partners_;                        // ranks of collectives that were imported together
  std::unordered_map<std::string, std::uint32_t> kernels_;  // by name, operator and shape
  std::map<std::int64_t, std::uint32_t> instances_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint32_t> step_of_;
  std::vector<std::uint64_t> ids_, dep_ids_;  // of the rank
  // Of members that do not wait for all others: the ranks that they wait for, by collective and member.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint64_t>> waits_for_;
};

}  // namespace orrery::profile
