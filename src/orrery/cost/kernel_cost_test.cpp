// Laws of kernel time: lower bounds, monotonicity, and values derived by hand.
#include "orrery/cost/kernel_cost.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::cost::kernel_cost_test {
namespace {

using hardware::Accelerator;
using hardware::Kernel;
using hardware::KernelKind;
using hardware::Precision;

// Round numbers: 100 cores of 1 TFLOP/s, 1 TB/s, all efficiencies 1, launch latency 1 us.
Accelerator round_accelerator() {
  Accelerator a;
  a.matrix_peak["bf16"] = FlopsPerSecond(100e12);
  a.memory_bandwidth = BytesPerSecond(1e12);
  a.cores = 100;
  a.kernel_latency = Seconds(1e-6);
  return a;
}

Kernel gemm(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto count = [](auto... factors) { return (static_cast<double>(factors) * ...); };
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = Flops(2.0 * count(batch, m, n, k));
  kernel.bytes = Bytes(2.0 * (count(batch, m, k) + count(batch, k, n) + count(batch, m, n)));
  return kernel;
}

Kernel attention(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t d) {
  Kernel kernel = gemm(batch, m, n, d);
  kernel.kind = KernelKind::attention;
  kernel.flops = 2.0 * kernel.flops;
  kernel.bytes = Bytes(4.0 * static_cast<double>(batch) * static_cast<double>(m + n) * static_cast<double>(d));
  return kernel;
}

Kernel stream(double bytes, int launches = 1) {
  Kernel kernel;
  kernel.kind = KernelKind::stream;
  kernel.bytes = Bytes(bytes);
  kernel.launches = launches;
  return kernel;
}

// Reads operand u in blocks of `cache` bytes and v once for each, and the other way round; writes the result once.
double blocked_traffic(const Kernel& kernel, double cache) {
  const double u = 2.0 * static_cast<double>(kernel.m * kernel.k), v = 2.0 * static_cast<double>(kernel.n * kernel.k);
  const auto order = [&](double kept, double streamed) {
    double bytes = 0.0;
    for (double left = kept; left > 0.0; left -= cache) { bytes += std::min(left, cache) + streamed; }
    return bytes;
  };
  const double result = 2.0 * static_cast<double>(kernel.m * kernel.n);
  return static_cast<double>(kernel.batch) * (std::min(order(u, v), order(v, u)) + result);
}

RC_GTEST_PROP(KernelCost, blocked_gemms_have_the_traffic_of_the_better_order_of_blocks, ()) {
  const auto size = [] { return std::int64_t{1} << *rc::gen::inRange(4, 14); };
  const Kernel kernel = gemm(*rc::gen::inRange<std::int64_t>(1, 4), size(), size(), size());
  Accelerator a = round_accelerator();
  a.cache = Bytes(static_cast<double>(std::int64_t{1} << *rc::gen::inRange(14, 30)));
  RC_ASSERT(memory_traffic(kernel, a) == kernel.bytes);  // the default
  a.gemm_traffic = hardware::GemmTraffic::blocked;
  const double traffic = memory_traffic(kernel, a).value();
  RC_ASSERT(std::abs(traffic / blocked_traffic(kernel, a.cache.value()) - 1.0) < 1e-12);
  RC_ASSERT(traffic >= kernel.bytes.value());
  Accelerator larger = a;
  larger.cache = 2.0 * a.cache;
  RC_ASSERT(memory_traffic(kernel, larger).value() <= traffic);
  RC_ASSERT(kernel_cost(kernel, larger).time <= kernel_cost(kernel, a).time);
}

// 4096 x 4096 x 4096 in 16 bits: 32 MiB each. With a cache of 8 MiB: 4 blocks of one, 4 x 32 MiB of the other.
TEST(KernelCost, a_gemm_that_does_not_fit_the_cache_reads_an_operand_once_per_block) {
  Accelerator a = round_accelerator();
  a.gemm_traffic = hardware::GemmTraffic::blocked;
  a.cache = 8_MiB;
  EXPECT_EQ(memory_traffic(gemm(1, 4096, 4096, 4096), a), (32.0 + 4.0 * 32.0 + 32.0) * 1_MiB);
  a.cache = 32_MiB;
  EXPECT_EQ(memory_traffic(gemm(1, 4096, 4096, 4096), a), 96_MiB);
}

// Groups of 1.1, 1.9 and 2.1 rows have as many tiles; what the mean is rounded up to does not make them faster.
TEST(KernelCost, groups_of_unlike_sizes_take_whole_tiles) {
  Accelerator a = round_accelerator();
  Seconds before;
  for (const double rows : {1.1, 1.5, 1.9, 2.1, 2.5, 3.3, 7.9, 8.1, 20.0, 63.9, 64.1, 100.0}) {
    Kernel kernel = gemm(32, static_cast<std::int64_t>(std::ceil(rows)), 4096, 2048);
    kernel.grouped = true;
    kernel.flops = Flops(2.0 * 32 * rows * 4096 * 2048);
    const Seconds now = kernel_cost(kernel, a).compute;
    EXPECT_GE(now, before) << rows;
    before = now;
  }
}

// Tiles of 8 and 16 rows: in proportion to their areas and efficiencies.
TEST(KernelCost, weight_only_kernels_have_tiles_of_few_rows) {
  Kernel kernel = gemm(1, 16, 100 * 256, 8192);
  const Seconds plain = kernel_cost(kernel, round_accelerator()).compute;
  kernel.weight_only = true;
  const Seconds few = kernel_cost(kernel, round_accelerator()).compute;
  EXPECT_NEAR(few.value(), 2.0 * 16 * 256 * (8192 + 128) / 0.53 / 1e12, 1e-12);
  EXPECT_GT(plain / few, 2.0);
  EXPECT_LE(plain / few, 4.0);
  kernel = gemm(1, 8, 100 * 256, 8192);
  kernel.weight_only = true;
  EXPECT_NEAR(kernel_cost(kernel, round_accelerator()).compute.value(), 2.0 * 8 * 256 * (8192 + 128) / 0.345 / 1e12,
              1e-12);
}

// An expert's rows: up to 32 take as long as 32 on AMD GPUs, up to 64 as 64 where there are no kernels of fewer rows.
TEST(KernelCost, grouped_kernels_of_amd_gpus_have_blocks_of_32_rows) {
  Accelerator amd = round_accelerator(), other = amd;
  amd.maker = "AMD";
  const auto compute = [](const Accelerator& a, std::int64_t rows, bool grouped) {
    Kernel kernel = gemm(100, rows, 256, 8192);
    kernel.grouped = grouped;
    return kernel_cost(kernel, a).compute;
  };
  EXPECT_EQ(compute(amd, 1, true), compute(amd, 32, true));
  EXPECT_LT(compute(amd, 32, true), compute(amd, 33, true));
  EXPECT_LT(compute(amd, 1, true), compute(other, 1, true));
  EXPECT_EQ(compute(other, 1, true), compute(other, 64, true));
  EXPECT_EQ(compute(amd, 1, false), compute(other, 1, false));
  EXPECT_EQ(compute(amd, 4096, true), compute(other, 4096, true));
}

// Kernels of software whose blocks have fewer rows: nothing on AMD GPUs, whose kernels are their own.
TEST(KernelCost, grouped_kernels_have_the_blocks_of_their_software) {
  Accelerator other = round_accelerator(), amd = other;
  amd.maker = "AMD";
  const auto compute = [](const Accelerator& a, std::int64_t rows, std::int64_t block_rows) {
    Kernel kernel = gemm(100, rows, 256, 8192);
    kernel.grouped = true;
    kernel.block_rows = block_rows;
    return kernel_cost(kernel, a).compute;
  };
  EXPECT_EQ(compute(other, 1, 16), compute(other, 16, 16));
  EXPECT_LT(compute(other, 16, 16), compute(other, 17, 16));
  EXPECT_LT(compute(other, 1, 16), compute(other, 1, 64));
  EXPECT_EQ(compute(other, 1, 64), compute(other, 1, 0));
  EXPECT_EQ(compute(other, 4096, 16), compute(other, 4096, 0));
  EXPECT_EQ(compute(amd, 1, 16), compute(amd, 1, 0));
}

TEST(KernelCost, weight_only_kernels_never_take_longer) {
  for (std::int64_t rows = 1; rows <= 4096; rows *= 2) {
    Kernel kernel = gemm(1, rows, 8192, 8192);
    const Seconds plain = kernel_cost(kernel, round_accelerator()).time;
    kernel.weight_only = true;
    EXPECT_LE(kernel_cost(kernel, round_accelerator()).time, plain) << rows;
  }
}

// At a head dimension of 128 an exponential costs 16 of 144 parts in 16 bits. In fp8 GEMMs take half the time and
// exponentials as long: 64 + 16 of 144 parts.
TEST(KernelCost, exponentials_of_attention_do_not_get_faster_in_fp8) {
  Accelerator a = round_accelerator();
  a.matrix_peak["fp8"] = FlopsPerSecond(200e12);
  Kernel kernel = attention(1000, 4096, 4096, 128);
  const Seconds wide = kernel_cost(kernel, a).compute;
  kernel.precision = Precision::fp8;
  EXPECT_NEAR(kernel_cost(kernel, a).compute / wide, 80.0 / 144.0, 1e-9);
}

// 100 TFLOP/s for 4 FLOPs per score and element, and 0.5e12 exponentials per second: an exponential takes as long as 50
// elements. At a head dimension of 64 a FLOP takes (1 + 50 / 64) / (1 + 50 / 128) = 1.281 times as long as at 128, and
// in a format of twice the rate, (1 + 100 / 64) / (1 + 50 / 128) / 2 = 0.921 times.
TEST(KernelCost, exponentials_take_as_long_as_the_special_function_units_do) {
  Accelerator a = round_accelerator();
  a.matrix_peak["fp8"] = FlopsPerSecond(200e12);
  a.exponential_rate = FlopsPerSecond(0.5e12);
  const double at_128 = kernel_cost(attention(1000, 4096, 4096, 128), a).compute.value();
  Kernel narrow = attention(1000, 4096, 4096, 64);
  EXPECT_NEAR(2.0 * kernel_cost(narrow, a).compute.value() / at_128, (1.0 + 50.0 / 64) / (1.0 + 50.0 / 128), 1e-9);
  narrow.precision = Precision::fp8;
  EXPECT_NEAR(2.0 * kernel_cost(narrow, a).compute.value() / at_128, (1.0 + 100.0 / 64) / (1.0 + 50.0 / 128) / 2.0,
              1e-9);
}

TEST(KernelCost, a_kernel_of_kind_none_takes_no_time) {
  const KernelCost cost = kernel_cost(Kernel{}, round_accelerator());
  EXPECT_EQ(cost.time, Seconds(0.0));
  EXPECT_EQ(cost.bound, Bound::none);
}

TEST(KernelCost, a_precision_that_the_accelerator_lacks_takes_infinite_time) {
  Kernel kernel = gemm(1, 128, 128, 128);
  kernel.precision = Precision::fp8;
  EXPECT_EQ(kernel_cost(kernel, round_accelerator()).time, infinite<Seconds>());
  kernel = attention(1, 128, 128, 128);
  kernel.precision = Precision::fp4;
  EXPECT_EQ(kernel_cost(kernel, round_accelerator()).time, infinite<Seconds>());
}

// 10 x 10 tiles of 256 x 128 on 100 cores: one wave of 2 x 256 x 128 x 8192 FLOPs each at 1 TFLOP/s. Filling the
// pipeline takes as long as a depth of 128.
TEST(KernelCost, one_full_wave_takes_the_time_of_one_tile) {
  const KernelCost cost = kernel_cost(gemm(1, 2560, 1280, 8192), round_accelerator());
  EXPECT_NEAR(cost.compute.value(), 2.0 * 256 * 128 * (8192 + 128) / 1e12, 1e-15);
  EXPECT_EQ(cost.bound, Bound::compute);
}

// 101 tiles of 256 x 128 need a second wave, twice the time; 808 tiles of 64 x 64 need nine of an eighth at 0.76 of the
// rate: 9 / 8 / 0.76 = 1.48, the best of the six.
TEST(KernelCost, a_tile_too_many_costs_a_wave_or_smaller_tiles) {
  const double full = kernel_cost(gemm(100, 256, 128, 4096), round_accelerator()).compute.value();
  const double more = kernel_cost(gemm(101, 256, 128, 4096), round_accelerator()).compute.value();
  EXPECT_NEAR(more / full, 9.0 / 8.0 / 0.76, 1e-12);
}

// One 256 x 128 x 8192 GEMM on 100 cores. With 256 x 128 tiles, k is split into 8192 / 256 = 32 parts; with 64 x 64
// tiles there are 8 tiles and 12 parts fit. It is at least 10 times as fast as on one core.
TEST(KernelCost, gemms_with_few_tiles_are_split_along_k) {
  Accelerator one_core = round_accelerator();
  one_core.cores = 1;
  one_core.matrix_peak["bf16"] = FlopsPerSecond(1e12);
  const double alone = kernel_cost(gemm(1, 256, 128, 8192), one_core).compute.value();
  const double split = kernel_cost(gemm(1, 256, 128, 8192), round_accelerator()).compute.value();
  EXPECT_LT(split, alone / 10.0);
  EXPECT_GT(split, alone / 100.0);
}

// Starting and ending a block of attention takes as long as 192 keys.
double fill(double keys) { return 1.0 + 192.0 / (keys + 1.0); }

// 16 heads of 800 queries are 16 x 7 = 112 blocks of 128: two waves of 100.
TEST(KernelCost, attention_runs_in_waves_of_blocks_of_128_queries) {
  const Kernel kernel = attention(16, 800, 800, 128);
  const double block = kernel.flops.value() / (16 * 800) * 128 / 1e12;
  EXPECT_NEAR(kernel_cost(kernel, round_accelerator()).compute.value(), 2.0 * block * fill(800), 1e-15);
}

// A stack's kernel that reaches 40 % of the best one's rate takes 2.5 times as long.
TEST(KernelCost, attention_is_as_fast_as_the_kernel_that_the_stack_has) {
  Kernel kernel = attention(16, 800, 800, 128);
  const double best = kernel_cost(kernel, round_accelerator()).compute.value();
  kernel.rate = 0.4;
  EXPECT_NEAR(kernel_cost(kernel, round_accelerator()).compute.value(), 2.5 * best, 1e-15);
}

// A kernel without the accelerator's newest instructions reaches the fraction `portable_attention` of the rate.
TEST(KernelCost, attention_kernels_of_the_previous_generation_are_slower) {
  Accelerator a = round_accelerator();
  a.portable_attention = 0.5;
  Kernel kernel = attention(16, 800, 800, 128);
  const double native = kernel_cost(kernel, a).compute.value();
  kernel.native = false;
  EXPECT_NEAR(kernel_cost(kernel, a).compute.value(), 2.0 * native, 1e-15);
}

// A GEMM of duration t takes 1 + 0.2 t / (t + 0.5 ms) times as long: 0.5 ms is the time constant of the clock.
TEST(KernelCost, long_gemms_slow_down_where_power_limits_the_clock) {
  Accelerator a = round_accelerator();
  const double cool = kernel_cost(gemm(1, 2560, 1280, 8192), a).compute.value();
  a.power_slowdown = 0.2;
  const double warm = kernel_cost(gemm(1, 2560, 1280, 8192), a).compute.value();
  EXPECT_NEAR(warm / cool, 1.0 + 0.2 * cool / (cool + 0.5e-3), 1e-12);
}

// Kernels for block scales reach a quarter of the streaming rate and start 5 us later. GEMMs without block scales take
// the same time as before; GEMMs with them load their operands in four times the time.
TEST(KernelCost, gemms_with_block_scales_load_and_start_more_slowly) {
  Accelerator a = round_accelerator();
  Kernel kernel = gemm(1, 16, 8192, 8192);
  const KernelCost plain = kernel_cost(kernel, a);
  a.block_scaled_loads = 0.25;
  a.block_scaled_latency = Seconds(5e-6);
  EXPECT_EQ(kernel_cost(kernel, a).time, plain.time);
  kernel.block_scaled = true;
  const KernelCost scaled = kernel_cost(kernel, a);
  EXPECT_NEAR(scaled.memory / plain.memory, 4.0, 1e-12);
  EXPECT_NEAR((scaled.latency - plain.latency).value(), 5e-6, 1e-15);
  EXPECT_EQ(kernel_cost(kernel, round_accelerator()).time, plain.time);  // matrix units that apply block scales
}

// Kernels that add partial sums in fp32, and those that apply block scales, reach 80 % of the rate of others.
TEST(KernelCost, gemms_that_add_partial_sums_in_fp32_are_slower) {
  Accelerator a = round_accelerator();
  Kernel kernel = gemm(1, 2560, 1280, 8192);
  const Seconds plain = kernel_cost(kernel, a).compute;
  a.split_accumulation = 0.8;
  EXPECT_EQ(kernel_cost(kernel, a).compute, plain);
  for (bool Kernel::* slower : {&Kernel::split_accumulation, &Kernel::block_scaled}) {
    Kernel split = kernel;
    split.*slower = true;
    EXPECT_NEAR(kernel_cost(split, a).compute / plain, 1.25, 1e-12);
    EXPECT_EQ(kernel_cost(split, round_accelerator()).compute, plain);
  }
}

// Casts are passes before the GEMM: 1 GB at 1 TB/s takes 1 ms.
TEST(KernelCost, casts_run_before_the_gemm) {
  Kernel kernel = gemm(1, 2560, 1280, 8192);
  const Seconds bare = kernel_cost(kernel, round_accelerator()).time;
  kernel.casts = Bytes(1e9);
  EXPECT_NEAR((kernel_cost(kernel, round_accelerator()).time - bare).value(), 1e-3, 1e-12);
}

// (1 + 16/64) / (1 + 16/128) = 10/9 times the seconds per FLOP.
TEST(KernelCost, narrow_heads_spend_more_on_exponentials) {
  const double wide = kernel_cost(attention(100, 128, 4096, 128), round_accelerator()).compute.value();
  const double narrow = kernel_cost(attention(100, 128, 4096, 64), round_accelerator()).compute.value();
  EXPECT_NEAR(2.0 * narrow / wide, 10.0 / 9.0, 1e-12);
}

// 8 queries fill half of a block of 16; 100 blocks are one wave.
TEST(KernelCost, few_queries_work_in_blocks_of_16) {
  const Kernel kernel = attention(100, 8, 4096, 128);
  const double useful = kernel.flops.value() / 100e12;
  EXPECT_NEAR(kernel_cost(kernel, round_accelerator()).compute.value(), 2.0 * useful * fill(4096), 1e-15);
}

// 10 blocks on 100 cores: the keys are split in 10 parts, one wave, each with a fill of 192 keys. 100 x 16 x 128 fp32
// partial sums are written and read at twice 1 TB/s: 4 B each. With 20 keys the reduction takes longer than the split
// saves: ten cores compute everything.
TEST(KernelCost, keys_are_split_over_idle_cores) {
  const Accelerator a = round_accelerator();
  const auto compute = [&](std::int64_t keys) {
    const Kernel kernel = attention(10, 16, keys, 128);
    return kernel_cost(kernel, a).compute.value() * 100e12 / kernel.flops.value();
  };
  const auto sums = [](double keys) { return 100.0 * 16 * 128 * 4 / 1e12 * 100e12 / (4.0 * 10 * 16 * keys * 128); };
  for (const std::int64_t keys : {8192, 2048}) {
    const auto n = static_cast<double>(keys);
    EXPECT_NEAR(compute(keys), 1.0 + 1920.0 / (n + 1.0) + sums(n), 1e-12);
  }
  EXPECT_NEAR(compute(20), 10.0 * fill(20), 1e-12);
}

// A decode step of Llama 3 8B on 1 TB/s and 100 TFLOP/s: 32 sequences, 8 key-value heads, 4 queries each, 8192
// positions. 2 x 32 x 8 x 8192 x 128 x 2 B of cache take 1.07 ms; the GEMMs, in a quarter of a block of 16 and three
// waves of 256 blocks, 0.2 ms.
TEST(KernelCost, decoding_reads_the_cache_at_memory_speed) {
  Kernel kernel = attention(32 * 8, 4, 8192, 128);
  const KernelCost cost = kernel_cost(kernel, round_accelerator());
  EXPECT_EQ(cost.bound, Bound::memory);
  EXPECT_NEAR(cost.time.value(), 1.0752e-3, 1e-6);
}

// Eight experts of 256 rows have as many tiles as one GEMM of 2048 rows and take as long.
TEST(KernelCost, grouped_gemms_share_the_cores) {
  const Accelerator a = round_accelerator();
  const double grouped = kernel_cost(gemm(8, 256, 1600, 4096), a).compute.value();
  EXPECT_DOUBLE_EQ(grouped, kernel_cost(gemm(1, 2048, 1600, 4096), a).compute.value());
}

TEST(KernelCost, grouped_gemms_reach_a_fraction_of_the_rate_of_others) {
  Accelerator a = round_accelerator();
  Kernel kernel = gemm(8, 256, 1600, 4096);
  const double plain = kernel_cost(kernel, a).compute.value();
  a.grouped_rate = 0.8;
  EXPECT_DOUBLE_EQ(kernel_cost(kernel, a).compute.value(), plain);
  kernel.grouped = true;
  EXPECT_DOUBLE_EQ(kernel_cost(kernel, a).compute.value(), plain / 0.8);
}

// The launch latency of 1 us is the time of 1 MB at 1 TB/s: a kernel that moves 1 MB takes twice its transfer time.
// Three launches have three times the latency.
TEST(KernelCost, a_stream_of_bandwidth_times_latency_runs_at_half_rate) {
  const Accelerator a = round_accelerator();
  EXPECT_NEAR(kernel_cost(stream(1e6), a).time.value(), 2e-6, 1e-18);
  EXPECT_NEAR(kernel_cost(stream(1e6, 3), a).time.value(), 4e-6, 1e-18);
  EXPECT_EQ(kernel_cost(stream(1.1e6), a).bound, Bound::memory);
  EXPECT_EQ(kernel_cost(stream(1e3), a).bound, Bound::latency);
}

// If loads and arithmetic take equally long, the kernel takes 2^(1/4) times as long as either.
TEST(KernelCost, loads_and_arithmetic_overlap_partially) {
  Accelerator a = round_accelerator();
  a.kernel_latency = Seconds(0.0);
  Kernel kernel = gemm(1, 2560, 1280, 8192);
  kernel.bytes = kernel_cost(kernel, a).compute * a.memory_bandwidth;
  const KernelCost cost = kernel_cost(kernel, a);
  EXPECT_NEAR(cost.time / cost.compute, std::pow(2.0, 0.25), 1e-12);
}

Accelerator any_accelerator() {
  const auto part = [] { return 0.3 + 0.01 * *rc::gen::inRange(0, 71); };
  Accelerator a;
  a.matrix_peak["bf16"] = FlopsPerSecond(1e12 * *rc::gen::inRange(1, 3000));
  a.memory_bandwidth = BytesPerSecond(1e9 * *rc::gen::inRange(100, 10000));
  a.cores = *rc::gen::inRange<std::int64_t>(0, 400);
  a.matrix_efficiency = part();
  a.attention_efficiency = part();
  a.memory_efficiency = part();
  a.power_slowdown = 0.01 * *rc::gen::inRange(0, 40);
  a.kernel_latency = Seconds(1e-7 * *rc::gen::inRange(0, 100));
  a.block_scaled_loads = part();
  a.block_scaled_latency = a.kernel_latency;
  a.portable_attention = part();
  a.split_accumulation = part();
  if (*rc::gen::arbitrary<bool>()) { a.exponential_rate = FlopsPerSecond(1e11 * *rc::gen::inRange(1, 300)); }
  return a;
}

Kernel any_kernel() {
  const auto size = [](std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most); };
  const std::int64_t batch = size(*rc::gen::element<std::int64_t>(2, 2, 300));
  const std::int64_t m = size(*rc::gen::element<std::int64_t>(16, 300, 20000));
  const std::int64_t n = size(*rc::gen::element<std::int64_t>(16, 300, 20000));
  const std::int64_t k = size(*rc::gen::element<std::int64_t>(16, 300, 20000));
  switch (*rc::gen::inRange(0, 3)) {
    case 0: {
      Kernel kernel = attention(batch, m, n, k % 257 + 1);
      kernel.native = *rc::gen::arbitrary<bool>();
      return kernel;
    }
    case 1: return stream(static_cast<double>(m) * static_cast<double>(n), static_cast<int>(k % 9) + 1);
    default: break;
  }
  Kernel gemm_kernel = gemm(batch, m, n, k);
  gemm_kernel.block_scaled = *rc::gen::arbitrary<bool>();
  gemm_kernel.split_accumulation = *rc::gen::arbitrary<bool>();
  return gemm_kernel;
}

