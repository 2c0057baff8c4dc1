// Free servers of a cluster, and where a job fits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "orrery/jobs/file.hpp"

namespace orrery::jobs {

// Where a job is: its servers (ramp), or their number only (switched).
struct Placement {
  std::int64_t width = 0;
  std::vector<std::int32_t> servers;
};

class Servers {
 public:
  explicit Servers(const File& file);

  [[nodiscard]] std::int64_t free() const { return free_; }
  // First fit. Ramp: the first box of groups x racks x servers, any divisors of the width, with all servers free.
  [[nodiscard]] std::optional<Placement> place(std::int64_t width);
  void release(const Placement& placement);
  // The first block for `count` pieces of an operator on servers that are free or in `own`. Ramp: blocks that are
  // symmetric in groups and racks, then a diagonal of groups and racks, then one server in each group. Switched: the
  // first servers of the job.
  [[nodiscard]] std::optional<std::vector<std::int32_t>> piece_block(std::int64_t count,
                                                                     std::span<const std::int32_t> own) const;
  // Whether operators may have so many pieces: 1, or even with a symmetric block.
  [[nodiscard]] bool has_piece_block(std::int64_t count) const;
  // Takes servers of blocks; absent: more than are free.
  [[nodiscard]] std::optional<Placement> take(std::vector<std::int32_t> servers);
  // Whether a width fits an empty cluster.
  [[nodiscard]] bool could_fit(std::int64_t width) const;

 private:
  struct Box {
    std::int64_t groups, racks, servers;
  };
  [[nodiscard]] std::vector<Box> boxes_of(std::int64_t width) const;
  [[nodiscard]] std::vector<Box> symmetric_boxes(std::int64_t count) const;
  [[nodiscard]] std::optional<std::vector<std::int32_t>> servers_in(const Box& box) const;
  [[nodiscard]] std::optional<std::vector<std::int32_t>> diagonal(std::int64_t count) const;

  Fabric fabric_;
  std::vector<std::int64_t> shape_;
  std::int64_t all_, free_;
  std::vector<std::vector<Box>> boxes_;  // by width
  std::vector<char> taken_;
};

// Time of an all-reduce of `bytes` over groups x racks x servers of RAMP's optical fabric in a network of `x` groups
// (arXiv:2301.13799): steps among s = [groups, min(groups, servers), racks, ceil(servers / x)]; each moves latency + 2
// I/O + message / (bandwidth of the transceivers that are free for it); twice all steps, and the additions by roofline
// (2e12 B/s, 130e12 op/s).
struct RampNetwork {
  std::int64_t groups = 4;
  double bytes_per_s = 1.6e12;  // of a server
  double latency_s = 50e-9, io_s = 100e-9;
};
[[nodiscard]] double ramp_all_reduce_s(const RampNetwork& network, double bytes, std::int64_t groups,
                                       std::int64_t racks, std::int64_t servers);

}  // namespace orrery::jobs
