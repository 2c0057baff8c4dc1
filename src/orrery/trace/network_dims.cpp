#include "orrery/trace/network_dims.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace orrery::trace {

namespace {

// A limit on the number of files.
constexpr std::uint64_t kMostRanks = std::uint64_t{1} << 20;

bool is_model_parallel(Parallelism kind) {
  return kind == Parallelism::hybrid_transformer || kind == Parallelism::hybrid_transformer_fwd_in_bckwd;
}

bool is_two_sided(Parallelism kind) {
  return kind == Parallelism::hybrid_data_model || kind == Parallelism::hybrid_model_data;
}

// The line that gives a layer, or the whole workload, such a parallelism.
template <class Is>
int line_with(const TextWorkload& workload, const Is& is) {
  if (is(workload.parallelism)) { return workload.line; }
  for (const TextLayer& layer : workload.layers) {
    if (layer.parallelism && is(*layer.parallelism)) { return layer.line; }
  }
  return 0;
}

}  // namespace

std::uint64_t product(std::span<const std::uint64_t> sizes) {
  std::uint64_t made = 1;
  for (const std::uint64_t size : sizes) { made *= size; }
  return made;
}

Result<std::uint64_t> ranks_of(const TextWorkloadOptions& options) {
  const Place place{{}, 0, 0, "--dimensions"};
  if (options.dimensions.empty()) { return fail(place, "a network must have at least one dimension"); }
  std::uint64_t ranks = 1;
  for (const std::uint64_t size : options.dimensions) {
    if (size == 0) { return fail(place, "a dimension must have at least one rank"); }
    if (size > kMostRanks / ranks) {
      return fail(place,
                  fmt::format("{} exceeds the maximum of {} ranks", fmt::join(options.dimensions, " x "), kMostRanks));
    }
    ranks *= size;
  }
  return ranks;
}

Result<NetworkDims> NetworkDims::of(const TextWorkload& workload, const TextWorkloadOptions& options) {
  NetworkDims dims;
  dims.sizes_ = options.dimensions;
  if (auto counted = ranks_of(options); !counted) { return tl::make_unexpected(std::move(counted).error()); }
  if (const int line = line_with(workload, is_two_sided); line > 0 && dims.sizes_.size() < 2) {
    return fail(Place{workload.file, line, 0, {}},
                fmt::format("hybrid parallelism needs a network of at least two dimensions, not one of {} ranks",
                            dims.sizes_[0]));
  }
  const int line = line_with(workload, is_model_parallel);
  if (line == 0) { return dims; }
  const auto group = options.model_group ? options.model_group : workload.model_group;
  const Place place{workload.file, line, 0, {}};
  if (!group) {
    return fail(place, "the number of ranks per model-parallel group is missing (model_parallel_NPU_group:)");
  }
  // The model-parallel group spans the first dimensions, up to its size; the last of them may be divided.
  std::uint64_t covered = 1;
  while (covered < *group && dims.model_dims_ < dims.sizes_.size()) {
    const std::uint64_t size = dims.sizes_[dims.model_dims_];
    if (covered * size > *group) {
      const std::uint64_t inner = *group / covered;
      if (*group % covered != 0 || size % inner != 0) { break; }
      dims.sizes_[dims.model_dims_] = inner;
      dims.sizes_.insert(dims.sizes_.begin() + static_cast<std::ptrdiff_t>(dims.model_dims_) + 1, size / inner);
    }
    covered *= dims.sizes_[dims.model_dims_++];
  }
  if (covered == *group) { return dims; }
  return fail(place, fmt::format("model-parallel groups of {} ranks cannot be mapped to dimensions of {}", *group,
                                 fmt::join(options.dimensions, " x ")));
}

std::vector<bool> NetworkDims::range(std::size_t begin, std::size_t end) const {
  std::vector<bool> involved(sizes_.size(), false);
  for (std::size_t i = begin; i < end; ++i) { involved[i] = true; }
  return involved;
}

std::vector<bool> NetworkDims::of_activations(Parallelism kind) const {
  switch (kind) {
    case Parallelism::model:
    case Parallelism::distributed_inference: return all();
    case Parallelism::hybrid_data_model: return range(0, 1);
    case Parallelism::hybrid_model_data: return range(1, sizes_.size());
    case Parallelism::hybrid_transformer:
    case Parallelism::hybrid_transformer_fwd_in_bckwd: return range(0, model_dims_);
    case Parallelism::data:
    case Parallelism::hybrid_customized:
    case Parallelism::hybrid_dlrm:
    case Parallelism::hybrid_dlrm_enhanced:
    case Parallelism::micro: break;
  }
  return range(0, 0);
}

std::vector<bool> NetworkDims::of_weights(Parallelism kind) const {
  switch (kind) {
    case Parallelism::data:
    case Parallelism::hybrid_dlrm:
    case Parallelism::hybrid_dlrm_enhanced:
    case Parallelism::micro: return all();
    case Parallelism::hybrid_data_model: return range(1, sizes_.size());
    case Parallelism::hybrid_model_data: return range(0, 1);
    case Parallelism::hybrid_transformer:
    case Parallelism::hybrid_transformer_fwd_in_bckwd: return range(model_dims_, sizes_.size());
    case Parallelism::model:
    case Parallelism::hybrid_customized:
    case Parallelism::distributed_inference: break;
  }
  return range(0, 0);
}

bool NetworkDims::involves_other_ranks(const std::vector<bool>& involved) const {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    if (involved[i] && sizes_[i] > 1) { return true; }
  }
  return false;
}

bool NetworkDims::involves_all_ranks(const std::vector<bool>& involved) const {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    if (!involved[i] && sizes_[i] > 1) { return false; }
  }
  return true;
}

std::string ProcessGroups::name(const std::vector<bool>& involved) {
  if (dims_.involves_all_ranks(involved)) { return {}; }
  const auto [entry, is_new] = index_.try_emplace(involved, groups_.size());
  if (!is_new) { return groups_[entry->second].name; }
  // The coordinates along the dimensions of the group are free; those along the others number the groups.
  const auto& sizes = dims_.sizes();
  std::vector<std::uint64_t> ranks = {0};
  std::uint64_t stride = 1;
  std::uint64_t base = 0;
  std::uint64_t number = 0;
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint64_t mine = rank_ / stride % sizes[i];
    if (involved[i]) {
      const std::size_t inner = ranks.size();
      for (std::uint64_t k = 1; k < sizes[i]; ++k) {
        for (std::size_t r = 0; r < inner; ++r) { ranks.push_back(ranks[r] + k * stride); }
      }
    } else {
      base += mine * stride;
      number += mine * count;
      count *= sizes[i];
    }
    stride *= sizes[i];
  }
  for (std::uint64_t& rank : ranks) { rank += base; }
  groups_.push_back({std::to_string(next_number_ + number), std::move(ranks)});
  next_number_ += count;
  return groups_.back().name;
}

}  // namespace orrery::trace
