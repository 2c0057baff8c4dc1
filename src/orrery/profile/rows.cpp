#include "orrery/profile/rows.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "orrery/profile/kernel_shape.hpp"

namespace orrery::profile {

namespace {

// "NVIDIA A100-SXM4-80GB" and "Tesla V100-SXM2-32GB" without the maker.
std::string board_of(std::string name) {
  for (const std::string_view maker : {"NVIDIA ", "Tesla ", "AMD "}) {
    if (name.starts_with(maker)) { name.erase(0, maker.size()); }
  }
  std::replace(name.begin(), name.end(), ',', ' ');
  return name;
}

std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::int64_t median_of(std::vector<std::int64_t>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

class RowWriter {
 public:
  explicit RowWriter(const JobPlan& job) : job_(job) {}

  ProfileRows write() {
    kernels();
    collectives();
    steps();
    return std::move(made_);
  }

 private:
  struct Key {
    std::string board, dtype;
    MatrixProduct product;

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  void kernels() {
    std::map<Key, std::vector<std::int64_t>> times;
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) { collect(rank, times); }
    made_.kernels = "id,family,op,gpu_type,dtype,m,n,k,groups,time_us,source\n";
    for (auto& [key, all] : times) {
      made_.kernels +=
          fmt::format("gemm-{},profile,gemm,{},{},{},{},{},{},{},\"median of {} in {} profiles\"\n",
                      ++made_.kernel_rows, key.board, key.dtype, key.product.m, key.product.n, key.product.k,
                      key.product.groups, microseconds(median_of(all)), all.size(), job_.ranks.size());
    }
  }

  // The kernels of an operator together: a split product has a second one.
  void collect(std::size_t rank, std::map<Key, std::vector<std::int64_t>>& times) const {
    const Profile& profile = *job_.profiles[rank];
    std::unordered_map<const Event*, std::int64_t> by_operator;
    for (const PlannedNode& node : job_.ranks[rank].nodes) {
      if (node.kind != NodeKind::device || node.operation == nullptr || node.event->category != Category::kernel) {
        continue;
      }
      if (node.operation->detail == 0 || profile.comm(*node.operation) != nullptr) { continue; }
      by_operator[node.operation] += node.duration;
    }
    for (const auto& [operation, time] : by_operator) {
      const auto& [dims, types] = profile.shapes[operation->detail - 1];
      const auto product = matrix_product_of(profile.name(*operation), profile.names[dims]);
      std::string dtype = number_format_of(profile.names[types]);
      if (!product || dtype.empty()) { continue; }
      times[{board_of(profile.device_name), std::move(dtype), *product}].push_back(time);
    }
  }

  void collectives() {
    made_.collectives = "id,family,collective,size_bytes,time_us,gpus,gpu_type,source\n";
    for (const CollectiveInstance& one : job_.collectives) {
      const bool whole = one.group_ranks.empty() || one.group_ranks.size() == one.members.size();
      if (one.alone || one.one_sided || one.guessed || one.bytes == 0 || !whole) { continue; }
      std::int64_t wire = 0;
      for (const CollectiveMember& member : one.members) { wire = std::max(wire, member.wire_ns); }
      made_.collectives +=
          fmt::format("{}-{},profile,{},{},{},{},{},\"group {} number {}\"\n", one.kind, ++made_.collective_rows,
                      one.kind, one.bytes, microseconds(wire), one.members.size(),
                      board_of(job_.profiles.front()->device_name), one.group, one.number);
    }
  }

  // The step of the job ends on its slowest rank.
  void steps() {
    std::map<std::uint64_t, std::int64_t> slowest;
    for (const RankPlan& rank : job_.ranks) {
      std::map<std::uint64_t, std::int64_t> begins;
      for (const PlannedNode& node : rank.nodes) {
        if (node.kind == NodeKind::step_begin) { begins[node.step] = node.start; }
      }
      for (const PlannedNode& node : rank.nodes) {
        if (node.kind != NodeKind::step_end || !begins.contains(node.step)) { continue; }
        std::int64_t& time = slowest[node.step];
        time = std::max(time, node.start - begins[node.step]);
      }
    }
    std::vector<std::int64_t> times;
    for (const auto& [step, time] : slowest) { times.push_back(time); }
    made_.steps = times.size();
    if (!times.empty()) { made_.step_ns = median_of(times); }
  }

  const JobPlan& job_;
  ProfileRows made_;
};

}  // namespace

std::string step_rows(const ProfileRows& rows, std::string_view command) {
  std::string quoted;
  for (const char c : command) { quoted += c == '"' ? std::string("\"\"") : std::string(1, c); }
  std::string text = "id,args,measured_s,source\n";
  if (rows.steps == 0) { return text; }
  return text + fmt::format("step,\"{}\",{}.{:09},\"median of {} steps, each on its slowest rank\"\n", quoted,
                            rows.step_ns / 1'000'000'000, rows.step_ns % 1'000'000'000, rows.steps);
}

ProfileRows rows_of(const JobPlan& job) { return RowWriter(job).write(); }

}  // namespace orrery::profile
