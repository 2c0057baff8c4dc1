#include "orrery/simulate/job.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "orrery/core/parallel_for.hpp"
#include "orrery/simulate/custom_check.hpp"
#include "orrery/simulate/equal_files.hpp"
#include "orrery/simulate/listed_files.hpp"
#include "orrery/simulate/listed_groups.hpp"
#include "orrery/trace/node_stream.hpp"

namespace orrery::simulate {

namespace fs = std::filesystem;

namespace {

// PREFIX.7.et, or the same compressed.
std::optional<std::string> graph_file(const std::string& prefix, std::size_t number) {
  for (const char* suffix : {".et", ".et.gz", ".et.zst"}) {
    std::string file = fmt::format("{}.{}{}", prefix, number, suffix);
    if (fs::exists(file)) { return file; }
  }
  return std::nullopt;
}

std::optional<std::string> graph_file(const SimulationFiles& files, std::size_t rank) {
  if (files.graphs.empty()) { return graph_file(files.workload, rank); }
  return rank < files.graphs.size() ? std::optional(files.graphs[rank]) : std::nullopt;
}

Result<graph::Graph> read_graph(const std::optional<std::string>& file, const std::string& prefix, std::size_t number,
                                const std::string& for_whom) {
  if (!file) {
    Place place;
    place.file = fmt::format("{}.{}.et", prefix, number);
    return fail(place, fmt::format("does not exist; {}", for_whom));
  }
  trace::ReadOptions options;
  options.threads = 1;
  ORRERY_TRY(loaded, trace::load(*file, options));
  return std::move(loaded.graph);
}

// The failure of the first rank that has one, with the number of ranks that have: most often it is the same error.
Result<void> first_failure(const std::vector<std::optional<Failure>>& failures) {
  std::size_t count = 0;
  std::optional<Failure> first;
  for (const auto& failure : failures) {
    if (!failure) { continue; }
    if (count++ == 0) { first = failure; }
  }
  if (!first) { return {}; }
  if (count > 1) { first->diagnostics.back().message += fmt::format(" ({} ranks have errors)", count); }
  return tl::make_unexpected(std::move(*first));
}

// Reads the graphs of all ranks; those with equal bytes once.
class GraphReader {
 public:
  GraphReader(SimulationJob& job, const SimulationFiles& files)
      : job_(job), files_(files), groups_of_file_(job.groups), place_(job.network.ranks()), failures_(place_.size()) {}

  Result<void> run() {
    const std::size_t ranks = place_.size();
    job_.files.resize(ranks);
    const std::vector<bool> are_listed =
        files_.graphs.empty() ? listed_files(files_.workload, ranks) : std::vector<bool>(ranks);
    parallel_for(ranks, files_.threads, [&](std::size_t rank) {
      job_.files[rank] =
          are_listed[rank] ? fmt::format("{}.{}.et", files_.workload, rank) : graph_file(files_, rank).value_or("");
    });
    const std::vector<std::uint32_t> first = first_equal_files(job_.files, files_.threads, are_listed);
    std::vector<std::uint32_t> different;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (first[rank] == rank) { different.push_back(rank); }
    }
    read(different);
    share(first);
    if (graph_file(files_, ranks)) {
      job_.warnings.push_back(fmt::format("{}.{}.et and later files are not simulated: the network has {} ranks",
                                          files_.workload, ranks, ranks));
    }
    if (auto failed = first_failure(failures_); !failed) { return failed; }
    if (auto joined = join_groups(job_.groups, graphs_); !joined) { return joined; }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      ReadGraph& graph = graphs_[place_[rank]];
      graph.rank == rank ? job_.rank_graphs.push_back(std::move(graph.graph)) : job_.rank_graphs.share(graph.rank);
    }
    return {};
  }

 private:
  void read(const std::vector<std::uint32_t>& ranks) {
    const std::size_t before = graphs_.size();
    graphs_.resize(before + ranks.size());
    parallel_for(ranks.size(), files_.threads, [&](std::size_t i) {
      const std::uint32_t rank = ranks[i];
      place_[rank] = static_cast<std::uint32_t>(before + i);
      graphs_[before + i].rank = rank;
      if (auto done = read(graphs_[before + i]); !done) { failures_[rank] = done.error(); }
    });
  }

