// Columns of a table that a prediction may see, as fields of a row type. Columns that are not among the fields
// (measured ones, id, source, config_group, notes, ...) have no way into a row, and so none into a prediction.
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

// One column of the rows of type Row. A Row is default-constructible and has a member `unreadable`: the first cell that
// is not what its column holds, and why; empty: none.
template <class Row>
struct Field {
  using Member = std::variant<std::string Row::*, std::optional<std::int64_t> Row::*, std::optional<double> Row::*>;
  std::string_view column;
  Member member;
  bool needed = false;    // the header must have it
  double smallest = 1.0;  // of a count
};

// Stores a cell that is not blank; says what it should have been where it cannot be stored, otherwise nothing. Words
// for a blank ("n/a", "-"; of numbers "none", "auto", too) and a count of 0 where it must be at least 1 are stored as
// one.
[[nodiscard]] std::string store(std::string& member, std::string_view text, double smallest);
[[nodiscard]] std::string store(std::optional<std::int64_t>& member, std::string_view text, double smallest);
[[nodiscard]] std::string store(std::optional<double>& member, std::string_view text, double smallest);

// Where the fields of `Row` are in one table.
template <class Row>
class Columns {
 public:
  // `what` names the kind of table in messages: "training". Errors: a header that lacks a needed column.
  [[nodiscard]] static Result<Columns> of(const Csv& csv, std::span<const Field<Row>> fields, std::string_view what) {
    std::vector<std::string> missing;
    Columns columns;
    for (const auto& field : fields) {
      if (const auto cell = csv.column(field.column)) {
        columns.columns_.push_back({*cell, &field});
      } else if (field.needed) {
        missing.emplace_back(field.column);
      }
    }
    if (missing.empty()) { return columns; }
    const auto near = nearest(missing.front(), csv.header);
    return fail({csv.file, 1, 0, {}},
                fmt::format("this is no table of {} measurements: it has no column {}{}", what, join(missing, ", "),
                            near ? fmt::format(" (but {})", quoted(*near)) : ""));
  }

  [[nodiscard]] Row row(const CsvRow& row) const {
    Row out;
    for (const auto& [cell, field] : columns_) {
      const std::string_view text = trimmed(row.cells[cell]);
      if (text.empty()) { continue; }
      const std::string wrong =
          std::visit([&, f = field](auto member) { return store(out.*member, text, f->smallest); }, field->member);
      if (!wrong.empty() && out.unreadable.empty()) {
        out.unreadable = fmt::format("{}: {} {}", field->column, quoted(text), wrong);
      }
    }
    return out;
  }

 private:
  std::vector<std::pair<std::size_t, const Field<Row>*>> columns_;  // cell of a row, what it fills
};

}  // namespace orrery::validate
