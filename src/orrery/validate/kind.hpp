// What a table of measurements measures, by its header.
#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/validate/csv.hpp"

namespace orrery::validate {

enum class Kind : std::uint8_t {
  training,   // steps of dense models
  dlrm_moe,   // steps of mixtures of experts (and of recommenders): a training table with columns of experts
  inference,  // batches of requests
  kernels,    // single kernels
};

[[nodiscard]] std::string_view name_of(Kind kind);

// Errors: a table of collectives, which are not built yet. A header with the mark of no other kind is
// taken for training; whether it has what that needs is for its columns to say.
[[nodiscard]] Result<Kind> kind_of(const Csv& csv);

}  // namespace orrery::validate
