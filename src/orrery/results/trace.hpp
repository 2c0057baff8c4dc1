// Results of the `orrery trace` commands: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/graph/difference.hpp"
#include "orrery/graph/finding.hpp"
#include "orrery/graph/statistics.hpp"

namespace orrery::results {

using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

// A trace file.
struct TraceFile {
  std::string file;
  std::string format;           // "chakra", "json-lines"
  std::string compression;      // "none", "gzip", "zstd"
  std::string schema;           // inferred from the records: "0.0.1" … "0.0.4"
  std::string claimed_version;  // version that the file claims
  std::uint64_t size_B = 0;     // on disk
  std::uint64_t nodes = 0;
  bool complete = true;            // whether no record was skipped
  std::vector<std::string> notes;  // anomalies and skipped records
};

struct TraceInfo {
  struct File {
    TraceFile file;
    Counts by_type;
    std::uint64_t data_deps = 0, ctrl_deps = 0;
    Counts collectives;
    std::vector<std::string> groups;  // groups with a rank list, as "name: ranks"
  };
  std::vector<File> files;
};

struct TraceCheck {
  struct File {
    TraceFile file;
    std::optional<std::uint64_t> rank;
    std::vector<graph::Finding> findings;

    [[nodiscard]] bool sound() const { return file.complete && graph::is_sound(findings); }
  };
  // Files whose names differ only in the rank.
  struct Job {
    std::string name;  // "dir/prefix.*.et"
    std::uint64_t ranks = 0;
    std::vector<graph::Finding> findings;

    [[nodiscard]] bool sound() const { return graph::is_sound(findings); }
  };
  std::vector<File> files;
  std::vector<Job> jobs;

  [[nodiscard]] bool sound() const {
    for (const File& file : files) {
      if (!file.sound()) { return false; }
    }
    for (const Job& job : jobs) {
      if (!job.sound()) { return false; }
    }
    return true;
  }
};

struct TraceStats {
  struct File {
    TraceFile file;
    graph::Statistics statistics;
  };
  std::vector<File> files;
};

struct TraceDiff {
  TraceFile a, b;
  graph::Difference difference;
};

}  // namespace orrery::results
