// One kernel: the unit of work that an accelerator is asked to do and that a cost model prices.
#pragma once

#include <cstdint>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::hardware {

enum class KernelKind : std::uint8_t {
  none,
  gemm,       // batch x [m, k] x [k, n]
  attention,  // fused attention: batch = sequences x heads, m = queries, n = keys, k = head dimension
  stream,     // limited by memory traffic: element-wise, norm, softmax, lookup, optimizer
};

struct Kernel {
  KernelKind kind = KernelKind::none;
  Precision precision = Precision::bf16;        // of matrix inputs
  std::int64_t batch = 1, m = 0, n = 0, k = 0;  // shape, for gemm and attention
  Flops flops;                                  // matrix FLOPs, multiply and add counted apart; 0 for stream
  Bytes bytes;                                  // compulsory memory traffic: each tensor once
  Bytes casts;                                  // traffic of making narrow operands of wide ones, in kernels in front
  int launches = 1;                             // kernels that the framework starts for it, one behind the other
  std::int64_t further = 0;                     // kernels of single experts that run beside those
  double rate = 1.0;                            // part of what the accelerator's such kernels reach; gemm, attention
  bool grouped = false;                         // products of several sets of rows, each by weights of its own; gemm
  bool native = true;                           // uses what the accelerator's matrix units newly have; attention
  bool block_scaled = false;                    // narrow operands carry a scale for every block, not one each; gemm

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

}  // namespace orrery::hardware
