// The choices of a plan as fields of a record: read from scenario files and flags, printed, described.
#pragma once

#include "orrery/config/record.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::parallel {

[[nodiscard]] config::FieldInfo field_info(const PlanChoice& choice);
[[nodiscard]] config::Limits limits_of(const PlanChoice& choice);
[[nodiscard]] config::Node schema_of(const PlanChoice& choice);

// Gives `partial` the value of `node`; null takes back what is given.
void read(const PlanChoice& choice, const config::Node& node, PartialPlan& partial, const config::Reading& reading);
// The value given, or the usual one; null where a rule decides.
[[nodiscard]] config::Node to_node(const PlanChoice& choice, const PartialPlan& partial);

// The choices as last fields of a record of something that is a partial plan.
template <class T>
void add_plan_choices(config::Record<T>& record) {
  for (const PlanChoice& choice : plan_choices()) {
    record.computed(
        field_info(choice), limits_of(choice),
        [&choice](const config::Node& node, T& object, const config::Reading& reading) {
          read(choice, node, object, reading);
        },
        [&choice](const T& object) { return to_node(choice, object); }, [&choice] { return schema_of(choice); });
  }
}

}  // namespace orrery::parallel
