#include "orrery/explore/space_walk.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "orrery/explore/space_compile.hpp"
#include "orrery/explore/space_odometer.hpp"

namespace orrery::explore {

Result<Space> Space::make(const SpaceFile& file, const workload::Model& model, const parallel::Job& job,
                          const hardware::Cluster& cluster, const parallel::PartialPlan& fixed, bool dp_overlap,
                          const std::function<void()>& while_counting) {
  ORRERY_TRY(compiled, compile({file, model, job, cluster, fixed, dp_overlap}));
  Odometer odometer(compiled);
  odometer.while_counting(while_counting);
  compiled.count = odometer.count();  // evaluates every expression once, so finds all errors
  if (!odometer.error().message.empty()) { return tl::make_unexpected(Failure{{odometer.error()}}); }
  if (compiled.count == std::numeric_limits<std::int64_t>::max()) {
    return fail("the space has more than 9e18 points");
  }
  Space space;
  space.compiled_ = std::make_shared<const CompiledSpace>(std::move(compiled));
  return space;
}

std::int64_t Space::points() const {
  if (compiled_->count_invalid) { return compiled_->count; }
  std::int64_t points = 0;
  SpaceWalk(*this).families([&](const Family& family) {
    points += family.points;
    return true;
  });
  return points;
}

const parallel::Job& Space::job() const { return compiled_->job; }
parallel::LowestMemory Space::lowest_memory() const {
  parallel::LowestMemory lowest_memory{compiled_->base.zero, compiled_->base.offload, compiled_->base.optimizer_device};
  const std::int64_t most = compiled_->job.is_inference() ? 0 : 3;
  for (const Level& level : compiled_->levels) {
    const auto at_most = [&](std::int64_t value) { return static_cast<int>(level.fixed.value_or(value)); };
    if (level.axis == Axis::zero) { lowest_memory.zero = at_most(most); }
    if (level.axis == kOptimizerSharding) { lowest_memory.zero = std::max(lowest_memory.zero, at_most(1)); }
    if (level.axis == Axis::offload_weights) { lowest_memory.offload.weights = at_most(1) != 0; }
    if (level.axis == Axis::offload_activations) { lowest_memory.offload.activations = at_most(1) != 0; }
    if (level.axis == Axis::offload_optimizer) { lowest_memory.offload.optimizer = at_most(1) != 0; }
    if (level.axis == Axis::optimizer_device) {
      lowest_memory.optimizer_device = static_cast<parallel::OptimizerDevice>(at_most(1));
    }
  }
  return lowest_memory;
}

const std::vector<std::string>& Space::axes() const { return compiled_->names; }
const std::vector<std::string>& Space::without_effect() const { return compiled_->without_effect; }

// One odometer enumerates families and another one members, so that the members of any family can be visited during a
// walk over families.
struct SpaceWalk::Odometers {
  explicit Odometers(const CompiledSpace& space) : of_families(space), of_members(space) {}
  Odometer of_families, of_members;
};

SpaceWalk::SpaceWalk(const Space& space)
    : compiled_(space.compiled_), odometers_(std::make_unique<Odometers>(*compiled_)) {}
SpaceWalk::~SpaceWalk() = default;
SpaceWalk::SpaceWalk(SpaceWalk&&) noexcept = default;
SpaceWalk& SpaceWalk::operator=(SpaceWalk&&) noexcept = default;

void SpaceWalk::each_family(OfFamily visit, void* object) { odometers_->of_families.families(visit, object); }

void SpaceWalk::each_member(const Family& family, OfMember visit, void* object) {
  odometers_->of_members.members(family, visit, object);
}

namespace {

class SearchWalk final : public Walk {
 public:
  explicit SearchWalk(const Space& space) : walk_(space) {}
  void families(const std::function<void(const Family&)>& visit) override {
    walk_.families([&](const Family& family) {
      visit(family);
      return true;
    });
  }
  void members(const Family& family, const std::function<void(const Member&)>& visit) override {
    walk_.members(family, visit);
  }

 private:
  SpaceWalk walk_;
};

}  // namespace

WalkFactory walks_of(const Space& space) {
  return [&space] { return std::make_unique<SearchWalk>(space); };
}

}  // namespace orrery::explore
