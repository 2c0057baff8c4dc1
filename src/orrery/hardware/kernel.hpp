// One kernel: the unit of work that a cost model prices.
#pragma once

#include <cstdint>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::hardware {

enum class KernelKind : std::uint8_t {
  none,
  gemm,       // batch x [m, k] x [k, n]
  attention,  // fused attention: batch = sequences x heads, m = queries, n = keys of a query (the mean number that the
              // kernel does not skip), k = head dimension
  stream,     // limited by memory traffic: element-wise, norm, softmax, lookup, optimizer
};

// Traffic of tensors that are not activations, by their class (TensorClass).
struct HeldBytes {
  Bytes weights, gradients, optimizer, kv_cache, tables;

  HeldBytes& operator*=(double factor) {
    for (Bytes* bytes : {&weights, &gradients, &optimizer, &kv_cache, &tables}) { *bytes *= factor; }
    return *this;
  }
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + kv_cache + tables; }
  friend bool operator==(const HeldBytes&, const HeldBytes&) = default;
};

struct Kernel {
  KernelKind kind = KernelKind::none;
  Precision precision = Precision::bf16;        // of matrix inputs
  std::int64_t batch = 1, m = 0, n = 0, k = 0;  // shape, for gemm and attention
  Flops flops;                                  // matrix FLOPs, a multiply-add is two; 0 for stream
  Bytes bytes;                                  // compulsory memory traffic: each tensor once
  HeldBytes held;                               // of `bytes`
  Bytes casts;                                  // traffic of the kernels that convert operands to a narrower format
  int launches = 1;                             // kernels that the framework launches for it, serially
  Seconds gap;                                  // before each launch, where the framework launches kernel by kernel
  double latency_hidden = 0.0;                  // part of the latency of a launch that passes under the kernel before
  std::int64_t extra_kernels = 0;               // additional kernels of single experts, concurrent with those
  double rate = 1.0;            // rate of this stack's kernels / best on the accelerator; gemm, attention
  bool grouped = false;         // several sets of rows, each with its own weights; gemm
  bool native = true;           // uses the newest matrix instructions of the accelerator; attention
  bool weight_only = false;     // weights are narrower than the other operand, and converted on chip; gemm
  std::int64_t block_rows = 0;  // of a grouped gemm's smallest block, where the accelerator does not say; 0: 64
  bool block_scaled = false;    // narrow operands have a scale per block instead of one per tensor; gemm

  bool split_accumulation = false;  // adds partial sums in fp32 outside the matrix units; fp8 gemm

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

}  // namespace orrery::hardware
