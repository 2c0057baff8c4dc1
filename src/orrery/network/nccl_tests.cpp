#include "orrery/network/nccl_tests.hpp"

namespace orrery::network {

double bus_bandwidth_factor(Collective collective, std::int64_t members) {
  const double others = static_cast<double>(members - 1) / static_cast<double>(members);
  switch (collective) {
    case Collective::all_reduce: return 2.0 * others;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter: return others;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::barrier: break;
  }
  return 1.0;
}

std::uint64_t element_count(Collective collective, std::uint64_t size_B, std::int64_t members,
                            std::uint64_t element_B) {
  const std::uint64_t elements = size_B / element_B;
  switch (collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter: return elements / static_cast<std::uint64_t>(members);
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::barrier: break;
  }
  return elements;
}

}  // namespace orrery::network