  Result<void> read(ReadGraph& into) const {
    into.file = job_.files[into.rank];
    const auto file = into.file.empty() ? std::nullopt : std::optional(into.file);
    const auto ranks = static_cast<std::uint32_t>(place_.size());
    ORRERY_TRY(graph, read_graph(file, files_.workload, into.rank, fmt::format("the network has {} ranks", ranks)));
    if (files_.groups.empty()) {
      ORRERY_TRY(listed, listed_groups(graph, into.rank, into.file, ranks));
      into.own = std::move(listed);
    }
    const GroupIndex own(into.own);
    ORRERY_TRY(compiled, compile(graph, into.rank, into.file, compile_context(job_, groups(own))));
    into.graph = std::move(compiled);
    return {};
  }

  [[nodiscard]] const GroupIndex& groups(const GroupIndex& own) const {
    return files_.groups.empty() ? own : groups_of_file_;
  }

  // Ranks use the graph of the first rank whose file is equal, which is read. Where it has errors, or would have for
  // this rank (a collective of a group that it is not in, a message to itself), the rank reads its file.
  void share(const std::vector<std::uint32_t>& first) {
    std::vector<std::vector<std::uint32_t>> sharers(graphs_.size());
    for (std::uint32_t rank = 0; rank < first.size(); ++rank) {
      if (first[rank] != rank) { sharers[place_[first[rank]]].push_back(rank); }
    }
    std::vector<std::uint32_t> others;
    for (std::uint32_t place = 0; place < sharers.size(); ++place) {
      if (!sharers[place].empty()) { share(place, sharers[place], others); }
    }
    read(others);
  }

  [[nodiscard]] bool has_rates_of(std::uint32_t rank, std::uint32_t other) const {
    return job_.kernel_rates.empty() || job_.kernel_rates[rank] == job_.kernel_rates[other];
  }

  void share(std::uint32_t place, const std::vector<std::uint32_t>& ranks, std::vector<std::uint32_t>& others) {
    const ReadGraph& read = graphs_[place];
    std::set<std::uint32_t> peers, used;
    for (const NodeTask& task : read.graph.nodes) {
      if (task.act == Act::send || task.act == Act::receive) { peers.insert(task.peer); }
      if (task.act == Act::collective && task.group != kWholeMachine) { used.insert(task.group - 1); }
    }
    const GroupIndex own(read.own);
    for (const std::uint32_t rank : ranks) {
      const bool fits =
          !failures_[read.rank] && !peers.contains(rank) && has_rates_of(rank, read.rank) &&
          std::all_of(used.begin(), used.end(), [&](std::uint32_t group) { return groups(own).contains(group, rank); });
      if (fits) {
        place_[rank] = place;
      } else {
        others.push_back(rank);
      }
    }
  }

  SimulationJob& job_;
  const SimulationFiles& files_;
  GroupIndex groups_of_file_;
  std::vector<ReadGraph> graphs_;                 // of different files, by ascending rank
  std::vector<std::uint32_t> place_;              // by rank: of its graph, in graphs_
  std::vector<std::optional<Failure>> failures_;  // by rank
};

Result<void> read_custom(SimulationJob& job, const std::string& prefix, std::size_t positions) {
  std::vector<CustomProgram>& rank_graphs = job.customs[prefix];
  while (rank_graphs.size() < positions) {
    const std::size_t position = rank_graphs.size();
    ORRERY_TRY(graph, read_graph(graph_file(prefix, position), prefix, position,
                                 fmt::format("{} ranks run it as a collective", positions)));
    const std::string file = graph_file(prefix, position).value_or("");
    ORRERY_TRY(rank_graph, custom_program(graph, file, job.semantics));
    for (const CustomStep& step : rank_graph.steps) {
      if (step.act == CustomStep::Act::compute || (step.peer < positions && step.peer != position)) { continue; }
      Place place{file, 0, 0, fmt::format("node {}", step.id)};
      return fail(place,
                  fmt::format("names position {} as its peer; there are {} other positions", step.peer, positions - 1));
    }
    rank_graphs.push_back(std::move(rank_graph));
  }
  return {};
}

