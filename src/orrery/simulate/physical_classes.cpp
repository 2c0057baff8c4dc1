#include "orrery/simulate/physical_classes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "orrery/simulate/class_parts.hpp"
#include "orrery/simulate/envelope_matcher.hpp"
#include "orrery/simulate/fold.hpp"
#include "orrery/simulate/one_rank.hpp"
#include "orrery/simulate/physical_schedule.hpp"
#include "orrery/simulate/simulate.hpp"

namespace orrery::simulate {

namespace {

// A group on the network.
struct NetworkShape {
  std::vector<Extent> extents;
  bool is_line = false;       // not a grid of the network's dimensions
  bool is_ascending = false;  // the ranks of the list

  [[nodiscard]] std::vector<std::uint64_t> words(std::size_t size) const {
    std::vector<std::uint64_t> words{size, is_line ? 1U : 0U, is_ascending ? 1U : 0U};
    for (const Extent& extent : extents) {
      words.insert(words.end(), {extent.dimension, extent.members, extent.stride});
    }
    return words;
  }
};

NetworkShape network_shape(const Network& network, const std::vector<std::uint32_t>* ranks) {
  NetworkShape shape{extents_of(network, ranks), false, true};
  if (ranks == nullptr) { return shape; }
  const bool is_single = shape.extents.size() == 1 && shape.extents.front().members == ranks->size();
  shape.is_line = is_single && differing_dimensions(network, *ranks) > 1;
  shape.is_ascending = std::is_sorted(ranks->begin(), ranks->end());
  return shape;
}

// The dimension and direction of a message that uses links between its two ranks only; a text if it uses others.
tl::expected<std::uint16_t, std::string> way_of(const Network& network, std::uint32_t from, std::uint32_t to) {
  std::optional<std::uint16_t> way;
  std::uint32_t stride = 1;
  for (std::uint16_t i = 0; i < network.dimensions.size(); ++i) {
    const NetworkDimension& dimension = network.dimensions[i];
    const std::uint32_t here = from / stride % dimension.ranks, there = to / stride % dimension.ranks;
    stride *= dimension.ranks;
    if (here == there) { continue; }
    if (way) { return tl::make_unexpected(std::string("crosses several dimensions")); }
    way = static_cast<std::uint16_t>(2U * i);
    if (!hardware::has_neighbours_only(dimension.wiring) || (here + 1) % dimension.ranks == there) { continue; }
    if ((there + 1) % dimension.ranks != here) {
      return tl::make_unexpected(std::string("passes other ranks of a ring"));
    }
    way = static_cast<std::uint16_t>(2U * i + 1);  // backward
  }
  return way.value_or(kNoDimensionList);
}

// The position whose place in a dimension of its group is `there`, the others as of `position`.
std::uint32_t moved(const Extent& extent, std::uint32_t position, std::uint32_t there) {
  return position - position / extent.stride % extent.members * extent.stride + there * extent.stride;
}

class ClassFinder {
 public:
  explicit ClassFinder(const SimulationJob& job) : job_(job) {
    shapes_.push_back(network_shape(job.network, nullptr));
    for (const Group& group : job.groups) { shapes_.push_back(network_shape(job.network, &group.ranks)); }
  }

  RankClasses run() {
    RankClasses made;
    made.obstacle = physical_job_obstacle(job_);
    if (made.obstacle.empty()) { made.obstacle = collectives_obstacle(0); }
    FlowJob view;
    if (made.obstacle.empty()) { made.obstacle = add_view(view); }
    if (!made.obstacle.empty()) { return made; }
    StableClasses stable = stable_classes(view, views());
    classes_ = std::move(stable.of);
    std::vector<std::uint32_t> first;
    for (std::uint32_t rank = 0; rank < classes_.size(); ++rank) {
      if (classes_[rank] == first.size()) { first.push_back(rank); }
    }
    made.obstacle = first.size() == classes_.size() ? "no two ranks do the same" : std::move(stable.ambiguous);
    for (std::size_t i = 0; i < first.size() && made.obstacle.empty(); ++i) {
      made.obstacle = collectives_obstacle(first[i]);
    }
    if (made.obstacle.empty()) { made.obstacle = groups_obstacle(first); }
    if (made.obstacle.empty()) { made.obstacle = messages_obstacle(); }
    if (!made.obstacle.empty()) { return made; }
    for (const std::uint32_t c : classes_) { made.first.push_back(first[c]); }
    made.representatives = std::move(first);
    return made;
  }

