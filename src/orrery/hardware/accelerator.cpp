#include "orrery/hardware/accelerator.hpp"

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
  }
  throw_internal_error("known precision", __FILE__, __LINE__);
}

Bytes element_size(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32: return Bytes(4.0);
    case Precision::bf16:
    case Precision::fp16: return Bytes(2.0);
    case Precision::fp8: return Bytes(1.0);
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
  return found == matrix_efficiency_of.end() ? matrix_efficiency : found->second;
}

}  // namespace orrery::hardware
