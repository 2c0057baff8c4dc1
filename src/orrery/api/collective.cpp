#include "orrery/api/collective.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/core/parallel_for.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/spread.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/names.hpp"
#include "orrery/network/nccl_tests.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/message_flows.hpp"
#include "orrery/simulate/one_collective.hpp"
#include "orrery/simulate/one_rank.hpp"

namespace orrery::api {

using results::CollectiveRow;
using results::CollectiveTable;

namespace {

template <class Enum>
std::string name_of(Enum value) {
  for (const auto& [each, name] : config::EnumNames<Enum>::value) {
    if (each == value) { return std::string(name); }
  }
  return {};
}

// Operations and algorithms that are simulated message by message only have no name there.
std::string name_of_message_flows(Collective op) {
  switch (op) {
    case Collective::reduce: return "reduce";
    case Collective::gather: return "gather";
    case Collective::scatter: return "scatter";
    case Collective::barrier: return "barrier";
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::broadcast: break;
  }
  return name_of(op);
}

std::string name_of_message_flows(CollectiveAlgorithm algorithm) {
  return algorithm == CollectiveAlgorithm::halving_doubling ? "halving_doubling" : name_of(algorithm);
}

CollectiveTable table_of(Collective op, std::uint64_t ranks) {
  CollectiveTable table;
  table.op = name_of_message_flows(op);
  const bool reduces = op == Collective::all_reduce || op == Collective::reduce_scatter || op == Collective::reduce;
  table.reduction = reduces ? "sum" : "none";
  table.root = is_rooted(op) ? 0 : -1;
  table.ranks = ranks;
  return table;
}

CollectiveRow row_of(Collective op, std::uint64_t size_B, std::uint64_t ranks, Seconds time) {
  CollectiveRow row;
  const auto members = static_cast<std::int64_t>(ranks);
  row.size_B = size_B;
  row.count = network::element_count(op, size_B, members);
  row.time = time;
  row.algbw = Bytes(static_cast<double>(size_B)) / time;
  row.busbw = row.algbw * network::bus_bandwidth_factor(op, members);
  return row;
}

// ---- in closed form ------------------------------------------------------------------------------------------------

network::Group everyone(const hardware::Cluster& cluster) {
  network::Group group;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    const std::int64_t size = cluster.dimensions[d].size;
    if (size > 1) { group.extents.push_back({static_cast<int>(d), size}); }
  }
  return group;
}

std::string network_text(const hardware::Cluster& cluster) {
  std::vector<std::string> parts;
  for (const auto& dimension : cluster.dimensions) {
    if (dimension.size > 1) { parts.push_back(fmt::format("{} {}", dimension.size, dimension.name)); }
  }
  return join(parts, " x ");
}

bool is_possible(const network::Price& price) { return std::isfinite(price.time.value()); }

// The error for an algorithm that the operation does not have on this group; lists the valid ones.
tl::unexpected<Failure> impossible(const network::Fabric& fabric, const network::Group& group, Collective op,
                                   CollectiveAlgorithm asked) {
  std::vector<std::string> known;
  for (const auto& [algorithm, name] : config::EnumNames<CollectiveAlgorithm>::value) {
    if (is_possible(fabric.price(op, Bytes(1), group, algorithm))) { known.emplace_back(name); }
  }
  return fail(Place{"", 0, 0, "--algorithm"},
              fmt::format("{} does not exist for {} among {} devices of {}; valid: {}", quote(name_of(asked)),
                          name_of(op), group.size(), fabric.cluster().name, join(known, ", ")));
}

// In a tree of switches, if the topology's switches reduce.
std::optional<simulate::SwitchTime> switches_of(const hardware::Cluster& cluster, Collective op, Bytes bytes,
                                                CollectiveAlgorithm asked) {
  if (asked != CollectiveAlgorithm::automatic && asked != CollectiveAlgorithm::in_switch) { return std::nullopt; }
  return simulate::switch_time(cluster, op, bytes);
}

// A cluster with all its devices as one group.
struct Target {
  hardware::Cluster cluster;
  network::Group group;
};

Result<Target> target_of(const std::string& data_directory, const std::string& cluster_name, std::int64_t devices) {
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(cluster, catalogue.network(cluster_name, devices));
  Target target{cluster, everyone(cluster)};
  if (target.group.size() < 2) {
    return fail(Place{"", 0, 0, "--devices"},
                fmt::format("{} has one device here; a collective needs at least 2", cluster.name));
  }
  return target;
}

CollectiveTable table_on(const Target& target, Collective op, const std::string& method) {
  CollectiveTable table = table_of(op, static_cast<std::uint64_t>(target.group.size()));
  table.semantics = "physical";
  table.method = method;
  table.where = target.cluster.name;
  table.network = network_text(target.cluster);
  table.warnings = target.cluster.warnings;
  return table;
}

// The interval of calls among all devices of a cluster.
Result<std::optional<results::CollectiveRange>> range_of(const std::string& data_directory, const Target& target) {
  ORRERY_TRY(spreads, estimate::load_spreads(data_directory));
  const auto kinds = estimate::kinds_of_collective(target.group, target.cluster);
  const auto range = estimate::uncertainty_of(spreads, kinds, Seconds(1.0));
  if (!range) { return std::nullopt; }
  return results::CollectiveRange{range->p10.value(), range->p90.value(), range->kind, range->basis};
}

// ---- simulated -----------------------------------------------------------------------------------------------------

std::string network_text(const simulate::Network& network) {
  std::vector<std::string> parts;
  for (const auto& dimension : network.dimensions) {
    parts.push_back(fmt::format("{} {}", simulate::name_of(dimension.wiring), dimension.ranks));
  }
  return join(parts, " x ");
}

// Operations that ASTRA-sim's semantics simulates; it replays the recorded duration of a broadcast.
bool is_simulated(Collective op) {
  switch (op) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all: return true;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier: break;
  }
  return false;
}

