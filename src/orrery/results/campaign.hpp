// A training run from its first step to its last: time, interruptions, money, energy, carbon. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::results {

// 80 % interval and median.
struct Range {
  double p10 = 0, p50 = 0, p90 = 0;
};

// A part of the elapsed time; the shares of a campaign sum to 1.
struct TimeShare {
  std::string name;  // "useful", "pauses", "lost_work", ...
  double share = 0;
  std::string formula;  // symbols and numbers
};

// The share of useful time of a job of the same kind on another number of devices.
struct SizePoint {
  std::int64_t devices = 0;
  double ettr = 0;
};

struct Cause {
  std::string name;
  double interruptions = 0;
};

// Spare nodes and what they are good for.
struct SpareRow {
  std::int64_t spares = 0;
  double probability = 0;  // that no node is missing
  double waiting = 0;      // throughput if the job stands without a spare
  double fixed = 0;        // with fewer replicas of fixed nodes
  double regrouped = 0;    // with fewer replicas of any nodes
  bool chosen = false;
};

struct CheckpointFacts {
  Bytes total, per_device;
  Seconds interval;                       // wall time from one to the next
  Seconds useful;                         // of it
  Seconds pause, flush;                   // each
  Seconds load;                           // reading one
  std::optional<double> halved, doubled;  // days with half and twice the useful time per interval
  std::int64_t kept = 1;                  // copies to keep: those that corruption not found yet may spoil, and one
  BytesPerSecond storage;                 // bandwidth
  BytesPerSecond needed;                  // so that the flush ends within the interval
  std::optional<Seconds> memory_interval;
  double recoverable = 0;  // failures that leave a copy in memory / all
};

struct CampaignMoney {
  double usd = 0, per_hour = 0;
  std::string basis;
  double spares_usd = 0;  // included
};
struct CampaignEnergy {
  double busy_J = 0, idle_J = 0, network_J = 0, site_J = 0;  // site: all of them times the PUE
  std::string basis;
};
struct CampaignCarbon {
  double location_kg = 0, embodied_kg = 0;
  std::string basis, embodied_basis;
};

struct CampaignChange {
  std::string change;  // "detection 30 s -> 10 s"
  std::string flags;
  double days_saved = 0;
  std::optional<double> usd_change;  // of the campaign; negative: cheaper
};

struct CampaignSimulation {
  std::int64_t campaigns = 0;
  double mean_days = 0, standard_error_days = 0;
  Range days;
  double interruptions = 0;
  double closed_form_days = 0;  // what it should agree with
  std::string note;             // why it may not; empty: it should
};

struct WideArea {
  std::int64_t sites = 1, local_steps = 1;
  Seconds round, exchange, exposed;
  double compute_utilization = 1;
  Bytes sent_per_round;  // by a site
  double reduction = 1;  // traffic of synchronous data parallelism in bf16 / this
  double synchronous_utilization = 1;
  double loss_factor = 1;
  std::string aggregate;
  double faster_than_synchronous = 1;  // time to the same loss, synchronous / this
};

struct Campaign {
  Estimate estimate;
  std::vector<std::string> chosen;
  double tokens = 0, steps = 0;
  double failures_per_1000_node_days = 0, failures_low = 0, failures_high = 0;
  std::string failure_counts;
  Range days;
  double useful_days = 0;
  double luck_days = 0;                      // standard deviation of one campaign at these rates
  std::string start, end, end_p10, end_p90;  // empty without a start
  double ettr = 0;                           // useful time / elapsed time
  std::string formula;
  double mean_time_between_interruptions_s = 0;
  Range interruptions;
  std::vector<Cause> causes;
  std::vector<TimeShare> bar;
  std::vector<SizePoint> by_size;
  CheckpointFacts checkpoint;
  std::int64_t nodes = 0, node_devices = 0, replica_nodes = 0;
  std::vector<SpareRow> spares;
  double device_hours = 0, spare_device_hours = 0;  // of the job's devices; of spare ones
  std::optional<CampaignMoney> money;
  std::optional<CampaignEnergy> energy;
  std::optional<CampaignCarbon> carbon;
  std::vector<CampaignChange> what_ifs;
  std::optional<CampaignSimulation> simulation;
  std::optional<WideArea> wide_area;
  std::int64_t largest_devices = 0;  // at which half of the time is useful; 0: not limited
  std::vector<std::string> warnings, not_modelled;
};

}  // namespace orrery::results
