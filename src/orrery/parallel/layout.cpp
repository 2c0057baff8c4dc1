#include "orrery/parallel/layout.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::parallel {

namespace {

constexpr auto kMostDimensions = static_cast<std::size_t>(network::kMaxExtents);

// A degree of a plan, and the dimension it is pinned to.
struct Pinned {
  std::int64_t degree = 1;
  int dimension = Placement::kByRank;
};

std::array<Pinned, 4> in_rank_order(const Plan& plan) {
  const Placement& at = plan.placement;
  return {{{plan.tp, at.tp}, {plan.cp, at.cp}, {plan.dp, at.dp}, {plan.pp, at.pp}}};
}

// Assigns devices to the groups of a plan that pins some of them.
class PinnedLayout {
 public:
  explicit PinnedLayout(const hardware::Cluster& cluster) : dimensions_(cluster.dimensions.size()) {
    for (std::size_t d = 0; d < dimensions_; ++d) { room_[d] = cluster.dimensions[d].size; }
  }

  // Nothing if a group does not fill its dimensions evenly.
  std::optional<Layout> of(const Plan& plan) {
    const auto groups = in_rank_order(plan);
    const bool all = std::all_of(groups.begin(), groups.end(), [](const Pinned& g) { return is_fixed(g); });
    for (const Pinned& group : groups) {
      if (group.degree > 1 && group.dimension >= 0 && !take(group, all)) { return std::nullopt; }
    }
    Layout layout;
    for (const Pinned& group : groups) {
      if (group.degree > 1 && group.dimension >= 0) { layout.push_back({group.dimension, group.degree}); }
      if (!is_fixed(group) && !fill(group.degree, layout)) { return std::nullopt; }
    }
    return layout;
  }

 private:
  static bool is_fixed(const Pinned& group) { return group.degree == 1 || group.dimension >= 0; }

  // If all groups are pinned, unused positions of inner dimensions belong to the groups on the outermost dimension,
  // whose size then does not limit them: its links are what they use.
  bool take(const Pinned& group, bool all_pinned) {
    const auto d = static_cast<std::size_t>(group.dimension);
    if (d >= dimensions_) { return false; }
    if (all_pinned && d + 1 == dimensions_) { return true; }
    if (room_[d] % group.degree != 0) { return false; }
    room_[d] /= group.degree;
    return true;
  }

  // The unused part of the dimensions, from the innermost out.
  bool fill(std::int64_t degree, Layout& layout) {
    for (std::size_t d = 0; d < dimensions_ && degree > 1; ++d) {
      const std::int64_t here = std::min(degree, room_[d]);
      if (here <= 1) { continue; }
      if (degree % here != 0 || room_[d] % here != 0) { return false; }
      layout.push_back({static_cast<int>(d), here});
      room_[d] /= here;
      degree /= here;
    }
    return degree == 1;
  }

  std::size_t dimensions_;
  std::array<std::int64_t, kMostDimensions> room_{};  // unused positions of each dimension
};

// A group's members along each dimension, innermost first.
network::Group group_of(const std::array<std::int64_t, kMostDimensions>& members) {
  network::Group group;
  for (std::size_t d = 0; d < members.size(); ++d) {
    if (members[d] > 1) { group.extents.push_back({static_cast<int>(d), members[d]}); }
  }
  return group;
}

// Calls visit(dimension, stride, members) for each digit of the ranks, innermost first; false if the ranks do not fill
// blocks of a dimension evenly.
template <class Visit>
bool walk_digits(const Layout& layout, std::int64_t stride, std::int64_t degree, Visit&& visit) {
  std::int64_t block = 1;  // ranks inside one value of the next digit
  for (std::size_t i = 0; i < layout.size() && degree > 1; ++i) {
    block *= layout[i].members;
    if (stride >= block) {
      if (stride % block != 0) { return false; }
      continue;
    }
    if (block % stride != 0) { return false; }
    const std::int64_t here = std::min(degree, block / stride);
    const bool even = degree % here == 0 && block % (stride * here) == 0;
    if (!even) { return false; }
    visit(layout[i].dimension, stride, here);
    degree /= here;
    stride *= here;
  }
  return true;
}

}  // namespace

Layout rank_order(const hardware::Cluster& cluster) {
  Layout layout;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    layout.push_back({static_cast<int>(d), cluster.dimensions[d].size});
  }
  return layout;
}

std::optional<Layout> placed_layout(const hardware::Cluster& cluster, const Plan& plan) {
  return plan.placement.any() ? PinnedLayout(cluster).of(plan) : rank_order(cluster);
}

Layout layout_of(const hardware::Cluster& cluster, const Plan& plan) {
  const auto layout = placed_layout(cluster, plan);
  ORRERY_ASSERT(layout);
  return *layout;
}

int outermost_dimension(const Layout& layout) {
  int found = 0;
  for (const auto& digit : layout) { found = std::max(found, digit.dimension); }
  return found;
}

std::int64_t positions_on(const Layout& layout, int dimension) {
  std::int64_t positions = 1;
  for (const auto& digit : layout) { positions *= digit.dimension == dimension ? digit.members : 1; }
  return positions;
}

std::int64_t position_on(const Layout& layout, int dimension, std::int64_t rank) {
  std::int64_t position = 0, inner = 1;
  for (const auto& digit : layout) {
    if (digit.dimension == dimension) {
      position += rank % digit.members * inner;
      inner *= digit.members;
    }
    rank /= digit.members;
  }
  return position;
}

int crossed_dimension(const Layout& layout, std::int64_t a, std::int64_t b) {
  int crossed = 0;
  for (const auto& digit : layout) {
    if (a % digit.members != b % digit.members) { crossed = std::max(crossed, digit.dimension); }
    a /= digit.members;
    b /= digit.members;
  }
  return crossed;
}

