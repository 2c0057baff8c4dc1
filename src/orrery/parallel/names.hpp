// How the choices of a plan are spelled in files, flags and results.
#pragma once

#include "orrery/config/codec.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::config {

template <>
struct EnumNames<parallel::Recompute> {
  static constexpr std::array<std::pair<parallel::Recompute, std::string_view>, 3> value{{
      {parallel::Recompute::none, "none"},
      {parallel::Recompute::selective, "selective"},
      {parallel::Recompute::full, "full"},
  }};
};

template <>
struct EnumNames<parallel::ScheduleKind> {
  static constexpr std::array<std::pair<parallel::ScheduleKind, std::string_view>, 3> value{{
      {parallel::ScheduleKind::gpipe, "gpipe"},
      {parallel::ScheduleKind::one_f_one_b, "1f1b"},
      {parallel::ScheduleKind::interleaved, "interleaved"},
  }};
};

}  // namespace orrery::config