double lower_bound(const Kernel& kernel, const Accelerator& a) {
  const double compute = kernel.flops.value() / a.peak(Precision::bf16).value();
  return std::max(
      {compute, kernel.bytes.value() / a.memory_bandwidth.value(), kernel.launches * a.kernel_latency.value()});
}

constexpr double kRounding = 1.0 + 1e-12;

RC_GTEST_PROP(KernelCostLaw, never_faster_than_peak_bandwidth_or_launches, ()) {
  const Accelerator a = any_accelerator();
  const Kernel kernel = any_kernel();
  const double time = kernel_cost(kernel, a).time.value();
  RC_ASSERT(std::isfinite(time));
  RC_ASSERT(time * kRounding >= lower_bound(kernel, a));
}

RC_GTEST_PROP(KernelCostLaw, time_is_between_its_largest_term_and_their_sum_and_the_bound_names_the_largest, ()) {
  const KernelCost cost = kernel_cost(any_kernel(), any_accelerator());
  const Seconds named = cost.bound == Bound::compute  ? cost.compute
                        : cost.bound == Bound::memory ? cost.memory
                                                      : cost.latency;
  RC_ASSERT(named == max(max(cost.compute, cost.memory), cost.latency));
  RC_ASSERT(cost.time * kRounding >= cost.latency + max(cost.compute, cost.memory));
  RC_ASSERT(cost.time <= (cost.latency + cost.compute + cost.memory) * kRounding);
}

