// The process groups of a job: which ranks a collective of a GroupKind joins.
//
// Rank numbers as in parallel/mesh.hpp: they do not depend on the placement, the devices of the ranks do
// (parallel/layout.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/layout.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::generate {

// What a collective runs beside. Every lane has process groups of its own (a communicator each), so that the order of
// the collectives of a group is the same on all its members, whichever lane is ahead.
enum class Lane : std::uint8_t {
  work,        // collectives of blocks
  paired,      // ... of the second micro-batch of a pair
  transfer,    // gathers of what a pipeline stage has received in parts
  overlapped,  // gathers and reductions that overlap with blocks
};
inline constexpr std::size_t kLanes = 4;

// The ranks first + i x stride + j x outer_stride, for all i below inner and all j below degree / inner.
struct RankSet {
  std::int64_t first = 0, stride = 1, degree = 1;
  std::int64_t inner = degree, outer_stride = 0;

  [[nodiscard]] std::int64_t rank(std::int64_t position) const {
    return first + position % inner * stride + position / inner * outer_stride;
  }
  [[nodiscard]] std::int64_t position(std::int64_t rank) const {
    if (inner == degree) { return (rank - first) / stride; }
    return (rank - first) % outer_stride / stride + (rank - first) / outer_stride * inner;
  }
  [[nodiscard]] std::int64_t last() const { return rank(degree - 1); }
};

// Groups of one kind on one lane that the program uses. Their names are first_name, first_name + 1, ...: whole numbers
// of at least 1, as ASTRA-sim requires. The world has a name too: ASTRA-sim numbers the chunks of a collective without
// pg_name together with those of the rank's groups, and ranks of other pipeline stages run other numbers of them, so
// the chunks of such a collective would not match.
struct GroupFamily {
  parallel::GroupKind kind = parallel::GroupKind::tp;
  Lane lane = Lane::work;
  std::int64_t first_name = 1, count = 0;
};

class ProcessGroups {
 public:
  ProcessGroups(const parallel::Program& program, const hardware::Cluster& cluster);

  // In the order of their names.
  [[nodiscard]] const std::vector<GroupFamily>& families() const { return families_; }

  // The group of `kind` that `rank` is in; of degree 1 if it has no other member.
  [[nodiscard]] RankSet members(parallel::GroupKind kind, std::int64_t rank) const;
  [[nodiscard]] RankSet members(const GroupFamily& family, std::int64_t rank) const {
    return members(family.kind, rank);
  }
  // Number of groups of a kind, and the position of the group of `rank` among them.
  [[nodiscard]] std::int64_t count(parallel::GroupKind kind) const;
  [[nodiscard]] std::int64_t position(parallel::GroupKind kind, std::int64_t rank) const;
  // A group of the family by its position.
  [[nodiscard]] RankSet group(const GroupFamily& family, std::int64_t position) const;

  [[nodiscard]] const parallel::Plan& plan() const { return plan_; }

  // Of the plan's ranks. Graphs of single ranks have the numbers of their devices on the grid that it uses.
  [[nodiscard]] const parallel::Layout& layout() const { return layout_; }
  [[nodiscard]] std::int64_t device(std::int64_t rank) const {
    return plan_.placement.any() ? parallel::device_of(layout_, rank) : rank;
  }
  [[nodiscard]] std::vector<std::int64_t> devices(const RankSet& ranks) const;  // in ascending order
  [[nodiscard]] std::int64_t rank_on(std::int64_t device) const {
    return plan_.placement.any() ? parallel::rank_on(layout_, device) : device;
  }

 private:
  struct Strides {
    std::int64_t stride = 1, degree = 1;
    std::int64_t outer_stride = 0, outer_degree = 1;  // with outer_degree > 1: blocks of such ranks

    [[nodiscard]] std::int64_t size() const { return degree * outer_degree; }
    [[nodiscard]] std::int64_t block() const { return stride * degree; }
    [[nodiscard]] std::int64_t outer() const { return outer_degree > 1 ? outer_stride : block(); }
  };
  [[nodiscard]] Strides strides(parallel::GroupKind kind) const;
  [[nodiscard]] Strides expert_strides(bool on_node) const;
  [[nodiscard]] static RankSet strided_set(const Strides& strides, std::int64_t position);
  void add_families(const parallel::Program& program);

  const parallel::Plan& plan_;
  parallel::Layout layout_;
  Strides ep_node_, ep_across_;  // the parts of ep on one node, and on different ones
  std::vector<GroupFamily> families_;
};

// "tp"; "dp.overlapped".
[[nodiscard]] std::string name_of(const GroupFamily& family);
[[nodiscard]] std::string_view name_of(parallel::GroupKind kind);

}  // namespace orrery::generate
