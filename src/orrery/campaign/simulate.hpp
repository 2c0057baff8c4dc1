// Campaigns by events: a second, independent computation of what renewal.hpp has in closed form.
//
// Events: failures (of the job, of nodes, of groups of nodes), ends of repairs, silent corruption, the end of the work.
// Between two failures the completed intervals are counted, not stepped through, so a campaign costs one event per
// failure. Every campaign has its own random stream, made from the seed and its number: the result does not depend on
// the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "orrery/campaign/renewal.hpp"
#include "orrery/core/units.hpp"

namespace orrery::campaign {

// Nodes that fail `nodes` at a time and are then in repair.
struct NodeFailures {
  Hertz rate;
  std::int64_t nodes = 1;
};

// What interrupts a job of one size.
struct Process {
  Hertz job_failures;               // that leave all nodes in service
  std::vector<NodeFailures> nodes;  // that do not
  Downtime downtime;
  Interval interval;
  std::optional<Tiers> tiers;  // instead of interval and downtime

  // Silent corruption, per second of retained work: found by validation, it costs the work since it struck (uniform in
  // [0, validate_every]) and the latency of the validation, and a restart.
  Hertz corruptions;
  Seconds validate_every, validation_latency;

  Seconds repair;                      // mean, exponential
  std::optional<std::int64_t> spares;  // the job stands while more nodes than these are in repair; absent: never

  // Sites, each with such a process of its own, which wait for each other after `round` seconds of useful work.
  std::int64_t sites = 1;
  Seconds round;

  [[nodiscard]] Hertz failures() const;
};

// Shares of the elapsed time of a job with endless work. They sum to 1.
struct Shares {
  double useful = 0, pauses = 0, lost_work = 0, detection = 0, restart = 0, corruption = 0, short_of_spares = 0;

  [[nodiscard]] double total() const {
    return useful + pauses + lost_work + detection + restart + corruption + short_of_spares;
  }
};

// In closed form, of one site (sites.hpp: what it waits for others). Spares: the job stands a share P(K > s) of the
// time, independent of everything else, which counts the downtime that overlaps with it twice (less than 1e-3 of the
// time unless repairs are as short as restarts).
[[nodiscard]] Shares shares_of(const Process& process);

// Mean and variance over luck of the time of `work` seconds of useful work, without shortage of spares.
struct Luck {
  Seconds mean;
  double variance = 0;  // s^2
};
[[nodiscard]] Luck luck_of(const Process& process, Seconds work);

struct SimulatedCampaign {
  Seconds elapsed;
  std::int64_t failures = 0;  // that interrupted the job or its restart
  std::int64_t corruptions = 0;
  bool stood = false;  // for want of a node, at any site
};

// The campaign with this number; `work` is its useful time.
[[nodiscard]] SimulatedCampaign simulate_campaign(const Process& process, Seconds work, std::uint64_t seed,
                                                  std::uint64_t number);

struct SimulatedCampaigns {
  std::int64_t count = 0;
  Seconds mean, standard_error;  // of the mean
  Seconds p10, p50, p90;
  double failures = 0, corruptions = 0;  // means
  std::int64_t stood = 0;                // campaigns that waited for a node
};

// `progress` is called from one thread, with the number of campaigns done.
[[nodiscard]] SimulatedCampaigns simulate_campaigns(const Process& process, Seconds work, std::int64_t count,
                                                    std::uint64_t seed, int threads,
                                                    const std::function<void(std::int64_t)>& progress = {});

}  // namespace orrery::campaign
