// Rules for rows of kernels.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/skip.hpp"
#include "orrery/validate/spelling.hpp"
#include "orrery/workload/operators_kernels.hpp"

namespace orrery::validate {

namespace {

constexpr double kActivation = 2.0;  // bytes

// Formats with a scale per block of 128, which kernels apply; matrix units apply the scales of MX formats.
bool scales_blocks(std::string_view dtype) { return letters_and_digits(dtype).find("block") != std::string::npos; }

// "gemm", "grouped_gemm fp8", "batched matmul", "linear", "gemv".
bool is_gemm(std::string_view op) {
  constexpr std::array kGemms = {std::string_view{"gemm"}, std::string_view{"gemv"},   std::string_view{"matmul"},
                                 std::string_view{"bmm"},  std::string_view{"linear"}, std::string_view{"dense"}};
  const std::string name = letters_and_digits(op);
  return std::any_of(kGemms.begin(), kGemms.end(),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

}  // namespace

// m is that of one group. Outputs have at least two bytes.
Skippable<KernelScenario> scenario_of(const KernelRow& row, const Parts& parts) {
  if (!row.unreadable.empty()) { return skip(row.unreadable); }
  if (auto reason = not_stated({{row.m.has_value(), "m"}, {row.n.has_value(), "n"}, {row.k.has_value(), "k"}})) {
    return skip(std::move(*reason));
  }
  if (!is_gemm(row.op)) { return skip(fmt::format("op: {} is not a GEMM", quote(row.op))); }
  const MachineFacts* machine = machine_of(row.gpu_type);
  if (machine == nullptr) { return skip(unknown_accelerator(row.gpu_type)); }
  KernelScenario scenario{{}, accelerator_of(*machine, parts)};
  const StackFacts& defaults = stack_of(row.family);
  const auto precision = precision_of(row.dtype, defaults, scenario.accelerator);
  if (!precision) { return skip(fmt::format("dtype: unknown number format {}", quote(row.dtype))); }
  if (auto format = taken_as(row.dtype, *precision); !format.empty()) { scenario.taken_as = "dtype " + format; }
  const double element = hardware::element_size(*precision).value();
  scenario.kernel = workload::gemm({.batch = row.groups.value_or(1),
                                    .m = *row.m,
                                    .n = *row.n,
                                    .k = *row.k,
                                    .input = element,
                                    .output = std::max(element, 2.0)},
                                   *precision);
  scenario.kernel.gap = Seconds(defaults.kernel_gap_us * 1e-6);
  scenario.kernel.grouped = letters_and_digits(row.op).find("grouped") != std::string::npos;
  scenario.kernel.block_scaled =
      *precision == hardware::Precision::fp8 && (defaults.scales_blocks || scales_blocks(row.dtype));
  if (defaults.casts_inputs && element < kActivation) {
    const double inputs = static_cast<double>(row.groups.value_or(1) * *row.m) * static_cast<double>(*row.k);
    scenario.kernel.casts = Bytes(inputs * (kActivation + element));
    scenario.kernel.launches += 1;
  }
  return scenario;
}

}  // namespace orrery::validate