std::int64_t device_of(const Layout& layout, std::int64_t rank) {
  std::int64_t device = 0, block = 1;
  for (int d = 0; d <= outermost_dimension(layout); ++d) {
    device += position_on(layout, d, rank) * block;
    block *= positions_on(layout, d);
  }
  return device;
}

std::int64_t rank_on(const Layout& layout, std::int64_t device) {
  std::array<std::int64_t, kMostDimensions> position{};
  for (int d = 0; d <= outermost_dimension(layout); ++d) {
    position[static_cast<std::size_t>(d)] = device % positions_on(layout, d);
    device /= positions_on(layout, d);
  }
  std::int64_t rank = 0, block = 1;
  for (const auto& digit : layout) {
    auto& rest = position[static_cast<std::size_t>(digit.dimension)];
    rank += rest % digit.members * block;
    rest /= digit.members;
    block *= digit.members;
  }
  return rank;
}

std::optional<RankDigits> digits_of(const Layout& layout, std::int64_t stride, std::int64_t degree) {
  RankDigits digits;
  const bool even = walk_digits(layout, stride, degree, [&](int dimension, std::int64_t apart, std::int64_t members) {
    digits.push_back({dimension, apart, members});
  });
  return even ? std::optional(digits) : std::nullopt;
}

network::Group strided_group(const Layout& layout, std::int64_t stride, std::int64_t degree) {
  std::array<std::int64_t, kMostDimensions> members;
  members.fill(1);
  const bool even = walk_digits(layout, stride, degree, [&](int dimension, std::int64_t, std::int64_t here) {
    members[static_cast<std::size_t>(dimension)] *= here;
  });
  return even ? group_of(members) : network::Group{{{outermost_dimension(layout), degree}}, false};
}

network::Group shape_of(const Layout& layout, std::span<const std::uint32_t> ranks) {
  std::vector<std::int64_t> blocks;  // that have members, of the dimension: first single devices
  for (const std::uint32_t rank : ranks) { blocks.push_back(device_of(layout, rank)); }
  std::sort(blocks.begin(), blocks.end());
  network::Group shape;
  int outermost = 0;
  bool even = true;
  for (int d = 0; d <= outermost_dimension(layout); ++d) {
    std::vector<std::int64_t> outer, inside;  // blocks of the next dimension, and how many of these are in them
    for (const std::int64_t block : blocks) {
      const std::int64_t place = block / positions_on(layout, d);
      if (outer.empty() || outer.back() != place) {
        outer.push_back(place);
        inside.push_back(0);
      }
      ++inside.back();
    }
    even = even && std::all_of(inside.begin(), inside.end(), [&](auto count) { return count == inside.front(); });
    if (blocks.size() > outer.size()) {
      shape.extents.push_back({d, inside.front()});
      outermost = d;
    }
    blocks = std::move(outer);
  }
  if (even) { return shape; }
  const auto count = static_cast<std::int64_t>(ranks.size());
  shape.extents = {{outermost, count}};
  shape.regular = count == 2;
  return shape;
}

namespace {

// Whether an even group is slower than another one of as many members: it has more members farther out.
bool is_slower(const network::Group& a, const network::Group& b) {
  const auto& x = a.extents;
  const auto& y = b.extents;
  if (y.empty()) { return !x.empty(); }
  for (std::size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
    const network::Extent& left = x[x.size() - i];
    const network::Extent& right = y[y.size() - i];
    if (left.dimension != right.dimension) { return left.dimension > right.dimension; }
    if (left.members != right.members) { return left.members > right.members; }
  }
  return false;
}

// Whether groups that span `span` ranks can all be even: no end of a block of ranks divides one of them, or it halves
// some.
bool may_be_even(const Layout& layout, std::int64_t stride, std::int64_t span) {
  std::int64_t block = 1;
  for (std::size_t i = 0; i + 1 < layout.size(); ++i) {
    block *= layout[i].members;
    const bool nests = block % span == 0 || span % block == 0 || (block > span && 2 * block % span == 0);
    if (!nests || (block % stride != 0 && stride % block != 0)) { return false; }
  }
  return true;
}

}  // namespace

namespace {

// The same; nothing if some groups do not fill nodes evenly.
network::Group slowest_even_group(const Layout& layout, std::int64_t stride, std::int64_t degree, std::int64_t ranks) {
  std::int64_t inner = 1;  // ranks inside one value of the outermost digit: groups as many ranks apart are alike
  for (std::size_t i = 0; i + 1 < layout.size(); ++i) { inner *= layout[i].members; }
  const std::int64_t span = stride * degree;
  const std::int64_t end = std::min(ranks, std::lcm(span, inner));
  network::Group slowest;
  std::vector<std::uint32_t> members(static_cast<std::size_t>(degree));
  for (std::int64_t block = 0; block + span <= end; block += span) {
    for (std::int64_t first = block; first < block + stride; ++first) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        members[i] = static_cast<std::uint32_t>(first + static_cast<std::int64_t>(i) * stride);
      }
      const network::Group shape = shape_of(layout, members);
      if (!shape.regular) { return {}; }
      if (is_slower(shape, slowest)) { slowest = shape; }
    }
  }
  return slowest;
}

}  // namespace

network::Group slowest_group(const Layout& layout, std::int64_t stride, std::int64_t degree, std::int64_t ranks) {
  network::Group group = strided_group(layout, stride, degree);
  if (!group.regular && degree != 1 && may_be_even(layout, stride, stride * degree)) {
    const network::Group slowest = slowest_even_group(layout, stride, degree, ranks);
    if (!slowest.extents.empty()) { group = slowest; }
  }
  return group;
}

}  // namespace orrery::parallel
