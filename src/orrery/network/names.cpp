#include "orrery/network/names.hpp"

#include "orrery/core/error.hpp"

namespace orrery::network {

std::string_view description_of(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::automatic:
      return "the fastest of those that collective libraries use, per size and group (default)";
    case CollectiveAlgorithm::ring: return "a ring along each network dimension; all collectives";
    case CollectiveAlgorithm::tree:
      return "double binary tree, pipelined, on the outermost dimension; all_reduce and broadcast";
    case CollectiveAlgorithm::direct: return "every member sends to every other at once; all_to_all and small messages";
    case CollectiveAlgorithm::in_switch: return "the switch reduces and multicasts; where the link class supports it";
    case CollectiveAlgorithm::flat_ring:
      return "one ring through all devices (NCCL_ALGO=Ring); all_reduce, all_gather, reduce_scatter";
    case CollectiveAlgorithm::halving_doubling:
      return "pairs at doubling distances; in simulations with ASTRA-sim's files (halvingDoubling)";
    case CollectiveAlgorithm::hierarchical:
      return "along each network dimension, in chunks; the fastest without flat_ring and in_switch";
  }
  throw_internal_error("known algorithm", __FILE__, __LINE__);
}

}  // namespace orrery::network
