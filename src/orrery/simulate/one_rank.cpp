#include "orrery/simulate/one_rank.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "orrery/simulate/machine.hpp"
#include "orrery/simulate/machine_result.hpp"
#include "orrery/simulate/physical_classes.hpp"
#include "orrery/simulate/simulate.hpp"
#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

namespace {

bool are_same(const RankGraph& a, const RankGraph& b) {
  return &a == &b || (a.nodes == b.nodes && a.child_begin == b.child_begin && a.children == b.children);
}

// ASTRA-sim's rules.
std::string obstacle_of_network(const SimulationJob& job, const std::string& name, CollectiveAlgorithm method,
                                Wiring wiring) {
  if (job.backend != Backend::congestion_aware) { return ""; }
  if (hardware::has_switch(wiring)) { return "messages of several ranks share the links of a Switch"; }
  const bool to_neighbours = method == CollectiveAlgorithm::ring;
  return hardware::has_neighbours_only(wiring) && !to_neighbours
             ? fmt::format("messages of {} share links of a ring", name)
             : "";
}

// Physical rules: a link of the simulated rank carries what each link of its kind carries, if messages use no links of
// third ranks.
std::string obstacle_of_links(const std::string& name, Collective collective, CollectiveAlgorithm method,
                              Wiring wiring) {
  const bool is_ring = method == CollectiveAlgorithm::ring;
  if (is_ring && collective == Collective::all_to_all) { return "an ALL_TO_ALL on a ring passes messages on"; }
  return hardware::has_neighbours_only(wiring) && !is_ring ? fmt::format("messages of {} share links of a ring", name)
                                                           : "";
}

}  // namespace

std::string algorithm_obstacle(const SimulationJob& job, Collective collective, const DimensionAlgorithm& algorithm,
                               std::size_t dimension) {
  if (algorithm.flat && job.network.dimensions.size() > 1) {
    return fmt::format("{} is one ring over dimensions of different distances", name_of(algorithm));
  }
  switch (algorithm.method) {
    case CollectiveAlgorithm::ring:
    case CollectiveAlgorithm::direct:
    case CollectiveAlgorithm::halving_doubling: break;
    case CollectiveAlgorithm::tree: return "a doubleBinaryTree has roots and leaves";
    case CollectiveAlgorithm::automatic:
    case CollectiveAlgorithm::flat_ring:
    case CollectiveAlgorithm::hierarchical:
    case CollectiveAlgorithm::in_switch: return fmt::format("{} is not folded", name_of(algorithm));
  }
  const Wiring wiring = job.network.dimensions[dimension].wiring;
  return job.semantics == Semantics::physical
             ? obstacle_of_links(name_of(algorithm), collective, algorithm.method, wiring)
             : obstacle_of_network(job, name_of(algorithm), algorithm.method, wiring);
}

std::string kind_obstacle(const SimulationJob& job, Collective collective) {
  const Choice& choice = job.system.algorithms[static_cast<std::size_t>(collective)];
  if (std::holds_alternative<std::string>(choice)) { return "custom collectives differ from rank to rank"; }
  const bool is_symmetric = collective == Collective::all_reduce || collective == Collective::all_gather ||
                            collective == Collective::reduce_scatter || collective == Collective::all_to_all;
  return is_symmetric ? "" : fmt::format("{} has a root", name_of(collective));
}

