// The order in which the chunks of a collective visit the dimensions under ASTRA-sim 1.0's setting
// `inter-dimension-scheduling: themis` (branch ASTRA-sim-1.0, OfflineGreedy; the paper is arXiv:2110.04478), to the
// last bit and with its defects. docs/models/astra-sim.md has the rule. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

class ThemisLoads {
 public:
  explicit ThemisLoads(const Network& network);

  // A collective starts at a new instant.
  void clear();

  // All dimensions in the order of the chunk, those without a phase included, and charges them. `bytes`: of a chunk of
  // the collective (of an all-gather, of a member's shard). `gathers`: an all-gather. `involved`: by dimension; those
  // of one rank are not.
  [[nodiscard]] std::vector<std::uint32_t> order(std::uint64_t bytes, bool gathers, const std::vector<bool>& involved);

 private:
  struct Dimension {
    std::uint32_t number = 0;
    double load = 0;  // MiB, at the bandwidth of dimension 0
  };
  [[nodiscard]] double speed(std::uint32_t dimension) const { return bandwidths_[dimension] / bandwidths_[0]; }
  [[nodiscard]] std::uint64_t closing_bytes(double load, std::uint32_t dimension, bool gathers) const;
  [[nodiscard]] std::uint64_t gap(bool gathers, const std::vector<bool>& involved) const;
  void charge(Dimension& dimension, std::uint32_t with_size_of, std::uint64_t& bytes, bool gathers) const;
  void charge_default(std::uint64_t bytes, bool gathers, const std::vector<bool>& involved);

  std::vector<double> bandwidths_;  // of an NPU, by dimension
  std::vector<std::uint32_t> sizes_;
  std::vector<Dimension> dimensions_;  // in the order of the last chunk, which decides between equal loads
};

}  // namespace orrery::simulate
