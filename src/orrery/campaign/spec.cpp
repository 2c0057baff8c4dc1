#include "orrery/campaign/spec.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "orrery/campaign/dates.hpp"
#include "orrery/core/text.hpp"

namespace orrery::config {

const Record<campaign::Domain>& Described<campaign::Domain>::record() {
  using campaign::Domain;
  static const auto record =
      Record<Domain>("domain", "Nodes that fail together.")
          .required("of", &Domain::of, "name: rack, switch", {.nonempty = true})
          .required("nodes", &Domain::nodes, "nodes in one", {.min = 1, .max = 1'000'000})
          .required("failures_per_1000_days", &Domain::failures_per_1000_days, "of one", {.min = 0.0, .max = 1e6});
  return record;
}

const Record<campaign::Capacity>& Described<campaign::Capacity>::record() {
  using campaign::Capacity;
  static const auto record =
      Record<Capacity>("capacity", "Nodes in service from a date on.")
          .required("from", &Capacity::from, "date: 2026-12-01", {.nonempty = true})
          .required("nodes", &Capacity::nodes, "nodes of the job", {.min = 1, .max = 100'000'000})
          .optional("usd_per_device_hour", &Capacity::usd_per_device_hour, "USD; default: that of the campaign",
                    {.min = 0.0, .max = 1e6})
          .optional("reclaims_per_node_day", &Capacity::reclaims_per_node_day, "of spot capacity",
                    {.min = 0.0, .max = 1e4});
  return record;
}

}  // namespace orrery::config