 private:
  [[nodiscard]] std::string name_of_group(std::uint32_t group) const {
    return group == kWholeMachine ? "the group of all ranks" : "group " + job_.groups[group - 1].name;
  }

  // The job as refinement reads it: kinds of groups are their shapes on the network, dimensions of messages are their
  // ways. The text says why a message has none.
  std::string add_view(FlowJob& view) const {
    view.job.groups = job_.groups;
    view.job.rank_graphs = job_.rank_graphs;
    std::map<std::vector<std::uint64_t>, std::uint32_t> kinds;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const std::size_t size = i == 0 ? job_.rank_graphs.size() : job_.groups[i - 1].ranks.size();
      const auto number = static_cast<std::uint32_t>(kinds.size());
      view.groups.push_back({{}, kinds.try_emplace(shapes_[i].words(size), number).first->second});
    }
    RankGraphs& graphs = view.job.rank_graphs;
    for (std::uint32_t rank = 0; rank < graphs.size(); ++rank) {
      const std::vector<NodeTask>& nodes = graphs[rank].nodes;
      if (std::none_of(nodes.begin(), nodes.end(), is_message)) { continue; }
      for (NodeTask& task : graphs.own(rank).nodes) {
        if (!is_message(task)) { continue; }
        const bool sends = task.act == Act::send;
        const auto way = way_of(job_.network, sends ? rank : task.peer, sends ? task.peer : rank);
        if (!way) { return fmt::format("a message of ranks {} and {} {}", rank, task.peer, way.error()); }
        task.dimensions = *way;
      }
    }
    return "";
  }

  // Of a group: the positions behind `position` in each dimension; by one, and with halving and doubling by XOR. Every
  // step of an algorithm goes to a position that these lead to, in the same way for all positions.
  [[nodiscard]] std::vector<std::uint32_t> neighbours_of(std::uint32_t group, std::uint32_t position) const {
    std::vector<std::uint32_t> found;
    for (const Extent& extent : shapes_[group].extents) {
      const std::uint32_t n = extent.members, here = position / extent.stride % n;
      found.push_back(moved(extent, position, (here + 1) % n));
      for (std::uint32_t bit = 1; has_pairs(extent.dimension) && bit < n; bit *= 2) {
        if ((here ^ bit) < n) { found.push_back(moved(extent, position, here ^ bit)); }
      }
    }
    return found;
  }

  // Whether some collective halves and doubles there.
  [[nodiscard]] bool has_pairs(std::uint32_t dimension) const {
    return std::any_of(job_.system.algorithms.begin(), job_.system.algorithms.end(), [&](const Choice& choice) {
      const auto* list = std::get_if<std::vector<DimensionAlgorithm>>(&choice);
      return list != nullptr && dimension < list->size() &&
             (*list)[dimension].method == CollectiveAlgorithm::halving_doubling;
    });
  }

  // Where a position sends to over links of its own to every member: to all, by distance and with halving and doubling
  // by XOR. A rank whose messages of two collectives use one link is not like a rank whose messages use two.
  [[nodiscard]] std::vector<std::uint32_t> linked_to(std::uint32_t group, std::uint32_t position) const {
    std::vector<std::uint32_t> found;
    for (const Extent& extent : shapes_[group].extents) {
      if (!hardware::has_pair_links(job_.network.dimensions[extent.dimension].wiring)) { continue; }
      const std::uint32_t n = extent.members, here = position / extent.stride % n;
      for (std::uint32_t i = 1; i < n; ++i) { found.push_back(moved(extent, position, (here + i) % n)); }
      for (std::uint32_t i = 1; has_pairs(extent.dimension) && i < n; ++i) {
        if ((here ^ i) < n) { found.push_back(moved(extent, position, here ^ i)); }
      }
    }
    return found;
  }

