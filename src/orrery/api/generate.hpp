// Writing a plan as execution graphs.
#pragma once

#include <string>

#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/generate/job_files.hpp"
#include "orrery/generate/options.hpp"
#include "orrery/results/generation.hpp"

namespace orrery::api {

struct GenerateRequest {
  estimate::Request job;  // physical semantics
  std::string out;        // a prefix, with or without a suffix
  generate::Options options;
  generate::JobFileOptions files;
};

// A plan that does not fit in memory is written with a warning.
[[nodiscard]] Result<results::Generation> generate(const std::string& data_directory, const GenerateRequest& request);

}  // namespace orrery::api
