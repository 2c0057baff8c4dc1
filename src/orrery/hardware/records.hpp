// How hardware descriptions are written in YAML and JSON: one descriptor per field gives parsing, validation, printing
// and schemas. Keys are the members' names.
//
// Where a cluster file needs an accelerator or a link class, it holds the description itself or the name of a catalogue
// entry; names are replaced by their entries before a record reads the tree (see catalogue.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "orrery/config/record.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/optimizer_kind.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/hardware/storage_format.hpp"
#include "orrery/hardware/wiring.hpp"

namespace orrery::hardware {

// The first key of `values` that names no precision; empty if all do. `field` is the map's name in its record.
[[nodiscard]] config::Objection unknown_precision(std::string_view field, const std::map<std::string, double>& values);

}  // namespace orrery::hardware

namespace orrery::config {

template <>
struct EnumNames<hardware::Precision> {
  using P = hardware::Precision;
  static constexpr std::array<std::pair<P, std::string_view>, 7> value{{{P::bf16, "bf16"},
                                                                        {P::fp16, "fp16"},
                                                                        {P::fp8, "fp8"},
                                                                        {P::fp4, "fp4"},
                                                                        {P::int8, "int8"},
                                                                        {P::tf32, "tf32"},
                                                                        {P::fp32, "fp32"}}};
};

template <>
struct EnumNames<hardware::StorageFormat> {
  using F = hardware::StorageFormat;
  static constexpr std::array<std::pair<F, std::string_view>, 8> value{{{F::fp32, "fp32"},
                                                                        {F::bf16, "bf16"},
                                                                        {F::fp16, "fp16"},
                                                                        {F::fp8, "fp8"},
                                                                        {F::int8, "int8"},
                                                                        {F::int4, "int4"},
                                                                        {F::nf4, "nf4"},
                                                                        {F::fp4, "fp4"}}};
};

template <>
struct EnumNames<hardware::CacheFormat> {
  using F = hardware::CacheFormat;
  static constexpr std::array<std::pair<F, std::string_view>, 5> value{
      {{F::bf16, "bf16"}, {F::fp16, "fp16"}, {F::fp8, "fp8"}, {F::int8, "int8"}, {F::int4, "int4"}}};
};

template <>
struct EnumNames<hardware::ExpansionRule> {
  using R = hardware::ExpansionRule;
  static constexpr std::array<std::pair<R, std::string_view>, 2> value{
      {{R::serial, "serial"}, {R::parallel, "parallel"}}};
};

template <>
struct EnumNames<hardware::TensorClass> {
  using C = hardware::TensorClass;
  static constexpr std::array<std::pair<C, std::string_view>, hardware::kTensorClasses> value{
      {{C::weights, "weights"},
       {C::gradients, "gradients"},
       {C::optimizer, "optimizer"},
       {C::activations, "activations"},
       {C::kv_cache, "kv_cache"},
       {C::tables, "tables"}}};
};

template <>
struct EnumNames<hardware::Fp8Recipe> {
  using R = hardware::Fp8Recipe;
  static constexpr std::array<std::pair<R, std::string_view>, 3> value{
      {{R::delayed, "delayed"}, {R::current, "current"}, {R::block, "block"}}};
};

template <>
struct EnumNames<hardware::Sampling> {
  using S = hardware::Sampling;
  static constexpr std::array<std::pair<S, std::string_view>, 2> value{{{S::greedy, "greedy"}, {S::top_p, "top_p"}}};
};

template <>
struct EnumNames<hardware::OptimizerKind> {
  using K = hardware::OptimizerKind;
  static constexpr std::array<std::pair<K, std::string_view>, 4> value{
      {{K::adam, "adam"}, {K::adam8bit, "adam8bit"}, {K::sgd, "sgd"}, {K::muon, "muon"}}};
};

template <>
struct EnumNames<hardware::Wiring> {
  static constexpr auto value = [] {
    std::array<std::pair<hardware::Wiring, std::string_view>, hardware::kWiringNames.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      names[i] = {hardware::kWiringNames[i].wiring, hardware::kWiringNames[i].name};
    }
    return names;
  }();
};

template <>
struct EnumNames<hardware::GemmTraffic> {
  static constexpr std::array<std::pair<hardware::GemmTraffic, std::string_view>, 2> value{{
      {hardware::GemmTraffic::compulsory, "compulsory"},
      {hardware::GemmTraffic::blocked, "blocked"},
  }};
};

template <>
struct EnumNames<hardware::Basis> {
  static constexpr std::array<std::pair<hardware::Basis, std::string_view>, 3> value{{
      {hardware::Basis::measured, "measured"},
      {hardware::Basis::generation, "generation"},
      {hardware::Basis::prior, "prior"},
  }};
};

template <>
struct EnumNames<hardware::AttentionKernel> {
  static constexpr std::array<std::pair<hardware::AttentionKernel, std::string_view>, 2> value{{
      {hardware::AttentionKernel::plain, "plain"},
      {hardware::AttentionKernel::flash, "flash"},
  }};
};

template <>
struct EnumNames<hardware::ReduceEvery> {
  static constexpr std::array<std::pair<hardware::ReduceEvery, std::string_view>, 3> value{{
      {hardware::ReduceEvery::micro_batch, "micro-batch"},
      {hardware::ReduceEvery::step, "step"},
      {hardware::ReduceEvery::step_if_stages, "step-if-stages"},
  }};
};

// Policies with two values that files write as true or false.
template <class E, E kOff, E kOn>
struct SwitchCodec {
  static TypeInfo type() { return Codec<bool>::type(); }
  static void read(const Node& node, E& out, const Reading& reading) {
    bool on = out == kOn;
    Codec<bool>::read(node, on, reading);
    out = on ? kOn : kOff;
  }
  static Node write(E value) { return Codec<bool>::write(value == kOn); }
  static Node schema(const Limits& limits) { return Codec<bool>::schema(limits); }
};

template <>
struct Codec<hardware::TokenCopies>
    : SwitchCodec<hardware::TokenCopies, hardware::TokenCopies::per_expert, hardware::TokenCopies::per_node> {};

template <>
struct Codec<hardware::StageTransfer>
    : SwitchCodec<hardware::StageTransfer, hardware::StageTransfer::whole, hardware::StageTransfer::scattered> {};

template <>
struct Codec<hardware::NodePorts>
    : SwitchCodec<hardware::NodePorts, hardware::NodePorts::all, hardware::NodePorts::one> {};

template <>
struct Described<hardware::Accelerator> {
  static const Record<hardware::Accelerator>& record();
};
template <>
struct Described<hardware::Protocol> {
  static const Record<hardware::Protocol>& record();
};
template <>
struct Described<hardware::LinkClass> {
  static const Record<hardware::LinkClass>& record();
};
template <>
struct Described<hardware::NetworkDimension> {
  static const Record<hardware::NetworkDimension>& record();
};
template <>
struct Described<hardware::Nodes> {
  static const Record<hardware::Nodes>& record();
};
template <>
struct Described<hardware::PoolLevel> {
  static const Record<hardware::PoolLevel>& record();
};
template <>
struct Described<hardware::SecondTier> {
  static const Record<hardware::SecondTier>& record();
};
template <>
struct Described<hardware::Cluster> {
  static const Record<hardware::Cluster>& record();
};
template <>
struct Described<hardware::Stack> {
  static const Record<hardware::Stack>& record();
};

}  // namespace orrery::config