RC_GTEST_PROP(KernelCostLaw, twice_the_peak_or_the_bandwidth_is_never_slower, ()) {
  const Accelerator a = any_accelerator();
  Accelerator faster = a;
  const bool both = *rc::gen::arbitrary<bool>();
  const bool peak = both || *rc::gen::arbitrary<bool>();
  if (peak) { faster.matrix_peak["bf16"] *= 2.0; }
  if (both || !peak) { faster.memory_bandwidth *= 2.0; }
  const Kernel kernel = any_kernel();
  RC_ASSERT(kernel_cost(kernel, faster).time <= kernel_cost(kernel, a).time * kRounding);
}

RC_GTEST_PROP(KernelCostLaw, split_accumulation_is_never_faster, ()) {
  const Accelerator a = any_accelerator();
  Kernel kernel = any_kernel();
  kernel.split_accumulation = false;
  const Seconds fast = kernel_cost(kernel, a).time;
  kernel.split_accumulation = true;
  RC_ASSERT(fast <= kernel_cost(kernel, a).time * kRounding);
}

// Every figure but the number of cores, among which the same peak is then divided.
RC_GTEST_PROP(KernelCostLaw, no_better_figure_of_a_chip_makes_a_kernel_slower, ()) {
  const Accelerator a = any_accelerator();
  Accelerator better = a;
  const double up = 1.0 + 0.01 * *rc::gen::inRange(1, 100);
  const auto improve = [&](double& part) { part = std::min(1.0, part * up); };
  switch (*rc::gen::inRange(0, 12)) {
    case 0: improve(better.matrix_efficiency); break;
    case 1: improve(better.attention_efficiency); break;
    case 2: improve(better.portable_attention); break;
    case 3: improve(better.memory_efficiency); break;
    case 4: improve(better.block_scaled_loads); break;
    case 5: better.exponential_rate *= up; break;
    case 6: better.matrix_peak["bf16"] *= up; break;
    case 7: better.memory_bandwidth *= up; break;
    case 8: better.power_slowdown /= up; break;
    case 9: better.block_scaled_latency = better.block_scaled_latency / up; break;
    case 10: improve(better.split_accumulation); break;
    default: better.kernel_latency = better.kernel_latency / up; break;
  }
  const Kernel kernel = any_kernel();
  RC_ASSERT(kernel_cost(kernel, better).time <= kernel_cost(kernel, a).time * kRounding);
}

