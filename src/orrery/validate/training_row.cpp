#include "orrery/validate/training_row.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <variant>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::validate {

namespace {

// Above every real count, and small enough that products of two stay exact.
constexpr double kLargestCount = 2147483648.0;

using Row = TrainingRow;
using Member = std::variant<std::string Row::*, std::optional<std::int64_t> Row::*, std::optional<double> Row::*>;

struct Field {
  std::string_view column;
  Member member;
  bool needed = false;    // the header must have it
  double smallest = 1.0;  // of a count
};

const std::array kFields = {
    Field{"family", &Row::family, true},
    Field{"model", &Row::model, true},
    Field{"layers", &Row::layers, true},
    Field{"hidden", &Row::hidden, true},
    Field{"heads", &Row::heads, true},
    Field{"kv_heads", &Row::kv_heads},
    Field{"ffn", &Row::ffn},
    Field{"vocab", &Row::vocab},
    Field{"seq", &Row::seq, true},
    Field{"precision", &Row::precision},
    Field{"gpus", &Row::gpus, true},
    Field{"gpu_type", &Row::gpu_type, true},
    Field{"gpus_per_node", &Row::gpus_per_node},
    Field{"intra_bw_GBps", &Row::intra_bw_GBps},
    Field{"nic_bw_GBps_per_gpu", &Row::nic_bw_GBps_per_gpu},
    Field{"tp", &Row::tp},
    Field{"pp", &Row::pp},
    Field{"dp", &Row::dp},
    Field{"ep", &Row::ep},
    Field{"cp", &Row::cp},
    Field{"sp", &Row::sp},
    Field{"micro_batch", &Row::micro_batch},
    Field{"global_batch", &Row::global_batch, true},
    Field{"vpp", &Row::vpp},
    Field{"recompute", &Row::recompute},
    Field{"lora", &Row::lora},
    Field{"zero", &Row::zero, false, 0.0},
};

// Tables of other kinds, by a column that only they have.
struct OtherKind {
  std::string_view column, kind;
};
constexpr std::array kOtherKinds = {
    OtherKind{"collective", "collectives"}, OtherKind{"op", "kernels"},    OtherKind{"isl", "inference"},
    OtherKind{"experts", "dlrm_moe"},       OtherKind{"topk", "dlrm_moe"},
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) { return {}; }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Empty when `text` could be stored, otherwise what it should have been.
std::string store(std::string& member, std::string_view text, double) {
  member = text;
  return {};
}

std::string store(std::optional<std::int64_t>& member, std::string_view text, double smallest) {
  const auto value = number(text);
  if (!value || *value != std::floor(*value)) { return "is not a whole number"; }
  if (*value < smallest) { return fmt::format("is less than {}", smallest); }
  if (*value > kLargestCount) { return fmt::format("is more than {:.0f}", kLargestCount); }
  member = static_cast<std::int64_t>(*value);
  return {};
}

std::string store(std::optional<double>& member, std::string_view text, double) {
  const auto value = number(text);
  if (!value || *value <= 0.0) { return "is not a positive number"; }
  member = value;
  return {};
}

std::vector<std::string> missing_columns(const Csv& csv) {
  std::vector<std::string> missing;
  for (const auto& field : kFields) {
    if (field.needed && !csv.column(field.column)) { missing.emplace_back(field.column); }
  }
  return missing;
}

}  // namespace

std::optional<double> number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) { return std::nullopt; }
  return value;
}

std::string_view cell_text(const Csv& csv, const CsvRow& row, std::string_view column) {
  const auto cell = csv.column(column);
  return cell ? trimmed(row.cells[*cell]) : std::string_view{};
}

Result<TrainingColumns> TrainingColumns::of(const Csv& csv) {
  const Place place{csv.file, 1, 0, {}};
  for (const auto& other : kOtherKinds) {
    if (csv.column(other.column)) {
      return fail(place, fmt::format("the column \"{}\" makes this a table of kind {}, which is not built yet; "
                                     "training tables are",
                                     other.column, other.kind));
    }
  }
  if (const auto missing = missing_columns(csv); !missing.empty()) {
    const auto near = nearest(missing.front(), csv.header);
    return fail(place, fmt::format("this is no table of training measurements: it has no column {}{}",
                                   join(missing, ", "), near ? fmt::format(" (but {})", quoted(*near)) : ""));
  }
  TrainingColumns columns;
  for (std::size_t field = 0; field < kFields.size(); ++field) {
    if (const auto cell = csv.column(kFields[field].column)) { columns.columns_.push_back({*cell, field}); }
  }
  return columns;
}

TrainingRow TrainingColumns::row(const CsvRow& row) const {
  TrainingRow out;
  for (const auto& column : columns_) {
    const Field& field = kFields[column.field];
    const std::string_view text = trimmed(row.cells[column.cell]);
    if (text.empty()) { continue; }
    const std::string wrong =
        std::visit([&](auto member) { return store(out.*member, text, field.smallest); }, field.member);
    if (!wrong.empty() && out.unreadable.empty()) {
      out.unreadable = fmt::format("{}: {} {}", field.column, quoted(text), wrong);
    }
  }
  return out;
}

}  // namespace orrery::validate
