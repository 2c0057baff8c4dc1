// Whatever the bytes, reading a table of measurements ends with rows or with complaints.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/validate/csv.hpp"
#include "orrery/validate/kind.hpp"
#include "orrery/validate/measurement.hpp"
#include "orrery/validate/rows.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace validate = orrery::validate;
  const auto csv = validate::parse_csv({reinterpret_cast<const char*>(data), size}, "fuzz.csv");
  if (!csv) { return 0; }
  const auto kind = validate::kind_of(*csv);
  const auto steps = validate::Columns<validate::TrainingRow>::of(*csv, validate::training_fields(), "training");
  const auto batches = validate::Columns<validate::InferenceRow>::of(*csv, validate::inference_fields(), "inference");
  for (const auto& row : csv->rows) {
    if (steps) { static_cast<void>(steps->row(row)); }
    if (batches) { static_cast<void>(batches->row(row)); }
    static_cast<void>(validate::measurement_of(kind, *csv, row));
  }
  return 0;
}