// A list of algorithms has an entry per dimension, or is one flat algorithm. With fewer entries ASTRA-sim leaves the
// other dimensions out; physical semantics refuses collectives that need one of them (PhysicalMachine::extents).
Result<void> check_lists(SimulationJob& job, const std::string& system_file) {
  const std::size_t dimensions = job.network.dimensions.size();
  for (std::size_t i = 0; i < kCollectives; ++i) {
    const auto* list = std::get_if<std::vector<DimensionAlgorithm>>(&job.system.algorithms[i]);
    if (list == nullptr || list->empty()) { continue; }
    if (list->size() > dimensions) {
      Place place;
      place.file = system_file;
      return fail(place, fmt::format("has {} algorithms for {}, but the network has {} {}", list->size(),
                                     name_of(static_cast<Collective>(i)), dimensions,
                                     dimensions == 1 ? "dimension" : "dimensions"));
    }
    if (job.semantics == Semantics::astra_sim && list->size() < dimensions && !list->back().flat) {
      job.warnings.push_back(
          fmt::format("{}: {} has an algorithm for {} of {} dimensions; no data is sent in the others, "
                      "as in ASTRA-sim",
                      system_file, name_of(static_cast<Collective>(i)), list->size(), dimensions));
    }
  }
  return {};
}

// The position of each member of a group by its index in the group's list. Positions count the ranks of the group in
// ascending order; peers in graphs are indices in the list.
std::vector<std::uint32_t> positions_of(const SimulationJob& job, std::uint32_t group, std::size_t members) {
  std::vector<std::uint32_t> positions(members);
  for (std::uint32_t i = 0; i < members; ++i) { positions[i] = i; }
  if (group == kWholeMachine) { return positions; }
  const std::vector<std::uint32_t>& ranks = job.groups[group - 1].ranks;
  std::vector<std::uint32_t> ascending = ranks;
  std::sort(ascending.begin(), ascending.end());
  for (std::uint32_t i = 0; i < members; ++i) {
    const auto place = std::lower_bound(ascending.begin(), ascending.end(), ranks[i]);
    positions[i] = static_cast<std::uint32_t>(place - ascending.begin());
  }
  return positions;
}

// Checks the graphs of a custom collective for a node that runs it on `members` ranks.
Result<void> check_use(SimulationJob& job, const std::string& prefix, const NodeTask& task, std::size_t members) {
  const std::vector<CustomProgram>& rank_graphs = job.customs.at(prefix);
  for (std::size_t position = 0; position < members; ++position) {
    for (const CustomStep& step : rank_graphs[position].steps) {
      if (step.act == CustomStep::Act::compute || step.peer < members) { continue; }
      const Place place{graph_file(prefix, position).value_or(""), 0, 0, fmt::format("node {}", step.id)};
      return fail(place, fmt::format("names position {} as its peer; {} ranks run the collective", step.peer, members));
    }
  }
  const auto positions = positions_of(job, task.group, members);
  const std::span all(rank_graphs);
  const CustomUse use{all.first(members), positions, task.collective, task.amount, prefix, job.system.rendezvous};
  if (auto partners = check_partners(use); !partners) { return partners; }
  auto anomalies = check_custom(use);
  if (!anomalies) {
    for (Diagnostic& why : anomalies.error().diagnostics) {
      const auto same = [&](const Diagnostic& known) { return known.text() == why.text(); };
      if (std::none_of(job.possible_deadlocks.begin(), job.possible_deadlocks.end(), same)) {
        job.possible_deadlocks.push_back(std::move(why));  // several groups may run the same graphs
      }
    }
    return {};
  }
  for (std::string& anomaly : *anomalies) {
    if (std::find(job.warnings.begin(), job.warnings.end(), anomaly) == job.warnings.end()) {
      job.warnings.push_back(std::move(anomaly));
    }
  }
  return {};
}

}  // namespace