// Of the same traffic, where the narrow format's products are at least as fast.
RC_GTEST_PROP(KernelCostLaw, a_narrower_format_of_faster_products_is_never_slower, ()) {
  Accelerator a = any_accelerator();
  a.matrix_peak["fp8"] = a.matrix_peak["bf16"] * (1.0 + 0.1 * *rc::gen::inRange(0, 30));
  Kernel kernel = any_kernel();
  kernel.block_scaled = false;
  const Seconds wide = kernel_cost(kernel, a).time;
  kernel.precision = Precision::fp8;
  RC_ASSERT(kernel_cost(kernel, a).time <= wide * kRounding);
}

RC_GTEST_PROP(KernelCostLaw, a_batch_done_in_two_parts_is_never_faster_than_the_bound_of_the_whole, ()) {
  const Accelerator a = any_accelerator();
  const auto batch = *rc::gen::inRange<std::int64_t>(2, 100);
  const auto first = *rc::gen::inRange<std::int64_t>(1, batch);
  const auto m = *rc::gen::inRange<std::int64_t>(1, 3000), k = *rc::gen::inRange<std::int64_t>(1, 3000);
  const double parts =
      (kernel_cost(gemm(first, m, 256, k), a).time + kernel_cost(gemm(batch - first, m, 256, k), a).time).value();
  RC_ASSERT(parts * kRounding >= lower_bound(gemm(batch, m, 256, k), a));
}

