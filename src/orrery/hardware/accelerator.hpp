// What one accelerator can do. Figures are per device; rates are dense (no structured sparsity).
//
// Left out: how a clock follows power over time (`power_slowdown` is its end), several dies per package, sparsity.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "orrery/core/units.hpp"

namespace orrery::hardware {

// The number format of matrix inputs. Enumerators are spelled as in configuration files.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16, fp8, fp4 };
inline constexpr std::array kAllPrecisions = {Precision::fp32, Precision::tf32, Precision::bf16,
                                              Precision::fp16, Precision::fp8,  Precision::fp4};

[[nodiscard]] std::string_view name_of(Precision precision);

// Bytes of one element (tf32 is stored as fp32; fp4 is half a byte).
[[nodiscard]] Bytes element_size(Precision precision);

// Where each figure of a catalogue entry was read: figure -> citation, or several figures with commas between them
// ("layers, hidden, heads"). A figure inside another is written with dots ("matrix_peak.fp8"), one in a list by its
// name
// ("dimensions.nvlink"); a citation of the whole covers its parts. A citation that starts with "unverified" marks
// figures whose source nobody has seen.
using Sources = std::map<std::string, std::string>;

// What the figures that say how close to its peaks a device comes rest on.
enum class Basis : std::uint8_t {
  measured,    // on this product
  generation,  // on another product of the same generation
  prior,       // on nothing but experience with others
};

[[nodiscard]] std::string_view name_of(Basis basis);

struct Accelerator {
  std::string name;         // catalogue name, e.g. "h100-sxm"
  std::string description;  // product name as the vendor writes it

  std::map<std::string, FlopsPerSecond> matrix_peak;  // dense matrix-unit peak by precision name; absent: none
  FlopsPerSecond vector_peak;                         // fp32 rate of the ordinary ALUs
  Bytes memory;                                       // capacity; a label of 80 GB of HBM is 80 GiB
  BytesPerSecond memory_bandwidth;                    // peak
  Bytes cache;                                        // last-level on-chip cache (L2)
  std::int64_t cores = 0;                             // independent cores a kernel's tiles spread over (SM, CU, ...)

  // What kernels reach. See docs/models/cost.md for how each enters the time of a kernel.
  double matrix_efficiency = 1.0;                      // best measured matrix rate / matrix_peak
  std::map<std::string, double> matrix_efficiency_of;  // by precision name, where one is known to differ
  double grouped_rate = 1.0;          // of what plain matrix products reach, what products grouped by expert do
  double attention_efficiency = 1.0;  // best fused-attention rate / matrix_peak, forward
  double portable_attention = 1.0;    // part of that which kernels of the generation before reach
  double memory_efficiency = 1.0;     // best measured streaming rate / memory_bandwidth
  Seconds kernel_latency;             // what a kernel takes beside its work: start, first loads, last stores
  double power_slowdown = 0.0;  // how much longer long matrix products take when power limits the clock; 0: not at all
  double block_scaled_loads = 1.0;  // part of the streaming rate at which products with scaled blocks load operands
  Seconds block_scaled_latency;     // what such a product takes on top of kernel_latency

  Basis basis = Basis::prior;  // of these figures

  // Not of the file: time of kernels on a job's slowest node over a typical one's (Cluster::speed_spread).
  double pace = 1.0;

  double tdp_watts = 0.0;
  double price_usd = 0.0;  // of one device; 0: not known
  Sources sources;

  // Peak of matrix products in `precision`; zero when the accelerator does not support it. Where matrix units lack fp32,
  // its products run on the ordinary ALUs.
  [[nodiscard]] FlopsPerSecond peak(Precision precision) const;
  // Part of that peak that the best matrix products reach.
  [[nodiscard]] double efficiency(Precision precision) const;
};

}  // namespace orrery::hardware
