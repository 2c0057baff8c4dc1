// Rows for the tests of rules, and what becomes of them.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "orrery/validate/rules.hpp"

namespace orrery::validate::samples {

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

// Keeps the parts, to which scenarios point, alive.
inline Scenario scenario(const AnyRow& row) {
  static std::deque<Parts> kept;
  auto parts = parts_for(ORRERY_SOURCE_DATA_DIR, {row});
  EXPECT_TRUE(parts) << (parts ? "" : parts.error().text());
  kept.push_back(std::move(*parts));
  auto made = scenario_of(row, kept.back());
  EXPECT_TRUE(made) << (made ? "" : made.error());
  return made ? std::move(*made) : Scenario{};
}

inline std::string reason(const AnyRow& row) {
  const auto parts = parts_for(ORRERY_SOURCE_DATA_DIR, {row});
  EXPECT_TRUE(parts);
  const auto made = scenario_of(row, *parts);
  EXPECT_FALSE(made);
  return made ? "" : made.error();
}

inline workload::Model model(const TrainingRow& row) {
  const auto made = model_of(row, *row.seq, *parts_for(ORRERY_SOURCE_DATA_DIR, {row}));
  EXPECT_TRUE(made) << (made ? "" : made.error());
  return made ? *made : workload::Model{};
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
