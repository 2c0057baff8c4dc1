// Rows for the tests of rules, and what becomes of them.
#pragma once

#include <deque>
#include <stdexcept>
#include <string>
#include <utility>

#include "orrery/validate/rules.hpp"

namespace orrery::validate::samples {

// Of the catalogue in the source tree; a test file defines it.
[[nodiscard]] std::string data_directory();

// GPT of 2 layers on one node, everything stated.
inline TrainingRow whole_row() {
  TrainingRow row;
  row.family = "vtrain_multi";
  row.model = "GPT-tiny";
  row.precision = "fp16";
  row.gpu_type = "A100-80GB";
  row.sp = "no";
  row.recompute = "full";
  row.layers = 8;
  row.hidden = 1024;
  row.heads = 16;
  row.seq = 2048;
  row.gpus = 16;
  row.gpus_per_node = 8;
  row.tp = 2;
  row.pp = 2;
  row.micro_batch = 2;
  row.global_batch = 32;
  row.zero = 0;
  return row;
}

// What must be there, or its complaint as an exception.
template <class Expected>
auto value(Expected made) {
  if constexpr (requires { made.error().text(); }) {
    if (!made) { throw std::logic_error(made.error().text()); }
  } else {
    if (!made) { throw std::logic_error(made.error()); }
  }
  return std::move(*made);
}

// Keeps the parts, to which scenarios point, alive.
template <class AnyKind>
auto scenario(const AnyKind& row) {
  static std::deque<Parts> kept;
  kept.push_back(value(parts_for(data_directory(), {AnyRow(row)})));
  return value(scenario_of(row, kept.back()));
}

// Why the row is skipped; empty when it is not.
template <class AnyKind>
std::string reason(const AnyKind& row) {
  const Parts parts = value(parts_for(data_directory(), {AnyRow(row)}));
  const auto made = scenario_of(row, parts);
  return made ? "" : made.error();
}

inline workload::Model model(const TrainingRow& row) {
  return value(model_of(row, *row.seq, value(parts_for(data_directory(), {row}))));
}

// DeepSeek-V3 as Megatron-Bridge's tables have it: what they leave blank follows from the catalogue.
inline TrainingRow mixture_row() {
  TrainingRow row;
  row.family = "mbridge_moe";
  row.model = "DeepSeekV3";
  row.precision = "mxfp8";
  row.gpu_type = "GB200";
  row.layers = 61;
  row.hidden = 7168;
  row.heads = 128;
  row.experts = 256;
  row.topk = 8;
  row.moe_ffn = 2048;
  row.seq = 4096;
  row.gpus = 256;
  row.gpus_per_node = 4;
  row.pp = 4;
  row.ep = 64;
  row.vpp = 4;
  row.micro_batch = 1;
  row.global_batch = 4096;
  return row;
}

// FasterTransformer's GPT of 175 billion parameters.
inline InferenceRow batch_row() {
  InferenceRow row;
  row.family = "ft_gpt_static";
  row.model = "GPT-175B";
  row.precision = "fp16";
  row.gpu_type = "A100-80GB";
  row.mode = "static batch";
  row.layers = 96;
  row.hidden = 12288;
  row.heads = 96;
  row.vocab = 51200;
  row.gpus = 8;
  row.tp = 8;
  row.pp = 1;
  row.batch = 16;
  row.isl = 128;
  row.osl = 8;
  return row;
}

}  // namespace orrery::validate::samples
