// Rows of serving measurements: a deployment under a load, with several measured metrics.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/results/serving.hpp"
#include "orrery/validate/rows.hpp"
#include "orrery/validate/rules.hpp"

namespace orrery::validate {

struct ServingRow : Row {
  std::string model, model_key, precision, gpu_type, mode, spec_method, length_dist, load_kind, engine, engine_version,
      measured;
  std::optional<std::int64_t> gpus, tp, pp, ep, dp_attn, replicas;
  std::optional<std::int64_t> prefill_workers, prefill_gpus, prefill_tp, prefill_ep, prefill_dp_attn;
  std::optional<std::int64_t> decode_workers, decode_gpus, decode_tp, decode_ep, decode_dp_attn;
  std::optional<std::int64_t> num_requests, max_batch, max_batched_tokens;
  std::optional<double> isl, osl, load;
};

[[nodiscard]] std::span<const Field<ServingRow>> serving_fields();

// A measured column, and what a run has for it in the column's unit.
struct ServingMetric {
  std::string_view column;
  double (*of)(const results::Serving& serving);
  std::string_view spread = {};  // its kind in data/uncertainty.yaml; empty: no range
};
[[nodiscard]] std::span<const ServingMetric> serving_metrics();

// The kind of the metric's range in this row; empty: none.
[[nodiscard]] std::string_view spread_of(const ServingMetric& metric, const ServingRow& row);

// The run of a row: rules are in docs/models/serving.md.
[[nodiscard]] Skippable<results::Serving> served(const ServingRow& row, const std::string& data_directory);

}  // namespace orrery::validate
