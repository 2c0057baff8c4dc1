#include "orrery/simulate/on_cluster.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "orrery/simulate/copies.hpp"
#include "orrery/simulate/read_inputs.hpp"

namespace orrery::simulate {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 7> kSuffixes = {".et.gz",    ".et.zst",    ".et",  ".jsonl",
                                                       ".jsonl.gz", ".jsonl.zst", ".json"};

struct Numbered {
  std::string stem;  // all before the number
  std::uint64_t rank = 0;
};

// NAME.<rank>.et
std::optional<Numbered> numbered(const std::string& file) {
  for (const std::string_view suffix : kSuffixes) {
    if (!file.ends_with(suffix)) { continue; }
    const std::string_view rest(file.data(), file.size() - suffix.size());
    const std::size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos) { continue; }
    const std::string_view digits = rest.substr(dot + 1);
    std::uint64_t rank = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error == std::errc() && end == digits.data() + digits.size()) {
      return Numbered{std::string(rest.substr(0, dot)), rank};
    }
  }
  return std::nullopt;
}

Place workload_place(std::string file = {}) { return {std::move(file), 0, 0, "--workload"}; }

// Ranks 0, 1, …
Result<std::vector<std::string>> in_order(const std::map<std::uint64_t, std::string>& files, const std::string& where,
                                          Gaps gaps) {
  std::vector<std::string> list;
  for (const auto& [rank, file] : files) {
    if (gaps == Gaps::refused && rank != list.size()) {
      return fail(workload_place(where), fmt::format("has a graph of rank {}, but none of rank {}", rank, list.size()));
    }
    list.push_back(file);
  }
  return list;
}

Result<std::vector<std::string>> in_folder(const std::string& folder, const std::string& stem, Gaps gaps) {
  std::map<std::string, std::map<std::uint64_t, std::string>> by_stem;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const auto number = numbered(entry.path().filename().string());
    if (!number || (!stem.empty() && number->stem != stem)) { continue; }
    const std::string file = folder.empty() ? entry.path().filename().string() : entry.path().string();
    by_stem[number->stem].emplace(number->rank, file);
  }
  const std::string where = stem.empty() ? folder : (folder.empty() ? stem : (fs::path(folder) / stem).string());
  if (error) { return fail(workload_place(folder), error.message()); }
  if (by_stem.empty()) { return fail(workload_place(where), "has no graphs NAME.<rank>.et"); }
  if (by_stem.size() > 1) {
    return fail(workload_place(where),
                fmt::format("has the graphs of several jobs: {0}.0.et and {1}.0.et; give one as a prefix",
                            by_stem.begin()->first, std::next(by_stem.begin())->first));
  }
  return in_order(by_stem.begin()->second, where, gaps);
}

// The latency of a cluster is from device to device.
NetworkDimension dimension_of(const hardware::NetworkDimension& given) {
  const double bytes_per_second = given.rate().value() * given.link.efficiency;
  const double latency = (given.link.latency + given.route_latency).value() * 1e9;
  const auto links = static_cast<double>(hardware::links_of_device(given.wiring, given.size));
  return {given.wiring, static_cast<std::uint32_t>(given.size), bytes_per_second / links,
          latency / hardware::links_to_peer(given.wiring)};
}

// Over direct links or one switch all ranks send to all others at once; around rings, and across many nodes, they send
// to neighbours. A broadcast is always a chain, as in NCCL.
CollectiveAlgorithm method_of(hardware::Wiring wiring, Collective collective) {
  const bool is_exchange = collective == Collective::all_to_all;
  if (collective == Collective::broadcast || hardware::has_neighbours_only(wiring)) {
    return CollectiveAlgorithm::ring;
  }
  return hardware::joins_nodes(wiring) && !is_exchange ? CollectiveAlgorithm::ring : CollectiveAlgorithm::direct;
}

