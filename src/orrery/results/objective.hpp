// The figure that a search minimizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "orrery/config/codec.hpp"

namespace orrery::results {

enum class Objective : std::uint8_t { step_time, cost, energy, devices };

}  // namespace orrery::results

namespace orrery::config {

template <>
struct EnumNames<results::Objective> {
  using O = results::Objective;
  static constexpr std::array<std::pair<O, std::string_view>, 4> value{
      {{O::step_time, "step_time"}, {O::cost, "cost"}, {O::energy, "energy"}, {O::devices, "devices"}}};
};

}  // namespace orrery::config
