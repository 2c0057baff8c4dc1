#include "orrery/validate/measurement.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/validate/columns.hpp"
#include "orrery/validate/expert_all_to_all.hpp"
#include "orrery/validate/facts.hpp"
#include "orrery/validate/spelling.hpp"

namespace orrery::validate {

namespace {

// A number, a blank, or an error.
Result<std::optional<double>> positive(const Csv& csv, const CsvRow& row, const char* column, const char* what) {
  const std::string_view text = cell_text(csv, row, column);
  if (is_not_stated(text)) { return std::nullopt; }
  const auto value = number(text);
  if (!value) { return fail({csv.file, row.line, 0, column}, fmt::format("{} is not {}", quote(text), what)); }
  return *value > 0.0 ? value : std::nullopt;
}

std::optional<double> seconds_per(std::string_view unit) {
  if (unit == "s") { return 1.0; }
  if (unit == "ms") { return 1e-3; }
  if (unit == "us") { return 1e-6; }
  return std::nullopt;
}

double count(const Csv& csv, const CsvRow& row, std::string_view column) {
  return number(cell_text(csv, row, column)).value_or(0.0);
}

// Tables with tokens per second on several accelerators that do not say whether per job or per accelerator. In
// TensorRT-LLM's page of release 0.6.1 (docs/source/performance.md@138f96d45f) the heading for A100 says per job, the
// figures suggest per accelerator, and the heading for H100 says per accelerator.
constexpr std::array kUnclearThroughput = {std::string_view{"trtllm_v06_static"}};

bool unclear_throughput(const Csv& csv, const CsvRow& row) {
  const auto family = cell_text(csv, row, "family");
  for (const auto unclear : kUnclearThroughput) {
    if (family == unclear && count(csv, row, "gpus") > 1.0) { return true; }
  }
  return false;
}

// A time, or the bytes that such tables count / a rate.
Measurement time_of_part(const Csv& csv, const CsvRow& row, double value) {
  const auto metric = cell_text(csv, row, "metric"), unit = cell_text(csv, row, "unit");
  const auto exchange = all_to_all_named(metric);
  const bool rate = exchange && exchange->as_a_rate;
  if (const auto scale = seconds_per(unit); scale && !rate) { return {value * *scale, {}}; }
  const auto cell = [&](std::string_view column) { return count(csv, row, column); };
  if (rate && unit == "GB/s") {
    const auto whole = [&](std::string_view column) { return static_cast<std::int64_t>(cell(column)); };
    const double bytes =
        counted_bytes(*exchange, cell("seq"), cell("hidden"), cell("topk"), whole("gpus"), whole("gpus_per_node"));
    if (bytes > 0.0) { return {bytes / (value * 1e9), {}}; }
  }
  return {{}, fmt::format("metric {} in {} is not the time of a part of a step", quote(metric), quote(unit))};
}

Measurement time_of_batch(const Csv& csv, const CsvRow& row, double value) {
  const auto metric = cell_text(csv, row, "metric"), unit = cell_text(csv, row, "unit");
  const double tokens = count(csv, row, "batch_or_concurrency") * count(csv, row, "osl");
  if (const auto scale = seconds_per(unit)) {
    const bool whole =
        metric == "end_to_end_latency" || (metric == "first_token_latency" && count(csv, row, "osl") == 1);
    if (whole) { return {value * *scale, {}}; }
  }
  if (metric == "output_throughput_per_gpu" && unit == "tokens/s/GPU") {
    return {tokens / (value * count(csv, row, "gpus")), {}};
  }
  if (metric == "output_throughput" && unit == "tokens/s") {
    if (unclear_throughput(csv, row)) {
      return {{}, "tokens/s on several accelerators: the source does not say whether per job or per accelerator"};
    }
    return {tokens / value, {}};
  }
  return {{}, fmt::format("metric {} in {} is not the time of a batch", quote(metric), quote(unit))};
}

Result<Measurement> time_in(TableKind kind, const Csv& csv, const CsvRow& row) {
  if (kind == TableKind::kernels || kind == TableKind::collectives) {
    ORRERY_TRY(micros, positive(csv, row, "time_us", "a number of microseconds"));
    return micros ? Measurement{*micros * 1e-6, {}} : Measurement{};
  }
  if (kind == TableKind::commands) {
    ORRERY_TRY(seconds, positive(csv, row, "measured_s", "a number of seconds"));
    return Measurement{seconds, {}};
  }
  if (kind != TableKind::inference) {
    ORRERY_TRY(seconds, positive(csv, row, "step_time_s", "a number of seconds"));
    if (measured_by(cell_text(csv, row, "metric")) == Measured::step) { return Measurement{seconds, {}}; }
    ORRERY_TRY(part, positive(csv, row, "value", "a number"));
    return part ? time_of_part(csv, row, *part) : Measurement{};
  }
  ORRERY_TRY(value, positive(csv, row, "value", "a number"));
  if (!value) { return Measurement{}; }
  return time_of_batch(csv, row, *value);
}

}  // namespace

Result<Measurement> figure_measured(const Csv& csv, const CsvRow& row, const std::string& column) {
  ORRERY_TRY(value, positive(csv, row, column.c_str(), "a number"));
  const std::string basis(cell_text(csv, row, column + "_basis"));
  const bool is_bound =
      basis.find("upper bound") != std::string::npos || basis.find("lower bound") != std::string::npos;
  return Measurement{value, is_bound ? fmt::format("{} is a bound: {}", column, basis) : std::string()};
}

Result<Measurement> measurement_of(TableKind kind, const Csv& csv, const CsvRow& row) {
  ORRERY_TRY(measurement, time_in(kind, csv, row));
  const std::string_view reason = cell_text(csv, row, "unscored");
  if (!is_not_stated(reason)) { measurement.unscored_reason = reason; }
  return measurement;
}

}  // namespace orrery::validate
