// Columns of a table that a prediction may use, as fields of a row type. Other columns (measured ones, id, source,
// config_group, notes, ...) never reach a row, and so never a prediction; the id of a run over a wide area is its name.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/error.hpp"
#include "orrery/core/text.hpp"
#include "orrery/validate/csv.hpp"

namespace orrery::validate {

// Text of a cell, blanks around it removed; empty when the table has no such column.
[[nodiscard]] std::string_view cell_text(const Csv& csv, const CsvRow& row, std::string_view column);

[[nodiscard]] std::string_view trimmed(std::string_view text);

// A finite number written with digits, a point and an exponent; nullopt for anything else.
[[nodiscard]] std::optional<double> number(std::string_view text);

// One column of the rows of type Row. A Row is default-constructible and has a member `unreadable`: the first invalid
// cell and what is wrong with it; empty: none.
template <class Row>
struct Field {
  using Member = std::variant<std::string Row::*, std::optional<std::int64_t> Row::*, std::optional<double> Row::*>;
  std::string_view column;
  Member member;
  bool required = false;  // the header must have it
  double smallest = 1.0;  // of a count
};

// Stores a cell; returns what is wrong with it, or nothing. Words for a blank ("n/a", "-"; for numbers "none" and
// "auto") and a count of 0 where it must be at least 1 are blanks.
[[nodiscard]] std::string store(std::string& member, std::string_view text, double smallest);
[[nodiscard]] std::string store(std::optional<std::int64_t>& member, std::string_view text, double smallest);
[[nodiscard]] std::string store(std::optional<double>& member, std::string_view text, double smallest);

// Positions of the fields of `Row` in one table.
template <class Row>
class Columns {
 public:
  // `what` names the kind of table in errors: "training". Errors: a header without a required column.
  [[nodiscard]] static Result<Columns> of(const Csv& csv, std::span<const Field<Row>> fields, std::string_view what) {
    std::vector<std::string> missing;
    Columns columns;
    for (const auto& field : fields) {
      if (const auto cell = csv.column(field.column)) {
        columns.columns_.push_back({*cell, &field});
      } else if (field.required) {
        missing.emplace_back(field.column);
      }
    }
    if (missing.empty()) { return columns; }
    const auto near = nearest(missing.front(), csv.header);
    return fail({csv.file, 1, 0, {}},
                fmt::format("not a table of {} measurements: missing column {}{}", what, join(missing, ", "),
                            near ? fmt::format("; nearest: {}", quote(*near)) : ""));
  }

  [[nodiscard]] Row row(const CsvRow& row) const {
    Row out;
    for (const auto& [cell, field] : columns_) {
      const std::string_view text = trimmed(row.cells[cell]);
      if (text.empty()) { continue; }
      const std::string wrong =
          std::visit([&, f = field](auto member) { return store(out.*member, text, f->smallest); }, field->member);
      if (!wrong.empty() && out.unreadable.empty()) {
        out.unreadable = fmt::format("{}: {} {}", field->column, quote(text), wrong);
      }
    }
    return out;
  }

 private:
  std::vector<std::pair<std::size_t, const Field<Row>*>> columns_;  // cell of a row, what it fills
};

}  // namespace orrery::validate
