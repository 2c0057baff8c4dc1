// What a campaign is apart from job and plan: how much is trained, what fails, how failures are met, what it costs.
//
// One record gives the flags of `orrery campaign`, the section `campaign:` of a scenario, their help and errors. Rates
// of nodes are for nodes of eight accelerators, as published ones are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"

namespace orrery::campaign {

// Interruptions per 1,000 node-days, and the interval in which four of five published runs lie: RSC-2 2.34, Llama
// 3 3.79, BLOOM 4.5, RSC-1 6.5, a fleet of H200 8.5 (arXiv:2410.21680, 2407.21783, 2211.05100; read 2026-11).
inline constexpr double kUsualFailures = 4.0, kFewFailures = 2.0, kManyFailures = 8.0;

// What a failure rate counts: failures of hardware; of all infrastructure, software of the platform included; anything
// that ends the job. The three differ by a factor of 3.5 in one publication (arXiv:2410.21680).
enum class Counts : std::uint8_t { hardware, infrastructure, any };
// Where the copies of a checkpoint in memory are.
enum class Across : std::uint8_t { device, node, rack };
// Without a spare node: stand until one is repaired, or go on with fewer replicas.
enum class WhenShort : std::uint8_t { wait, shrink };
enum class PowerBasis : std::uint8_t { node, device };
enum class Formula : std::uint8_t { exact, meta };
enum class Aggregate : std::uint8_t { ring, server, all_to_all };

// Nodes that fail together.
struct Domain {
  std::string of;          // "rack", "switch"
  std::int64_t nodes = 1;  // in one
  double failures_per_1000_days = 0;
};

// Nodes in service from a date on.
struct Capacity {
  std::string from;  // 2026-12-01
  std::int64_t nodes = 0;
  std::optional<double> usd_per_device_hour;
  double reclaims_per_node_day = 0;  // of spot capacity
};

inline constexpr double kMostTokens = 1e18;  // 30,000 times the largest published run

struct Spec {
  // How much; exactly one of the first four.
  std::string tokens;  // "15.6T"
  std::optional<std::int64_t> steps;
  std::string until;  // date: tokens by then
  std::optional<double> budget_usd;
  std::string start;
  std::vector<Capacity> capacity;

  // What fails.
  std::optional<double> failures_per_1000_node_days;
  std::optional<double> failures_low, failures_high;  // 80 % interval
  Counts failure_counts = Counts::infrastructure;
  double job_failures_per_day = 0;
  std::vector<Domain> domains;
  double corruptions_per_device_year = 0.0025;
  Seconds validate_every{4 * 3600.0};
  Seconds validation_latency{0.0};
  double early_failure_factor = 1.0;
  Seconds early_failures{0.0};
  double reclaims_per_node_day = 0;
  Seconds reclaim_notice{0.0};
  double slowdowns_per_1000_node_days = 0;
  Seconds slowdown{72 * 60.0};
  double slowdown_factor = 1.34;

  // After a failure.
  Seconds detection{30.0};
  Seconds restart{180.0};
  Seconds restart_per_doubling{0.0};
  Seconds queue{0.0};

  // Checkpoints.
  std::optional<Seconds> checkpoint_every;
  std::optional<double> checkpoint_bytes_per_parameter;
  std::optional<Seconds> checkpoint_pause;
  std::optional<Seconds> checkpoint_flush;
  bool checkpoint_async = true;
  Seconds checkpoint_barrier{2.0};
  double flush_slowdown = 0.0;
  std::optional<BytesPerSecond> storage_bandwidth;
  std::optional<Seconds> memory_checkpoint_every;
  Seconds memory_checkpoint_pause{0.5};
  std::int64_t memory_copies = 2;
  Across memory_across = Across::node;
  Formula formula = Formula::exact;

  // Spares and repair.
  std::optional<std::int64_t> spares;
  double spares_probability = 0.99;
  Seconds repair{2 * 86'400.0};
  double repair_share = 1.0;
  WhenShort when_short = WhenShort::wait;
  bool regroup = false;

  double maintenance_per_day = 0.0;
  Seconds maintenance{900.0};

  // Money.
  std::optional<double> usd_per_device_hour;
  std::string price_date;
  std::optional<double> node_price_usd;
  double write_off_years = 4.0;
  double node_use = 0.9;
  double network_share = 0.15;
  double storage_share = 0.0;
  double usd_per_kwh = 0.08;

  // Power and carbon.
  PowerBasis power_basis = PowerBasis::node;
  std::optional<double> device_watts;
  double idle_watts = 80.0;
  double network_watts_per_device = 0.0;
  double pue = 1.2;
  std::string grid = "world";
  std::optional<double> embodied_kg_per_device;
  double embodied_years = 6.0;
  double embodied_use = 0.85;

  // Training over wide areas.
  std::int64_t sites = 1;
  std::optional<BytesPerSecond> site_bandwidth;
  std::int64_t local_steps = 1;
  double outer_bits = 32.0;
  Seconds outer_overlap{0.0};
  std::int64_t outer_fragments = 1;
  Aggregate aggregate = Aggregate::ring;
  double loss_factor = 1.0;
  double site_dropouts_per_day = 0.0;
  double site_spread = 0.0;
};

[[nodiscard]] const config::Record<Spec>& spec_record();

// Heading of a field in the help.
[[nodiscard]] std::string_view group_of(std::string_view field);

// "15.6T", "300 B", "2e12" as a number; suffixes k, M, B or G, T are powers of 1000.
[[nodiscard]] std::optional<double> count_of(std::string_view text);

// Errors of values that contradict each other, apart from those that depend on the job.
[[nodiscard]] std::vector<Diagnostic> problems(const Spec& spec);
// Rates that no publication has: outside 0.5 to 50 failures per 1,000 node-days.
[[nodiscard]] std::vector<std::string> warnings(const Spec& spec);

}  // namespace orrery::campaign

namespace orrery::config {

template <>
struct EnumNames<campaign::Counts> {
  using C = campaign::Counts;
  static constexpr std::array<std::pair<C, std::string_view>, 3> value{
      {{C::hardware, "hardware"}, {C::infrastructure, "infrastructure"}, {C::any, "any"}}};
};
template <>
struct EnumNames<campaign::Across> {
  using A = campaign::Across;
  static constexpr std::array<std::pair<A, std::string_view>, 3> value{
      {{A::device, "device"}, {A::node, "node"}, {A::rack, "rack"}}};
};
template <>
struct EnumNames<campaign::WhenShort> {
  using W = campaign::WhenShort;
  static constexpr std::array<std::pair<W, std::string_view>, 2> value{{{W::wait, "wait"}, {W::shrink, "shrink"}}};
};
template <>
struct EnumNames<campaign::PowerBasis> {
  using P = campaign::PowerBasis;
  static constexpr std::array<std::pair<P, std::string_view>, 2> value{{{P::node, "node"}, {P::device, "device"}}};
};
template <>
struct EnumNames<campaign::Formula> {
  using F = campaign::Formula;
  static constexpr std::array<std::pair<F, std::string_view>, 2> value{{{F::exact, "exact"}, {F::meta, "meta"}}};
};
template <>
struct EnumNames<campaign::Aggregate> {
  using A = campaign::Aggregate;
  static constexpr std::array<std::pair<A, std::string_view>, 3> value{
      {{A::ring, "ring"}, {A::server, "server"}, {A::all_to_all, "all-to-all"}}};
};
template <>
struct Described<campaign::Domain> {
  static const Record<campaign::Domain>& record();
};
template <>
struct Described<campaign::Capacity> {
  static const Record<campaign::Capacity>& record();
};

}  // namespace orrery::config
