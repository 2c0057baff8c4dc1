// What a table of measurements measures, by its header.
#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/validate/csv.hpp"

namespace orrery::validate {

enum class Kind : std::uint8_t {
  training,     // steps of dense models
  dlrm_moe,     // steps of mixtures of experts (and of recommenders): a training table with columns of experts
  inference,    // batches of requests
  kernels,      // single kernels
  collectives,  // single collectives and messages
};

[[nodiscard]] std::string_view name_of(Kind kind);

// A header with the mark of no other kind is taken for training; whether it has what that needs is for its columns to
// say.
[[nodiscard]] Kind kind_of(const Csv& csv);

}  // namespace orrery::validate
