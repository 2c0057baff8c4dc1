#include "orrery/validate/serving_software.hpp"

#include <algorithm>
#include <charconv>

namespace orrery::validate {

namespace {

constexpr double kMonths = 12.0, kDays = 30.4;        // of a year, of a month
constexpr double kProfiles = 2026.0 * kMonths + 5.0;  // June 2026, in months
constexpr double kMostAge = 12.0;  // of rows of models with experts: nothing is known of older software

// The digits at a place of a date; `otherwise` where it ends before.
double number_at(std::string_view digits, std::size_t at, std::size_t count, double otherwise) {
  int value = 0;
  if (digits.size() < at + count) { return otherwise; }
  const auto [end, error] = std::from_chars(digits.data() + at, digits.data() + at + count, value);
  return error == std::errc{} ? value : otherwise;
}

}  // namespace

// nvidia/DeepSeek-R1-0528-NVFP4-v2, the model of InferenceX's launch files, quantises attention's output projection
// alone of attention; amd/DeepSeek-R1-0528-MXFP4 leaves out self_attn. Kimi K2.5 (int4, and nvidia's NVFP4) and gpt-oss
// quantise routed experts. Model cards, read 2026-11.
workload::Quantized quantized_of(const ServingRow& row) {
  const bool is_fp4 = row.precision.find("fp4") != std::string::npos;
  const bool is_narrow = is_fp4 || row.precision.find("int4") != std::string::npos;
  if (!is_narrow) { return workload::Quantized::all; }
  if (row.model_key == "gpt-oss-120b" || row.model_key == "kimi-k2") { return workload::Quantized::experts; }
  if (row.model_key != "deepseek-r1") { return workload::Quantized::all; }
  return row.gpu_type.starts_with("MI") ? workload::Quantized::but_attention : workload::Quantized::but_qkv;
}

double software_age_of(const ServingRow& row) {
  std::string digits;
  std::copy_if(row.measured.begin(), row.measured.end(), std::back_inserter(digits),
               [](char c) { return c >= '0' && c <= '9'; });
  const double year = number_at(digits, 0, 4, 0.0);
  if (year == 0.0) { return 0.0; }
  constexpr double kMiddle = 7.0;  // of a year
  const double month = number_at(digits, 4, 2, kMiddle), day = number_at(digits, 6, 2, 1.0);
  return std::clamp(kProfiles - (kMonths * year + month - 1.0 + (day - 1.0) / kDays), 0.0, kMostAge);
}

}  // namespace orrery::validate
