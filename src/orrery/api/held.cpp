#include "orrery/api/held.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::api {

using parallel::Plan;
using parallel::ScheduleKind;

namespace {

// The least number above 1 that divides `whole` and is less; 0 where there is none.
std::int64_t least_proper_divisor(std::int64_t whole) {
  for (std::int64_t d = 2; d * d <= whole; ++d) {
    if (whole % d == 0) { return d; }
  }
  return 0;
}

class Held {
 public:
  Held(const Inputs& inputs, const parallel::Job& job, const explore::Fixed& fixed, const explore::Space& space)
      : inputs_(inputs), job_(job), fixed_(fixed), space_(space) {}

  std::vector<std::string> list() {
    add_schedules();
    const auto overlapped = [](Plan& plan) { plan.tp_overlap = parallel::TpOverlap::ring; };
    add(!job_.is_inference() && fixed_.tp_overlap == parallel::TpOverlap::none && can_change(overlapped),
        "tp-overlap (--tp-overlap)");
    add_offload();
    const auto sharded = [](Plan& plan) { plan.shard = least_proper_divisor(plan.replicas()); };
    add(fixed_.shard == 0 && can_change(sharded), "hybrid sharding (--shard)");
    add_ends();
    const bool reduces = !job_.is_inference() && any([](const Plan& plan) { return plan.replicas() > 1; });
    add(!fixed_.dp_overlap && reduces, "dp-overlap (--dp-overlap)");
    return std::move(texts_);
  }

 private:
  void add(bool applies, std::string text) {
    if (applies) { texts_.push_back(std::move(text)); }
  }

  template <class Holds>
  [[nodiscard]] bool any(Holds holds) const {
    bool found = false;
    explore::SpaceWalk walk(space_), of_members(space_);
    walk.families([&](const explore::Family& family) {
      if (family.verdict != explore::Verdict::possible) { return true; }
      of_members.members(family, [&](const explore::Member& member) { found = found || holds(member.point.plan); });
      return !found;
    });
    return found;
  }

  // Whether some plan stays possible, and is another, when `change` changes it.
  template <class Change>
  [[nodiscard]] bool can_change(Change change) const {
    return any([&](Plan plan) {
      const Plan before = plan;
      change(plan);
      return !(plan == before) && parallel::is_valid(inputs_.cluster, plan) &&
             parallel::is_valid(inputs_.model, job_, plan, inputs_.cluster.devices);
    });
  }

  // Of inference all schedules are the same.
  void add_schedules() {
    if (fixed_.schedule || fixed_.vpp.value_or(1) > 1 || job_.is_inference()) { return; }
    std::vector<std::string> names;
    for (const auto schedule : {ScheduleKind::zero_bubble, ScheduleKind::dualpipe, ScheduleKind::gpipe}) {
      const bool possible = can_change([&](Plan& plan) {
        if (plan.pp > 1 && plan.vpp == 1) { plan.schedule = schedule; }
      });
      if (possible) { names.emplace_back(config::enum_name(schedule)); }
    }
    add(!names.empty(), fmt::format("schedule {} (--schedule)", join(names, ", ")));
  }

  void add_offload() {
    if (fixed_.offload.any()) { return; }
    std::vector<std::string> names;
    const auto offer = [&](const char* name, bool parallel::Offload::* part) {
      if (can_change([&](Plan& plan) { plan.offload.*part = true; })) { names.emplace_back(name); }
    };
    offer("weights", &parallel::Offload::weights);
    offer("activations", &parallel::Offload::activations);
    offer("optimizer", &parallel::Offload::optimizer);
    add(!names.empty(), fmt::format("offload of {} (--offload)", join(names, ", ")));
  }

  void add_ends() {
    const bool are_fixed = fixed_.embedding_as_layer || fixed_.head_as_layer || fixed_.first_stage_layers > 0 ||
                           fixed_.last_stage_layers > 0;
    const bool possible = can_change([](Plan& plan) { plan.head_as_layer = plan.pp > 1; });
    add(!are_fixed && possible,
        "uneven ends (--embedding-as-layer, --head-as-layer, --first-stage-layers, --last-stage-layers)");
  }

  const Inputs& inputs_;
  const parallel::Job& job_;
  const explore::Fixed& fixed_;
  const explore::Space& space_;
  std::vector<std::string> texts_;
};

}  // namespace

std::vector<std::string> held(const Inputs& inputs, const parallel::Job& job, const explore::Fixed& fixed,
                              const explore::Space& space) {
  return Held(inputs, job, fixed, space).list();
}

}  // namespace orrery::api
