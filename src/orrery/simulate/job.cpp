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

Result<void> read_programs(SimulationJob& job, const SimulationFiles& files) {
  const std::uint32_t ranks = job.network.ranks();
  const GroupIndex groups_of_file(job.groups);
  job.rank_graphs.resize(ranks);
  job.files.resize(ranks);
  std::vector<std::optional<Failure>> failures(ranks);
  std::vector<std::vector<Group>> own(ranks);  // groups that graphs list; not used if there is a file of groups
  const std::string for_whom = fmt::format("the network has {} ranks", ranks);
  parallel_for(ranks, files.threads, [&](std::size_t rank) {
    const auto file = graph_file(files, rank);
    job.files[rank] = file.value_or("");
    auto graph = read_graph(file, files.workload, rank, for_whom);
    if (!graph) {
      failures[rank] = graph.error();
      return;
    }
    const auto number = static_cast<std::uint32_t>(rank);
    if (files.groups.empty()) {
      auto listed = listed_groups(*graph, number, job.files[rank], ranks);
      if (!listed) {
        failures[rank] = listed.error();
        return;
      }
      own[rank] = std::move(*listed);
    }
    const GroupIndex groups_of_graph = files.groups.empty() ? GroupIndex(own[rank]) : GroupIndex();
    const GroupIndex& groups = files.groups.empty() ? groups_of_graph : groups_of_file;
    auto rank_graph = compile(*graph, number, job.files[rank], compile_context(job, groups));
    if (rank_graph) {
      job.rank_graphs[rank] = std::move(*rank_graph);
    } else {
      failures[rank] = rank_graph.error();
    }
  });
  if (graph_file(files, ranks)) {
    job.warnings.push_back(fmt::format("{}.{}.et and later files are not simulated: the network has {} ranks",
                                       files.workload, ranks, ranks));
  }
  if (auto failed = first_failure(failures); !failed) { return failed; }
  return join_groups(job.groups, job.rank_graphs, own, job.files);
}

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
  job.spans = files.spans || files.tables;
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
  take(job.system, read_system(files.system, files.flags, job.warnings));
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
  if (auto read = read_programs(machine, files); !read) { return tl::make_unexpected(read.error()); }
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
          job.semantics};
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
