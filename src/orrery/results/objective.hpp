// The figure that a search minimizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "orrery/config/codec.hpp"

namespace orrery::results {

// days, usd, kwh, co2: of a whole campaign on machines that fail; the others of a step.
enum class Objective : std::uint8_t { step_time, cost, energy, devices, days, usd, kwh, co2 };
[[nodiscard]] constexpr bool is_of_campaign(Objective objective) { return objective >= Objective::days; }

}  // namespace orrery::results

namespace orrery::config {

template <>
struct EnumNames<results::Objective> {
  using O = results::Objective;
  static constexpr std::array<std::pair<O, std::string_view>, 8> value{{{O::step_time, "step_time"},
                                                                        {O::cost, "cost"},
                                                                        {O::energy, "energy"},
                                                                        {O::devices, "devices"},
                                                                        {O::days, "days"},
                                                                        {O::usd, "usd"},
                                                                        {O::kwh, "kwh"},
                                                                        {O::co2, "co2"}}};
};

}  // namespace orrery::config
