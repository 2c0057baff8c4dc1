// Classes of device operations, by the names that libraries give to kernels and PyTorch to operators. A kernel of an
// unknown library is `other`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace orrery::profile {

enum class KernelClass : std::uint8_t {
  gemm,
  attention,
  convolution,
  normalization,
  embedding,
  elementwise,
  reduction,
  copy,
  other
};

inline constexpr std::array<std::string_view, 9> kKernelClasses = {
    "gemm", "attention", "convolution", "normalization", "embedding", "elementwise", "reduction", "copy", "other"};

// `kernel`: name of the kernel, copy or memset; `operation`: innermost operator around its launch, may be empty.
[[nodiscard]] KernelClass kernel_class(std::string_view kernel, std::string_view operation);

}  // namespace orrery::profile
