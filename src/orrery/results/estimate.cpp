#include "orrery/results/estimate.hpp"

#include <algorithm>
#include <utility>

namespace orrery::results {

std::string text_of(const PlanValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.value)) { return std::to_string(*number); }
  if (const auto* is_on = std::get_if<bool>(&value.value)) { return *is_on ? "on" : "off"; }
  return std::get<std::string>(value.value);
}

void PlanSummary::set(std::string_view name, std::variant<std::int64_t, bool, std::string> value) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const PlanValue& one) { return one.name == name; });
  if (found == values.end()) {
    values.push_back({name, std::move(value), false, false});
  } else {
    found->value = std::move(value);
  }
}

const PlanValue* PlanSummary::find(std::string_view name) const {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const PlanValue& value) { return value.name == name; });
  return found == values.end() ? nullptr : &*found;
}

std::int64_t PlanSummary::number(std::string_view name) const {
  const PlanValue* const found = find(name);
  const auto* const number = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->value);
  return number == nullptr ? 0 : *number;
}

bool PlanSummary::is_on(std::string_view name) const {
  const PlanValue* const found = find(name);
  const auto* const is_on = found == nullptr ? nullptr : std::get_if<bool>(&found->value);
  return is_on != nullptr && *is_on;
}

std::string PlanSummary::text(std::string_view name) const {
  const PlanValue* const found = find(name);
  return found == nullptr ? "" : text_of(*found);
}

}  // namespace orrery::results
