#include "orrery/api/concurrent_jobs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/api/planned_job.hpp"
#include "orrery/config/record.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/merged_jobs.hpp"
#include "orrery/simulate/on_cluster.hpp"

namespace orrery::api {

struct JobEntry {
  std::string name, workload, groups, plan;
  std::int64_t steps = 1;
  Seconds start;
  std::vector<std::int64_t> devices;
};

struct JobList {
  std::string cluster;
  std::int64_t devices = 0;
  simulate::Placement placement = simulate::Placement::packed;
  std::int64_t seed = 1;
  std::vector<JobEntry> jobs;
};

}  // namespace orrery::api

namespace orrery::config {

template <>
struct EnumNames<simulate::Placement> {
  using P = simulate::Placement;
  static constexpr std::array<std::pair<P, std::string_view>, 3> value{
      {{P::packed, "packed"}, {P::spread, "spread"}, {P::random, "random"}}};
};

template <>
struct Described<api::JobEntry> {
  static const Record<api::JobEntry>& record() {
    static const auto record =
        Record<api::JobEntry>("job", "One job: graphs of its ranks, or a plan.")
            .required("name", &api::JobEntry::name, "name, for the output", {.nonempty = true})
            .optional("workload", &api::JobEntry::workload, "prefix or folder of Chakra graphs, one for each rank")
            .optional("plan", &api::JobEntry::plan, "or flags of orrery estimate, without the cluster")
            .optional("steps", &api::JobEntry::steps, "training steps of a plan, one after another",
                      {.min = 1, .max = 1'000})
            .optional("groups", &api::JobEntry::groups, "process groups (JSON)")
            .optional("start", &api::JobEntry::start, "time of its start", {.max = Seconds(1e6)})
            .optional("devices", &api::JobEntry::devices, "device of each rank; default: by placement",
                      {.min = 0, .max = hardware::kMaxDevices})
            .check(wrong_with);
    return record;
  }

 private:
  static Objection wrong_with(const api::JobEntry& entry) {
    const bool has_plan = !entry.plan.empty();
    if (has_plan == !entry.workload.empty()) { return {"/workload", "give workload or plan, one of them"}; }
    if (has_plan && !entry.groups.empty()) { return {"/groups", "belong to graphs; a plan has groups of its own"}; }
    if (!has_plan && entry.steps != 1) { return {"/steps", "is of a plan; graphs have their steps"}; }
    return {};
  }
};

template <>
struct Described<api::JobList> {
  static const Record<api::JobList>& record() {
    static const auto record =
        Record<api::JobList>("jobs", "Jobs that run on one cluster at the same time.")
            .required("cluster", &api::JobList::cluster, "catalogue name, or a YAML file")
            .optional("devices", &api::JobList::devices, "devices of the cluster; 0: as many as it has",
                      {.min = 0, .max = hardware::kMaxDevices})
            .optional("placement", &api::JobList::placement, "nodes of jobs without devices")
            .optional("seed", &api::JobList::seed, "of placement random", {.min = 0, .max = 1'000'000'000})
            .required("jobs", &api::JobList::jobs, "jobs", {.nonempty = true});
    return record;
  }
};

}  // namespace orrery::config

namespace orrery::api {

namespace {

// Paths count from the folder of the file.
std::string beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).string();
}

std::string cluster_name(const JobList& list, const std::string& file) {
  const bool is_file =
      list.cluster.ends_with(".yaml") || list.cluster.ends_with(".yml") || list.cluster.ends_with(".json");
  return is_file ? beside(file, list.cluster) : list.cluster;
}

Result<hardware::Cluster> cluster_of(const hardware::Catalogue& catalogue, const JobList& list, const std::string& file,
                                     std::int64_t devices) {
  return catalogue.cluster(cluster_name(list, file), devices, hardware::UnlikeNodes::modelled);
}

Place place_of_job(const config::Node& node, std::size_t i, std::string_view key) {
  return config::place_below(node, fmt::format("/jobs/{}/{}", i, key));
}

// Gives devices to the jobs, `ranks` each: first those that are listed, then free ones in the order of the placement.
Result<std::vector<std::vector<std::uint32_t>>> places(const config::Node& node, const JobList& list,
                                                       const hardware::Cluster& cluster,
                                                       const std::vector<std::size_t>& ranks) {
  const std::size_t jobs = list.jobs.size();
  std::vector<std::vector<std::uint32_t>> placed(jobs);
  std::vector<std::size_t> user(static_cast<std::size_t>(cluster.devices), jobs);
  for (std::size_t i = 0; i < jobs; ++i) {
    const auto& devices = list.jobs[i].devices;
    if (!devices.empty() && devices.size() != ranks[i]) {
      return fail(place_of_job(node, i, "devices"), fmt::format("{} devices for {} ranks", devices.size(), ranks[i]));
    }
    for (const std::int64_t device : devices) {
      if (device >= cluster.devices) {
        return fail(place_of_job(node, i, "devices"),
                    fmt::format("device {}: valid: 0 to {}", device, cluster.devices - 1));
      }
      std::size_t& owner = user[static_cast<std::size_t>(device)];
      if (owner < jobs) {
        return fail(place_of_job(node, i, "devices"),
                    fmt::format("device {} is taken by job {}", device, list.jobs[owner].name));
      }
      owner = i;
      placed[i].push_back(static_cast<std::uint32_t>(device));
    }
  }
  const auto order = simulate::placement_order(cluster, list.placement, static_cast<std::uint64_t>(list.seed));
  std::size_t next = 0;
  for (std::size_t i = 0; i < jobs; ++i) {
    while (placed[i].size() < ranks[i]) {
      while (next < order.size() && user[order[next]] < jobs) { ++next; }
      if (next == order.size()) {
        return fail(place_of_job(node, i, "workload"),
                    fmt::format("{} ranks, but only {} of the {} devices of {} are free", ranks[i], placed[i].size(),
                                cluster.devices, cluster.name));
      }
      user[order[next]] = i;
      placed[i].push_back(order[next]);
    }
  }
  return placed;
}

// The reference: the same devices without the other jobs.
Result<results::Simulation> run_alone(const hardware::Cluster& cluster, simulate::PlacedJob job) {
  job.start_ps = 0;
  return simulate::simulate_flows(simulate::merged(cluster, {std::move(job)}));
}

// Graphs of a job, each for the accelerator of its device.
Result<simulate::SimulationJob> read_graphs(const hardware::Catalogue& catalogue, const JobList& list,
                                            const std::string& file, const JobEntry& entry, const JobDevices& where) {
  simulate::SimulationFiles files;
  files.backend = simulate::Backend::flow;
  ORRERY_TRY(graphs, simulate::graphs_of({beside(file, entry.workload)}));
  files.graphs = std::move(graphs);
  if (!entry.groups.empty()) { files.groups = beside(file, entry.groups); }
  ORRERY_TRY(part, cluster_of(catalogue, list, file, static_cast<std::int64_t>(files.graphs.size())));
  const std::vector<simulate::KernelRates> of_devices = simulate::kernel_rates(where.cluster);
  std::vector<simulate::KernelRates> rates;
  if (!of_devices.empty()) {
    for (const std::uint32_t device : where.devices) { rates.push_back(of_devices[device]); }
  }
  return simulate::read_job_on(part, files, std::move(rates));
}

// Errors of a plan name a flag; the place is that of the plan in the file.
Failure failure_at(const Place& place, Failure failure) {
  for (Diagnostic& found : failure.diagnostics) {
    if (!found.place.path.empty()) { found.message = fmt::format("{}: {}", found.place.path, found.message); }
    found.place = place;
  }
  return failure;
}

const char* ports_text(network::NodeEgress egress) {
  return egress == network::NodeEgress::one_port ? "one port" : "all ports";
}

struct ReadJobs {
  std::vector<simulate::PlacedJob> jobs;
  std::vector<std::string> warnings;
};

// By job.
Result<std::vector<std::size_t>> ranks_of_jobs(const std::string& data_directory, const config::Node& node,
                                               const JobList& list, const std::string& file) {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    const JobEntry& entry = list.jobs[i];
    if (entry.plan.empty()) {
      ORRERY_TRY(graphs, simulate::graphs_of({beside(file, entry.workload)}));
      ranks.push_back(graphs.size());
      continue;
    }
    const auto devices = planned_devices(data_directory, {entry.plan, cluster_name(list, file), file, entry.steps});
    if (!devices) { return tl::make_unexpected(failure_at(place_of_job(node, i, "plan"), devices.error())); }
    ranks.push_back(static_cast<std::size_t>(*devices));
  }
  return ranks;
}

struct JobsFile {
  const config::Node& node;
  const JobList& list;
  const std::string& file;
};

Result<ReadJobs> read_jobs(const std::string& data_directory, const JobsFile& of, const hardware::Cluster& cluster,
                           const std::vector<std::vector<std::uint32_t>>& devices) {
  const auto& [node, list, file] = of;
  const hardware::Catalogue catalogue(data_directory);
  ReadJobs read;
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    const JobEntry& entry = list.jobs[i];
    constexpr double kPicoseconds = 1e12;
    simulate::PlacedJob placed{entry.name, {}, devices[i], 0};
    placed.start_ps = static_cast<std::uint64_t>(std::llround(entry.start.value() * kPicoseconds));
    const JobDevices where{cluster, devices[i], !entry.devices.empty()};
    if (entry.plan.empty()) {
      ORRERY_TRY(job, read_graphs(catalogue, list, file, entry, where));
      placed.job = std::move(job);
    } else {
      auto planned = planned_job(data_directory, {entry.plan, cluster_name(list, file), file, entry.steps}, where);
      if (!planned) { return tl::make_unexpected(failure_at(place_of_job(node, i, "plan"), planned.error())); }
      placed.job = std::move(planned->job);
      placed.egress = planned->egress;
      placed.order = std::move(planned->order);
      if (!where.by_rank) { simulate::order_devices(placed); }
      if (!planned->fits) {
        read.warnings.push_back(fmt::format("the plan of job {} does not fit in memory", entry.name));
      }
    }
    if (i > 0 && placed.egress != read.jobs.front().egress) {
      return fail(place_of_job(node, i, entry.plan.empty() ? "workload" : "plan"),
                  fmt::format("sends through {} of a node, job {} through {} (transfers.single_port of the stack); "
                              "jobs of a file must agree",
                              ports_text(placed.egress), read.jobs.front().name, ports_text(read.jobs.front().egress)));
    }
    read.jobs.push_back(std::move(placed));
  }
  return read;
}

// Calls of one job share links, too: what they lose to each other when the job is alone is not the others' doing.
std::vector<results::JobLink> links_of(const results::JobTimes& times, const std::vector<results::LinkUse>& together,
                                       const std::vector<results::LinkUse>& alone) {
  constexpr double kPicosecond = 1e-12;
  std::map<std::uint32_t, double> busy;
  for (const results::LinkUse& use : together) { busy[use.link] += kPicosecond * static_cast<double>(use.busy_ps); }
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> own;
  for (const results::LinkUse& use : alone) { own[{use.kind, use.link}] = use.lost_ps; }
  std::map<std::string, double> ranks, lost;
  for (const results::JobTime& job : times.jobs) { ranks[job.name] = static_cast<double>(job.ranks); }
  std::vector<results::JobLink> links;
  for (const results::LinkUse& use : together) {
    const std::uint64_t before = std::min(own[{use.kind, use.link}], use.lost_ps);
    results::JobLink link{use.kind, use.from, use.to, use.bandwidth_Bps};
    link.busy_s = kPicosecond * static_cast<double>(use.busy_ps);
    link.lost_s = kPicosecond * static_cast<double>(use.lost_ps - before) / ranks.at(use.kind);
    link.used = times.makespan_s() > 0 ? busy[use.link] / times.makespan_s() : 0;
    lost[use.kind] += link.lost_s;
    links.push_back(std::move(link));
  }
  for (results::JobLink& link : links) { link.share = link.lost_s > 0 ? link.lost_s / lost[link.job] : 0; }
  std::stable_sort(links.begin(), links.end(), [](const results::JobLink& a, const results::JobLink& b) {
    return std::pair(a.lost_s, a.used) > std::pair(b.lost_s, b.used);
  });
  return links;
}

}  // namespace

Result<results::JobTimes> simulate_jobs(const std::string& data_directory, const std::string& file) {
  ORRERY_TRY(node, config::read_file(file));
  ORRERY_TRY(list, config::Described<JobList>::record().read(node));
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      if (list.jobs[before].name != list.jobs[i].name) { continue; }
      return fail(place_of_job(node, i, "name"),
                  fmt::format("\"{}\" occurs twice; names must differ", list.jobs[i].name));
    }
  }
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(cluster, cluster_of(catalogue, list, file, list.devices));
  ORRERY_TRY(ranks, ranks_of_jobs(data_directory, node, list, file));
  ORRERY_TRY(devices, places(node, list, cluster, ranks));
  ORRERY_TRY(read, read_jobs(data_directory, {node, list, file}, cluster, devices));
  const std::vector<simulate::PlacedJob>& jobs = read.jobs;
  ORRERY_TRY(simulation, simulate::simulate_flows(simulate::merged(cluster, jobs)));
  results::JobTimes times;
  times.cluster = cluster.name;
  times.devices = static_cast<std::uint64_t>(cluster.devices);
  times.placement = std::string(config::enum_name(list.placement));
  times.contention = std::move(simulation.contention);
  times.warnings = std::move(read.warnings);
  times.warnings.insert(times.warnings.end(), simulation.warnings.begin(), simulation.warnings.end());
  times.messages = simulation.messages;
  times.events = simulation.events;
  std::size_t first = 0;
  std::vector<results::LinkUse> uses_alone;
  for (const simulate::PlacedJob& job : jobs) {
    std::uint64_t finish_ns = 0;
    for (std::size_t rank = 0; rank < job.devices.size(); ++rank) {
      finish_ns = std::max(finish_ns, simulation.ranks[first + rank].finish_ns);
    }
    first += job.devices.size();
    ORRERY_TRY(alone, run_alone(cluster, job));
    uses_alone.insert(uses_alone.end(), alone.link_uses.begin(), alone.link_uses.end());
    times.jobs.push_back({job.name, job.devices.size(), job.devices, 1e-12 * static_cast<double>(job.start_ps),
                          1e-9 * static_cast<double>(finish_ns), 1e-9 * static_cast<double>(alone.makespan_ns())});
  }
  times.links = links_of(times, simulation.link_uses, uses_alone);
  return times;
}

}  // namespace orrery::api
