// Which dimensions of the network the collectives of a text workload involve, and which ranks those are. Private to the
// room.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/record.hpp"
#include "orrery/trace/text_workload.hpp"

namespace orrery::trace {

[[nodiscard]] std::uint64_t product(std::span<const std::uint64_t> sizes);

class NetworkDims {
 public:
  // Fails if the workload's parallelism cannot be mapped to the dimensions of the options.
  [[nodiscard]] static Result<NetworkDims> of(const TextWorkload& workload, const TextWorkloadOptions& options);

  [[nodiscard]] const std::vector<std::uint64_t>& sizes() const { return sizes_; }
  [[nodiscard]] std::uint64_t ranks() const { return product(sizes_); }

  // A flag per dimension.
  [[nodiscard]] std::vector<bool> all() const { return std::vector<bool>(sizes_.size(), true); }
  [[nodiscard]] std::vector<bool> of_activations(Parallelism kind) const;  // forward pass and input gradient
  [[nodiscard]] std::vector<bool> of_weights(Parallelism kind) const;

  [[nodiscard]] bool involves_other_ranks(const std::vector<bool>& involved) const;
  [[nodiscard]] bool involves_all_ranks(const std::vector<bool>& involved) const;

 private:
  [[nodiscard]] std::vector<bool> range(std::size_t begin, std::size_t end) const;

  std::vector<std::uint64_t> sizes_;
  std::size_t model_dims_ = 0;  // the first dimensions, which a transformer's model-parallel groups span
};

// The groups that a rank is in, named by numbers from 1, as simulators require: groups along one choice of dimensions
// have numbers that follow each other, in the order of their first ranks.
class ProcessGroups {
 public:
  ProcessGroups(const NetworkDims& dims, std::uint64_t rank) : dims_(dims), rank_(rank) {}

  // Of the rank's group along these dimensions; empty: all ranks.
  [[nodiscard]] std::string name(const std::vector<bool>& involved);

  // In the order of first use.
  [[nodiscard]] const std::vector<graph::ProcessGroup>& all() const { return groups_; }

 private:
  const NetworkDims& dims_;
  std::uint64_t rank_;
  std::uint64_t next_number_ = 1;
  std::map<std::vector<bool>, std::size_t> index_;
  std::vector<graph::ProcessGroup> groups_;
};

}  // namespace orrery::trace