  [[nodiscard]] std::uint32_t member(std::uint32_t group, std::uint32_t position) const {
    return group == kWholeMachine ? position : job_.groups[group - 1].ranks[position];
  }

  // The neighbours in the groups of a rank, in the order of their first use; and which of its targets are the same.
  [[nodiscard]] RankViews views() const {
    std::vector<std::unordered_map<std::uint32_t, std::uint32_t>> positions(job_.groups.size() + 1);
    for (std::uint32_t group = 1; group < positions.size(); ++group) {
      const auto& ranks = job_.groups[group - 1].ranks;
      for (std::uint32_t i = 0; i < ranks.size(); ++i) { positions[group].emplace(ranks[i], i); }
    }
    RankViews made;
    for (std::uint32_t rank = 0; rank < job_.rank_graphs.size(); ++rank) {
      auto& neighbours = made.neighbours.emplace_back();
      auto& marks = made.marks.emplace_back();
      std::unordered_map<std::uint32_t, std::uint32_t> targets;
      const auto mark = [&](std::uint32_t target) {
        marks.push_back(targets.try_emplace(target, static_cast<std::uint32_t>(targets.size())).first->second);
      };
      for (const std::uint32_t group : groups_of(rank)) {
        const std::uint32_t position = group == kWholeMachine ? rank : positions[group].at(rank);
        for (const std::uint32_t other : neighbours_of(group, position)) { neighbours.push_back(member(group, other)); }
        for (const std::uint32_t other : linked_to(group, position)) { mark(member(group, other)); }
      }
      for (const NodeTask& task : job_.rank_graphs[rank].nodes) {
        if (task.act == Act::send) { mark(task.peer); }
      }
    }
    return made;
  }

  // In the order of their first use.
  [[nodiscard]] std::vector<std::uint32_t> groups_of(std::uint32_t rank) const {
    std::vector<std::uint32_t> groups;
    for (const NodeTask& task : job_.rank_graphs[rank].nodes) {
      if (!has_group(task) || std::find(groups.begin(), groups.end(), task.group) != groups.end()) { continue; }
      groups.push_back(task.group);
    }
    return groups;
  }

  // Why the collectives of a rank could tell the members of their groups apart.
  [[nodiscard]] std::string collectives_obstacle(std::uint32_t rank) const {
    for (const NodeTask& task : job_.rank_graphs[rank].nodes) {
      if (task.act != Act::collective) { continue; }
      if (std::string why = collective_obstacle(task); !why.empty()) { return why; }
    }
    return "";
  }

  [[nodiscard]] std::string collective_obstacle(const NodeTask& task) const {
    if (std::string why = kind_obstacle(job_, task.collective); !why.empty()) { return why; }
    const auto& list =
        std::get<std::vector<DimensionAlgorithm>>(job_.system.algorithms[static_cast<std::size_t>(task.collective)]);
    const NetworkShape& shape = shapes_[task.group];
    if (shape.is_line) { return name_of_group(task.group) + " is no grid of the network's dimensions"; }
    for (const Extent& extent : shape.extents) {
      const bool is_whole = task.group == kWholeMachine;
      if (is_whole && extent.dimension <= 15 && ((task.dimensions >> extent.dimension) & 1U) == 0) { continue; }
      if (extent.dimension >= list.size()) { return fmt::format("dimension {} has no algorithm", extent.dimension); }
      const NetworkDimension& dimension = job_.network.dimensions[extent.dimension];
      const bool is_ring = hardware::has_neighbours_only(dimension.wiring);
      if (is_ring && (extent.members != dimension.ranks || !shape.is_ascending)) {
        return name_of_group(task.group) + " has a part of a ring, whose other links it may use";
      }
      std::string why = algorithm_obstacle(job_, task.collective, list[extent.dimension], extent.dimension);
      if (!why.empty()) { return why; }
    }
    return "";
  }

