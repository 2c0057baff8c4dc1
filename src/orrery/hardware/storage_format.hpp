// Formats in which weights and the KV cache are stored, where they differ from the format of GEMM inputs (Precision).
#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/core/units.hpp"

namespace orrery::hardware {

// Of weights. Enumerators are spelled as in configuration files.
enum class StorageFormat : std::uint8_t {
  fp32,
  bf16,
  fp16,
  fp8,   // one scale per tensor or per block of 128 x 128: not counted
  int8,  // one scale per output channel: not counted
  int4,  // one 16-bit scale per 128 weights
  nf4,   // NormalFloat, scales quantised a second time
  fp4,   // MXFP4: one 8-bit scale per 32 weights
};

// Of keys and values.
enum class CacheFormat : std::uint8_t {
  bf16,
  fp16,
  fp8,   // one scale per tensor: not counted
  int8,  // a 16-bit scale and a 16-bit zero point per 128 elements
  int4,  // the same
};

[[nodiscard]] std::string_view name_of(StorageFormat format);
[[nodiscard]] std::string_view name_of(CacheFormat format);

// Bytes of one element with its share of the scales.
[[nodiscard]] Bytes element_size(StorageFormat format);
[[nodiscard]] Bytes element_size(CacheFormat format);

}  // namespace orrery::hardware