// Kernels of copies on other accelerators than those of the originals. `machine`: before graphs were added, with the
// rates of all ranks.
Result<void> set_times_of_copies(const SimulationJob& machine, const SimulationFiles& files, SimulationJob& made) {
  if (machine.kernel_rates.empty()) { return {}; }
  const auto ranks = static_cast<std::ptrdiff_t>(files.graphs.size());
  const auto rates_of_copy = [&](std::ptrdiff_t copy) {
    const auto first = machine.kernel_rates.begin() + copy * ranks;
    return std::vector<KernelRates>(first, first + ranks);
  };
  SimulationJob read = machine;
  read.kernel_rates = rates_of_copy(0);
  bool has_graphs = false;
  for (std::ptrdiff_t copy = 1; copy < static_cast<std::ptrdiff_t>(files.copies); ++copy) {
    std::vector<KernelRates> rates = rates_of_copy(copy);
    if (rates == rates_of_copy(0)) { continue; }
    if (!has_graphs || rates != read.kernel_rates) {
      SimulationJob again = machine;
      again.kernel_rates = std::move(rates);
      ORRERY_TRY(timed, add_graphs(std::move(again), files));
      read = std::move(timed);
      has_graphs = true;
    }
    for (std::ptrdiff_t rank = 0; rank < ranks; ++rank) {
      const RankGraph& timed = read.rank_graphs[static_cast<std::size_t>(rank)];
      RankGraph& own = made.rank_graphs.own(static_cast<std::size_t>(copy * ranks + rank));
      own.kernels = timed.kernels;
      for (std::size_t i = 0; i < own.nodes.size(); ++i) {
        if (own.nodes[i].act == Act::busy) { own.nodes[i].amount = timed.nodes[i].amount; }
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> graphs_of(const std::vector<std::string>& workload, Gaps gaps) {
  if (workload.size() == 1 && !fs::is_regular_file(workload.front())) {
    if (fs::is_directory(workload.front())) { return in_folder(workload.front(), "", gaps); }
    const fs::path prefix(workload.front());
    return in_folder(prefix.parent_path().string(), prefix.filename().string(), gaps);
  }
  std::map<std::uint64_t, std::string> by_rank;
  for (const std::string& file : workload) {
    if (!fs::is_regular_file(file)) { return fail(workload_place(file), "does not exist"); }
    if (const auto number = numbered(file)) { by_rank.emplace(number->rank, file); }
  }
  if (by_rank.size() < workload.size()) { return workload; }
  return in_order(by_rank, "", gaps);
}

KernelRates rates_of(const hardware::Accelerator& accelerator) {
  return {accelerator.memory_bandwidth.value() * 1e-9, accelerator.peak(hardware::Precision::bf16).value() * 1e-12};
}

SimulationJob machine_on(const hardware::Cluster& cluster) {
  constexpr std::uint32_t kChunks = 4;
  SimulationJob job;
  job.semantics = Semantics::physical;
  job.backend = Backend::congestion_aware;
  job.system.splits = kChunks;
  job.system.endpoint_delay_ns = 0;  // in the latency of the link
  job.system.local_memory_gb = cluster.accelerator.memory_bandwidth.value() * 1e-9;
  job.system.peak_tflops = cluster.accelerator.peak(hardware::Precision::bf16).value() * 1e-12;
  job.system.recorded_first = true;
  job.system.roofline = job.system.peak_tflops > 0 && job.system.local_memory_gb > 0;
  for (const hardware::Nodes& some : cluster.nodes) {  // collectives add at the rate of the slowest memory
    const KernelRates rates = rates_of(some.accelerator);
    job.system.local_memory_gb = std::min(job.system.local_memory_gb, rates.local_memory_gb);
    job.system.roofline &= rates.peak_tflops > 0 && rates.local_memory_gb > 0;
  }
  std::array<std::vector<DimensionAlgorithm>, kCollectives> algorithms;
  for (const hardware::NetworkDimension& given : cluster.dimensions) {
    if (given.size <= 1) { continue; }
    job.network.dimensions.push_back(dimension_of(given));
    for (std::size_t i = 0; i < kCollectives; ++i) {
      algorithms[i].push_back({method_of(given.wiring, static_cast<Collective>(i)), false, std::nullopt});
    }
  }
  for (std::size_t i = 0; i < kCollectives; ++i) {
    if (algorithms[i].empty()) { algorithms[i].push_back({}); }  // one device
    job.system.algorithms[i] = std::move(algorithms[i]);
  }
  if (cluster.second_tier.memory.value() > 0) {
    job.memory.arrangement = memory::Arrangement::PER_NPU_MEMORY_EXPANSION;
    job.memory.latency_ns = static_cast<std::uint64_t>(cluster.second_tier.latency.value() * 1e9);
    const double bytes_per_ns = cluster.second_tier.rate().value() * 1e-9;
    job.memory.bytes_per_ns = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes_per_ns));
  }
  return job;
}

std::vector<KernelRates> kernel_rates(const hardware::Cluster& cluster) {
  std::vector<KernelRates> rates;
  for (const hardware::Nodes& some : cluster.nodes) {
    const auto devices = static_cast<std::size_t>(some.count * cluster.node_size());
    rates.insert(rates.end(), devices, rates_of(some.accelerator));
  }
  return rates;
}

Result<SimulationJob> read_job_on(const hardware::Cluster& cluster, const SimulationFiles& files) {
  return read_job_on(cluster, files, kernel_rates(cluster));
}

Result<SimulationJob> read_job_on(const hardware::Cluster& cluster, const SimulationFiles& files,
                                  std::vector<KernelRates> rates) {
  SimulationJob job = machine_on(cluster);
  job.kernel_rates = std::move(rates);
  if (files.backend == Backend::flow) { job.backend = Backend::flow; }
  job.tables = files.tables;
  job.explain = files.explain;
  job.roofline = files.roofline;
  job.energy = files.energy;
  job.memory_over_time = files.memory_over_time;
  job.chunk_order = files.chunk_order;
  job.by_message = files.by_message;
  job.spans = files.spans || files.tables || files.explain || files.memory_over_time;
  if (!files.groups.empty()) {
    ORRERY_TRY(groups, read_groups(files.groups, job.network.ranks() / files.copies));
    job.groups = std::move(groups);
  }
  if (files.copies == 1) { return add_graphs(std::move(job), files); }
  Network whole = std::move(job.network);
  job.network.dimensions = {{Wiring::switched, whole.ranks() / files.copies}};
  ORRERY_TRY(made, add_graphs(SimulationJob(job), files));
  if (auto copied = copy_ranks(made, files.copies, files.grown); !copied) {
    return tl::make_unexpected(copied.error());
  }
  if (auto timed = set_times_of_copies(job, files, made); !timed) { return tl::make_unexpected(timed.error()); }
  made.network = std::move(whole);
  return made;
}

}  // namespace orrery::simulate