Result<void> complete(SimulationJob& job) {
  if (job.semantics == Semantics::physical && job.backend == Backend::congestion_unaware) {
    return fail("--semantics physical needs --backend congestion-aware");
  }
  if (job.semantics == Semantics::astra_sim && job.backend == Backend::congestion_aware &&
      job.network.dimensions.size() > 1) {
    return fail(fmt::format("--backend congestion-aware: {} dimensions are not built yet; valid: 1, as in ASTRA-sim",
                            job.network.dimensions.size()));
  }
  const bool has_tensors = std::any_of(job.rank_graphs.begin(), job.rank_graphs.end(),
                                       [](const RankGraph& graph) { return !graph.tensors.empty(); });
  if (job.memory_over_time && !has_tensors) {
    return fail(Place{{}, 0, 0, "--memory"},
                "needs a plan, or graphs whose nodes list their tensors (attributes inputs and outputs: names, each "
                "followed by its bytes)");
  }
  const std::uint32_t ranks = job.network.ranks();
  std::set<std::tuple<std::string, std::uint32_t, Collective, std::uint64_t>> checked;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const NodeTask& task : job.rank_graphs[rank].nodes) {
      if (task.act != Act::collective) { continue; }
      const auto own = job.system.custom_of_node.find(task.id);
      const Choice& choice = job.system.algorithms[static_cast<std::size_t>(task.collective)];
      const std::string* prefix = std::get_if<std::string>(&choice);
      if (own != job.system.custom_of_node.end()) { prefix = &own->second; }
      if (prefix == nullptr) { continue; }
      const std::size_t members = task.group == kWholeMachine ? ranks : job.groups[task.group - 1].ranks.size();
      if (auto read = read_custom(job, *prefix, members); !read) { return tl::make_unexpected(read.error()); }
      if (!checked.insert({*prefix, task.group, task.collective, task.amount}).second) { continue; }
      if (auto used = check_use(job, *prefix, task, members); !used) { return tl::make_unexpected(used.error()); }
    }
  }
  return {};
}

Result<SimulationJob> read_machine(const SimulationFiles& files) {
  SimulationJob job;
  job.semantics = files.semantics;
  job.backend = files.backend;
  job.explain = files.explain;
  job.roofline = files.roofline;
  job.memory_over_time = files.memory_over_time;
  job.spans = files.spans || files.tables || files.explain || files.memory_over_time;
  job.tables = files.tables;
  Failure failure;
  const auto take = [&](auto& into, auto&& result) {
    if (result) {
      into = std::move(*result);
    } else {
      for (auto& diagnostic : result.error().diagnostics) { failure.diagnostics.push_back(diagnostic); }
    }
  };
  take(job.network, read_network(files.network, files.semantics, job.warnings));
  take(job.system, read_system(files.system, files.flags, files.semantics, job.warnings));
  if (!files.memory.empty()) { take(job.memory, read_memory(files.memory, job.warnings)); }
  if (!files.groups.empty()) {
    const std::uint32_t ranks = job.network.dimensions.empty() ? 0xFFFFFFFF : job.network.ranks();
    take(job.groups, read_groups(files.groups, ranks));
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  if (auto checked = check_lists(job, files.system); !checked) { return tl::make_unexpected(checked.error()); }
  return job;
}

Result<SimulationJob> add_graphs(SimulationJob machine, const SimulationFiles& files) {
  if (auto read = GraphReader(machine, files).run(); !read) { return tl::make_unexpected(read.error()); }
  if (auto whole = complete(machine); !whole) { return tl::make_unexpected(whole.error()); }
  return machine;
}

Result<SimulationJob> read_job(const SimulationFiles& files) {
  ORRERY_TRY(machine, read_machine(files));
  return add_graphs(std::move(machine), files);
}

CompileContext compile_context(const SimulationJob& job, const GroupIndex& groups) {
  return {job.system,
          groups,
          job.memory.arrangement,
          job.network.ranks(),
          static_cast<std::uint32_t>(job.network.dimensions.size()),
          job.spans,
          job.semantics,
          job.roofline,
          job.memory_over_time,
          job.kernel_rates};
}

Place place_of(const SimulationJob& job, std::uint32_t rank, std::uint64_t node_id) {
  return {job.files.empty() ? "" : job.files[rank], 0, 0,
          fmt::format("rank {}, node {}", real_rank(job, rank), node_id)};
}

Failure explained(const SimulationJob& job, Failure stalled) {
  if (!job.possible_deadlocks.empty()) { stalled.diagnostics = job.possible_deadlocks; }
  return stalled;
}

}  // namespace orrery::simulate
