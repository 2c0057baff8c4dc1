#include "orrery/graph/chakra_collective.hpp"

#include "orrery/core/error.hpp"

namespace orrery::graph {

std::optional<Collective> collective_of(CollectiveType type) {
  switch (type) {
    case CollectiveType::all_reduce: return Collective::all_reduce;
    case CollectiveType::reduce: return Collective::reduce;
    case CollectiveType::all_gather: return Collective::all_gather;
    case CollectiveType::gather: return Collective::gather;
    case CollectiveType::scatter: return Collective::scatter;
    case CollectiveType::broadcast: return Collective::broadcast;
    case CollectiveType::all_to_all: return Collective::all_to_all;
    case CollectiveType::reduce_scatter: return Collective::reduce_scatter;
    case CollectiveType::barrier: return Collective::barrier;
    case CollectiveType::reduce_scatter_block: break;
  }
  return std::nullopt;
}

CollectiveType chakra_type(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return CollectiveType::all_reduce;
    case Collective::all_gather: return CollectiveType::all_gather;
    case Collective::reduce_scatter: return CollectiveType::reduce_scatter;
    case Collective::all_to_all: return CollectiveType::all_to_all;
    case Collective::broadcast: return CollectiveType::broadcast;
    case Collective::reduce: return CollectiveType::reduce;
    case Collective::gather: return CollectiveType::gather;
    case Collective::scatter: return CollectiveType::scatter;
    case Collective::barrier: return CollectiveType::barrier;
  }
  throw_internal_error("known collective", __FILE__, __LINE__);
}

}  // namespace orrery::graph
