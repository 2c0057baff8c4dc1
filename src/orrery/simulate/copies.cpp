#include "orrery/simulate/copies.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

namespace {

std::string unknown_name(const std::string& name, const std::vector<Group>& groups) {
  if (groups.empty()) { return fmt::format("{}: the graphs have no process groups", quote(name)); }
  std::vector<std::string> known;
  for (const Group& group : groups) { known.push_back(group.name); }
  constexpr std::size_t kMost = 12;
  if (known.size() > kMost) {
    known.resize(kMost);
    known.emplace_back("…");
  }
  return fmt::format("{} is not a process group of the graphs; valid: {}", quote(name), join(known, ", "));
}

// Numbers of the groups of a job with copies: NodeTask::group by copy and group of the original.
class CopiedGroups {
 public:
  CopiedGroups(const SimulationJob& job, std::uint32_t copies, std::span<const std::string> grown) {
    const auto ranks = static_cast<std::uint32_t>(job.rank_graphs.size());
    numbers_.assign(copies, std::vector<std::uint32_t>(job.groups.size() + 1, kWholeMachine));
    grows_.assign(job.groups.size() + 1, true);  // all ranks
    for (std::size_t g = 0; g < job.groups.size(); ++g) {
      const Group& group = job.groups[g];
      grows_[g + 1] = std::any_of(grown.begin(), grown.end(),
                                  [&](const std::string& name) { return group_key(name) == group.name; });
      for (std::uint32_t c = 0; c < copies; ++c) {
        if (c == 0 || !grows_[g + 1]) {
          groups_.push_back({c == 0 ? group.name : fmt::format("{}.{}", group.name, c), {}});
        }
        for (const std::uint32_t rank : group.ranks) { groups_.back().ranks.push_back(rank + c * ranks); }
        numbers_[c][g + 1] = static_cast<std::uint32_t>(groups_.size());
      }
    }
  }

  [[nodiscard]] std::uint32_t number(std::uint32_t copy, std::uint32_t group) const { return numbers_[copy][group]; }
  [[nodiscard]] bool grows(std::uint32_t group) const { return grows_[group]; }
  [[nodiscard]] std::vector<Group>& groups() { return groups_; }

 private:
  std::vector<Group> groups_;
  std::vector<std::vector<std::uint32_t>> numbers_;
  std::vector<bool> grows_;
};

}  // namespace

Result<void> copy_ranks(SimulationJob& job, std::uint32_t copies, std::span<const std::string> grown) {
  for (const std::string& name : grown) {
    const auto is_it = [&](const Group& group) { return group.name == group_key(name); };
    if (std::any_of(job.groups.begin(), job.groups.end(), is_it)) { continue; }
    return fail(Place{{}, 0, 0, "--grow"}, unknown_name(name, job.groups));
  }
  const auto ranks = static_cast<std::uint32_t>(job.rank_graphs.size());
  CopiedGroups groups(job, copies, grown);
  for (std::uint32_t rank = ranks; rank < copies * ranks; ++rank) {
    job.rank_graphs.share(rank - ranks);
    if (!job.files.empty()) { job.files.push_back(job.files[rank - ranks]); }
  }
  for (std::uint32_t rank = 0; rank < copies * ranks; ++rank) {
    const std::uint32_t copy = rank / ranks;
    for (NodeTask& task : job.rank_graphs.own(rank).nodes) {
      if (task.act == Act::send || task.act == Act::receive) { task.peer += copy * ranks; }
      const bool shard_shrinks =
          task.act == Act::collective && task.collective == Collective::all_gather && groups.grows(task.group);
      if (shard_shrinks) { task.amount = (task.amount + copies - 1) / copies; }
      task.group = groups.number(copy, task.group);
    }
  }
  job.groups = std::move(groups.groups());
  return {};
}

}  // namespace orrery::simulate
