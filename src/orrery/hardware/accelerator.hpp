// What one accelerator can do. Figures are per device; rates are dense (no structured sparsity).
//
// Left out: the clock's response to power over time (`power_slowdown` is its steady state), several dies per package,
// sparsity.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/core/units.hpp"
#include "orrery/hardware/tier_use.hpp"

namespace orrery::hardware {

// The number format of matrix inputs. Enumerators are spelled as in configuration files.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16, fp8, fp4, int8 };
inline constexpr std::array kAllPrecisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16,
                                              Precision::fp8,  Precision::fp4,  Precision::int8};

// Integers are a format of inference only: gradients do not fit their range.
[[nodiscard]] constexpr bool is_integer(Precision precision) { return precision == Precision::int8; }

[[nodiscard]] std::string_view name_of(Precision precision);

// Bytes of one element (tf32 is stored as fp32; fp4 is half a byte).
[[nodiscard]] Bytes element_size(Precision precision);

// Where each figure of a catalogue entry was read: figure -> citation, or several figures with commas between them
// ("layers, hidden, heads"). A nested figure is written with dots ("matrix_peak.fp8"), one in a list by its name
// ("dimensions.nvlink"); a citation of the whole covers its parts. A citation that starts with "unverified" marks
// figures without a source that was read.
using Sources = std::map<std::string, std::string>;

// What the efficiencies of an entry are based on.
enum class Basis : std::uint8_t {
  measured,    // on this product
  generation,  // on another product of the same generation
  prior,       // on other generations only
};

[[nodiscard]] std::string_view name_of(Basis basis);

// How often a GEMM reads its operands from device memory.
enum class GemmTraffic : std::uint8_t {
  compulsory,  // once
  blocked,     // one operand in blocks that fill `cache`, the other one once for every block
};

struct Accelerator {
  std::string name;         // catalogue name, e.g. "h100-sxm"
  std::string description;  // product name as the vendor writes it
  std::string maker;        // "NVIDIA"; empty: not known, any software may run on it

  std::map<std::string, FlopsPerSecond> matrix_peak;  // dense matrix-unit peak by precision name; absent: none
  FlopsPerSecond vector_peak;                         // fp32 rate of the ordinary ALUs
  Bytes memory;                                       // capacity; a label of 80 GB of HBM is 80 GiB
  BytesPerSecond memory_bandwidth;                    // peak
  Bytes cache;                                        // last-level on-chip cache (L2)
  GemmTraffic gemm_traffic = GemmTraffic::compulsory;
  std::int64_t cores = 0;  // independent cores a kernel's tiles spread over (SM, CU, ...)

  // Efficiencies. docs/models/cost.md has the formula of a kernel's time.
  double matrix_efficiency = 1.0;                      // best measured matrix rate / matrix_peak
  std::map<std::string, double> matrix_efficiency_of;  // by precision name, where one is known to differ
  double split_accumulation = 1.0;    // rate of fp8 GEMMs that add partial sums in fp32 / rate of others
  double grouped_rate = 1.0;          // rate of GEMMs grouped by expert / rate of plain GEMMs
  double attention_efficiency = 1.0;  // best fused-attention rate / matrix_peak, forward
  double portable_attention = 1.0;    // rate of attention kernels without native instructions / that of native ones
  double portable_gemm = 1.0;         // the same of GEMMs
  FlopsPerSecond exponential_rate;    // exponentials per second of the special-function units; 0: not known
  double memory_efficiency = 1.0;     // best measured streaming rate / memory_bandwidth
  Seconds kernel_latency;             // time of a kernel without work: launch on the device, first loads, last stores
  std::optional<Seconds> stream_latency;  // the same of kernels that are not GEMMs; not given: kernel_latency
  double power_slowdown = 0.0;            // relative slowdown of long GEMMs when power limits the clock; 0: none
  double block_scaled_loads = 1.0;        // rate at which block-scaled GEMMs load operands / streaming rate
  Seconds block_scaled_latency;           // of a block-scaled GEMM, in addition to kernel_latency

  Basis basis = Basis::prior;  // of these figures

  // Not in the file: time of kernels on the job's slowest node / on the median node (Cluster::speed_spread).
  double slowdown = 1.0;
  // Not in the file: memory beside the accelerator's own that kernels use in place.
  TierUse tier_use;

  double tdp_watts = 0.0;
  std::optional<double> idle_watts;  // while no kernel runs; not given: a prior (expenses.hpp)
  double price_usd = 0.0;            // of one device; 0: unknown
  Sources sources;

  // Peak of GEMMs in `precision`; zero when the accelerator does not support it. Without fp32 matrix units, fp32 GEMMs
  // run on the ordinary ALUs.
  [[nodiscard]] FlopsPerSecond peak(Precision precision) const;
  // Best GEMM rate / that peak. int8 without a figure: that of fp8, whose units have the same rate and power.
  [[nodiscard]] double efficiency(Precision precision) const;
};

// Numbers in fp4 that share a scale of 8 bits: 16 (NVFP4) on NVIDIA's accelerators, 32 (MXFP4) on others.
[[nodiscard]] std::int64_t fp4_block(const Accelerator& accelerator);

// A warning where `cores` does not fit the peak. Times of GEMMs and attention assume that each core computes one tile
// at a time, which was measured on cores of 1.6 TFLOP/s (V100) to 918 TFLOP/s (TPU v6e) in 16 bits. Counting the
// processing elements of a wafer or of a systolic array instead makes kernels of few tokens a hundred times slower.
// Empty: it fits.
[[nodiscard]] std::string doubtful_cores(const Accelerator& accelerator);

}  // namespace orrery::hardware
