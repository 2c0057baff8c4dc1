#include "orrery/simulate/pool_levels.hpp"

#include <algorithm>

namespace orrery::simulate {

PoolLevels::PoolLevels(const FlowJob& job)
    : job_(job), devices_(job.pool.devices.empty() ? job.devices : job.pool.devices) {
  const auto ranks = static_cast<std::uint32_t>(job.job.rank_graphs.size());
  std::uint32_t devices = ranks;
  for (const std::uint32_t place : devices_) { devices = std::max(devices, place + 1); }
  for (const hardware::PoolLevel& level : job.cluster.second_tier.levels) {
    const auto share = static_cast<std::uint32_t>(level.devices);
    first_.push_back(ports_);
    ports_ += 2 * (job.pool.folded.empty() ? (devices + share - 1) / share : ranks);
  }
}

PoolPlaces::Place PoolLevels::place(std::uint32_t rank, std::size_t level) const {
  if (!job_.pool.folded.empty()) { return job_.pool.folded[level][rank]; }
  return {device(rank) / static_cast<std::uint32_t>(job_.cluster.second_tier.levels[level].devices), 1};
}

// The rank included.
double PoolLevels::members_near(std::uint32_t rank, const NodeTask& task, std::size_t level) const {
  if (!job_.pool.folded.empty()) { return job_.pool.members.at({task.group, rank, static_cast<std::uint32_t>(level)}); }
  const std::int64_t devices = job_.cluster.second_tier.levels[level].devices;
  const std::int64_t block = device(rank) / devices;
  const auto [known, is_new] = members_.try_emplace({task.group, block, devices}, 0.0);
  if (is_new) { known->second = count_near(task.group, block, devices); }
  return known->second;
}

double PoolLevels::count_near(std::uint32_t group, std::int64_t block, std::int64_t devices) const {
  if (group == kWholeMachine) {
    const auto all = static_cast<std::int64_t>(job_.job.rank_graphs.size());
    if (devices_.empty()) { return static_cast<double>(std::min(all - block * devices, devices)); }
    return static_cast<double>(
        std::count_if(devices_.begin(), devices_.end(), [&](std::uint32_t other) { return other / devices == block; }));
  }
  const auto& ranks = job_.job.groups[group - 1].ranks;
  return static_cast<double>(
      std::count_if(ranks.begin(), ranks.end(), [&](std::uint32_t other) { return device(other) / devices == block; }));
}

// Members of a group that load the same bytes have equal parts of the traffic on levels that combine it.
std::vector<PoolLevels::Need> PoolLevels::needs(std::uint32_t rank, const NodeTask& task) const {
  std::vector<Need> needs;
  double part = 1.0;
  const auto& levels = job_.cluster.second_tier.levels;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const hardware::PoolLevel& level = levels[i];
    if (level.combines && is_combined(task)) { part = 1.0 / members_near(rank, task, i); }
    const PoolPlaces::Place at = place(rank, i);
    const std::uint32_t port = first_[i] + 2 * at.block + (task.tag == kLoad ? 1 : 0);
    needs.push_back({port, at.copies, Bytes(static_cast<double>(task.amount) * part) / level.capacity()});
  }
  return needs;
}

std::pair<std::string, Seconds> PoolLevels::slowest(std::uint32_t rank, const NodeTask& task) const {
  const hardware::SecondTier& tier = job_.cluster.second_tier;
  std::pair<std::string, Seconds> found{"the second tier", Bytes(static_cast<double>(task.amount)) / tier.bandwidth};
  const std::vector<Need> all = needs(rank, task);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].time > found.second) { found = {tier.levels[i].name, all[i].time}; }
  }
  return found;
}

}  // namespace orrery::simulate
