#include "orrery/profile/kernel_class.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace orrery::profile {

namespace {

using Part = std::pair<std::string_view, KernelClass>;

// Parts of names in lower case; the first that occurs decides.
constexpr std::array<Part, 30> kKernelParts = {{
    {"memcpy", KernelClass::copy},
    {"memset", KernelClass::copy},
    {"flash", KernelClass::attention},
    {"fmha", KernelClass::attention},
    {"attention", KernelClass::attention},
    {"attn", KernelClass::attention},
    {"conv", KernelClass::convolution},
    {"wgrad", KernelClass::convolution},
    {"dgrad", KernelClass::convolution},
    {"winograd", KernelClass::convolution},
    {"embedding", KernelClass::embedding},
    {"batch_norm", KernelClass::normalization},
    {"batchnorm", KernelClass::normalization},
    {"bn_fw", KernelClass::normalization},
    {"bn_bw", KernelClass::normalization},
    {"layer_norm", KernelClass::normalization},
    {"layernorm", KernelClass::normalization},
    {"rmsnorm", KernelClass::normalization},
    {"rms_norm", KernelClass::normalization},
    {"softmax", KernelClass::normalization},
    {"gemm", KernelClass::gemm},
    {"gemv", KernelClass::gemm},
    {"cutlass", KernelClass::gemm},
    {"splitk", KernelClass::gemm},
    {"nvjet", KernelClass::gemm},
    {"cijk_", KernelClass::gemm},
    {"reduce", KernelClass::reduction},
    {"elementwise", KernelClass::elementwise},
    {"multi_tensor_apply", KernelClass::elementwise},
    {"triton_poi", KernelClass::elementwise},
}};

// Operators, for kernels whose names say nothing.
constexpr std::array<Part, 7> kOperatorParts = {{
    {"attention", KernelClass::attention},
    {"conv", KernelClass::convolution},
    {"embedding", KernelClass::embedding},
    {"norm", KernelClass::normalization},
    {"softmax", KernelClass::normalization},
    {"aten::mm", KernelClass::gemm},
    {"aten::addmm", KernelClass::gemm},
}};

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

template <std::size_t N>
KernelClass class_of(const std::string& name, const std::array<Part, N>& parts) {
  for (const auto& [part, kind] : parts) {
    if (name.find(part) != std::string::npos) { return kind; }
  }
  return KernelClass::other;
}

}  // namespace

KernelClass kernel_class(std::string_view kernel, std::string_view operation) {
  const KernelClass by_kernel = class_of(in_lower_case(kernel), kKernelParts);
  return by_kernel != KernelClass::other ? by_kernel : class_of(in_lower_case(operation), kOperatorParts);
}

}  // namespace orrery::profile