RC_GTEST_PROP(KernelCostLaw, streams_are_monotone_in_bytes, ()) {
  const Accelerator a = any_accelerator();
  const double bytes = *rc::gen::inRange(1, 1000000000);
  RC_ASSERT(kernel_cost(stream(bytes), a).time <= kernel_cost(stream(bytes * 1.1), a).time);
}

RC_GTEST_PROP(KernelCostLaw, attention_is_monotone_in_keys, ()) {
  const Accelerator a = any_accelerator();
  const auto batch = *rc::gen::inRange<std::int64_t>(1, 500), queries = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto keys = *rc::gen::inRange<std::int64_t>(1, 5000);
  RC_ASSERT(kernel_cost(attention(batch, queries, keys, 128), a).time <=
            kernel_cost(attention(batch, queries, keys + 1, 128), a).time * kRounding);
}

// With more tiles than cores k is not split, and a larger GEMM needs at least as many waves with every tile shape.
RC_GTEST_PROP(KernelCostLaw, gemms_are_monotone_in_batch_and_depth, ()) {
  const Accelerator a = any_accelerator();
  const auto batch = *rc::gen::inRange<std::int64_t>(1, 50), m = *rc::gen::inRange<std::int64_t>(1, 9000);
  const auto k = *rc::gen::inRange<std::int64_t>(1, 9000);
  const std::int64_t n = 128 * *rc::gen::inRange<std::int64_t>(8, 100) * 100;
  const Seconds time = kernel_cost(gemm(batch, m, n, k), a).time;
  RC_ASSERT(time <= kernel_cost(gemm(batch + 1, m, n, k), a).time * kRounding);
  RC_ASSERT(time <= kernel_cost(gemm(batch, m, n, k + 1), a).time * kRounding);
  RC_ASSERT(time <= kernel_cost(gemm(batch, m + 1, n, k), a).time * kRounding);
}

