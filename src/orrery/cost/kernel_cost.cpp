// Constants are priors from how the machines work, not fits; docs/models/cost.md lists each with its reason.
#include "orrery/cost/kernel_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "orrery/core/integers.hpp"

namespace orrery::cost {

namespace {

using hardware::Accelerator;
using hardware::Kernel;
using hardware::KernelKind;

// Output tile of a gemm that one core computes at a time, and its rate relative to the largest tile. A [m, n] tile
// loads m + n elements per m n multiplications, so its rate falls as 1 / (1 + c (1/m + 1/n)) with c = 20, scaled to 1
// for 256 x 128.
struct Tile {
  std::int64_t m, n;
  double efficiency;
};
constexpr std::array<Tile, 6> kTiles = {
    {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.94}, {128, 64, 0.84}, {64, 128, 0.84}, {64, 64, 0.76}}};

// In addition, of kernels whose weights are stored in a narrower format (weight-only): with few rows they wait for
// arithmetic sooner than kernels that load 16 bits per weight, so they have tiles of 8, 16 and 32 rows
// (Marlin, arXiv:2408.11743, section 3, and its version for vLLM). Efficiencies are by the same formula.
constexpr std::array<Tile, 3> kTilesOfFewRows = {{{8, 256, 0.345}, {16, 256, 0.53}, {32, 256, 0.72}}};

// Filling a core's pipeline and writing the tile take as long as this depth of k.
constexpr double kFillDepth = 128.0;

// Smallest depth of k of one part in split-K, so that the fill stays below a third of its time. Smaller parts take as
// long, so that a GEMM is never faster for a larger k.
constexpr std::int64_t kSmallestSplit = 256;

// Partial sums of split-K are fp32, written and read once, in the cache: at twice the memory bandwidth.
constexpr double kPartialBytes = 2.0 * 4.0 / 2.0;

// Queries that one core works on at a time in fused attention: the smallest block that holds all queries, or else
// several of the largest. In a decode step the queries are those of the heads that share a key-value head.
constexpr std::array<std::int64_t, 3> kAttentionRows = {16, 64, 128};

// A score needs one exponential, and 4 FLOPs on the matrix units per element of head dimension. Where the rate of
// exponentials is not known, one costs as much as this many elements in 16 bits. attention_efficiency is measured at a
// head dimension of 128.
constexpr double kExponentialDepth = 16.0;
constexpr double kFlopsPerScore = 4.0;
constexpr double kMeasuredHeadDim = 128.0;

// Starting and ending a block of fused attention, or a part of one, takes as long as this many keys: of 64 to 256, the
// number with the least mean error over the published rates of kernel_cost_facts_test.cpp (8.6 %).
constexpr double kFillKeys = 192.0;

// Time constant of the clock's reaction to power: a GEMM much longer than this runs at the sustained clock.
constexpr double kPowerTime = 0.5e-3;

double memory_rate(const Accelerator& a) { return a.memory_bandwidth.value() * a.memory_efficiency; }

// Operands of u and v bytes and a cache of S: the smaller of v (ceil(u / S) - 1) and u (ceil(v / S) - 1), bytes that
// are read in addition to each operand once. Operands have the width of the GEMM's inputs.
double repeated_reads(const Kernel& kernel, const Accelerator& a) {
  if (kernel.weight_only || !(a.cache > Bytes(0))) { return 0.0; }
  const double element = hardware::element_size(kernel.precision).value(), depth = real(kernel.k) * element;
  const double u = real(kernel.m) * depth, v = real(kernel.n) * depth, cache = a.cache.value();
  const auto more = [&](double blocks_of, double again) {
    return again * std::max(0.0, std::ceil(blocks_of / cache) - 1.0);
  };
  return real(kernel.batch) * std::min(more(u, v), more(v, u));
}

double traffic(const Kernel& kernel, const Accelerator& a) {
  if (a.gemm_traffic == hardware::GemmTraffic::compulsory || kernel.kind != KernelKind::gemm) {
    return kernel.bytes.value();
  }
  return kernel.bytes.value() + repeated_reads(kernel, a);
}

double memory_seconds(const Kernel& kernel, const Accelerator& a) {
  const double bytes = traffic(kernel, a), loads = kernel.block_scaled ? a.block_scaled_loads : 1.0;
  const double first = bytes / (memory_rate(a) * loads);
  if (!a.tier_use.is_used()) { return first; }
  const double part = second_tier_part(kernel, a.tier_use.shares);
  return hardware::two_tier_time(a.tier_use.rule, part, first, bytes / (a.tier_use.rate.value() * loads));
}

// Seconds of a gemm on `tile`: whole waves of whole tiles. When the tiles do not fill the cores once, k is split over
// the idle cores (split-K) if reducing the parts costs less than it saves.
double tiled_seconds(const Kernel& kernel, const Tile& tile, std::int64_t cores, double rate, double partial_rate) {
  const std::int64_t tiles = kernel.batch * ceil_div(kernel.m, tile.m) * ceil_div(kernel.n, tile.n);
  const double useful = real(kernel.batch) * real(kernel.m) * real(kernel.n) * real(kernel.k);
  const double area = real(tile.m * tile.n) * real(cores);
  // Time of a part of depth d, per unit of useful work at the reachable rate.
  // Of groups of unlike numbers of rows, `m` is the mean, rounded up: their tiles are as many and as large as with it.
  const double rounded = kernel.grouped ? std::max(kernel.flops.value(), 2.0 * useful) : kernel.flops.value();
  const double scale = rounded / (useful * rate * tile.efficiency) * area;
  const double whole = scale * real(ceil_div(tiles, cores)) * (real(kernel.k) + kFillDepth);
  if (2 * tiles > cores || kernel.k <= kSmallestSplit) { return whole; }
  const double repeats = std::max(1.0, kernel.flops.value() / (2.0 * useful));  // of GEMMs one after another
  const double reduction =
      repeats * real(kernel.batch) * real(kernel.m) * real(kernel.n) * kPartialBytes / partial_rate;
  const auto split_in = [&](std::int64_t most) {
    const double parts = real(std::min(cores / tiles, most));
    return scale * (std::max(real(kernel.k) / parts, real(kSmallestSplit)) + kFillDepth) + parts * reduction;
  };
  const std::int64_t full = kernel.k / kSmallestSplit;
  const double split = split_in(full);
  return std::min({whole, split, full * kSmallestSplit < kernel.k ? split_in(full + 1) : split});
}

// Matrix rate of a gemm whose tiles fill the cores. A kernel that applies scales per block adds partial sums in fp32
// for it, as one with split accumulation does.
double matrix_rate(const Kernel& kernel, const Accelerator& a, double peak) {
  const bool is_split = kernel.split_accumulation || kernel.block_scaled;
  return peak * a.efficiency(kernel.precision) * kernel.rate * (kernel.grouped ? a.grouped_rate : 1.0) *
         (is_split ? a.split_accumulation : 1.0);
}

// Rows of the smallest tile of a kernel. Grouped GEMMs of NVIDIA GPUs with 4-bit matrix units have an expert's rows on
// the narrow side of the tile, from 8 on (the trtllm-gen kernels of FlashInfer and TensorRT-LLM); those of AMD GPUs
// sort rows into blocks of 32 (BLOCK_SIZE_M of AITER and the instances of its CK kernels). Others depend on software.
std::int64_t fewest_rows(const Kernel& kernel, const Accelerator& a) {
  constexpr std::int64_t kAiterBlock = 32;
  if (kernel.weight_only) { return 1; }
  if (kernel.grouped && a.maker == "AMD") { return kAiterBlock; }
  if (kernel.grouped && a.peak(hardware::Precision::fp4).value() > 0.0) { return 1; }
  if (kernel.grouped && kernel.block_rows > 0) { return kernel.block_rows; }
  return kTiles.back().m;
}

double gemm_seconds(const Kernel& kernel, const Accelerator& a, double peak) {
  if (kernel.flops.value() <= 0.0) { return 0.0; }
  const std::int64_t cores = std::max<std::int64_t>(a.cores, 1);
  const std::int64_t fewest = fewest_rows(kernel, a);
  const double rate = matrix_rate(kernel, a, peak);
  double best = std::numeric_limits<double>::infinity();
  const auto offer = [&](const Tile& tile) {
    best = std::min(best, tiled_seconds(kernel, tile, cores, rate, memory_rate(a)));
  };
  for (const Tile& tile : kTiles) {
    if (tile.m >= fewest) { offer(tile); }
  }
  for (const Tile& tile : kTilesOfFewRows) {
    if (tile.m >= fewest) { offer(tile); }
  }
  return best * (1.0 + a.power_slowdown * best / (best + kPowerTime));
}

std::int64_t attention_rows(std::int64_t queries) {
  for (const std::int64_t rows : kAttentionRows) {
    if (queries <= rows) { return rows; }
  }
  return kAttentionRows.back();
}

// Time of fused attention whose keys are split in `parts` for each block, relative to that of its GEMMs at the
// reachable rate; each part has a start and an end.
double attention_share(const Kernel& kernel, std::int64_t blocks, std::int64_t parts, std::int64_t cores) {
  const std::int64_t tiles = kernel.batch * blocks * parts;
  const double waves = real(ceil_div(tiles, cores) * cores) / real(tiles);
  return waves * (1.0 + kFillKeys * real(parts) / real(kernel.n + 1));
}

// Elements of head dimension that take the matrix units as long as an exponential takes the special-function units, in
// the format of the kernel and in 16 bits.
struct ExponentialDepth {
  double own, wide;
};

ExponentialDepth exponential_depth(const Kernel& kernel, const Accelerator& a, const MatrixPeaks& peaks) {
  const double peak = peaks.own.value(), sixteen_bits = peaks.bf16.value();
  const double wide_peak = sixteen_bits > 0.0 ? sixteen_bits : peak;
  const bool is_narrow = hardware::element_size(kernel.precision) < Bytes(2.0);
  const double rate = kFlopsPerScore * a.exponential_rate.value();
  const double wide = rate > 0.0 ? wide_peak / rate : kExponentialDepth;
  return {is_narrow ? wide * std::max(1.0, peak / wide_peak) : wide, wide};
}

double attention_seconds(const Kernel& kernel, const Accelerator& a, const MatrixPeaks& peaks) {
  if (kernel.flops.value() <= 0.0) { return 0.0; }
  const std::int64_t cores = std::max<std::int64_t>(a.cores, 1);
  const std::int64_t rows = attention_rows(kernel.m);
  const std::int64_t blocks = ceil_div(kernel.m, rows);
  const double padding = real(blocks * rows) / real(kernel.m);
  const double portable = kernel.native ? 1.0 : a.portable_attention;
  const double peak = peaks.own.value();
  const ExponentialDepth depth = exponential_depth(kernel, a, peaks);
  const double exponentials =
      (1.0 + portable * depth.own / real(kernel.k)) / (1.0 + portable * depth.wide / kMeasuredHeadDim);
  const double rate = peak * a.attention_efficiency * portable * kernel.rate;
  const double balanced = kernel.flops.value() / rate * padding * std::max(1.0, exponentials);
  const double whole = balanced * attention_share(kernel, blocks, 1, cores);
  if (blocks > 1 || 2 * kernel.batch > cores) { return whole; }
  // All queries are in one block, and there are fewer blocks than cores: the keys are split over the cores
  // (flash-decoding) if that saves more time than the reduction of the parts takes.
  const std::int64_t parts = cores / kernel.batch;
  const double reduction =
      real(kernel.batch * parts) * real(kernel.m) * real(kernel.k) * kPartialBytes / memory_rate(a);
  return std::min(whole, balanced * attention_share(kernel, blocks, parts, cores) + reduction);
}

double compute_seconds(const Kernel& kernel, const Accelerator& a, const MatrixPeaks& peaks) {
  if (kernel.kind != KernelKind::gemm && kernel.kind != KernelKind::attention) { return 0.0; }
  const double peak = peaks.own.value();
  if (peak <= 0.0) { return std::numeric_limits<double>::infinity(); }
  return kernel.kind == KernelKind::gemm ? gemm_seconds(kernel, a, peak) : attention_seconds(kernel, a, peaks);
}

// Loads and arithmetic of a kernel overlap, but not fully: the fourth root of the sum of fourth powers is the longer of
// the two where one is much longer, and 19 % more than either where they are equal.
double overlapped(double compute, double memory) {
  const double most = std::max(compute, memory), ratio = most > 0.0 ? std::min(compute, memory) / most : 0.0;
  if (!(ratio > 0.0)) { return most; }
  const double squared = ratio * ratio;
  return most * std::sqrt(std::sqrt(1.0 + squared * squared));
}

}  // namespace

