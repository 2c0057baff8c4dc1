#include "orrery/jobs/servers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "orrery/core/error.hpp"

namespace orrery::jobs {

Servers::Servers(const File& file) : fabric_(file.fabric), shape_(file.shape), all_(file.servers), free_(file.servers) {
  if (fabric_ != Fabric::ramp) { return; }
  taken_.assign(static_cast<std::size_t>(all_), 0);
  boxes_.resize(static_cast<std::size_t>(all_) + 1);
  for (std::int64_t width = 1; width <= all_; ++width) { boxes_[static_cast<std::size_t>(width)] = boxes_of(width); }
}

// Compact boxes first: few groups and racks.
std::vector<Servers::Box> Servers::boxes_of(std::int64_t width) const {
  std::vector<Box> boxes;
  for (std::int64_t groups = 1; groups <= shape_[0]; ++groups) {
    for (std::int64_t racks = 1; racks <= shape_[1]; ++racks) {
      if (width % (groups * racks) != 0 || width / (groups * racks) > shape_[2]) { continue; }
      boxes.push_back({groups, racks, width / (groups * racks)});
    }
  }
  return boxes;
}

std::optional<std::vector<std::int32_t>> Servers::servers_in(const Box& box) const {
  const std::int64_t racks = shape_[1], per_rack = shape_[2];
  for (std::int64_t g = 0; g + box.groups <= shape_[0]; ++g) {
    for (std::int64_t r = 0; r + box.racks <= racks; ++r) {
      for (std::int64_t s = 0; s + box.servers <= per_rack; ++s) {
        std::vector<std::int32_t> found;
        for (std::int64_t i = 0; i < box.groups * box.racks * box.servers; ++i) {
          const std::int64_t dg = i / (box.racks * box.servers), dr = i / box.servers % box.racks, ds = i % box.servers;
          const std::int64_t server = ((g + dg) * racks + r + dr) * per_rack + s + ds;
          if (taken_[static_cast<std::size_t>(server)] != 0) { break; }
          found.push_back(static_cast<std::int32_t>(server));
        }
        if (static_cast<std::int64_t>(found.size()) == box.groups * box.racks * box.servers) { return found; }
      }
    }
  }
  return std::nullopt;
}

// Factors a x b of the count, a descending: a square box of a, a groups of one rack, a groups of b racks.
std::vector<Servers::Box> Servers::symmetric_boxes(std::int64_t count) const {
  std::vector<Box> boxes;
  for (std::int64_t a = count; a >= 1; --a) {
    if (count % a != 0) { continue; }
    const std::int64_t b = count / a;
    const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(a))));
    if (side * side == a && side <= shape_[0] && side <= shape_[1] && b <= shape_[2]) {
      boxes.push_back({side, side, b});
    }
    if (a <= shape_[0] && a <= shape_[1] && b <= shape_[2]) {
      boxes.push_back({a, 1, b});
      if (b <= shape_[1]) { boxes.push_back({a, b, 1}); }
    }
  }
  return boxes;
}

bool Servers::has_piece_block(std::int64_t count) const {
  if (count != 1 && count % 2 != 0) { return false; }
  return fabric_ != Fabric::ramp ? count <= all_ : !symmetric_boxes(count).empty();
}

std::optional<std::vector<std::int32_t>> Servers::piece_block(std::int64_t count,
                                                              std::span<const std::int32_t> own) const {
  if (fabric_ != Fabric::ramp) {
    if (count > all_) { return std::nullopt; }
    std::vector<std::int32_t> first(static_cast<std::size_t>(count));
    std::iota(first.begin(), first.end(), 0);
    return first;
  }
  Servers seen = *this;
  for (const auto server : own) { seen.taken_[static_cast<std::size_t>(server)] = 0; }
  for (const Box& box : symmetric_boxes(count)) {
    if (auto servers = seen.servers_in(box)) { return servers; }
  }
  if (auto diagonal = seen.diagonal(count)) { return diagonal; }
  return count <= shape_[0] ? seen.servers_in({count, 1, 1}) : std::nullopt;
}

std::optional<std::vector<std::int32_t>> Servers::diagonal(std::int64_t count) const {
  for (std::int64_t g = 0; g + count <= shape_[0]; ++g) {
    for (std::int64_t r = 0; r + count <= shape_[1]; ++r) {
      for (std::int64_t s = 0; s < shape_[2]; ++s) {
        std::vector<std::int32_t> found;
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t server = ((g + i) * shape_[1] + r + i) * shape_[2] + s;
          if (taken_[static_cast<std::size_t>(server)] == 0) { found.push_back(static_cast<std::int32_t>(server)); }
        }
        if (static_cast<std::int64_t>(found.size()) == count) { return found; }
      }
    }
  }
  return std::nullopt;
}

std::optional<Placement> Servers::take(std::vector<std::int32_t> servers) {
  const auto width = static_cast<std::int64_t>(servers.size());
  if (width > free_) { return std::nullopt; }
  free_ -= width;
  if (fabric_ != Fabric::ramp) { return Placement{width, {}}; }
  for (const auto server : servers) {
    ORRERY_ASSERT(taken_[static_cast<std::size_t>(server)] == 0);
    taken_[static_cast<std::size_t>(server)] = 1;
  }
  return Placement{width, std::move(servers)};
}

bool Servers::could_fit(std::int64_t width) const {
  if (fabric_ != Fabric::ramp) { return width <= all_; }
  return width <= all_ && !boxes_[static_cast<std::size_t>(width)].empty();
}

std::optional<Placement> Servers::place(std::int64_t width) {
  if (width > free_) { return std::nullopt; }
  Placement placement{width, {}};
  if (fabric_ == Fabric::ramp) {
    for (const Box& box : boxes_[static_cast<std::size_t>(width)]) {
      if (auto servers = servers_in(box)) {
        placement.servers = std::move(*servers);
        break;
      }
    }
    if (placement.servers.empty()) { return std::nullopt; }
    for (const auto server : placement.servers) { taken_[static_cast<std::size_t>(server)] = 1; }
  }
  free_ -= width;
  return placement;
}

void Servers::release(const Placement& placement) {
  for (const auto server : placement.servers) { taken_[static_cast<std::size_t>(server)] = 0; }
  free_ += placement.width;
  ORRERY_ASSERT(free_ <= all_);
}

double ramp_all_reduce_s(const RampNetwork& network, double bytes, std::int64_t groups, std::int64_t racks,
                         std::int64_t servers) {
  const std::int64_t x = network.groups;
  const std::array<std::int64_t, 4> sizes = {groups, std::min(groups, servers), racks, (servers + x - 1) / x};
  constexpr double kMemory = 2e12, kAdditions = 130e12;
  const double transceiver = network.bytes_per_s / static_cast<double>(x);
  double message = bytes, moving = 0.0, adding = 0.0;
  for (const std::int64_t size : sizes) {
    message = std::ceil(message / static_cast<double>(size));
    if (size <= 1) { continue; }
    const double links = static_cast<double>(std::min(x, x / (size - 1)));  // one rack contends: all x are its own
    moving += network.latency_s + 2.0 * network.io_s + message / (links * transceiver);
    const double operations = std::ceil(std::log2(static_cast<double>(size))) * message / 2.0;
    const double traffic = static_cast<double>(size + 1) * message;
    adding += std::max(operations / kAdditions, traffic / kMemory);
  }
  return 2.0 * moving + adding;
}

}  // namespace orrery::jobs
