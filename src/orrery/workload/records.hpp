// How Orrery's own model descriptions are written: keys are the members' names, most of them optional; experts, latent
// attention and vision are mappings inside.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "orrery/config/record.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/recommender.hpp"

namespace orrery::config {

template <>
struct EnumNames<workload::Normalisation> {
  static constexpr std::array<std::pair<workload::Normalisation, std::string_view>, 2> value{{
      {workload::Normalisation::layernorm, "layernorm"},
      {workload::Normalisation::rmsnorm, "rmsnorm"},
  }};
};

template <>
struct EnumNames<workload::Activation> {
  static constexpr std::array<std::pair<workload::Activation, std::string_view>, 3> value{{
      {workload::Activation::gelu, "gelu"},
      {workload::Activation::relu, "relu"},
      {workload::Activation::silu, "silu"},
  }};
};

template <>
struct EnumNames<workload::Position> {
  static constexpr std::array<std::pair<workload::Position, std::string_view>, 4> value{{
      {workload::Position::learned, "learned"},
      {workload::Position::rotary, "rotary"},
      {workload::Position::alibi, "alibi"},
      {workload::Position::relative, "relative"},
  }};
};

template <>
struct Described<workload::Experts> {
  static const Record<workload::Experts>& record();
};

template <>
struct Described<workload::LatentAttention> {
  static const Record<workload::LatentAttention>& record();
};

template <>
struct Described<workload::Vision> {
  static const Record<workload::Vision>& record();
};

template <>
struct Described<workload::Model> {
  static const Record<workload::Model>& record();
};

template <>
struct Described<workload::EmbeddingTables> {
  static const Record<workload::EmbeddingTables>& record();
};

template <>
struct Described<workload::Tower> {
  static const Record<workload::Tower>& record();
};

template <>
struct Described<workload::TransformerInteraction> {
  static const Record<workload::TransformerInteraction>& record();
};

template <>
struct Described<workload::Recommender> {
  static const Record<workload::Recommender>& record();
};

}  // namespace orrery::config
