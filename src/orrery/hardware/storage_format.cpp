#include "orrery/hardware/storage_format.hpp"

#include "orrery/core/error.hpp"
#include "orrery/hardware/records.hpp"

namespace orrery::hardware {

namespace {

constexpr double kByte = 8.0;  // bits

// GPTQ (arXiv:2210.17323) and AWQ (arXiv:2306.00978) with groups of 128, symmetric: 4.125 bits. A zero point per group
// would add 0.03 bits.
constexpr double kInt4 = (4.0 + 16.0 / 128.0) / kByte;

// QLoRA (arXiv:2305.14314, section 3): an 8-bit scale per 64 weights, and a 32-bit scale per 256 of these: 4.127 bits.
constexpr double kNf4 = (4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0)) / kByte;

// MXFP4 of the OCP Microscaling Formats specification 1.0: 4.25 bits. NVFP4 (an 8-bit scale per 16) has 4.5.
constexpr double kFp4 = (4.0 + 8.0 / 32.0) / kByte;

// Scale and zero point per head and token, with a head of 128 (KIVI, arXiv:2402.02750, and LMDeploy: per-token groups).
constexpr double kCacheScales = (16.0 + 16.0) / 128.0 / kByte;

}  // namespace

std::string_view name_of(StorageFormat format) { return config::enum_name(format); }
std::string_view name_of(CacheFormat format) { return config::enum_name(format); }

Bytes element_size(StorageFormat format) {
  switch (format) {
    case StorageFormat::fp32: return Bytes(4.0);
    case StorageFormat::bf16:
    case StorageFormat::fp16: return Bytes(2.0);
    case StorageFormat::fp8:
    case StorageFormat::int8: return Bytes(1.0);
    case StorageFormat::int4: return Bytes(kInt4);
    case StorageFormat::nf4: return Bytes(kNf4);
    case StorageFormat::fp4: return Bytes(kFp4);
  }
  throw_internal_error("known storage format", __FILE__, __LINE__);
}

Bytes element_size(CacheFormat format) {
  switch (format) {
    case CacheFormat::bf16:
    case CacheFormat::fp16: return Bytes(2.0);
    case CacheFormat::fp8: return Bytes(1.0);
    case CacheFormat::int8: return Bytes(1.0 + kCacheScales);
    case CacheFormat::int4: return Bytes(0.5 + kCacheScales);
  }
  throw_internal_error("known cache format", __FILE__, __LINE__);
}

}  // namespace orrery::hardware
