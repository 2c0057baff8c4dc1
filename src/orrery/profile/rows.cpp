#include "orrery/profile/rows.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "orrery/profile/decimal.hpp"

namespace orrery::profile {

namespace {

struct Product {
  std::int64_t m = 0, n = 0, k = 0, groups = 1;

  friend auto operator<=>(const Product&, const Product&) = default;
};

// "[[64, 512], [512, 128], []]" as lists of numbers.
std::vector<std::vector<std::int64_t>> shapes_of(std::string_view text) {
  std::vector<std::vector<std::int64_t>> shapes;
  int depth = 0;
  std::int64_t number = -1;
  const auto end_number = [&] {
    if (number >= 0 && depth == 2 && !shapes.empty()) { shapes.back().push_back(number); }
    number = -1;
  };
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      constexpr std::int64_t kMost = 1'000'000'000'000;
      number = std::min((number < 0 ? 0 : number) * 10 + (c - '0'), kMost);
      continue;
    }
    end_number();
    if (c == '[' && ++depth == 2) { shapes.emplace_back(); }
    if (c == ']') { --depth; }
  }
  return shapes;
}

// The product of an operator with these inputs: the last two matrices of mm, addmm, bmm and baddbmm.
std::optional<Product> product_of(std::string_view name, std::string_view dims) {
  std::vector<std::vector<std::int64_t>> matrices;
  const std::size_t rank = name == "aten::bmm" || name == "aten::baddbmm" ? 3 : 2;
  if (rank == 2 && name != "aten::mm" && name != "aten::addmm") { return std::nullopt; }
  for (auto& shape : shapes_of(dims)) {
    if (shape.size() == rank) { matrices.push_back(std::move(shape)); }
  }
  if (matrices.size() < 2) { return std::nullopt; }
  const auto& a = matrices[matrices.size() - 2];
  const auto& b = matrices.back();
  const std::size_t at = rank - 2;
  if (a[at + 1] != b[at] || a[at] == 0 || b[at] == 0 || b[at + 1] == 0) { return std::nullopt; }
  return Product{a[at], b[at + 1], a[at + 1], rank == 3 ? a[0] : 1};
}

// Number format of the first input that has one.
std::string dtype_of(std::string_view types) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes = {
      {{"c10::BFloat16", "bf16"}, {"c10::Half", "fp16"}, {"float", "fp32"}, {"double", "fp64"}}};
  for (const auto& [name, dtype] : kTypes) {
    if (types.find(name) != std::string_view::npos) { return std::string(dtype); }
  }
  return {};
}

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
    return std::move(made_);
  }

 private:
  struct Key {
    std::string board, dtype;
    Product product;

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
      const auto product = product_of(profile.name(*operation), profile.names[dims]);
      std::string dtype = dtype_of(profile.names[types]);
      if (!product || dtype.empty()) { continue; }
      times[{board_of(profile.device_name), std::move(dtype), *product}].push_back(time);
    }
  }

  void collectives() {
    made_.collectives = "id,family,collective,size_bytes,time_us,gpus,gpu_type,source\n";
    for (const CollectiveInstance& one : job_.collectives) {
      const bool whole = one.group_ranks.empty() || one.group_ranks.size() == one.members.size();
      if (one.alone || one.guessed || one.bytes == 0 || !whole) { continue; }
      std::int64_t wire = 0;
      for (const CollectiveMember& member : one.members) { wire = std::max(wire, member.wire_ns); }
      made_.collectives +=
          fmt::format("{}-{},profile,{},{},{},{},{},\"group {} number {}\"\n", one.kind, ++made_.collective_rows,
                      one.kind, one.bytes, microseconds(wire), one.members.size(),
                      board_of(job_.profiles.front()->device_name), one.group, one.number);
    }
  }

  const JobPlan& job_;
  ProfileRows made_;
};

}  // namespace

ProfileRows rows_of(const JobPlan& job) { return RowWriter(job).write(); }

}  // namespace orrery::profile
