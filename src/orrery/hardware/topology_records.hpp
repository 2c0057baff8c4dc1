// How the topology of a cluster is written in YAML and JSON (docs/models/topologies.md).
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "orrery/config/record.hpp"
#include "orrery/hardware/topology_spec.hpp"

namespace orrery::config {

template <>
struct EnumNames<hardware::TopologyKind> {
  using K = hardware::TopologyKind;
  static constexpr std::array<std::pair<K, std::string_view>, 9> value{{{K::fat_tree, "fat-tree"},
                                                                        {K::rails, "rails"},
                                                                        {K::dragonfly, "dragonfly"},
                                                                        {K::hyperx, "hyperx"},
                                                                        {K::torus, "torus"},
                                                                        {K::mesh, "mesh"},
                                                                        {K::switch_tree, "switch-tree"},
                                                                        {K::grid, "grid"},
                                                                        {K::list, "list"}}};
};

template <>
struct EnumNames<hardware::Routing> {
  using R = hardware::Routing;
  static constexpr std::array<std::pair<R, std::string_view>, 6> value{{{R::shortest, "shortest"},
                                                                        {R::d_mod_k, "d-mod-k"},
                                                                        {R::ecmp, "ecmp"},
                                                                        {R::spread, "spread"},
                                                                        {R::valiant, "valiant"},
                                                                        {R::adaptive, "adaptive"}}};
};

template <>
struct Described<hardware::ScaleUpDomain> {
  static const Record<hardware::ScaleUpDomain>& record();
};
template <>
struct Described<hardware::CableSpec> {
  static const Record<hardware::CableSpec>& record();
};
template <>
struct Described<hardware::InSwitchLimits> {
  static const Record<hardware::InSwitchLimits>& record();
};
template <>
struct Described<hardware::TopologySpec> {
  static const Record<hardware::TopologySpec>& record();
};

}  // namespace orrery::config
