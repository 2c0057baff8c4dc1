// The files of a generated job.
//
//   PREFIX.<rank>.et        a graph per rank, whose metadata lists the rank's process groups
//   PREFIX.groups.json      ASTRA-sim's process groups: {"1": [0, 1], …}
// or
//   PREFIX.class<n>.et      a graph per class of ranks (pipeline stage n), as its first rank has it
//   PREFIX.classes.json     which ranks have it, and how their process groups and peers differ
//
// The files are written to the folder PREFIX.partial and renamed when all are complete.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/generate/job_graphs.hpp"
#include "orrery/results/generation.hpp"

namespace orrery::generate {

struct OutputNames {
  std::string prefix;  // "folder/run"
  std::string suffix;  // ".et" or ".jsonl", with or without ".gz" or ".zst"

  [[nodiscard]] std::string of_rank(std::int64_t rank) const;
  [[nodiscard]] std::string of_class(std::int64_t stage) const;
  [[nodiscard]] std::string groups() const { return prefix + ".groups.json"; }
  [[nodiscard]] std::string classes() const { return prefix + ".classes.json"; }
  [[nodiscard]] std::string partial() const { return prefix + ".partial"; }
};

// `out`: a prefix, with or without a suffix that selects the format.
[[nodiscard]] Result<OutputNames> output_names(const std::string& out);

struct JobFileOptions {
  bool classes = false;
  bool replace = false;               // the files of an earlier job with this prefix
  std::function<bool()> interrupted;  // asked now and then; writing ends if it returns true
};

// Fails if a file of this prefix exists, unless it may be replaced, and if a file cannot be written; then there is no
// new file.
[[nodiscard]] Result<results::Generation> write_job(const JobGraphs& graphs, const OutputNames& names,
                                                    const JobFileOptions& options);

}  // namespace orrery::generate
