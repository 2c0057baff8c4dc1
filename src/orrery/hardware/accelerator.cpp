#include "orrery/hardware/accelerator.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/error.hpp"

namespace orrery::hardware {

std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::tf32: return "tf32";
    case Precision::bf16: return "bf16";
    case Precision::fp16: return "fp16";
    case Precision::fp8: return "fp8";
    case Precision::fp4: return "fp4";
    case Precision::int8: return "int8";
  }
  throw_internal_error("known precision", __FILE__, __LINE__);
}

Bytes element_size(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32: return Bytes(4.0);
    case Precision::bf16:
    case Precision::fp16: return Bytes(2.0);
    case Precision::fp8:
    case Precision::int8: return Bytes(1.0);
    case Precision::fp4: return Bytes(0.5);
  }
  throw_internal_error("known precision", __FILE__, __LINE__);
}

std::string_view name_of(Basis basis) {
  switch (basis) {
    case Basis::measured: return "measured";
    case Basis::generation: return "generation";
    case Basis::prior: return "prior";
  }
  throw_internal_error("known basis", __FILE__, __LINE__);
}

FlopsPerSecond Accelerator::peak(Precision precision) const {
  const auto found = matrix_peak.find(std::string(name_of(precision)));
  if (found != matrix_peak.end()) { return found->second; }
  return precision == Precision::fp32 ? vector_peak : FlopsPerSecond{};
}

double Accelerator::efficiency(Precision precision) const {
  const auto found = matrix_efficiency_of.find(std::string(name_of(precision)));
  if (found != matrix_efficiency_of.end()) { return found->second; }
  return is_integer(precision) ? efficiency(Precision::fp8) : matrix_efficiency;
}

std::int64_t fp4_block(const Accelerator& accelerator) {
  constexpr std::int64_t kNvfp4 = 16, kMxfp4 = 32;
  return accelerator.maker == "NVIDIA" ? kNvfp4 : kMxfp4;
}

std::string doubtful_cores(const Accelerator& accelerator) {
  constexpr FlopsPerSecond kLeast(1e12), kMost(3e15);
  FlopsPerSecond peak = std::max(accelerator.peak(Precision::bf16), accelerator.peak(Precision::fp16));
  if (!(peak > FlopsPerSecond(0))) { peak = accelerator.peak(Precision::fp32); }
  if (accelerator.cores < 1 || !(peak > FlopsPerSecond(0))) { return {}; }
  const FlopsPerSecond each = peak / static_cast<double>(accelerator.cores);
  if (each >= kLeast && each <= kMost) { return {}; }
  return fmt::format(
      "cores {} of {} means {:.3g} TFLOP/s per core; tiles are measured on cores of 1.6 to 918 TFLOP/s, so kernels may "
      "be {} than estimated: cores is the number of GEMM tiles that the chip computes at a time "
      "(docs/guide/my-hardware.md)",
      accelerator.cores, accelerator.name, each.value() / 1e12, each < kLeast ? "many times faster" : "slower");
}

}  // namespace orrery::hardware
