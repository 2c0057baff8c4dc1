// Lists of collectives and algorithms, for tests.
#pragma once

#include <array>

#include "orrery/core/collective.hpp"

namespace orrery::network::test {

inline constexpr std::array kCollectives = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                            Collective::all_to_all, Collective::broadcast,  Collective::reduce,
                                            Collective::gather,     Collective::scatter,    Collective::barrier};

// Those with a closed form (schedule.hpp).
inline constexpr std::array kPricedCollectives = {Collective::all_reduce, Collective::all_gather,
                                                  Collective::reduce_scatter, Collective::all_to_all,
                                                  Collective::broadcast};

// Algorithms of schedule.hpp.
inline constexpr std::array kScheduleAlgorithms = {CollectiveAlgorithm::ring, CollectiveAlgorithm::tree,
                                                   CollectiveAlgorithm::direct, CollectiveAlgorithm::in_switch,
                                                   CollectiveAlgorithm::flat_ring};

// Algorithms of member_schedule.hpp.
inline constexpr std::array kStepAlgorithms = {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct,
                                               CollectiveAlgorithm::halving_doubling, CollectiveAlgorithm::tree,
                                               CollectiveAlgorithm::in_switch};

}  // namespace orrery::network::test
