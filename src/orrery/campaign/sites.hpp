// Time that sites wait for another one that is down, where all exchange at the end of every round.
//
// A round takes as long as its slowest site: E[max of K] = int (1 - F(x)^K) dx, with the distribution F of the time
// that one site adds to an undisturbed round. It is compound Poisson: on the way through new work, events strike at a
// constant rate per second of running time, and each delays the site until it is where it was.
//   failures        detection, restart, lost work l that is done again; all of it again if a failure strikes there:
//                   G = r e^(-(lam + s) l) / (1 - r lam (1 - e^(-(lam + s) l)) / (lam + s)), with the transform r of
//                   detection and restart, which is of the same kind. l is uniform between the flush F and F + P, or
//                   where a round is not much longer than the interval P between checkpoints, what its place in the
//                   interval says; of two tiers within a piece or within the pieces of a storage checkpoint
//   corruption      work since it struck (uniform in [0, V]), latency of the validation, detection, restart; failures
//                   and corruption in the work that is done again
//   missing nodes   exponential with the mean first passage from s + 1 to s nodes in repair, as often as gives the
//                   share P(K > s) of the time (waiting.hpp)
// F is computed on a grid of delays by a discrete Fourier transform: exp(sum of rates x (transform of the delay - 1)).
// Approximate are the grid, waits for missing nodes, and a piece of two tiers that fails again while it is done again;
// the simulation agrees within 4 standard errors of 0.01 to 0.1 % (test).
//
// Sites are independent. A site that waits neither fails nor repairs nodes: it is as it was when the others come. All
// take checkpoints at the same points of the work.
#pragma once

#include <cstdint>

#include "orrery/campaign/simulate.hpp"
#include "orrery/core/units.hpp"

namespace orrery::campaign {

// Mean time that a site waits in a round: E[max] - E[one]. `short_share`: of the time of a site, in which it waits for
// missing nodes; `long_run_shortage` of a job with endless work, more in short campaigns (waiting.hpp).
[[nodiscard]] Seconds waiting_for_sites(const Process& process, double short_share);
[[nodiscard]] double long_run_shortage(const Process& process);

}  // namespace orrery::campaign
