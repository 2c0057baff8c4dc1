// How collectives and algorithms are spelled in files, flags and results.
#pragma once

#include "orrery/config/codec.hpp"
#include "orrery/network/collective.hpp"

namespace orrery::config {

template <>
struct EnumNames<network::Collective> {
  static constexpr std::array<std::pair<network::Collective, std::string_view>, 5> value{{
      {network::Collective::all_reduce, "all_reduce"},
      {network::Collective::all_gather, "all_gather"},
      {network::Collective::reduce_scatter, "reduce_scatter"},
      {network::Collective::all_to_all, "all_to_all"},
      {network::Collective::broadcast, "broadcast"},
  }};
};

template <>
struct EnumNames<network::Algorithm> {
  static constexpr std::array<std::pair<network::Algorithm, std::string_view>, 6> value{{
      {network::Algorithm::automatic, "auto"},
      {network::Algorithm::ring, "ring"},
      {network::Algorithm::tree, "tree"},
      {network::Algorithm::direct, "direct"},
      {network::Algorithm::in_switch, "in_switch"},
      {network::Algorithm::flat_ring, "flat_ring"},
  }};
};

}  // namespace orrery::config
