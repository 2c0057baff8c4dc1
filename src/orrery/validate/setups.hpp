// Tables whose rows share columns. A column `setup_row` names a row of the table of the same file name in the
// folder `setups` next to it; the other columns of that row are columns of each row that names it.
//
//   collectives.csv          setups/collectives.csv
//   id,setup_row,size_bytes  setup_row,gpus,gpu_type
//   a,1,1024                 1,16,H100-SXM            ->  id,gpus,gpu_type,size_bytes: a,16,H100-SXM,1024
#pragma once

#include <string>

#include "orrery/core/error.hpp"
#include "orrery/validate/csv.hpp"

namespace orrery::validate {

// `table` with the columns of its setups in place of the column `setup_row`. Errors: `setups` without a column
// `setup_row`, with a setup that is defined twice, or with a column that `table` has, too; rows whose setup is not
// defined.
[[nodiscard]] Result<Csv> with_setups(Csv table, const Csv& setups);

// A table, with its setups where it has any. Errors: those of read_csv, for both files, and of with_setups.
[[nodiscard]] Result<Csv> read_table(const std::string& path);

}  // namespace orrery::validate
