// Training at several sites that exchange weights or gradients over slow links.
//
// Every site takes H local steps of t; then all average V bits per parameter (DiLoCo, arXiv:2311.08105; Photon's
// federated rounds, MLSys 2025), in F fragments of the model one after another; compute hides `overlap` of each
// (Streaming DiLoCo, arXiv:2501.18512; F is 1 elsewhere):
//
//   round = H t x straggler + F max(0, exchange / F - overlap)        compute utilization = H t / round
//   exchange: ring 2 (K - 1)/K S/B, server 2 K S/B, all-to-all (K - 1) S/B, S bytes of one site, B of its link
//
// The straggler of K sites is spread x E[max of K normals] slower than the mean. Left out: what the optimizer costs;
// the effect of H on the loss, which is an input (the factor on tokens).
#pragma once

#include <cstdint>

#include "orrery/campaign/spec.hpp"
#include "orrery/core/units.hpp"

namespace orrery::campaign {

// What a site sends in an exchange of `size` bytes: to a server once.
[[nodiscard]] Bytes sent_by_site(Aggregate aggregate, std::int64_t sites, Bytes size);
[[nodiscard]] Seconds exchange_time(Aggregate aggregate, std::int64_t sites, Bytes size, BytesPerSecond bandwidth);

// H t / (H t + max(0, exchange - overlap)).
[[nodiscard]] double compute_utilization(Seconds local_work, Seconds exchange, Seconds overlap);

// Time of an exchange in equal fragments that compute does not hide.
[[nodiscard]] Seconds exposed_exchange(Seconds exchange, std::int64_t fragments, Seconds overlap);

// Time that local steps save over synchronous training to the same loss, with `loss_factor` times the steps and
// exchanges that are `reduction` times rarer or smaller: 1 - f (c + (1 - c) / r). c: share of compute in the time of
// synchronous training. And the c of a saving that is known.
[[nodiscard]] double saving_of_local_steps(double compute_share, double loss_factor, double reduction);
[[nodiscard]] double compute_share_of_saving(double saving, double loss_factor, double reduction);

// Bytes that data parallelism with `base_bits` per gradient sends in the same steps / those that exchanges send.
[[nodiscard]] double traffic_reduction(std::int64_t local_steps, double base_bits, double outer_bits);

// The bandwidth between sites at which compute utilization is `utilization`: V / (H t (1/CU - 1) + overlap).
[[nodiscard]] BytesPerSecond bandwidth_for(double utilization, Seconds local_work, Seconds overlap, Bytes exchanged);

// A simulated point of the scaling laws of DiLoCo (arXiv:2503.09799): 32/3 bits per parameter cross the slowest link
// and 2/3 of a step (its backward pass) hides them.
inline constexpr double kScalingLawBits = 32.0 / 3.0, kScalingLawOverlap = 2.0 / 3.0;

struct WideAreaRound {
  Seconds length, exchange, exposed;
  double utilization = 1;
};
// Of a job with this step time and number of parameters at each of `spec.sites` sites.
[[nodiscard]] WideAreaRound round_of(const Spec& spec, Seconds step, double parameters);
// The same with a gradient exchange of 16 bits per parameter in every step.
[[nodiscard]] WideAreaRound synchronous_round(const Spec& spec, Seconds step, double parameters);
// Contributions that count / all: a site that drops out loses its round.
[[nodiscard]] double kept_share(const Spec& spec, Seconds round);

}  // namespace orrery::campaign