double second_tier_part(const Kernel& kernel, const hardware::ByClass<double>& shares) {
  using C = hardware::TensorClass;
  const auto& held = kernel.held;
  const Bytes rest = kernel.bytes - held.total();
  const Bytes there = shares[C::weights] * held.weights + shares[C::gradients] * held.gradients +
                      shares[C::optimizer] * held.optimizer + shares[C::kv_cache] * held.kv_cache +
                      shares[C::tables] * held.tables + shares[C::activations] * rest;
  return kernel.bytes > Bytes(0) ? there / kernel.bytes : 0.0;
}

double overlapped_seconds(double compute, double memory) { return overlapped(compute, memory); }

Bytes memory_traffic(const Kernel& kernel, const Accelerator& accelerator) {
  return Bytes(traffic(kernel, accelerator));
}

MatrixPeaks matrix_peaks(const Kernel& kernel, const Accelerator& accelerator) {
  MatrixPeaks peaks;
  const bool is_attention = kernel.kind == KernelKind::attention;
  if (is_attention || kernel.kind == KernelKind::gemm) { peaks.own = accelerator.peak(kernel.precision); }
  if (is_attention) { peaks.bf16 = accelerator.peak(hardware::Precision::bf16); }
  return peaks;
}

KernelCost kernel_cost(const Kernel& kernel, const Accelerator& accelerator) {
  return kernel_cost(kernel, accelerator, matrix_peaks(kernel, accelerator));
}

