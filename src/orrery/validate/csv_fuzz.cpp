// Whatever the bytes, reading a table of measurements ends with rows or with complaints.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/validate/csv.hpp"
#include "orrery/validate/training_row.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace validate = orrery::validate;
  const auto csv = validate::parse_csv({reinterpret_cast<const char*>(data), size}, "fuzz.csv");
  if (!csv) { return 0; }
  const auto columns = validate::TrainingColumns::of(*csv);
  if (!columns) { return 0; }
  for (const auto& row : csv->rows) { static_cast<void>(columns->row(row)); }
  return 0;
}