namespace {

// Of the algorithms that collectives of this kind use.
std::string obstacle_of(const SimulationJob& job, Collective collective) {
  if (std::string why = kind_obstacle(job, collective); !why.empty()) { return why; }
  const Choice& choice = job.system.algorithms[static_cast<std::size_t>(collective)];
  const auto& list = std::get<std::vector<DimensionAlgorithm>>(choice);
  for (std::size_t i = 0; i < list.size() && i < job.network.dimensions.size(); ++i) {
    if (job.network.dimensions[i].ranks == 1) { continue; }
    if (std::string why = algorithm_obstacle(job, collective, list[i], i); !why.empty()) { return why; }
  }
  return "";
}

std::string obstacle_of(const SimulationJob& job, const NodeTask& task) {
  const auto node = [&](const char* why) { return fmt::format("node {} {}", task.id, why); };
  switch (task.act) {
    case Act::send:
    case Act::receive: return node("is a message between two ranks");
    case Act::collective:
      if (task.group != kWholeMachine) { return node("is a collective of a process group"); }
      return obstacle_of(job, task.collective);
    case Act::memory: return job.memory.server(0) ? "ranks share a memory that serves them one by one" : "";
    case Act::busy:
    case Act::no_op:
    case Act::metadata: return "";
  }
  return "";
}

// On links of a full mesh, messages to the partner and to the neighbour of a rank share one link on some ranks only.
std::string obstacle_of_meshes(const SimulationJob& job) {
  if (job.semantics != Semantics::physical && job.backend != Backend::congestion_aware) { return ""; }
  for (std::size_t i = 0; i < job.network.dimensions.size(); ++i) {
    if (!hardware::has_pair_links(job.network.dimensions[i].wiring)) { continue; }
    bool has_pairs = false, has_others = false;
    for (const NodeTask& task : job.rank_graphs[0].nodes) {
      if (task.act != Act::collective) { continue; }
      const Choice& choice = job.system.algorithms[static_cast<std::size_t>(task.collective)];
      const auto& list = std::get<std::vector<DimensionAlgorithm>>(choice);
      if (i >= list.size()) { continue; }
      (list[i].method == CollectiveAlgorithm::halving_doubling ? has_pairs : has_others) = true;
    }
    if (has_pairs && has_others) { return "halvingDoubling and another algorithm share the links of a full mesh"; }
  }
  return "";
}

// The job of rank 0 on the whole network.
SimulationJob job_of_one(const SimulationJob& job) {
  SimulationJob one;
  one.semantics = job.semantics;
  one.backend = job.backend;
  one.network = job.network;
  one.system = job.system;
  one.memory = job.memory;
  one.rank_graphs.push_back(job.rank_graphs[0]);
  one.files.push_back(job.files.empty() ? "" : job.files[0]);
  one.warnings = job.warnings;
  one.spans = job.spans;
  one.explain = job.explain;
  return one;
}

// Its result, or a text if its certificate is void or the rank does not end.
using OneRank = tl::expected<results::Simulation, std::string>;

OneRank run_certified(const SimulationJob& one) {
  OrderCertificate certificate(one.backend == Backend::congestion_aware);
  Machine machine(one);
  try {
    machine.run_folded(certificate);
  } catch (const OrderMatters& order) {
    return tl::make_unexpected(
        fmt::format("the order of ranks may matter at {} ns: {}", machine.events().now(), order.why));
  } catch (const TooLong&) { return tl::make_unexpected(std::string("an event is too late")); } catch (const Stop&) {
    return tl::make_unexpected(std::string("a node cannot run"));
  }
  if (!machine.nodes().ranks().front().finished) { return tl::make_unexpected(std::string("ranks do not finish")); }
  return result_of(one, machine);
}

OneRank run_one(const SimulationJob& job) {
  const SimulationJob one = job_of_one(job);
  if (job.semantics != Semantics::physical) { return run_certified(one); }
  auto simulation = simulate(one);
  if (!simulation) { return tl::make_unexpected(std::string("ranks do not finish")); }
  return std::move(*simulation);
}

// Of what the job is to find, and of its machine.
std::string general_obstacle(const SimulationJob& job) {
  if (job.network.ranks() == 1) { return "there is one rank"; }
  if (job.system.rendezvous) { return "rendezvous"; }
  if (job.system.bus && job.semantics != Semantics::physical) { return "the shared bus of a rank"; }
  if (!job.system.custom_of_node.empty()) { return "nodes have custom collectives"; }
  if (job.system.inter_dimension != InterDimension::baseline) { return "chunks choose the order of dimensions"; }
  if (job.explain && job.semantics != Semantics::physical) { return "the critical path has every rank"; }
  if (job.tables) { return "tables list every rank"; }
  if (job.memory_over_time) { return "memory over time has every rank"; }
  return job.roofline ? "the roofline has every rank" : "";
}

}  // namespace

std::string physical_job_obstacle(const SimulationJob& job) {
  if (std::string why = general_obstacle(job); !why.empty()) { return why; }
  if (job.explain) { return "the critical path has every rank"; }
  for (const RankGraph& graph : job.rank_graphs) {
    const auto is_memory = [](const NodeTask& task) { return task.act == Act::memory; };
    if (!job.memory.server(0) || std::none_of(graph.nodes.begin(), graph.nodes.end(), is_memory)) { continue; }
    return "ranks share a memory that serves them one by one";
  }
  return "";
}

std::string one_rank_obstacle(const SimulationJob& job) {
  if (std::string why = general_obstacle(job); !why.empty()) { return why; }
  const RankGraph& first = job.rank_graphs[0];
  for (const NodeTask& task : first.nodes) {
    if (std::string why = obstacle_of(job, task); !why.empty()) { return why; }
  }
  if (std::string why = obstacle_of_meshes(job); !why.empty()) { return why; }
  for (std::size_t rank = 1; rank < job.rank_graphs.size(); ++rank) {
    if (!are_same(first, job.rank_graphs[rank])) { return fmt::format("the graphs of ranks 0 and {} differ", rank); }
  }
  return "";
}

namespace {

// The run of one rank of each class, or why there is none.
OneRank run_classes(const SimulationJob& job, const std::function<double()>& clock) {
  const double start = clock ? clock() : 0;
  RankClasses classes = physical_classes(job);
  const double end = clock ? clock() : 0;
  if (!classes.obstacle.empty()) { return tl::make_unexpected(std::move(classes.obstacle)); }
  auto simulation = simulate_classes(job, classes);
  if (!simulation) { return tl::make_unexpected(std::string("ranks do not finish")); }
  if (clock) { simulation->comparison_wall_s = end - start; }
  return std::move(*simulation);
}

}  // namespace

Result<OneRankRun> simulate_folded(const SimulationJob& job, const std::function<double()>& clock) {
  std::string why = one_rank_obstacle(job);
  if (why.empty()) {
    if (auto one = run_one(job)) {
      const results::SimulatedRank rank = one->ranks[0];
      one->ranks = {};
      one->ranks.add(job.network.ranks(), rank);
      one->representatives = {0};
      return OneRankRun{std::move(*one), ""};
    } else {
      why = std::move(one).error();
    }
  } else if (job.semantics == Semantics::physical) {
    auto folded = run_classes(job, clock);
    if (folded) { return OneRankRun{std::move(*folded), ""}; }
    why = std::move(folded).error();
  }
  ORRERY_TRY(simulation, simulate(job));
  return OneRankRun{std::move(simulation), std::move(why)};
}

}  // namespace orrery::simulate