namespace orrery::campaign {

namespace {

using SpecRecord = config::Record<Spec>;

void add_work(SpecRecord& record) {
  record.optional("tokens", &Spec::tokens, "tokens to train on: 15.6T, 300B")
      .optional("steps", &Spec::steps, "or optimizer steps", {.min = 1})
      .optional("until", &Spec::until, "or a date: how many tokens by then (2027-03-01; needs --start)")
      .optional("budget_usd", &Spec::budget_usd, "or a budget in USD: how many tokens it pays for", {.positive = true})
      .optional("start", &Spec::start, "date of the first step: 2026-12-01")
      .optional("capacity", &Spec::capacity, "nodes over time (in a scenario file): from, nodes, price, reclaims");
}

void add_failures(SpecRecord& record) {
  record
      .optional(
          "failures_per_1000_node_days", &Spec::failures_per_1000_node_days,
          "interruptions of the job per 1,000 days of a node of eight; default: 4, in the range 2 to 8 of published "
          "runs",
          {.min = 0.0, .max = 1e5})
      .optional("failures_low", &Spec::failures_low, "80 % interval of that rate; default: half the rate",
                {.min = 0.0, .max = 1e5})
      .optional("failures_high", &Spec::failures_high, "default: twice the rate", {.min = 0.0, .max = 1e5})
      .optional("failure_counts", &Spec::failure_counts, "what the rate counts; printed with the answer")
      .optional("job_failures_per_day", &Spec::job_failures_per_day, "failures of the job that no node causes",
                {.min = 0.0, .max = 1e5})
      .optional("domains", &Spec::domains, "nodes that fail together (in a scenario file): of, nodes, rate")
      .optional("corruptions_per_device_year", &Spec::corruptions_per_device_year,
                "silent data corruption that spoils a run; default: Llama 3's 6 in 54 days", {.min = 0.0, .max = 1e3})
      .optional("validate_every", &Spec::validate_every, "time between validations that find corruption")
      .optional("validation_latency", &Spec::validation_latency, "time until a validation has its answer")
      .optional("early_failure_factor", &Spec::early_failure_factor, "rate of a new cluster / later rate",
                {.min = 1.0, .max = 100.0})
      .optional("early_failures", &Spec::early_failures, "how long a new cluster has that rate")
      .optional("reclaims_per_node_day", &Spec::reclaims_per_node_day, "reclaimed spot nodes", {.min = 0.0, .max = 1e4})
      .optional("reclaim_notice", &Spec::reclaim_notice,
                "time between notice and reclaim; a checkpoint that fits loses "
                "no work")
      .optional("slowdowns_per_1000_node_days", &Spec::slowdowns_per_1000_node_days, "nodes that become slow",
                {.min = 0.0, .max = 1e5})
      .optional("slowdown", &Spec::slowdown, "how long one stays slow")
      .optional("slowdown_factor", &Spec::slowdown_factor, "its step time / normal", {.min = 1.0, .max = 100.0});
}

void add_recovery(SpecRecord& record) {
  record.optional("detection", &Spec::detection, "from a failure until it is known")
      .optional("restart", &Spec::restart, "from then until the job is up, without queue and load")
      .optional("restart_per_doubling", &Spec::restart_per_doubling, "added per doubling of the nodes")
      .optional("queue", &Spec::queue, "added: waiting for nodes")
      .optional("spares", &Spec::spares, "spare nodes; default: as many as --spares-probability needs",
                {.min = 0, .max = 1'000'000})
      .optional("spares_probability", &Spec::spares_probability, "of having a node for a failed one",
                {.min = 0.0, .max = 0.999999})
      .optional("repair", &Spec::repair, "mean time until a failed node is back", {.positive = true})
      .optional("repair_share", &Spec::repair_share, "part of node failures that take the node out",
                {.min = 0.0, .max = 1.0})
      .optional("when_short", &Spec::when_short, "without a spare: wait for a repair, or drop replicas")
      .optional("regroup", &Spec::regroup, "nodes of broken replicas form new ones")
      .optional("maintenance_per_day", &Spec::maintenance_per_day, "planned stops", {.min = 0.0, .max = 1e3})
      .optional("maintenance", &Spec::maintenance, "length of one");
}

void add_checkpoints(SpecRecord& record) {
  record
      .optional("checkpoint_every", &Spec::checkpoint_every, "useful time between checkpoints; default: the best",
                {.positive = true})
      .optional("checkpoint_bytes_per_parameter", &Spec::checkpoint_bytes_per_parameter,
                "default: weights and optimizer state of the stack", {.max = 1e3, .positive = true})
      .optional("checkpoint_pause", &Spec::checkpoint_pause, "the job stands; default: copy to the host, and barrier")
      .optional("checkpoint_flush", &Spec::checkpoint_flush,
                "written in the background; default: bytes / storage bandwidth")
      .optional("checkpoint_async", &Spec::checkpoint_async, "write in the background")
      .optional("checkpoint_barrier", &Spec::checkpoint_barrier, "of all ranks, part of the pause")
      .optional("flush_slowdown", &Spec::flush_slowdown, "loss of speed while flushing", {.min = 0.0, .max = 0.99})
      .optional("storage_bandwidth", &Spec::storage_bandwidth,
                "of all nodes together; default: 1 GB/s per node (Llama 3: 2 TB/s)", {.positive = true, .unit = "GB/s"})
      .optional("memory_checkpoint_every", &Spec::memory_checkpoint_every,
                "also copies in the memory of peers, this often", {.positive = true})
      .optional("memory_checkpoint_pause", &Spec::memory_checkpoint_pause, "of one such copy")
      .optional("memory_copies", &Spec::memory_copies, "copies of a rank's state", {.min = 2, .max = 64})
      .optional("memory_across", &Spec::memory_across, "where these copies are: in different nodes, or racks")
      .optional("formula", &Spec::formula, "exact renewal, or Meta's first-order formula for comparison");
}

void add_money(SpecRecord& record) {
  record
      .optional("usd_per_device_hour", &Spec::usd_per_device_hour,
                "rent of an accelerator, needs --price-date; default: the cluster's", {.min = 0.0, .max = 1e6})
      .optional("price_date", &Spec::price_date, "month or day of that price: 2026-11")
      .optional("node_price_usd", &Spec::node_price_usd, "or purchase of a node; default: the cluster's",
                {.min = 0.0, .max = 1e12})
      .optional("write_off_years", &Spec::write_off_years, "of purchased nodes", {.max = 100.0, .positive = true})
      .optional("node_use", &Spec::node_use, "part of its life that a purchased node works",
                {.max = 1.0, .positive = true})
      .optional("network_share", &Spec::network_share, "network / node price", {.min = 0.0, .max = 10.0})
      .optional("storage_share", &Spec::storage_share, "storage / node price", {.min = 0.0, .max = 10.0})
      .optional("usd_per_kwh", &Spec::usd_per_kwh, "electricity of purchased nodes", {.min = 0.0, .max = 100.0});
}

void add_power(SpecRecord& record) {
  record.optional("power_basis", &Spec::power_basis, "nameplate power of whole nodes, or of accelerators alone")
      .optional("device_watts", &Spec::device_watts, "measured power per accelerator instead",
                {.max = 1e6, .positive = true})
      .optional("idle_watts", &Spec::idle_watts, "of an accelerator while the job is down", {.min = 0.0, .max = 1e6})
      .optional("network_watts_per_device", &Spec::network_watts_per_device, "switches and optics",
                {.min = 0.0, .max = 1e6})
      .optional("pue", &Spec::pue, "energy of the site / of its computers", {.min = 1.0, .max = 10.0})
      .optional("grid", &Spec::grid, "electricity: a country such as FR, world, or g CO2e/kWh")
      .optional("embodied_kg_per_device", &Spec::embodied_kg_per_device,
                "kg CO2e of making an accelerator and its share of the node", {.min = 0.0, .max = 1e6})
      .optional("embodied_years", &Spec::embodied_years, "life over which it counts", {.max = 100.0, .positive = true})
      .optional("embodied_use", &Spec::embodied_use, "part of that life in use", {.max = 1.0, .positive = true});
}

void add_wide_area(SpecRecord& record) {
  record
      .optional("sites", &Spec::sites, "sites that train one replica each on the given devices",
                {.min = 1, .max = 1'000'000})
      .optional("site_bandwidth", &Spec::site_bandwidth, "of the slowest link between sites",
                {.positive = true, .unit = "Gb/s"})
      .optional("local_steps", &Spec::local_steps, "steps between exchanges of sites", {.min = 1, .max = 10'000'000})
      .optional("outer_bits", &Spec::outer_bits, "per parameter in an exchange", {.max = 64.0, .positive = true})
      .optional("outer_overlap", &Spec::outer_overlap, "compute that hides the exchange, or each fragment of it")
      .optional("outer_fragments", &Spec::outer_fragments,
                "parts of the model that are exchanged one after another (Streaming DiLoCo)", {.min = 1, .max = 10'000})
      .optional("aggregate", &Spec::aggregate, "how sites average")
      .optional("loss_factor", &Spec::loss_factor, "tokens to the same loss / those of synchronous training",
                {.min = 1.0, .max = 100.0})
      .optional("site_spread", &Spec::site_spread, "relative standard deviation of the sites' round times",
                {.min = 0.0, .max = 1.0})
      .optional("site_dropouts_per_day", &Spec::site_dropouts_per_day, "of one site: its round is lost",
                {.min = 0.0, .max = 1e3});
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kGroups = {{
    // the first field of each group
    {"tokens", "How much"},
    {"failures_per_1000_node_days", "What fails"},
    {"detection", "After a failure"},
    {"checkpoint_every", "Checkpoints"},
    {"usd_per_device_hour", "Money"},
    {"power_basis", "Energy and carbon"},
    {"sites", "Training over wide areas"},
}};

}  // namespace

const config::Record<Spec>& spec_record() {
  static const auto record = [] {
    SpecRecord fields("campaign", "A training run on machines that fail.");
    add_work(fields);
    add_failures(fields);
    add_recovery(fields);
    add_checkpoints(fields);
    add_money(fields);
    add_power(fields);
    add_wide_area(fields);
    return fields;
  }();
  return record;
}

std::string_view group_of(std::string_view field) {
  std::string_view group;
  for (const auto& info : spec_record().fields()) {
    for (const auto& [first, name] : kGroups) {
      if (info.name == first) { group = name; }
    }
    if (info.name == field) { return group; }
  }
  return {};
}

std::optional<double> count_of(std::string_view text) {
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || !std::isfinite(value) || !(value > 0.0)) { return std::nullopt; }
  std::string_view unit(stopped, static_cast<std::size_t>(end - stopped));
  while (!unit.empty() && unit.front() == ' ') { unit.remove_prefix(1); }
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"", 1.0}, {"k", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) { return value * factor; }
  }
  return std::nullopt;
}

namespace {

void add_problem(std::vector<Diagnostic>& found, const char* flag, std::string message) {
  found.push_back({{"", 0, 0, flag}, std::move(message)});
}

void check_dates(const Spec& spec, std::vector<Diagnostic>& found) {
  const auto check = [&](const char* flag, const std::string& text) {
    if (!text.empty() && !date_of(text)) {
      add_problem(found, flag, fmt::format("{} is not a date such as 2026-12-01", quote(text)));
    }
  };
  check("--start", spec.start);
  check("--until", spec.until);
  check("--price-date", spec.price_date);
  std::optional<Date> last;
  for (const auto& one : spec.capacity) {
    check("--capacity", one.from);
    const auto from = date_of(one.from);
    if (from && last && !(*last < *from)) {
      add_problem(found, "--capacity", fmt::format("{} must be after the entry before it", one.from));
    }
    last = from;
  }
  if (!spec.until.empty() && spec.start.empty() && spec.capacity.empty()) {
    add_problem(found, "--until", "needs --start");
  }
}

constexpr double kSecondsOfDay = 86'400.0;

void check_work(const Spec& spec, std::vector<Diagnostic>& found) {
  const int given = int(!spec.tokens.empty()) + int(spec.steps.has_value()) + int(!spec.until.empty()) +
                    int(spec.budget_usd.has_value());
  if (given == 0) { add_problem(found, "--tokens", "is missing: tokens to train on, for example 15.6T"); }
  if (given > 1) { add_problem(found, "--tokens", "give one of --tokens, --steps, --until and --budget-usd"); }
  if (!spec.tokens.empty() && !count_of(spec.tokens)) {
    add_problem(found, "--tokens", fmt::format("{} is not a number of tokens such as 15.6T", quote(spec.tokens)));
  }
  if (count_of(spec.tokens).value_or(0.0) > kMostTokens) {
    add_problem(found, "--tokens", fmt::format("{}: must be at most 1000000T", spec.tokens));
  }
}

void check_copies(const Spec& spec, std::vector<Diagnostic>& found) {
  if (!spec.memory_checkpoint_every) { return; }
  if (spec.formula == Formula::meta) {
    add_problem(found, "--formula", "meta knows no copies in memory; leave out --memory-checkpoint-every");
  }
  if (*spec.memory_checkpoint_every < spec.memory_checkpoint_pause) {
    add_problem(found, "--memory-checkpoint-every",
                fmt::format("{}: one copy takes {}; valid: at least that",
                            config::format_seconds(*spec.memory_checkpoint_every),
                            config::format_seconds(spec.memory_checkpoint_pause)));
  }
  if (spec.memory_across == Across::device) {
    add_problem(found, "--memory-across",
                "device: all copies are in one node, and a failed node takes them with it; valid: node, rack");
  }
  for (const auto& domain : spec.domains) {
    const bool holds_copies = spec.memory_across == Across::node && domain.nodes >= spec.memory_copies;
    if (holds_copies && domain.failures_per_1000_days > 0.0) {
      add_problem(found, "--memory-across",
                  fmt::format("node: the {} copies are in one failure domain ({} of {} nodes); use rack",
                              spec.memory_copies, domain.of, domain.nodes));
      return;
    }
  }
}

// Values that another one makes count.
void check_effects(const Spec& spec, std::vector<Diagnostic>& found) {
  const Spec usual;
  const auto needs = [&](bool is_given, bool counts, const char* flag, const char* other) {
    if (is_given && !counts) { add_problem(found, flag, fmt::format("has an effect only with {}", other)); }
  };
  const auto reclaims = [](const Capacity& one) { return one.reclaims_per_node_day > 0.0; };
  const bool has_reclaims =
      spec.reclaims_per_node_day > 0.0 || std::any_of(spec.capacity.begin(), spec.capacity.end(), reclaims);
  needs(spec.early_failure_factor != usual.early_failure_factor, spec.early_failures > Seconds(0),
        "--early-failure-factor", "--early-failures");
  needs(spec.early_failures > Seconds(0), spec.early_failure_factor > 1.0, "--early-failures",
        "--early-failure-factor");
  needs(spec.reclaim_notice > Seconds(0), has_reclaims, "--reclaim-notice", "--reclaims-per-node-day");
  needs(spec.slowdown_factor != usual.slowdown_factor, spec.slowdowns_per_1000_node_days > 0.0, "--slowdown-factor",
        "--slowdowns-per-1000-node-days");
  needs(spec.memory_copies != usual.memory_copies, spec.memory_checkpoint_every.has_value(), "--memory-copies",
        "--memory-checkpoint-every");
  if (spec.spares && spec.spares_probability != usual.spares_probability) {
    add_problem(found, "--spares", "gives the number of spare nodes, as --spares-probability does; give one of them");
  }
}

void check_sites(const Spec& spec, std::vector<Diagnostic>& found) {
  if (spec.sites > 1 && !spec.site_bandwidth) {
    add_problem(found, "--sites", "needs the bandwidth between sites: --site-bandwidth 10Gb/s");
  }
  if (spec.sites == 1 && (spec.site_bandwidth || spec.local_steps > 1)) {
    add_problem(found, "--sites", "is 1: give the number of sites that exchange");
  }
  if (spec.sites > 1 && spec.outer_fragments > spec.local_steps) {
    add_problem(found, "--outer-fragments",
                fmt::format("{}: each is exchanged after a step of its own; at most {}, --local-steps",
                            spec.outer_fragments, spec.local_steps));
  }
}

}  // namespace

std::vector<Diagnostic> problems(const Spec& spec) {
  std::vector<Diagnostic> found;
  check_work(spec, found);
  check_dates(spec, found);
  const double rate = spec.failures_per_1000_node_days.value_or(kUsualFailures);
  if (spec.failures_low.value_or(rate) > rate) {
    add_problem(found, "--failures-low", fmt::format("{} is above the rate {}", *spec.failures_low, rate));
  }
  if (spec.failures_high.value_or(rate) < rate) {
    add_problem(found, "--failures-high", fmt::format("{} is below the rate {}", *spec.failures_high, rate));
  }
  if (spec.usd_per_device_hour && spec.price_date.empty()) {
    add_problem(found, "--usd-per-device-hour",
                "a price needs its date, as prices of one accelerator differ tenfold: --price-date 2026-11");
  }
  if (spec.usd_per_device_hour && spec.node_price_usd) {
    add_problem(found, "--node-price-usd", "rent and purchase are two bases; give one of them");
  }
  const auto has_price = [](const Capacity& one) { return one.usd_per_device_hour.has_value(); };
  const bool has_prices = std::any_of(spec.capacity.begin(), spec.capacity.end(), has_price);
  if (has_prices && spec.price_date.empty()) {
    add_problem(found, "--capacity", "its prices need their date: price_date: 2026-11");
  }
  check_copies(spec, found);
  check_effects(spec, found);
  if (spec.maintenance_per_day * spec.maintenance.value() >= kSecondsOfDay) {
    add_problem(found, "--maintenance-per-day",
                fmt::format("{}: stops of {} take the whole day; valid: below {:.4g}", spec.maintenance_per_day,
                            config::format_seconds(spec.maintenance), kSecondsOfDay / spec.maintenance.value()));
  }
  if (spec.regroup && spec.when_short == WhenShort::wait) {
    add_problem(found, "--regroup", "has an effect only with --when-short shrink");
  }
  check_sites(spec, found);
  return found;
}

std::vector<std::string> warnings(const Spec& spec) {
  std::vector<std::string> out;
  const double rate = spec.failures_per_1000_node_days.value_or(kUsualFailures);
  if (rate > 0.0 && (rate < 0.5 || rate > 50.0)) {
    out.push_back(fmt::format("{} failures per 1,000 node-days: published rates are between 0.5 and 50", rate));
  }
  return out;
}

}  // namespace orrery::campaign
