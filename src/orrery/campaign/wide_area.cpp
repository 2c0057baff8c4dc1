#include "orrery/campaign/wide_area.hpp"

#include <cmath>

#include "orrery/campaign/spares.hpp"
#include "orrery/core/error.hpp"

namespace orrery::campaign {

namespace {

constexpr double kSynchronousBits = 16.0;

WideAreaRound round_with(const Spec& spec, Seconds step, std::int64_t steps, Seconds exchange, Seconds exposed) {
  const double straggler = 1.0 + spec.site_spread * expected_maximum(spec.sites);
  const Seconds work = step * static_cast<double>(steps);
  WideAreaRound round;
  round.exchange = exchange;
  round.exposed = exposed;
  round.length = work * straggler + round.exposed;
  round.utilization = work / round.length;
  return round;
}

}  // namespace

Bytes sent_by_site(Aggregate aggregate, std::int64_t sites, Bytes size) {
  const auto k = static_cast<double>(sites);
  switch (aggregate) {
    case Aggregate::ring: return 2.0 * (k - 1.0) / k * size;
    case Aggregate::server: return size;
    case Aggregate::all_to_all: return (k - 1.0) * size;
  }
  throw_internal_error("known aggregate", __FILE__, __LINE__);
}

Seconds exchange_time(Aggregate aggregate, std::int64_t sites, Bytes size, BytesPerSecond bandwidth) {
  // A server's own link has what all sites send, and what it answers.
  const double link = aggregate == Aggregate::server ? 2.0 * static_cast<double>(sites) : 1.0;
  return link * sent_by_site(aggregate, sites, size) / bandwidth;
}

double compute_utilization(Seconds local_work, Seconds exchange, Seconds overlap) {
  return local_work / (local_work + max(Seconds(0), exchange - overlap));
}

Seconds exposed_exchange(Seconds exchange, std::int64_t fragments, Seconds overlap) {
  const auto parts = static_cast<double>(fragments);
  return parts * max(Seconds(0), exchange / parts - overlap);
}

double saving_of_local_steps(double compute_share, double loss_factor, double reduction) {
  return 1.0 - loss_factor * (compute_share + (1.0 - compute_share) / reduction);
}

double compute_share_of_saving(double saving, double loss_factor, double reduction) {
  return ((1.0 - saving) / loss_factor - 1.0 / reduction) / (1.0 - 1.0 / reduction);
}

double traffic_reduction(std::int64_t local_steps, double base_bits, double outer_bits) {
  return static_cast<double>(local_steps) * base_bits / outer_bits;
}

BytesPerSecond bandwidth_for(double utilization, Seconds local_work, Seconds overlap, Bytes exchanged) {
  return exchanged / (local_work * (1.0 / utilization - 1.0) + overlap);
}

WideAreaRound round_of(const Spec& spec, Seconds step, double parameters) {
  const Seconds exchange =
      exchange_time(spec.aggregate, spec.sites, Bytes(parameters * spec.outer_bits / 8.0), *spec.site_bandwidth);
  return round_with(spec, step, spec.local_steps, exchange,
                    exposed_exchange(exchange, spec.outer_fragments, spec.outer_overlap));
}

WideAreaRound synchronous_round(const Spec& spec, Seconds step, double parameters) {
  const Seconds exchange =
      exchange_time(spec.aggregate, spec.sites, Bytes(parameters * kSynchronousBits / 8.0), *spec.site_bandwidth);
  return round_with(spec, step, 1, exchange, exposed_exchange(exchange, 1, step * kScalingLawOverlap));
}

double kept_share(const Spec& spec, Seconds round) {
  return std::exp(-spec.site_dropouts_per_day / 86'400.0 * round.value());
}

}  // namespace orrery::campaign
