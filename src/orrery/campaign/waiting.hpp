// Time that a job waits for a node because all spare nodes are in repair, over a campaign of any length.
//
// Nodes in repair are a birth and death process: K -> K + 1 at rate a/T while the job is exposed to failures, K -> K -
// 1 at rate K/T, with the mean time of a repair T (exponential) and a = T x the rate of failures. The job stands while
// K > s. At the start K is Poisson(a). On the clock of the time in which the job does not stand, K is limited to 0 ..
// s, and each failure at K = s costs a wait of mean h, the first passage from s + 1 to s:
//
//   waiting(X) = E[first wait] + (a'/T) h e^(-(s+1) D/T) int_0^X P(K = s at t) dt
//   h = T P(K > s) / (a P(K = s)),   E[first wait] = sum_(j > s) T P(K >= j)^2 / (j P(K = j))   for Poisson(a)
//
// a' leaves out detection and other time in which no failure strikes; nodes that are repaired within the detection D do
// not make the job wait. The integral is the inverse of its Laplace transform (fixed Talbot method: J. Abate, P. P.
// Valko, Int. J. Numer. Meth. Engng. 60, 2004), whose value is the solution of a tridiagonal system. For X -> inf the
// share of waiting tends to P(K > s).
//
// Groups of nodes that fail and are repaired together: the share of the long run is exact (spares.hpp); how it builds
// up is taken from single nodes with the same mean number in repair.
#pragma once

#include "orrery/campaign/simulate.hpp"
#include "orrery/core/units.hpp"

namespace orrery::campaign {

// Mean waiting of a campaign that takes `running` without it. Zero without a limit of spares.
[[nodiscard]] Seconds waiting_for_nodes(const Process& process, Seconds running);

}  // namespace orrery::campaign
