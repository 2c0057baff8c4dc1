// How a kernel's bound is spelled in results.
#pragma once

#include "orrery/config/codec.hpp"
#include "orrery/cost/kernel_cost.hpp"

namespace orrery::config {

template <>
struct EnumNames<cost::Bound> {
  static constexpr std::array<std::pair<cost::Bound, std::string_view>, 4> value{{
      {cost::Bound::none, "none"},
      {cost::Bound::compute, "compute"},
      {cost::Bound::memory, "memory"},
      {cost::Bound::latency, "latency"},
  }};
};

}  // namespace orrery::config
