// Names of the files of a job: dir/prefix.RANK.et, whatever the suffix. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::api {

struct TraceName {
  std::string prefix;                 // "dir/prefix", without the dot
  std::optional<std::uint64_t> rank;  // "dir/prefix.7.et" has 7
  std::string suffix;                 // ".et", ".et.gz", ".jsonl.zst", …
};

[[nodiscard]] TraceName trace_name(const std::string& path);

// The rank of each file; positions where files have no ranks or share them.
[[nodiscard]] std::vector<std::uint64_t> ranks_of(const std::vector<std::string>& files);

// One name per file: `out` itself for a single file, else with its rank before the suffix.
[[nodiscard]] std::vector<std::string> output_names(const std::vector<std::string>& files, const std::string& out);

// Positions of the files of each job with more than one file, in order of rank; by name of the job ("dir/prefix.*.et").
struct TraceJob {
  std::string name;
  std::vector<std::size_t> files;
};
[[nodiscard]] Result<std::vector<TraceJob>> jobs_of(const std::vector<std::string>& files);

}  // namespace orrery::api
