// The `orrery trace` commands, one call each. Files are Chakra traces of any schema version or JSON lines,
// uncompressed, gzip or zstd. Errors are one line each with file, byte (or line) and node. If a file cannot be read,
// the call fails without a partial result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/difference.hpp"
#include "orrery/graph/fold.hpp"
#include "orrery/results/trace.hpp"

namespace orrery::api {

struct TraceOptions {
  // Malformed records are skipped and noted instead of an error.
  bool tolerant = false;
  int threads = 0;
  // Called regularly with the bytes done and the bytes of all files.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;
};

[[nodiscard]] Result<results::TraceInfo> trace_info(const std::vector<std::string>& files,
                                                    const TraceOptions& options = {});

struct TraceCheckOptions {
  std::size_t examples = 3;  // of each problem
  bool partial = false;      // only some ranks of the job are given
  std::string groups;        // a JSON file {"name": [ranks], …} with the members of process groups; empty: none
};

// Checks each file; and files whose names differ only in the number before the suffix (prefix.0.et, prefix.1.et, …) as
// the ranks of a job.
[[nodiscard]] Result<results::TraceCheck> trace_check(const std::vector<std::string>& files,
                                                      const TraceCheckOptions& check = {},
                                                      const TraceOptions& options = {});

// JSON lines of the nodes, in chunks of about a megabyte. Chunks before an error are printed.
[[nodiscard]] Result<std::vector<std::string>> trace_print(const std::string& file,
                                                           const std::function<void(std::string_view)>& print,
                                                           const TraceOptions& options = {});

[[nodiscard]] Result<results::TraceStats> trace_stats(const std::vector<std::string>& files, std::size_t most = 10,
                                                      const TraceOptions& options = {});

[[nodiscard]] Result<results::TraceDiff> trace_diff(const std::string& a, const std::string& b,
                                                    const graph::DifferenceOptions& difference = {},
                                                    const TraceOptions& options = {});

// The files that were written, and notes on them (skipped records, how times were derived).
struct TraceWritten {
  std::vector<std::string> files;
  std::vector<std::string> notes;
};

// The suffix selects the format: .et (Chakra), .jsonl (JSON lines), .dot, .graphml, each with or without .gz. With
// several files, the rank of each is inserted before the suffix of `out`: out.0.et, out.1.et.
[[nodiscard]] Result<TraceWritten> trace_convert(const std::vector<std::string>& files, const std::string& out,
                                                 const graph::Fold& fold = {}, const TraceOptions& options = {});

// The same files without what identifies a model; see graph/anonymize.hpp. Names that are equal stay equal, also
// between files. `.et` and `.jsonl`.
[[nodiscard]] Result<TraceWritten> trace_anonymize(const std::vector<std::string>& files, const std::string& out,
                                                   const TraceOptions& options = {});

// All files in one Chrome trace, a process per rank.
[[nodiscard]] Result<TraceWritten> trace_timeline(const std::vector<std::string>& files, const std::string& out,
                                                  const TraceOptions& options = {});

// The names of incomplete output files, for programs that can be interrupted; see trace/output.hpp.
[[nodiscard]] std::vector<std::string> partial_files(const std::vector<std::string>& files, const std::string& out);

}  // namespace orrery::api
