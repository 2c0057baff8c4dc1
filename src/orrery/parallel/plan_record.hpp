// The choices of a plan as fields of a record: parsed from scenario files and flags, printed, documented.
#pragma once

#include "orrery/config/record.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::parallel {

[[nodiscard]] config::FieldInfo field_info(const PlanChoice& choice);
[[nodiscard]] config::Limits limits_of(const PlanChoice& choice);
[[nodiscard]] config::Node schema_of(const PlanChoice& choice);

// Sets a choice of `partial` to `node`; null removes it.
void read(const PlanChoice& choice, const config::Node& node, PartialPlan& partial, const config::Reading& reading);
// The given value, or the default; null if a rule chooses.
[[nodiscard]] config::Node to_node(const PlanChoice& choice, const PartialPlan& partial);

// Appends the choices as fields to the record of a type that has a partial plan.
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
