// Names of a plan's choices in files, flags and results.
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
  static constexpr std::array<std::pair<parallel::ScheduleKind, std::string_view>, 5> value{{
      {parallel::ScheduleKind::gpipe, "gpipe"},
      {parallel::ScheduleKind::one_f_one_b, "1f1b"},
      {parallel::ScheduleKind::interleaved, "interleaved"},
      {parallel::ScheduleKind::zero_bubble, "zero-bubble"},
      {parallel::ScheduleKind::dualpipe, "dualpipe"},
  }};
};

template <>
struct EnumNames<parallel::Task> {
  static constexpr std::array<std::pair<parallel::Task, std::string_view>, 3> value{{
      {parallel::Task::pretrain, "pretrain"},
      {parallel::Task::finetune, "finetune"},
      {parallel::Task::inference, "inference"},
  }};
};

template <>
struct EnumNames<parallel::TpOverlap> {
  static constexpr std::array<std::pair<parallel::TpOverlap, std::string_view>, 3> value{{
      {parallel::TpOverlap::none, "none"},
      {parallel::TpOverlap::ring, "ring"},
      {parallel::TpOverlap::pipe, "pipe"},
  }};
};

template <>
struct EnumNames<parallel::OptimizerDevice> {
  static constexpr std::array<std::pair<parallel::OptimizerDevice, std::string_view>, 2> value{{
      {parallel::OptimizerDevice::device, "device"},
      {parallel::OptimizerDevice::host, "host"},
  }};
};

template <>
struct EnumNames<workload::ContextMethod> {
  static constexpr std::array<std::pair<workload::ContextMethod, std::string_view>, 2> value{{
      {workload::ContextMethod::ring, "ring"},
      {workload::ContextMethod::ulysses, "ulysses"},
  }};
};

template <>
struct EnumNames<workload::TableSharding> {
  static constexpr std::array<std::pair<workload::TableSharding, std::string_view>, 5> value{{
      {workload::TableSharding::table, "table"},
      {workload::TableSharding::row, "row"},
      {workload::TableSharding::column, "column"},
      {workload::TableSharding::replicated, "replicated"},
      {workload::TableSharding::balanced, "balanced"},
  }};
};

template <>
struct EnumNames<workload::Adapter::Targets> {
  static constexpr std::array<std::pair<workload::Adapter::Targets, std::string_view>, 2> value{{
      {workload::Adapter::Targets::attention, "attention"},
      {workload::Adapter::Targets::all, "all"},
  }};
};

}  // namespace orrery::config
