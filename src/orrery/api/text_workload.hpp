// Text workloads of ASTRA-sim 1.0 as Chakra traces, one per rank; see trace/text_workload.hpp.
#pragma once

#include <string>
#include <vector>

#include "orrery/api/trace.hpp"
#include "orrery/core/error.hpp"
#include "orrery/trace/text_workload.hpp"

namespace orrery::api {

using trace::TextWorkloadOptions;

// Whether a file starts like a text workload; false if it cannot be read.
[[nodiscard]] bool is_text_workload(const std::string& path);

// The output files of a workload, by rank: the rank is inserted before the suffix of `out` (.et or .et.gz); `out`
// without a suffix is a prefix. Fails on the suffix of another format, or on invalid dimensions.
[[nodiscard]] Result<std::vector<std::string>> text_workload_files(const std::string& out,
                                                                   const TextWorkloadOptions& options);

// Reads the workload and writes them.
[[nodiscard]] Result<TraceWritten> trace_import_text(const std::string& file, const std::string& out,
                                                     const TextWorkloadOptions& options);

}  // namespace orrery::api
