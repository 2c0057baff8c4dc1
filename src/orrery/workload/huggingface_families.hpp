// The families of models that Hugging Face configurations describe: their keys, defaults and shapes. Part of
// huggingface.cpp's inside; a new family is one more row of the table in huggingface_families.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "orrery/config/record.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::workload::huggingface {

using Count = std::int64_t;

// What the seven families say about themselves, in one struct; a family's record fills its part.
struct Fields {
  Count layers = 0;
  Count hidden = 0;
  Count heads = 0;
  Count vocab = 0;
  Count max_seq = 0;
  std::optional<Count> ffn;
  std::optional<Count> kv_heads;
  std::optional<Count> head_dim;
  std::optional<Count> embedding_width;
  std::optional<Count> sliding_window;
  bool use_sliding_window = false;
  std::string activation;
  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
  bool tied = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  bool biases = true;
  bool parallel_residual = false;
  bool norm_first = true;
  bool norm_weights = true;
  bool no_final_norm = false;
  bool cross_attention = false;
};

// A family's names for the sizes. Empty: the family has no such key.
struct SizeKeys {
  std::string_view layers, hidden, heads, vocab, max_seq;
  std::string_view ffn;  // absent or null = 4 hidden where `ffn_has_default`
  std::string_view kv_heads = {};
  std::string_view head_dim = {};
  bool ffn_has_default = false;
};

struct Alias {
  std::string_view other;
  std::string_view key;
};

struct Family {
  std::string_view model_type;
  SizeKeys keys;
  std::span<const Alias> aliases;             // other spellings that the library accepts
  config::Record<Fields> (*record)();         // the keys besides the sizes
  Fields (*defaults)();                       // where they differ from Fields{}
  std::string (*unsupported)(const Fields&);  // why this one cannot be described, or ""
  void (*shape)(const Fields&, Model&);       // what the family is, besides the sizes
};

[[nodiscard]] std::span<const Family> families();

// Types that are planned and not built.
[[nodiscard]] std::span<const std::string_view> planned_model_types();

}  // namespace orrery::workload::huggingface