// An error that occurs while one size is simulated: the place is the system file, and the rank that reports it first
// does not matter.
Failure about(const simulate::SimulationFiles& files, const std::string& op, std::uint64_t size_B, Failure failure) {
  for (Diagnostic& diagnostic : failure.diagnostics) {
    if (!diagnostic.place.file.empty()) { continue; }
    diagnostic.place = Place{files.system, 0, 0, ""};
    diagnostic.message = fmt::format("{} of {} B: {}", op, size_B, diagnostic.message);
  }
  return failure;
}

void keep_warnings(CollectiveTable& table, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    if (std::find(table.warnings.begin(), table.warnings.end(), warning) == table.warnings.end()) {
      table.warnings.push_back(warning);
    }
  }
}

}  // namespace

Result<CollectiveTable> price_collective(const std::string& data_directory, const std::string& cluster_name,
                                         std::int64_t devices, const CollectiveRequest& request,
                                         CollectiveAlgorithm algorithm) {
  ORRERY_TRY(target, target_of(data_directory, cluster_name, devices));
  const network::Fabric fabric(target.cluster);
  CollectiveTable table = table_on(target, request.op, "closed-form");
  for (const std::uint64_t size : request.sizes) {
    const Bytes bytes(static_cast<double>(size));
    network::Price price = fabric.price(request.op, bytes, target.group, algorithm);
    if (const auto switches = switches_of(target.cluster, request.op, bytes, algorithm);
        switches && switches->time < price.time) {
      const Seconds moving = switches->time - switches->base - switches->latency;
      price = {switches->time, switches->base,  switches->latency, moving, {}, CollectiveAlgorithm::in_switch,
               price.protocol, switches->chunks};
    }
    if (!is_possible(price)) { return impossible(fabric, target.group, request.op, algorithm); }
    CollectiveRow row = row_of(request.op, size, table.ranks, price.time);
    row.algorithm = name_of(price.algorithm);
    row.terms = results::CollectiveTerms{
        price.base, price.latency, price.bandwidth, price.reduction, std::string(price.protocol), price.chunks};
    table.rows.push_back(std::move(row));
  }
  ORRERY_TRY(range, range_of(data_directory, target));
  table.range = std::move(range);
  return table;
}

Result<CollectiveTable> simulate_collective_on(const std::string& data_directory, const std::string& cluster_name,
                                               std::int64_t devices, const CollectiveRequest& request,
                                               CollectiveAlgorithm algorithm) {
  ORRERY_TRY(target, target_of(data_directory, cluster_name, devices));
  const network::Fabric fabric(target.cluster);
  if (!is_possible(fabric.price(request.op, Bytes(1), target.group, algorithm)) &&
      !switches_of(target.cluster, request.op, Bytes(1), algorithm)) {
    return impossible(fabric, target.group, request.op, algorithm);
  }
  CollectiveTable table = table_on(target, request.op, "simulated");
  for (const std::uint64_t size : request.sizes) {
    simulate::FlowJob job = simulate::one_collective(target.cluster, request.op, size, algorithm);
    job.job.tables = true;
    ORRERY_TRY(simulation, simulate::simulate_flows(job));
    constexpr double kSecondsPerPicosecond = 1e-12;
    const auto time = static_cast<double>(simulation.tables->ranks.front().finish_ps) * kSecondsPerPicosecond;
    CollectiveRow row = row_of(request.op, size, table.ranks, Seconds(time));
    row.algorithm = simulation.tables->collectives.front().algorithm;
    table.rows.push_back(std::move(row));
  }
  return table;
}

namespace {

// Bytes from each rank (line) to each rank (column), separated by blanks or commas.
Result<std::vector<double>> pair_bytes(const std::string& file, std::uint64_t ranks) {
  std::vector<double> bytes;
  if (file.empty()) { return bytes; }
  ORRERY_TRY(text, config::read_text_file(file));
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::uint64_t columns = 0;
    for (std::string word; words >> word; ++columns) {
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc{} || end != word.data() + word.size()) {
        return fail(Place{file, number, 0, ""}, fmt::format("{} is not a number of bytes", quote(word)));
      }
      bytes.push_back(static_cast<double>(value));
    }
    if (columns != 0 && columns != ranks) {
      return fail(Place{file, number, 0, ""}, fmt::format("{} columns; valid: {}, one for each rank", columns, ranks));
    }
  }
  if (bytes.size() == ranks * ranks) { return bytes; }
  return fail(Place{file, number, 0, ""},
              fmt::format("{} lines of numbers; valid: {}, one for each rank", bytes.size() / ranks, ranks));
}

}  // namespace