// GEMMs with few tiles are split along k: never faster with more rows, columns, depth or batch entries.
TEST(KernelCost, larger_gemms_that_are_split_are_never_faster) {
  std::mt19937_64 numbers(1);  // NOLINT(cert-msc51-cpp): the same numbers every time
  const auto random_in = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(numbers() % static_cast<std::uint64_t>(high - low));
  };
  for (int i = 0; i < 20'000; ++i) {
    Accelerator a = round_accelerator();
    a.cores = random_in(1, 150);
    a.kernel_latency = Seconds(0.0);
    const std::int64_t batch = random_in(1, 5), m = random_in(1, 300), n = random_in(1, 300), k = random_in(1, 3000),
                       more = random_in(1, 200);
    const Seconds time = kernel_cost(gemm(batch, m, n, k), a).time;
    ASSERT_LE(time, kernel_cost(gemm(batch, m, n, k + more), a).time * kRounding) << k << " + " << more;
    EXPECT_LE(time, kernel_cost(gemm(batch, m + more, n, k), a).time * kRounding) << m << " + " << more;
    EXPECT_LE(time, kernel_cost(gemm(batch, m, n + more, k), a).time * kRounding) << n << " + " << more;
    EXPECT_LE(time, kernel_cost(gemm(batch + 1, m, n, k), a).time * kRounding) << batch;
  }
}

// The slowdown by stragglers changes the time of a kernel, not its bound.
RC_GTEST_PROP(KernelCostLaw, time_is_multiplied_by_the_slowdown, ()) {
  Accelerator a = any_accelerator();
  const auto m = *rc::gen::inRange<std::int64_t>(1, 9000), k = *rc::gen::inRange<std::int64_t>(1, 9000);
  const KernelCost typical = kernel_cost(gemm(1, m, 4096, k), a);
  a.slowdown = 1.25;
  const KernelCost slowest = kernel_cost(gemm(1, m, 4096, k), a);
  RC_ASSERT(slowest.time == typical.time * 1.25);
  RC_ASSERT(slowest.bound == typical.bound);
}

}  // namespace
}  // namespace orrery::cost::kernel_cost_test
