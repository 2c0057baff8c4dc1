// Predictions against published kernel times. Errors are printed (table in docs/models/cost.md); asserted is only what
// a model without fitted constants can reach.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/cost/kernel_cost.hpp"

namespace orrery::cost::kernel_cost_facts_test {
namespace {

using hardware::Accelerator;
using hardware::Kernel;
using hardware::KernelKind;
using hardware::Precision;

struct Datasheet {
  double bf16_tflops, fp8_tflops, bandwidth_gb;
  std::int64_t cores;
  double matrix_efficiency;  // best published matrix rate / peak, bf16
};

// Data sheets (dense), and best published bf16 rates: A100 290 of 312, H100 854 of 989, B200 1573 of 2250, MI210 122 of
// 181 TFLOP/s. 0.92 of the bandwidth and 3 us between launches are assumed for all.
Accelerator accelerator(const Datasheet& sheet) {
  Accelerator a;
  a.matrix_peak["bf16"] = a.matrix_peak["fp16"] = FlopsPerSecond(sheet.bf16_tflops * 1e12);
  if (sheet.fp8_tflops > 0.0) { a.matrix_peak["fp8"] = FlopsPerSecond(sheet.fp8_tflops * 1e12); }
  a.memory_bandwidth = BytesPerSecond(sheet.bandwidth_gb * 1e9);
  a.cores = sheet.cores;
  a.matrix_efficiency = sheet.matrix_efficiency;
  a.memory_efficiency = 0.92;
  a.kernel_latency = Seconds(3e-6);
  return a;
}

const std::map<std::string, Accelerator>& accelerators() {
  static const std::map<std::string, Accelerator> kAll = {
      {"A100-80GB", accelerator({312, 0, 2039, 108, 290.0 / 312})},
      {"H100-SXM", accelerator({989.4, 1978.9, 3350, 132, 854.0 / 989.4})},
      {"H800", accelerator({989.4, 1978.9, 3350, 132, 854.0 / 989.4})},
      {"B200", accelerator({2250, 4500, 8000, 148, 1573.0 / 2250})},
      {"MI210", accelerator({181, 0, 1638, 104, 122.0 / 181})},
  };
  return kAll;
}

struct Measured {
  std::string device, precision;
  std::int64_t batch, m, n, k;
  double microseconds;
};

Kernel kernel_of(const Measured& row) {
  const double input = row.precision.starts_with("fp8") ? 1.0 : 2.0;
  const auto batch = static_cast<double>(row.batch), m = static_cast<double>(row.m), n = static_cast<double>(row.n),
             k = static_cast<double>(row.k);
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.precision = input == 1.0 ? Precision::fp8 : row.precision == "fp16" ? Precision::fp16 : Precision::bf16;
  kernel.batch = row.batch;
  kernel.m = row.m;
  kernel.n = row.n;
  kernel.k = row.k;
  kernel.flops = Flops(2.0 * batch * m * n * k);
  kernel.bytes = Bytes(batch * ((m * k + k * n) * input + 2.0 * m * n));
  return kernel;
}

double predicted_microseconds(const Measured& row) {
  return kernel_cost(kernel_of(row), accelerators().at(row.device)).time.value() * 1e6;
}

TEST(KernelCostFacts, large_gemms_are_within_a_fifth_of_published_times) {
  // A100 8192^3: 262 TFLOP/s.
  const std::vector<Measured> facts = {
      {"A100-80GB", "bf16", 1, 4096, 4096, 4096, 514.0},  {"A100-80GB", "bf16", 1, 8192, 8192, 8192, 4196.6},
      {"H100-SXM", "bf16", 1, 4096, 4096, 4096, 174.3},   {"H100-SXM", "bf16", 1, 8192, 8192, 8192, 1405.0},
      {"H100-SXM", "bf16", 1, 2048, 12288, 12288, 757.0},
  };
  for (const auto& fact : facts) {
    const double predicted = predicted_microseconds(fact);
    fmt::print("{:10} {:6} x {:6} x {:6}: predicted {:8.1f} us, measured {:8.1f} us, {:+.1f} %\n", fact.device, fact.m,
               fact.n, fact.k, predicted, fact.microseconds, 100.0 * (predicted / fact.microseconds - 1.0));
    EXPECT_NEAR(predicted / fact.microseconds, 1.0, 0.2);
  }
}

// Fields of one line of CSV; quotes protect commas.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool inside = false;
  for (const char c : line) {
    if (c == '"') {
      inside = !inside;
    } else if (c == ',' && !inside) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::vector<Measured> read_gemms(std::ifstream& file) {
  std::vector<Measured> rows;
  std::string line;
  std::getline(file, line);
  const auto names = fields(line);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  };
  const auto op = column("op"), device = column("gpu_type"), type = column("dtype"), m = column("m"), n = column("n"),
             k = column("k"), groups = column("groups"), time = column("time_us");
  while (std::getline(file, line)) {
    const auto f = fields(line);
    if (f.size() < names.size() || !f[op].starts_with("gemm") || f[m].empty() || !f[groups].empty()) { continue; }
    rows.push_back({f[device], f[type], 1, std::stoll(f[m]), std::stoll(f[n]), std::stoll(f[k]), std::stod(f[time])});
  }
  return rows;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

TEST(KernelCostFacts, median_error_over_published_gemms_is_below_40_percent) {
  std::ifstream file(std::string(ORRERY_DATA_DIR) + "/measurements/kernels.csv");
  ASSERT_TRUE(file);
  std::map<std::string, std::vector<double>> errors;  // by group, in the order of the report
  for (const auto& row : read_gemms(file)) {
    if (!accelerators().contains(row.device)) { continue; }
    const double ratio = predicted_microseconds(row) / row.microseconds;
    const char* size = row.m >= 1024 ? "m >= 1024" : row.m >= 64 ? "64 <= m < 1024" : "m < 64";
    errors[fmt::format("{:10} {:9} {}", row.device, row.precision, size)].push_back(ratio - 1.0);
    errors["all"].push_back(ratio - 1.0);
  }
  ASSERT_FALSE(errors["all"].empty());
  for (const auto& [group, signed_errors] : errors) {
    std::vector<double> sizes;
    for (const double e : signed_errors) { sizes.push_back(std::abs(e)); }
    fmt::print("{:36} {:4} rows: median error {:5.1f} %, 90th percentile {:5.1f} %, median sign {:+5.1f} %\n", group,
               sizes.size(), 100.0 * quantile(sizes, 0.5), 100.0 * quantile(sizes, 0.9),
               100.0 * quantile(signed_errors, 0.5));
    if (group == "all") { EXPECT_LT(quantile(sizes, 0.5), 0.4); }
  }
}

// Forward fused attention in 16 bits on H100 SXM5 at 1.83 GHz, TFLOP/s (FLOPs of a causal mask are half), sequences of
// 512 to 16,384, 16,384 tokens and heads of 2,048 elements together: arXiv 2407.08608, figure 5, labels of the bars as
// two transcriptions of the images have them, read 2026-11.
struct AttentionRates {
  const char* kernel;
  std::int64_t head;
  bool causal;
  std::array<double, 6> tflops;
};
constexpr std::array kAttention = {
    AttentionRates{"FlashAttention-3", 64, false, {333, 392, 460, 476, 496, 497}},
    AttentionRates{"FlashAttention-3", 64, true, {197, 265, 371, 420, 460, 473}},
    AttentionRates{"FlashAttention-3", 128, false, {467, 565, 625, 638, 646, 648}},
    AttentionRates{"FlashAttention-3", 128, true, {292, 423, 521, 579, 602, 616}},
    AttentionRates{"cuDNN 9.1", 64, false, {335, 373, 395, 408, 412, 413}},
    AttentionRates{"cuDNN 9.1", 64, true, {225, 288, 334, 363, 379, 388}},
    AttentionRates{"cuDNN 9.1", 128, false, {497, 574, 617, 609, 600, 595}},
    AttentionRates{"cuDNN 9.1", 128, true, {315, 410, 484, 518, 529, 539}},
    AttentionRates{"FlashAttention-2", 64, false, {282, 306, 318, 321, 322, 324}},
    AttentionRates{"FlashAttention-2", 64, true, {180, 229, 262, 284, 295, 299}},
    AttentionRates{"FlashAttention-2", 128, false, {309, 350, 362, 368, 370, 370}},
    AttentionRates{"FlashAttention-2", 128, true, {191, 260, 298, 319, 333, 335}},
};

double attention_tflops(const AttentionRates& rates, std::int64_t seq) {
  Accelerator h100 = accelerators().at("H100-SXM");
  // The catalogue has 0.55, of devices whose clock is not fixed.
  h100.attention_efficiency = 0.63;
  h100.exponential_rate = FlopsPerSecond(3.9e12);
  h100.portable_attention = 0.6;  // 370 of 617 TFLOP/s, FlashAttention-2 and the mean of the two others at 128
  h100.kernel_latency = Seconds(0.0);
  Kernel kernel;
  kernel.kind = KernelKind::attention;
  kernel.batch = 16'384 / seq * (2'048 / rates.head);
  kernel.m = seq;
  kernel.n = rates.causal ? seq / 2 : seq;
  kernel.k = rates.head;
  kernel.native = std::string_view(rates.kernel) != "FlashAttention-2";
  kernel.flops = Flops(4.0 * static_cast<double>(kernel.batch * kernel.m) * static_cast<double>(kernel.n * kernel.k));
  return kernel.flops.value() / kernel_cost(kernel, h100).compute.value() / 1e12;
}

// The rate falls with narrower heads (exponentials), with a causal mask and with short sequences (start and end of each
// block of queries).
TEST(KernelCostFacts, attention_depends_on_head_width_mask_and_length_as_published) {
  std::vector<double> errors;
  for (const auto& rates : kAttention) {
    std::string line;
    for (std::size_t i = 0; i < rates.tflops.size(); ++i) {
      const double predicted = attention_tflops(rates, std::int64_t{512} << i);
      errors.push_back(std::abs(rates.tflops[i] / predicted - 1.0));  // of the time
      line += fmt::format("{:5.0f} ({:3.0f})", predicted, rates.tflops[i]);
    }
    fmt::print("{:16} {:3} {:6} {}\n", rates.kernel, rates.head, rates.causal ? "causal" : "full", line);
  }
  double mean = 0.0;
  for (const double error : errors) { mean += error / static_cast<double>(errors.size()); }
  fmt::print("mean error {:.1f} %, largest {:.1f} %\n", 100.0 * mean, 100.0 * quantile(errors, 1.0));
  EXPECT_LT(mean, 0.15);
  EXPECT_LT(quantile(errors, 1.0), 0.5);
}

}  // namespace
}  // namespace orrery::cost::kernel_cost_facts_test