  // All ranks of a group use it, those of a class in the same place among their groups; and if one of them is
  // simulated, so are those that are simulated in place of the others. `first`: by class.
  [[nodiscard]] std::string groups_obstacle(const std::vector<std::uint32_t>& first) const {
    struct Users {
      std::map<std::uint32_t, std::uint32_t> roles;  // by class
      std::size_t ranks = 0, simulated = 0;
    };
    std::map<std::uint32_t, Users> all;
    for (std::uint32_t rank = 0; rank < classes_.size(); ++rank) {
      const std::vector<std::uint32_t> groups = groups_of(rank);
      for (std::uint32_t role = 0; role < groups.size(); ++role) {
        Users& users = all[groups[role]];
        ++users.ranks;
        users.simulated += first[classes_[rank]] == rank ? 1 : 0;
        if (users.roles.try_emplace(classes_[rank], role).first->second != role) {
          return name_of_group(groups[role]) + " has another place in the graphs of its ranks";
        }
      }
    }
    for (const auto& [group, users] : all) {
      const std::size_t size = group == kWholeMachine ? classes_.size() : job_.groups[group - 1].ranks.size();
      if (users.ranks != size) { return name_of_group(group) + " is not used by all its ranks"; }
      if (users.simulated != 0 && users.simulated != users.roles.size()) {
        return name_of_group(group) + " has ranks of classes whose first ranks are in different groups";
      }
    }
    return "";
  }

  // By tag and bytes, the messages from a class to a class go from each rank of the one to a rank of its own of the
  // other. Peers of a rank are unique by these (StableClasses::ambiguous).
  [[nodiscard]] std::string messages_obstacle() const {
    std::unordered_map<Envelope, std::uint32_t, EnvelopeHash> sources;  // by class of the source and receiving rank
    std::unordered_set<Envelope, EnvelopeHash> sent;                    // by sending rank and class of the target
    for (std::uint32_t rank = 0; rank < classes_.size(); ++rank) {
      for (const NodeTask& task : job_.rank_graphs[rank].nodes) {
        if (task.act != Act::receive) { continue; }
        sources.emplace(Envelope{task.tag, task.amount, classes_[task.peer], rank, 0}, task.peer);
      }
    }
    for (std::uint32_t rank = 0; rank < classes_.size(); ++rank) {
      for (const NodeTask& task : job_.rank_graphs[rank].nodes) {
        if (task.act != Act::send) { continue; }
        const auto found = sources.find({task.tag, task.amount, classes_[rank], task.peer, 0});
        if (found == sources.end() || found->second != rank) {
          return fmt::format("rank {} does not receive a message of rank {}", task.peer, rank);
        }
        sent.insert({task.tag, task.amount, rank, classes_[task.peer], 0});
      }
    }
    return sent.size() == sources.size() ? "" : "a rank receives a message that no rank sends";
  }

  const SimulationJob& job_;
  std::vector<NetworkShape> shapes_;    // [kWholeMachine]: all ranks
  std::vector<std::uint32_t> classes_;  // by rank
};

}  // namespace

RankClasses physical_classes(const SimulationJob& job) { return ClassFinder(job).run(); }

SimulationJob job_of_classes(const SimulationJob& job, const RankClasses& classes) {
  SimulationJob folded = job;
  folded.images = classes.first;
  for (std::uint32_t rank = 0; rank < classes.first.size(); ++rank) {
    if (classes.first[rank] != rank) { folded.rank_graphs.remove_nodes(rank); }
  }
  return folded;
}

Result<results::Simulation> simulate_classes(const SimulationJob& job, const RankClasses& classes) {
  ORRERY_TRY(simulation, simulate(job_of_classes(job, classes)));
  results::RankRuns<results::SimulatedRank> ranks;
  std::vector<results::SimulatedRank> simulated;
  for (const results::SimulatedRank& rank : simulation.ranks) { simulated.push_back(rank); }
  for (const std::uint32_t first : classes.first) { ranks.push_back(simulated[first]); }
  simulation.ranks = std::move(ranks);
  simulation.simulated_ranks = classes.representatives.size();
  simulation.representatives = classes.representatives;
  return simulation;
}

}  // namespace orrery::simulate
