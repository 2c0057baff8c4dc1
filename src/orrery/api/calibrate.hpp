// Fits the figures of a cluster and of a software stack to runs, collectives and kernels that were measured on it.
//
//   orrery::api::CalibrateRequest request;
//   request.runs = {"runs.csv"};
//   request.collectives = {"nccl.txt"};
//   auto calibration = orrery::api::calibrate(data_directory, request);
//   calibration->cluster_yaml  // a file for --cluster
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/error.hpp"
#include "orrery/results/calibration.hpp"

namespace orrery::api {

struct CalibrateRequest {
  std::vector<std::string> runs;         // tables of commands: args, measured_s, and optionally id
  std::vector<std::string> collectives;  // outputs of nccl-tests, or tables with the columns of collectives.csv
  std::vector<std::string> kernels;      // tables with the columns of kernels.csv, or of commands "gemm ..."
  std::string cluster, stack;            // empty: those that all runs name
  std::int64_t devices = 0;              // of outputs of nccl-tests that do not list their ranks; 0: not given
  std::optional<Collective> op;          // of outputs of nccl-tests that do not name it
  std::string cluster_name, stack_name;  // of the new entries; empty: as before
  std::function<void(std::int64_t done, std::int64_t most)> progress;
};

// Errors: files that cannot be read; no rows that can be used; runs of several machines or stacks. Rows that cannot be
// predicted, or are of another machine, are listed as unused.
[[nodiscard]] Result<results::Calibration> calibrate(const std::string& data_directory,
                                                     const CalibrateRequest& request);

}  // namespace orrery::api
