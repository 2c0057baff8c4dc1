// Records of Orrery's own model descriptions: keys are the names of the members, most of them optional; experts, latent
// attention, vision, tower and recommender are nested mappings.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "orrery/config/record.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/recommender.hpp"

namespace orrery::config {

template <>
struct EnumNames<workload::Quantized> {
  static constexpr std::array<std::pair<workload::Quantized, std::string_view>, 4> value{{
      {workload::Quantized::all, "all"},
      {workload::Quantized::but_qkv, "but-qkv"},
      {workload::Quantized::but_attention, "but-attention"},
      {workload::Quantized::experts, "experts"},
  }};
};

template <>
struct EnumNames<workload::Normalisation> {
  static constexpr std::array<std::pair<workload::Normalisation, std::string_view>, 2> value{{
      {workload::Normalisation::layernorm, "layernorm"},
      {workload::Normalisation::rmsnorm, "rmsnorm"},
  }};
};

template <>
struct EnumNames<workload::Activation> {
  static constexpr std::array<std::pair<workload::Activation, std::string_view>, 4> value{{
      {workload::Activation::gelu, "gelu"},
      {workload::Activation::relu, "relu"},
      {workload::Activation::silu, "silu"},
      {workload::Activation::squared_relu, "squared_relu"},
  }};
};

template <>
struct EnumNames<workload::MixerKind> {
  static constexpr std::array<std::pair<workload::MixerKind, std::string_view>, 5> value{{
      {workload::MixerKind::attention, "attention"},
      {workload::MixerKind::mamba, "mamba"},
      {workload::MixerKind::mamba2, "mamba2"},
      {workload::MixerKind::gated_delta, "gated_delta"},
      {workload::MixerKind::none, "none"},
  }};
};

template <>
struct EnumNames<workload::RouterScore> {
  static constexpr std::array<std::pair<workload::RouterScore, std::string_view>, 2> value{{
      {workload::RouterScore::softmax, "softmax"},
      {workload::RouterScore::sigmoid, "sigmoid"},
  }};
};

template <>
struct EnumNames<workload::RopeScaling> {
  static constexpr std::array<std::pair<workload::RopeScaling, std::string_view>, 6> value{{
      {workload::RopeScaling::none, "none"},
      {workload::RopeScaling::linear, "linear"},
      {workload::RopeScaling::llama3, "llama3"},
      {workload::RopeScaling::yarn, "yarn"},
      {workload::RopeScaling::longrope, "longrope"},
      {workload::RopeScaling::dynamic, "dynamic"},
  }};
};

template <>
struct EnumNames<workload::Position> {
  static constexpr std::array<std::pair<workload::Position, std::string_view>, 5> value{{
      {workload::Position::learned, "learned"},
      {workload::Position::rotary, "rotary"},
      {workload::Position::alibi, "alibi"},
      {workload::Position::none, "none"},
      {workload::Position::relative, "relative"},
  }};
};

template <>
struct EnumNames<workload::InteractionKind> {
  static constexpr std::array<std::pair<workload::InteractionKind, std::string_view>, 5> value{{
      {workload::InteractionKind::dot, "dot"},
      {workload::InteractionKind::concat, "concat"},
      {workload::InteractionKind::cross, "cross"},
      {workload::InteractionKind::transformer, "transformer"},
      {workload::InteractionKind::opaque, "opaque"},
  }};
};

template <>
struct Described<workload::Table> {
  static const Record<workload::Table>& record();
};

template <>
struct Described<workload::Interaction> {
  static const Record<workload::Interaction>& record();
};

template <>
struct Described<workload::TopExperts> {
  static const Record<workload::TopExperts>& record();
};

template <>
struct Described<workload::Recommender> {
  static const Record<workload::Recommender>& record();
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
struct Described<workload::Mixer> {
  static const Record<workload::Mixer>& record();
};

template <>
struct Described<workload::Rope> {
  static const Record<workload::Rope>& record();
};

template <>
struct Described<workload::Vision> {
  static const Record<workload::Vision>& record();
};

template <>
struct Described<workload::Tower> {
  static const Record<workload::Tower>& record();
};

template <>
struct Described<workload::Model> {
  static const Record<workload::Model>& record();
};

}  // namespace orrery::config