KernelCost kernel_cost(const Kernel& kernel, const Accelerator& accelerator, const MatrixPeaks& peaks) {
  if (kernel.kind == KernelKind::none) { return {}; }
  KernelCost cost;
  cost.compute = Seconds(compute_seconds(kernel, accelerator, peaks));
  cost.memory = Seconds(memory_seconds(kernel, accelerator));
  const bool is_gemm = kernel.kind == KernelKind::gemm;
  const Seconds alone =
      is_gemm ? accelerator.kernel_latency : accelerator.stream_latency.value_or(accelerator.kernel_latency);
  cost.latency = (alone * (1.0 - kernel.latency_hidden) + kernel.gap) * kernel.launches;
  if (kernel.block_scaled) { cost.latency += accelerator.block_scaled_latency; }
  cost.casts = Seconds(kernel.casts.value() / memory_rate(accelerator));
  cost.time = cost.latency + cost.casts + Seconds(overlapped(cost.compute.value(), cost.memory.value()));
  cost.time *= accelerator.slowdown;
  const Seconds most = max(max(cost.compute, cost.memory), cost.latency);
  cost.bound = most == cost.compute ? Bound::compute : most == cost.memory ? Bound::memory : Bound::latency;
  return cost;
}

}  // namespace orrery::cost
