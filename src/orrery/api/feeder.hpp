// Feeds execution graphs to a simulator, in the order in which their nodes can execute. trace/feeder.hpp documents the
// feeder; these functions open the graphs of one rank, or of all ranks of a job.
//
//   auto feeders = orrery::api::open_feeders("traces/llama");   // traces/llama.0.et, traces/llama.1.et, …
//   if (!feeders) { … feeders.error().text() … }
//   for (orrery::api::Feeder& rank : *feeders) {
//     while (!rank.done()) {
//       auto node = rank.next();                        // a node whose parents are complete
//       if (*node == nullptr) { … }                     // none is ready until an issued node completes
//       …
//       rank.complete((*node)->id);
//     }
//   }
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/trace/feeder.hpp"

namespace orrery::api {

using trace::Feeder;
using trace::FeederOptions;

// One file: a Chakra trace of any schema version, uncompressed, gzip or zstd.
[[nodiscard]] Result<Feeder> open_feeder(const std::string& path, const FeederOptions& options = {});

// The files of a job, one feeder per rank: PREFIX.0.et, PREFIX.1.et and so on, each also as .et.gz or .et.zst. The
// errors of all files are collected; a missing rank below a present one is an error.
[[nodiscard]] Result<std::vector<Feeder>> open_feeders(const std::string& prefix, const FeederOptions& options = {});

}  // namespace orrery::api