Result<CollectiveTable> simulate_collective_messages(const std::string& data_directory, const std::string& cluster_name,
                                                     std::int64_t devices, const CollectiveRequest& request,
                                                     CollectiveAlgorithm algorithm, const std::string& pairs,
                                                     std::uint32_t groups, std::int64_t chunks) {
  ORRERY_TRY(target, target_of(data_directory, cluster_name, devices));
  if (!target.cluster.topology) {
    return fail(Place{"", 0, 0, "--backend"},
                fmt::format("flow needs a cluster with a topology, which {} does not have (docs/models/topologies.md); "
                            "--simulate moves whole calls",
                            target.cluster.name));
  }
  CollectiveTable table = table_on(target, request.op, "simulated");
  const std::string refusal = simulate::refusal_of(target.cluster, request.op, algorithm, groups);
  if (!refusal.empty()) {
    const bool is_of_groups = static_cast<std::uint32_t>(target.cluster.devices) % groups != 0 ||
                              static_cast<std::int64_t>(groups) == target.cluster.devices;
    return fail(Place{"", 0, 0, is_of_groups ? "--groups" : "--algorithm"}, refusal);
  }
  if (groups > 1) {
    table.warnings.push_back(fmt::format("{} groups of {} ranks at once; rank r is in group r mod {}", groups,
                                         table.ranks / groups, groups));
  }
  ORRERY_TRY(unequal, pair_bytes(pairs, table.ranks));
  const double mean = std::accumulate(unequal.begin(), unequal.end(), 0.0) / static_cast<double>(table.ranks);
  const auto sizes =
      pairs.empty() ? request.sizes : std::vector<std::uint64_t>{static_cast<std::uint64_t>(std::llround(mean))};
  for (const std::uint64_t size : sizes) {
    const simulate::MessageFlows run = simulate::simulate_messages(
        target.cluster, request.op, Bytes(static_cast<double>(size)), algorithm, unequal, groups, chunks);
    CollectiveRow row = row_of(request.op, size, table.ranks / groups, run.time);
    if (!run.note.empty()) { keep_warnings(table, {run.note}); }
    row.algorithm = name_of_message_flows(run.algorithm);
    row.messages = results::CollectiveMessages{run.messages, run.updates, run.busiest, run.busiest_use};
    table.rows.push_back(std::move(row));
  }
  return table;
}

Result<CollectiveTable> simulate_collective(const simulate::SimulationFiles& files, const CollectiveRequest& request) {
  if (!is_simulated(request.op)) {
    return fail(Place{"", 0, 0, "--op"}, fmt::format("ASTRA-sim simulates no {}: it replays a recorded duration; "
                                                     "valid: all_reduce, all_gather, reduce_scatter, all_to_all",
                                                     name_of(request.op)));
  }
  ORRERY_TRY(machine, simulate::read_machine(files));
  const std::uint64_t ranks = machine.network.ranks();
  CollectiveTable table = table_of(request.op, ranks);
  table.method = "simulated";
  table.where = files.network;
  table.network = network_text(machine.network);
  const bool of_shards = request.op == Collective::all_gather;
  for (const std::uint64_t size : request.sizes) {
    if (!of_shards || size >= ranks) { continue; }
    return fail(Place{"", 0, 0, "--size"},
                fmt::format("an all_gather of {} B among {} ranks has less than 1 B per rank", size, ranks));
  }
  std::vector<Result<results::Simulation>> runs(request.sizes.size());
  parallel_for(request.sizes.size(), files.threads, [&](std::size_t i) {
    const std::uint64_t size = request.sizes[i];
    const auto job = simulate::one_collective(machine, request.op, of_shards ? size / ranks : size);
    runs[i] = job ? simulate::simulate_folded(*job).map([](simulate::OneRankRun&& run) { return run.simulation; })
                  : tl::make_unexpected(job.error());
    if (!runs[i]) { runs[i] = tl::make_unexpected(about(files, table.op, size, runs[i].error())); }
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::uint64_t size = request.sizes[i];
    if (!runs[i]) { return tl::make_unexpected(runs[i].error()); }
    constexpr double kNanosecondsOfOne = 1e9;
    const Seconds time(static_cast<double>(runs[i]->makespan_ns()) / kNanosecondsOfOne);
    table.semantics = runs[i]->semantics;
    table.rows.push_back(row_of(request.op, size, ranks, time));
    table.rows.back().algorithm = simulate::algorithm_text(machine.system, request.op);
    keep_warnings(table, runs[i]->warnings);
  }
  return table;
}

}  // namespace orrery::api
