// The positions of ranks on the dimensions of a cluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "orrery/hardware/cluster.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/inline_list.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::parallel {

// rank = x0 + n0 (x1 + n1 (x2 + ...)): digit i is a part of the rank's position on a dimension, and has n_i values. Of
// several digits of one dimension, the earlier one is the inner part of the position.
inline constexpr auto kMostDigits = std::size_t{5} * network::kMaxExtents;
using Layout = network::InlineList<network::Extent, kMostDigits>;

// Ranks fill the dimensions from the innermost out: device r = rank r.
[[nodiscard]] Layout rank_order(const hardware::Cluster& cluster);

// That of a plan; nothing if its pinned groups do not fill their dimensions evenly (is_placed).
[[nodiscard]] std::optional<Layout> placed_layout(const hardware::Cluster& cluster, const Plan& plan);
[[nodiscard]] Layout layout_of(const hardware::Cluster& cluster, const Plan& plan);  // requires is_placed

[[nodiscard]] int outermost_dimension(const Layout& layout);

// Positions of a dimension that the layout uses: the product of its digits.
[[nodiscard]] std::int64_t positions_on(const Layout& layout, int dimension);

// A rank's position on a dimension.
[[nodiscard]] std::int64_t position_on(const Layout& layout, int dimension, std::int64_t rank);

// The outermost dimension on which two ranks differ; 0 for the same rank.
[[nodiscard]] int crossed_dimension(const Layout& layout, std::int64_t a, std::int64_t b);

// The number of a rank's device on the grid that the layout uses, innermost dimension first; and the rank of a device.
[[nodiscard]] std::int64_t device_of(const Layout& layout, std::int64_t rank);
[[nodiscard]] std::int64_t rank_on(const Layout& layout, std::int64_t device);

// Ranks along one dimension: members of them, `stride` ranks apart.
struct RankDigit {
  int dimension = 0;
  std::int64_t stride = 1, members = 1;
};
using RankDigits = network::InlineList<RankDigit, kMostDigits>;

// The ranks first, first + stride, ..., degree of them, as digits, innermost first; nothing if they do not fill blocks
// of a dimension evenly.
[[nodiscard]] std::optional<RankDigits> digits_of(const Layout& layout, std::int64_t stride, std::int64_t degree);

// The same ranks as extents; irregular on the outermost dimension if they have no digits.
[[nodiscard]] network::Group strided_group(const Layout& layout, std::int64_t stride, std::int64_t degree);

// The extents of a list of ranks: as many on each node, on each block of nodes, and so on, at any positions. Irregular
// if they are not; two ranks are a group on the outermost dimension in which they differ.
[[nodiscard]] network::Group shape_of(const Layout& layout, std::span<const std::uint32_t> ranks);

// The shape of the groups of `degree` ranks, `stride` apart, that ranks 0 to `ranks` - 1 are divided into. Where groups
// differ in shape, that of the slowest: the one with the most members on the outermost dimension. If some do not fill
// nodes evenly, all members are on the outermost dimension of the layout (irregular).
[[nodiscard]] network::Group slowest_group(const Layout& layout, std::int64_t stride, std::int64_t degree,
                                           std::int64_t ranks);

}  // namespace orrery::parallel
