// What one collective operation takes, over a range of sizes.
//
//   orrery::api::CollectiveRequest request;
//   request.op = orrery::Collective::all_reduce;
//   request.sizes = {1 << 20, 1 << 30};
//   auto table = orrery::api::price_collective(data_directory, "dgx-h100", 64, request);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/error.hpp"
#include "orrery/results/collective.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::api {

struct CollectiveRequest {
  Collective op = Collective::all_reduce;
  std::vector<std::uint64_t> sizes;  // bytes, as in nccl-tests
};

// In closed form, among all devices of a cluster. `devices` 0: as many as its file says. Fails where the operation or
// the cluster's links do not have the algorithm, naming those that they have.
[[nodiscard]] Result<results::CollectiveTable> price_collective(
    const std::string& data_directory, const std::string& cluster, std::int64_t devices,
    const CollectiveRequest& request, CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic);

// The same, simulated as flows on the ports of the cluster; the times are those of price_collective, to a picosecond.
[[nodiscard]] Result<results::CollectiveTable> simulate_collective_on(
    const std::string& data_directory, const std::string& cluster, std::int64_t devices,
    const CollectiveRequest& request, CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic);

// On a cluster with a topology: every message a flow on its route at max-min fair rates. Has reduce, gather, scatter
// and barrier, too. `pairs`: a file with the bytes from each rank (line) to each rank (column) of an all_to_all; sizes
// are then ignored. `groups`: so many equal groups run the operation at once; rank r is in group r modulo groups.
// `chunks`: of hierarchical; 0: as many as in the closed form.
[[nodiscard]] Result<results::CollectiveTable> simulate_collective_messages(
    const std::string& data_directory, const std::string& cluster, std::int64_t devices,
    const CollectiveRequest& request, CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic,
    const std::string& pairs = {}, std::uint32_t groups = 1, std::int64_t chunks = 0);

// Simulated among all ranks of the machine of `files` (system, network, flags, back end; neither graphs nor memory),
// with the algorithms of the system file. Sizes are simulated side by side, which does not change them. Fails for
// operations that the semantics do not move (a broadcast, which ASTRA-sim replays) and for all-gathers whose size is
// less than a byte per rank.
[[nodiscard]] Result<results::CollectiveTable> simulate_collective(const simulate::SimulationFiles& files,
                                                                   const CollectiveRequest& request);

}  // namespace orrery::api
