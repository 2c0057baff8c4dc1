// A job of one size at one failure rate as a stochastic process, and where its time goes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/campaign/simulate.hpp"
#include "orrery/campaign/spec.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/results/campaign.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::campaign {

inline constexpr double kDaySeconds = 86'400.0;
inline constexpr double kRatedNode = 8.0;  // accelerators of the nodes that failure rates are for

// Job and plan.
struct Job {
  results::Estimate estimate;
  std::vector<std::string> chosen;
  hardware::Cluster cluster;
  double parameters = 0;
  double bytes_per_parameter = 0;  // of a checkpoint, as the stack keeps weights and optimizer state
  double grid_g_per_kwh = 0;
  std::string grid;  // "FR, 56 g CO2e/kWh (2023)"
  // Tokens per second on so many devices / on those of the estimate; empty: proportional to whole replicas.
  std::function<double(std::int64_t devices)> speed;
};

// Tokens per second of the whole replicas on so many nodes / of the estimate's own size.
[[nodiscard]] double relative_speed(const Job& job, std::int64_t nodes);

[[nodiscard]] double tokens_per_step(const Job& job, const Spec& spec);
[[nodiscard]] std::int64_t node_devices(const hardware::Cluster& cluster);
// Nodes of one data-parallel replica, at least 1.
[[nodiscard]] std::int64_t replica_nodes(const Job& job);

// What a stretch of the campaign has: its size, and what multiplies the failure rate.
struct Size {
  double nodes = 0;
  double rate_factor = 1;
  double reclaims_per_node_day = 0;
};

// Mean throughput / throughput with all `nodes`, where nodes in repair beyond the spares cost replicas: of fixed nodes,
// or of regrouped ones (spares.hpp) where these are faster.
[[nodiscard]] double shrunk_throughput(const Job& job, std::int64_t nodes, std::int64_t spares,
                                       std::span<const double> in_repair, bool regroup);

// What interrupts the job, each while it runs or restarts.
struct CauseRates {
  Hertz nodes, job, reclaims;
  std::vector<Hertz> domains;  // in the order of the spec
  Hertz noticed;               // reclaims whose notice suffices for a checkpoint: no failures of the process
};

struct Setting {
  Process process;
  CauseRates causes;
  double slowness = 1;     // throughput with slow nodes / without
  double shrunk = 1;       // throughput with missing nodes / with all
  double planned = 0;      // share of planned stops
  double utilization = 1;  // compute / round, of training over wide areas
  Seconds restart;         // one attempt; that of the process has those that reclaims with notice end
  std::int64_t spares = 0;
  std::vector<double> in_repair;  // distribution
  results::CheckpointFacts checkpoint;
};

// `rate`: failures per 1,000 days of a node of eight.
[[nodiscard]] Setting setting_of(const Job& job, const Spec& spec, double rate, const Size& size);

// Errors of domains that are larger than the cluster and all capacity; before setting_of, whose time grows with them.
[[nodiscard]] std::vector<Diagnostic> domain_problems(const Job& job, const Spec& spec);
// Errors of capacity that holds no replica of the plan.
[[nodiscard]] std::vector<Diagnostic> capacity_problems(const Job& job, const Spec& spec);
// A job of this size whose useful time is next to nothing.
[[nodiscard]] std::vector<Diagnostic> progress_problems(const Spec& spec, const Setting& setting, const Size& size);

// Errors that depend on the job: a flush longer than its interval; failures that are faster than restarts.
[[nodiscard]] std::vector<Diagnostic> problems(const Job& job, const Spec& spec, const Setting& setting);

// Shares of the elapsed time, in the order of the bar; `useful` is the first.
struct Bar {
  Shares shares;
  double slow = 0, planned = 0, exchange = 0, sites = 0;  // sites: waiting for those that are down
  Seconds waits;                                          // for them, in a round (sites.hpp)
};
// Of a job with endless work; of a campaign with this work (full-speed steps of this size), at whose start as many
// nodes are in repair as usual: waiting for nodes builds up (waiting.hpp).
[[nodiscard]] Bar bar_of(const Setting& setting);
[[nodiscard]] Bar bar_of(const Setting& setting, Seconds work);

}  // namespace orrery::campaign
