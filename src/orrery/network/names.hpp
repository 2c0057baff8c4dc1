// How the collectives and algorithms of the closed form (fabric.hpp) are spelled in files, flags and results.
#pragma once

#include "orrery/config/codec.hpp"
#include "orrery/core/collective.hpp"

namespace orrery::config {

template <>
struct EnumNames<Collective> {
  static constexpr std::array<std::pair<Collective, std::string_view>, 5> value{{
      {Collective::all_reduce, "all_reduce"},
      {Collective::all_gather, "all_gather"},
      {Collective::reduce_scatter, "reduce_scatter"},
      {Collective::all_to_all, "all_to_all"},
      {Collective::broadcast, "broadcast"},
  }};
};

template <>
struct EnumNames<CollectiveAlgorithm> {
  static constexpr std::array<std::pair<CollectiveAlgorithm, std::string_view>, 7> value{{
      {CollectiveAlgorithm::automatic, "auto"},
      {CollectiveAlgorithm::ring, "ring"},
      {CollectiveAlgorithm::tree, "tree"},
      {CollectiveAlgorithm::direct, "direct"},
      {CollectiveAlgorithm::in_switch, "in_switch"},
      {CollectiveAlgorithm::flat_ring, "flat_ring"},
      {CollectiveAlgorithm::hierarchical, "hierarchical"},
  }};
};

// The other enumerators are not offered: the closed form does not have them.
template <>
consteval bool all_are_named<Collective>() {
  return true;
}
template <>
consteval bool all_are_named<CollectiveAlgorithm>() {
  return true;
}

}  // namespace orrery::config

namespace orrery::network {

// What an algorithm does, which collectives it carries out, and when to choose it: a line for users.
[[nodiscard]] std::string_view description_of(CollectiveAlgorithm algorithm);

}  // namespace orrery::network
