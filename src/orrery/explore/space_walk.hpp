// A space of plans, walked in families (point.hpp), never stored.
//
//   auto space = Space::make(file, model, job, cluster, fixed, stack.overlap.gradient_reduce);
//   SpaceWalk walk(*space);                       // one per thread
//   walk.families([&](const Family& family) {     // false stops
//     walk.members(family, [&](const Member& member) { ... });
//     return true;
//   });
//
// Every axis has the values that its expression gives for what was chosen before it, less those that would say nothing
// (docs/format/space.md, "What is left out by itself"). Axes that families share are walked first, otherwise in the
// order written; `Order` always tells positions in the order written. Values that mean the same plan are walked once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/explore/point.hpp"
#include "orrery/explore/search.hpp"
#include "orrery/explore/space_file.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::explore {

struct CompiledSpace;

class Space {
 public:
  // Plan fields that are no axes are as `orrery estimate` settles them without asking memory; micro_batch is 1 and
  // recompute none. What `fixed` says holds as typed: the axis has this value alone, whatever the file says of it.
  // `job.global_batch` 0: the file's max_batch decides, plan by plan. `job.seq` 0: the model's longest sequence.
  // Fails where an expression cannot be calculated, saying for which values of the axes before it.
  [[nodiscard]] static Result<Space> make(const SpaceFile& file, const workload::Model& model, const parallel::Job& job,
                                          const hardware::Cluster& cluster, const parallel::PartialPlan& fixed,
                                          bool dp_overlap);

  // All points, multiplied out where axes do not depend on each other.
  [[nodiscard]] std::int64_t points() const;
  // The job, with `seq` as above; its global_batch is a point's own.
  [[nodiscard]] const parallel::Job& job() const;
  // The most that plans of a family can do to need little memory.
  [[nodiscard]] parallel::LowestMemory lowest_memory() const;
  // Axes in the order written, which is that of Order: "tp", "tier.dp".
  [[nodiscard]] const std::vector<std::string>& axes() const;
  // Those of them that no plan of ours feels: counted, not walked.
  [[nodiscard]] const std::vector<std::string>& without_effect() const;

 private:
  friend class SpaceWalk;
  std::shared_ptr<const CompiledSpace> compiled_;
};

// Walks a space. Keeps the values of axes that it has been through, so that a walk should be used for many families;
// any number of walks may go over one space at a time.
class SpaceWalk {
 public:
  explicit SpaceWalk(const Space& space);
  ~SpaceWalk();
  SpaceWalk(SpaceWalk&&) noexcept;
  SpaceWalk& operator=(SpaceWalk&&) noexcept;

  // visit(const Family&) returns whether to go on. The family lives as long as the call.
  template <class Visit>
  void families(Visit&& visit) {
    each_family([](void* object,
                   const Family& family) { return (*static_cast<std::remove_reference_t<Visit>*>(object))(family); },
                address_of(visit));
  }

  // visit(const Member&) for the plans of a family, which may be of another walk over the same space. Points that are
  // not possible come together: such a member may stand for several plans, and `points` counts them. The member lives
  // as long as the call.
  template <class Visit>
  void members(const Family& family, Visit&& visit) {
    each_member(
        family,
        [](void* object, const Member& member) { (*static_cast<std::remove_reference_t<Visit>*>(object))(member); },
        address_of(visit));
  }

 private:
  template <class Visit>
  static void* address_of(Visit& visit) {
    return const_cast<void*>(static_cast<const void*>(&visit));
  }

  using OfFamily = bool (*)(void*, const Family&);
  using OfMember = void (*)(void*, const Member&);
  void each_family(OfFamily visit, void* object);
  void each_member(const Family& family, OfMember visit, void* object);

  std::shared_ptr<const CompiledSpace> compiled_;
  struct Odometers;
  std::unique_ptr<Odometers> odometers_;
};

// Walks of a space for the threads of a search. The space must outlive them.
[[nodiscard]] WalkFactory walks_of(const Space& space);

}  // namespace orrery::explore
