// The part of a table of training measurements that a prediction may see. Columns that are not members of TrainingRow
// (measured ones, id, source, config_group, notes, ...) have no way into a prediction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/validate/csv.hpp"

namespace orrery::validate {

// Blank cells are empty text or nullopt. Bandwidths are per accelerator and direction.
struct TrainingRow {
  std::string family;  // chooses the stack profile only
  std::string model, precision, gpu_type, sp, recompute, lora;
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ffn, vocab, seq;
  std::optional<std::int64_t> gpus, gpus_per_node;
  std::optional<double> intra_bw_GBps, nic_bw_GBps_per_gpu;
  std::optional<std::int64_t> tp, pp, dp, ep, cp, micro_batch, global_batch, vpp, zero;

  std::string unreadable;  // the first cell that is not what its column holds, and why; empty: none
};

// Where the known columns are in one table.
class TrainingColumns {
 public:
  // Errors: a header of another kind of table, or one that lacks a column that every prediction needs.
  [[nodiscard]] static Result<TrainingColumns> of(const Csv& csv);

  [[nodiscard]] TrainingRow row(const CsvRow& row) const;

 private:
  struct Column {
    std::size_t cell;   // in a row
    std::size_t field;  // in the list of known columns
  };
  std::vector<Column> columns_;
};

// Text of a cell, blanks around it removed; empty when the table has no such column.
[[nodiscard]] std::string_view cell_text(const Csv& csv, const CsvRow& row, std::string_view column);

// A finite number written with digits, a point and an exponent; nullopt for anything else.
[[nodiscard]] std::optional<double> number(std::string_view text);

}  // namespace orrery::validate
