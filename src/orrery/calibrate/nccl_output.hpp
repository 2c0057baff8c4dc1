// The output of NVIDIA's nccl-tests (and of RCCL's, and of `orrery collective`) as it is printed.
//
// Lines of data are read by the names of the columns in the comment above them: size in bytes, time in microseconds
// (the first of the two times, out of place). The operation is the name in "# Collective test starting:
// all_reduce_perf" or
// "# all_reduce among 8 devices ...", or follows from the columns redop and root and from busbw / algbw; the number of
// ranks is that of the lines "#  Rank  0 ...". Prefixes that launchers put before lines ("[1,0]<stdout>:", "0: ") are
// ignored. Several outputs may follow one another. Left out: in-place times, send and receive, and rows of no bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/error.hpp"

namespace orrery::calibrate {

struct NcclRow {
  int line = 0;  // of the file, 1-based
  double bytes = 0, seconds = 0;
};

// One run of one operation.
struct NcclRun {
  Collective collective = Collective::all_reduce;
  std::int64_t ranks = 0;
  std::vector<NcclRow> rows;
};

// What the text does not say: flags that a user may give.
struct NcclDefaults {
  std::optional<Collective> collective;
  std::int64_t ranks = 0;  // 0: not given
};

// `file` is only for messages. Errors: no line of data; an operation or a number of ranks that the text does not say;
// numbers that cannot be read.
[[nodiscard]] Result<std::vector<NcclRun>> parse_nccl_output(std::string_view text, const std::string& file,
                                                             const NcclDefaults& defaults = {});

}  // namespace orrery::calibrate
