// Rules for rows of kernels.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/workload/operators_kernels.hpp"

namespace orrery::validate {

namespace {

tl::unexpected<std::string> skip(std::string reason) { return tl::make_unexpected(std::move(reason)); }

std::string missing_sizes(const KernelRow& row) {
  std::vector<std::string> missing;
  if (!row.m) { missing.emplace_back("m"); }
  if (!row.n) { missing.emplace_back("n"); }
  if (!row.k) { missing.emplace_back("k"); }
  return missing.empty() ? std::string{} : "not stated: " + join(missing, ", ");
}

constexpr double kActivation = 2.0;  // bytes

// aiconfigurator times a linear layer's forward call on two-byte activations, of which narrow formats make a copy first
// (collector/*/collect_gemm.py: "op.forward(x)" with x in bf16; unverified, from memory). Other tables time the
// product.
bool casts_inputs(std::string_view family) { return family.starts_with("aic"); }

// Formats with a scale for every block of 128 that no matrix unit applies by itself; those of MX are applied by the
// units that have them.
bool scales_blocks(std::string_view dtype) { return dtype == "fp8_block"; }

bool is_product(std::string_view op) { return op.starts_with("gemm") || op.starts_with("grouped gemm"); }

}  // namespace

// m is that of one group. Sums leave the matrix units in no less than two bytes.
OrSkip<KernelScenario> scenario_of(const KernelRow& row, const Parts& parts) {
  if (!row.unreadable.empty()) { return skip(row.unreadable); }
  if (auto reason = missing_sizes(row); !reason.empty()) { return skip(std::move(reason)); }
  if (!is_product(row.op)) { return skip(fmt::format("op: {} is no product of matrices", quoted(row.op))); }
  const MachineFacts* machine = machine_of(row.gpu_type);
  if (machine == nullptr) { return skip(fmt::format("no accelerator {} in the catalogue", quoted(row.gpu_type))); }
  const auto precision = precision_named(row.dtype);
  if (!precision) { return skip(fmt::format("dtype: {} is not known", quoted(row.dtype))); }
  KernelScenario scenario{{}, accelerator_of(*machine, parts)};
  if (scenario.accelerator.peak(*precision) <= FlopsPerSecond(0)) {
    return skip(fmt::format("{} has no {} matrix products", scenario.accelerator.name, hardware::name_of(*precision)));
  }
  const double element = hardware::element_size(*precision).value();
  scenario.kernel = workload::gemm({.batch = row.groups.value_or(1),
                                    .m = *row.m,
                                    .n = *row.n,
                                    .k = *row.k,
                                    .input = element,
                                    .output = std::max(element, 2.0)},
                                   *precision);
  scenario.kernel.block_scaled = scales_blocks(row.dtype);
  if (casts_inputs(row.family) && element < kActivation) {
    const double inputs = static_cast<double>(row.groups.value_or(1) * *row.m) * static_cast<double>(*row.k);
    scenario.kernel.casts = Bytes(inputs * (kActivation + element));
    scenario.kernel.launches += 1;
  }
  return scenario;
}

}  // namespace orrery::validate
