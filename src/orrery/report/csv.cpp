#include "orrery/report/csv.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace orrery::report {

namespace {

// The shortest text that reads back as the same double.
std::string number(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : std::string();
}

std::optional<double> magnitude(std::optional<double> value) {
  return value ? std::optional(std::abs(*value)) : std::nullopt;
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) { return std::string(text); }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') { out += '"'; }
    out += c;
  }
  return out + '"';
}

std::string predictions_csv(std::span<const results::Prediction> predictions) {
  std::string text = "id,family,measured,predicted,ape,skipped_reason,p10_s,p90_s,spread,taken_as,metric\n";
  for (const auto& row : predictions) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(row.id), csv_field(row.family),
                        number(row.measured_s), number(row.predicted_s), number(magnitude(row.signed_error())),
                        csv_field(row.skipped_reason), number(row.p10_s), number(row.p90_s), csv_field(row.spread),
                        csv_field(row.taken_as), csv_field(row.metric));
  }
  return text;
}

}  // namespace orrery::report
