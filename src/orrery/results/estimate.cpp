#include "orrery/results/estimate.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"

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

std::string why_infeasible(const Estimate& estimate) {
  const auto& memory = estimate.memory;
  if (memory.fits()) { return estimate.infeasible_reason; }
  if (memory.offloaded > memory.second_tier) {
    return fmt::format("{}: {} {} per device, the second tier has {} per device", estimate.infeasible_reason,
                       config::format_bytes(memory.offloaded),
                       estimate.expansion ? "beyond device memory" : "offloaded",
                       config::format_bytes(memory.second_tier));
  }
  const std::string needed =
      fmt::format("{}, a device has {}", config::format_bytes(memory.total()), config::format_bytes(memory.capacity));
  if (memory.tables > Bytes(0)) {
    const bool alone = memory.tables > memory.capacity;
    return fmt::format("{}: the largest need is {}; of it, embedding tables and their optimizer state {}{}",
                       estimate.infeasible_reason, needed, config::format_bytes(memory.tables),
                       alone ? ", more than the capacity" : "");
  }
  return fmt::format("{}: stage {} needs {}", estimate.infeasible_reason, memory.stage, needed);
}

}  // namespace orrery::results
