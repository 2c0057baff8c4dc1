// Share of useful time of a job that failures interrupt: exact renewal formulas.
//
// Failures are a Poisson stream of rate lam. Every interval of wall length P has useful work u and one checkpoint,
// which survives if no failure strikes until it is flushed, F after the end of the interval. A failure costs an
// unprotected time D (detection, drain: no failure strikes) and a restart R that failures strike and that then starts
// again with D:
//
//   E[time from a failure until the job runs] = e^(lam R) (1/lam + D) - 1/lam
//   ETTR = u e^(-lam F) / (e^(lam P) - 1) / (e^(lam R) (1/lam + D))
//
// The first factor is the useful work between two failures, u sum_{k>=1} P(X >= k P + F); the second the length of a
// cycle. F = 0 is Daly's model (FGCS 22, 2006, section 3, with D added). First-order formulas (Young 1974) are wrong by
// a point where 1/lam is below 3 hours, and negative where it is below some restarts; they are used for nothing here.
//
// Left out: failures that depend on each other or on the age of the job (other than shape_ettr).
#pragma once

#include <cstdint>

#include "orrery/core/units.hpp"

namespace orrery::campaign {

// What a failure costs besides lost work.
struct Downtime {
  Seconds unprotected;  // D
  Seconds restart;      // R
};

struct Interval {
  Seconds useful;  // u
  Seconds pause;   // C: the job stands while a checkpoint is taken, and what the flush slows it down by
  Seconds flush;   // F: asynchronous write after the pause; at most the interval

  [[nodiscard]] Seconds length() const { return useful + pause; }
};

// W0, the principal branch of Lambert's function, for -1/e <= z <= 0.
[[nodiscard]] double lambert_w0(double z);

[[nodiscard]] double ettr(Hertz rate, const Interval& interval, const Downtime& downtime);

// The useful time per checkpoint with the highest ETTR: (1 + W0(-e^(-lam C - 1))) / lam. Independent of the downtime
// and of the flush. 0 if the checkpoint is free, infinite without failures.
[[nodiscard]] Seconds best_useful(Hertz rate, Seconds pause);
// The same to first order (Young: sqrt(2 C / lam)) and of higher order (Daly, equation 37).
[[nodiscard]] Seconds young_useful(Hertz rate, Seconds pause);
[[nodiscard]] Seconds daly_useful(Hertz rate, Seconds pause);

// The highest ETTR of any interval that is at least as long as its flush.
[[nodiscard]] Interval best_interval(Hertz rate, Seconds pause, Seconds flush);

// Times to failure with Weibull's distribution of this shape and mean, counted from every restart; no failure strikes
// the downtime. Shape 1 is the exponential distribution. For infant failures of restarts only: the sum of the clocks of
// many nodes is a Poisson stream again.
[[nodiscard]] double shape_ettr(double shape, Seconds mean, const Interval& interval, Seconds downtime);

// Expected useful share by Meta's first-order formula (arXiv:2410.21680, section 5.3), for comparison with its figures:
// (1 - lam (u0 + dt/2)) / (1 + w/dt) with u0 the restart, dt the interval, w the pause.
[[nodiscard]] double meta_ettr(Hertz rate, Seconds interval, Seconds pause, Seconds restart);

// Variance over luck of the time of one interval's work: that of failures before it is done, each with its flush.
[[nodiscard]] double interval_variance(Hertz rate, const Interval& interval, const Downtime& downtime);

// Two tiers: copies in the memory of peers every `memory.length()`, and one in storage after `pieces` of them. A share
// `recoverable` of failures leaves a memory copy and costs `memory_downtime`; the others return to the storage
// checkpoint and cost `storage_downtime`. No failure strikes the downtimes.
struct Tiers {
  Interval memory;        // useful work and pause of a piece
  Seconds storage_pause;  // once per `pieces`
  std::int64_t pieces = 1;
  double recoverable = 1.0;
  Seconds memory_downtime, storage_downtime;

  [[nodiscard]] Seconds piece_length() const { return memory.length() + storage_pause / static_cast<double>(pieces); }
};
[[nodiscard]] double tiers_ettr(Hertz rate, const Tiers& tiers);
// Pieces per storage checkpoint with the highest ETTR.
[[nodiscard]] std::int64_t best_pieces(Hertz rate, Tiers tiers);

}  // namespace orrery::campaign
