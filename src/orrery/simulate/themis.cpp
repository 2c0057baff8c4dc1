#include "orrery/simulate/themis.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orrery::simulate {

namespace {

constexpr double kMiB = 1048576;
constexpr std::uint64_t kGapDenominator = 16;

}  // namespace

// All links of an NPU together: a full mesh has one to each of the others.
ThemisLoads::ThemisLoads(const Network& network) {
  for (const NetworkDimension& dimension : network.dimensions) {
    const bool has_many = hardware::has_pair_links(dimension.wiring);
    bandwidths_.push_back(dimension.bytes_per_second * (has_many ? dimension.ranks - 1 : 1));
    sizes_.push_back(dimension.ranks);
    dimensions_.push_back({static_cast<std::uint32_t>(dimensions_.size()), 0});
  }
}

void ThemisLoads::clear() {
  for (std::uint32_t i = 0; i < dimensions_.size(); ++i) { dimensions_[i] = {i, 0}; }
}

// What a chunk would have to have for that load.
std::uint64_t ThemisLoads::closing_bytes(double load, std::uint32_t dimension, bool gathers) const {
  const auto n = static_cast<double>(sizes_[dimension]);
  return static_cast<std::uint64_t>(load * speed(dimension) / (gathers ? n - 1 : (n - 1) / n) * kMiB);
}

// The bytes of a chunk that would close the gap between the first involved dimension and the last one. The last one of
// a reduce-scatter need not be involved.
std::uint64_t ThemisLoads::gap(bool gathers, const std::vector<bool>& involved) const {
  const auto is_involved = [&](const Dimension& dimension) { return involved[dimension.number]; };
  const auto first = std::find_if(dimensions_.begin(), dimensions_.end(), is_involved);
  if (!gathers) { return closing_bytes(std::fabs(dimensions_.back().load - first->load), first->number, false); }
  auto last = std::find_if(dimensions_.rbegin(), dimensions_.rend(), is_involved);
  std::uint64_t bytes = closing_bytes(std::fabs(last->load - first->load), last->number, true);
  for (auto between = last.base() - 1; between != first; --between) {  // back to the chunk before its first phase
    if (is_involved(*(between - 1))) { bytes /= sizes_[(between - 1)->number]; }
  }
  return bytes;
}

void ThemisLoads::charge(Dimension& dimension, std::uint32_t with_size_of, std::uint64_t& bytes, bool gathers) const {
  const auto n = static_cast<double>(sizes_[with_size_of]);
  dimension.load += static_cast<double>(bytes) / kMiB * (gathers ? n - 1 : (n - 1) / n) / speed(with_size_of);
  bytes = gathers ? bytes * sizes_[with_size_of] : bytes / sizes_[with_size_of];
}

// The default order. In an all-gather the load of each dimension goes to the one opposite.
void ThemisLoads::charge_default(std::uint64_t bytes, bool gathers, const std::vector<bool>& involved) {
  std::sort(dimensions_.begin(), dimensions_.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  if (gathers) { std::reverse(dimensions_.begin(), dimensions_.end()); }
  for (std::uint32_t i = 0; i < dimensions_.size(); ++i) {
    if (involved[i]) { charge(dimensions_[i], i, bytes, gathers); }
  }
}

std::vector<std::uint32_t> ThemisLoads::order(std::uint64_t bytes, bool gathers, const std::vector<bool>& involved) {
  std::stable_sort(dimensions_.begin(), dimensions_.end(),
                   [](const auto& a, const auto& b) { return a.load < b.load; });
  if (gathers) { std::reverse(dimensions_.begin(), dimensions_.end()); }
  std::vector<std::uint32_t> order(dimensions_.size());
  std::iota(order.begin(), order.end(), 0U);
  if (std::none_of(involved.begin(), involved.end(), [](bool is) { return is; })) { return order; }
  if (gap(gathers, involved) < bytes / kGapDenominator) {
    charge_default(bytes, gathers, involved);
    return order;
  }
  for (std::uint32_t i = 0; i < dimensions_.size(); ++i) {
    Dimension& dimension = dimensions_[i];
    order[i] = dimension.number;
    if (involved[dimension.number]) { charge(dimension, dimension.number, bytes, gathers); }
  }
  return order;
}

}  // namespace orrery::simulate
