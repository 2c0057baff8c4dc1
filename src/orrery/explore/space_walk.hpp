// A space of plans, walked family by family (point.hpp), never stored.
//
//   auto space = Space::make(file, model, job, cluster, fixed, stack.overlap.gradient_reduce);
//   SpaceWalk walk(*space);                       // one per thread
//   walk.families([&](const Family& family) {     // false stops
//     walk.members(family, [&](const Member& member) { ... });
//     return true;
//   });
//
// Every axis has the values that its expression gives for the axes before it, except values without effect
// (docs/format/space.md, "What is left out by itself"). Axes that families share are walked first, the others in the
// order written; `Order` always has positions in the order written. Values that mean the same plan are walked once.
#pragma once

#include <cstdint>
#include <functional>
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
  // Plan fields without an axis have the defaults of `orrery estimate`, chosen without checking memory; micro_batch is
  // 1 and recompute none. A field that `fixed` sets has this value only, whatever the file says. `job.global_batch` 0:
  // every plan has the largest batch up to the file's max_batch. `job.seq` 0: the model's longest sequence. Fails where
  // an expression cannot be calculated; the error names the values of the axes before it. All points are counted, which
  // takes minutes for spaces of many axes: `while_counting` is called now and then, and may throw to end the count.
  [[nodiscard]] static Result<Space> make(const SpaceFile& file, const workload::Model& model, const parallel::Job& job,
                                          const hardware::Cluster& cluster, const parallel::PartialPlan& fixed,
                                          bool dp_overlap, const std::function<void()>& while_counting = {});

  // Number of all points, invalid ones included.
  [[nodiscard]] std::int64_t points() const;
  // The job, with `seq` as above; a point has its own global_batch.
  [[nodiscard]] const parallel::Job& job() const;
  // The choices with the lowest memory that plans of a family can have.
  [[nodiscard]] parallel::LowestMemory lowest_memory() const;
  // Names of the axes in the order written, which is that of Order: "tp", "tier.dp".
  [[nodiscard]] const std::vector<std::string>& axes() const;
  // Axes that no plan depends on: their points are counted, not walked.
  [[nodiscard]] const std::vector<std::string>& without_effect() const;

 private:
  friend class SpaceWalk;
  std::shared_ptr<const CompiledSpace> compiled_;
};

// Walks a space. Caches values of axes, so one walk should visit many families. Several walks over one space may run
// concurrently.
class SpaceWalk {
 public:
  explicit SpaceWalk(const Space& space);
  ~SpaceWalk();
  SpaceWalk(SpaceWalk&&) noexcept;
  SpaceWalk& operator=(SpaceWalk&&) noexcept;

  // visit(const Family&) returns whether to continue. The reference is valid during the call.
  template <class Visit>
  void families(Visit&& visit) {
    each_family([](void* object,
                   const Family& family) { return (*static_cast<std::remove_reference_t<Visit>*>(object))(family); },
                address_of(visit));
  }

  // visit(const Member&) for each plan of a family, which may come from another walk over the same space. Impossible
  // points are visited together: such a member represents several plans, and `points` counts them. The reference is
  // valid during the call.
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

// Creates the walks of the threads of a search. The space must outlive them.
[[nodiscard]] WalkFactory walks_of(const Space& space);

}  // namespace orrery::explore
