// What a table measures, recognised by its header.
#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/validate/csv.hpp"

namespace orrery::validate {

enum class TableKind : std::uint8_t {
  training,     // steps of dense models
  dlrm_moe,     // steps of mixtures of experts (and of recommenders): a training table with columns of experts
  inference,    // batches of requests
  kernels,      // single kernels
  collectives,  // single collectives and messages
  campaigns,    // whole training runs: figures.hpp
  wan,          // training over wide areas
  serving,      // deployments under a load, with several metrics
  commands,     // any of these, as the flags of a command
};

[[nodiscard]] std::string_view name_of(TableKind kind);

// Training is the default: its missing columns are reported later.
[[nodiscard]] TableKind kind_of(const Csv& csv);

}  // namespace orrery::validate
