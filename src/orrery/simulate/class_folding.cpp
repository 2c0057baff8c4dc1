// Which class jobs may be folded, and the jobs with one rank of each class or with all ranks.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "orrery/parallel/layout.hpp"
#include "orrery/simulate/class_job.hpp"
#include "orrery/simulate/class_parts.hpp"
#include "orrery/simulate/class_refinement.hpp"
#include "orrery/simulate/pool_folding.hpp"

namespace orrery::simulate {

namespace {

using parallel::Layout;

Layout layout_of(const hardware::Cluster& cluster, const ClassJob& job) {
  return job.layout.empty() ? parallel::rank_order(cluster) : job.layout;
}

// Whether one of two numbers is a multiple of the other.
bool nests(std::uint64_t a, std::uint64_t b) { return a % b == 0 || b % a == 0; }

// The shape of all groups of a family, found without a look at every group: where a stride, and the ranks that a group
// spans, are whole parts of the blocks of every dimension or whole numbers of them, all groups are images of the first.
std::optional<network::Group> even_shape(const Layout& layout, const GroupFamily& family) {
  if (family.is_mirrored || family.outer_degree > 1) { return std::nullopt; }
  std::uint64_t block = 1;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto& digit = layout[i];
    if (i + 1 == layout.size() && family.stride % block == 0) {  // members differ in the last digit only
      network::Group shape;
      shape.extents.push_back({digit.dimension, static_cast<std::int64_t>(family.degree)});
      return shape;
    }
    block *= static_cast<std::uint64_t>(digit.members);
    if (!nests(block, family.stride) || !nests(block, family.stride * family.degree)) { return std::nullopt; }
  }
  const auto shape = parallel::strided_group(layout, static_cast<std::int64_t>(family.stride),
                                             static_cast<std::int64_t>(family.degree));
  return shape.regular ? std::optional(shape) : std::nullopt;
}

}  // namespace

std::optional<network::Group> common_shape(const hardware::Cluster& cluster, const ClassJob& job,
                                           const GroupFamily& family) {
  const Layout layout = layout_of(cluster, job);
  if (const auto shape = even_shape(layout, family)) { return shape; }
  const network::Group shape = shape_of(layout, list_of(job.members(family, 0)));
  for (std::uint64_t group = 1; group < family.count; ++group) {
    // Mirrored groups are numbered by ranks: those of the lower half of the classes.
    if (shape_of(layout, list_of(job.members(family, group))) != shape) { return std::nullopt; }
  }
  return shape;
}

namespace {

class ObstacleSearch {
 public:
  ObstacleSearch(const hardware::Cluster& cluster, const ClassJob& job) : layout_(layout_of(cluster, job)), job_(job) {}

  std::optional<FoldObstacle> run() {
    for (std::size_t c = 0; c < job_.classes.size(); ++c) {
      for (const NodeTask& task : job_.classes[c].graph.nodes) {
        if (task.act != Act::collective || task.group == kWholeMachine) { continue; }
        if (auto reason = of_family(task.group - 1, c)) { return FoldObstacle{*reason, false}; }
      }
      if (auto reason = of_messages(c)) { return FoldObstacle{*reason, true}; }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::string ranks_text(std::size_t c) const {
    return fmt::format("ranks {} to {}", job_.first_rank(c), job_.first_rank(c) + job_.class_ranks - 1);
  }

  std::optional<std::string> of_family(std::uint32_t number, std::size_t c) {
    if (!families_seen_.emplace(std::pair{number, c}, true).second) { return std::nullopt; }
    const GroupFamily& family = job_.families[number];
    const std::uint32_t first = job_.first_rank(c);
    if (is_even(family) && job_.group_of(family, first + job_.class_ranks - 1)) { return std::nullopt; }
    const StridedRanks expected = job_.members(family, *job_.group_of(family, first));
    const auto classes = classes_of(expected, job_.class_ranks);
    const network::Group shape = shape_of(layout_, list_of(expected));
    std::unordered_map<std::uint64_t, bool> known;
    for (std::uint32_t rank = first; rank < first + job_.class_ranks; ++rank) {
      const auto group = job_.group_of(family, rank);
      if (!group) { return fmt::format("only some of {} are in a group of {}", ranks_text(c), family.name); }
      if (!known.emplace(*group, true).second) { continue; }
      const StridedRanks ranks = job_.members(family, *group);
      if (shape_of(layout_, list_of(ranks)) != shape || classes_of(ranks, job_.class_ranks) != classes) {
        return fmt::format("the {} groups of {} have different shapes on the cluster", family.name, ranks_text(c));
      }
    }
    return std::nullopt;
  }

  // All groups have the same shape, and are inside a class or have ranks at the same place of several classes.
  [[nodiscard]] bool is_even(const GroupFamily& family) const {
    if (family.size() == job_.ranks()) { return true; }  // one group
    const bool is_inside = job_.class_ranks % (family.stride * family.degree) == 0;
    return (is_inside || family.stride % job_.class_ranks == 0) && even_shape(layout_, family).has_value();
  }

  // Ranks of a class, and all ranks with them, that behave alike where messages cross dimensions: checking these is
  // enough. Peers in rings are alike for all groups of an even family. Peers `class_ranks` x k away cross the same
  // dimension if a class and the blocks of every dimension are whole parts of each other.
  [[nodiscard]] std::uint64_t ranks_to_check(std::uint32_t ring) const {
    if (ring > 0) {
      const GroupFamily& family = job_.families[ring - 1];
      return is_even(family) ? std::min<std::uint64_t>(job_.class_ranks, family.stride * family.degree)
                             : job_.class_ranks;
    }
    std::uint64_t block = 1;
    for (const auto& digit : layout_) {
      if (job_.class_ranks % block != 0 && block % job_.class_ranks != 0) { return job_.class_ranks; }
      block *= static_cast<std::uint64_t>(digit.members);
    }
    return 1;
  }

  std::optional<std::string> of_messages(std::size_t c) const {
    const Peers peers(job_, c);
    const std::uint32_t first = job_.first_rank(c);
    std::map<Peers::Distance, bool> known;
    // Messages are matched by tag, size and classes of both ends: these must define the distance.
    std::map<std::tuple<Act, std::uint64_t, std::uint64_t, std::uint32_t>, Peers::Distance> alike;
    const auto& nodes = job_.classes[c].graph.nodes;
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      const NodeTask& task = nodes[node];
      if (!is_message(task)) { continue; }
      const auto distance = peers.distance(node);
      const auto key = std::tuple(task.act, task.tag, task.amount, task.peer / job_.class_ranks);
      if (alike.try_emplace(key, distance).first->second != distance) {
        return fmt::format("{} have messages with the same tag to several ranks of a class", ranks_text(c));
      }
      if (!known.emplace(distance, true).second) { continue; }
      const int crossed = parallel::crossed_dimension(layout_, first, task.peer);
      const std::uint32_t peer_class = task.peer / job_.class_ranks;
      const std::uint64_t last = first + ranks_to_check(distance.second);
      for (std::uint32_t rank = first; rank < last; ++rank) {
        const std::uint32_t peer = peers.of(node, rank);
        if (peer / job_.class_ranks != peer_class) {
          return fmt::format("{} send to ranks of several classes", ranks_text(c));
        }
        if (parallel::crossed_dimension(layout_, rank, peer) != crossed) {
          return fmt::format("messages of {} cross different dimensions of the cluster", ranks_text(c));
        }
      }
    }
    return std::nullopt;
  }

  Layout layout_;
  const ClassJob& job_;
  std::map<std::pair<std::uint32_t, std::size_t>, bool> families_seen_;
};

}  // namespace

namespace {

bool uses_pool(const hardware::Cluster& cluster, const ClassJob& job) {
  return !cluster.second_tier.levels.empty() &&
         std::any_of(job.classes.begin(), job.classes.end(), [](const ClassGraph& one) {
           return std::any_of(one.graph.nodes.begin(), one.graph.nodes.end(),
                              [](const NodeTask& task) { return task.act == Act::memory; });
         });
}

PoolBlocks blocks_of(const hardware::Cluster& cluster, const ClassJob& job) {
  return {cluster.second_tier.levels, devices_on(layout_of(cluster, job), job.ranks())};
}

std::vector<std::uint32_t> class_numbers(const ClassJob& job) {
  std::vector<std::uint32_t> classes(job.ranks());
  for (std::uint32_t rank = 0; rank < job.ranks(); ++rank) { classes[rank] = rank / job.class_ranks; }
  return classes;
}

// For each rank of a class, the members of its group in its block of a level; 0 for ranks without a group.
std::vector<std::uint32_t> members_near(const PoolBlocks& blocks, std::size_t level, const ClassJob& job, std::size_t c,
                                        const GroupFamily& family) {
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, std::uint32_t>> counts;  // by group and block
  std::vector<std::uint32_t> near;
  for (std::uint32_t rank = job.first_rank(c); rank < job.first_rank(c) + job.class_ranks; ++rank) {
    const auto group = job.group_of(family, rank);
    if (group && !counts.contains(*group)) {
      counts[*group] = blocks.members_by_block(level, list_of(job.members(family, *group)));
    }
    near.push_back(group ? counts[*group][blocks.block(level, rank)] : 0);
  }
  return near;
}

// Whether the members of a group that access the same bytes are as many near every rank of a class.
bool has_even_groups(const PoolBlocks& blocks, const ClassJob& job) {
  for (std::size_t c = 0; c < job.classes.size(); ++c) {
    std::vector<std::uint32_t> families;
    for (const NodeTask& task : job.classes[c].graph.nodes) {
      const bool is_new = std::find(families.begin(), families.end(), task.group - 1) == families.end();
      if (is_combined(task) && task.group != kWholeMachine && is_new) { families.push_back(task.group - 1); }
    }
    for (const std::uint32_t number : families) {
      for (std::size_t level = 0; level < blocks.levels(); ++level) {
        const auto near = members_near(blocks, level, job, c, job.families[number]);
        if (std::count(near.begin(), near.end(), near.front()) != std::ssize(near)) { return false; }
      }
    }
  }
  return true;
}

}  // namespace

std::optional<FoldObstacle> fold_obstacle(const hardware::Cluster& cluster, const ClassJob& job) {
  if (cluster.topology) { return FoldObstacle{"ranks of a class share the links of the topology", false}; }
  if (uses_pool(cluster, job)) {
    const PoolBlocks blocks = blocks_of(cluster, job);
    if (!blocks.are_alike(class_numbers(job)) || !has_even_groups(blocks, job)) {
      return FoldObstacle{"ranks of a class share a level of the pool of memory with different ranks", false};
    }
  }
  return ObstacleSearch(cluster, job).run();
}

// ---- jobs ----------------------------------------------------------------------------------------------------------

namespace {

class FlowJobBuilder {
 public:
  // `colours`: one rank of each is simulated; without them, every rank. `by_class`: they are the classes of the job.
  FlowJobBuilder(const hardware::Cluster& cluster, const ClassJob& job, const std::optional<RankColours>& colours,
                 bool by_class)
      : layout_(layout_of(cluster, job)), job_(job), colours_(colours), by_class_(by_class) {
    flow_.cluster = cluster;
    flow_.egress = job.egress;
    flow_.kinds = first_kinds();
    flow_.job = job.machine;
    flow_.job.network = network_of(cluster);
    if (colours) {
      flow_.ranks_of = colours->ranks;
      flow_.simulated = colours->of;
    } else {
      for (std::uint32_t rank = 0; rank < job.ranks(); ++rank) { flow_.simulated.push_back(rank); }
    }
    for (const GroupFamily& family : job.families) { kinds_.push_back(number_of_kind(flow_.kinds, family.name)); }
    groups_.resize(job.families.size());
    slots_.resize(job.classes.size());
    if (uses_pool(cluster, job)) { use_pool(); }
  }

  FlowJob run() {
    flow_.groups.push_back({world_shape(), number_of_kind(flow_.kinds, "world")});
    if (colours_) {
      for (const std::uint32_t rank : colours_->first_rank) { add_rank(rank); }
    } else {
      for (std::uint32_t rank = 0; rank < job_.ranks(); ++rank) { add_rank(rank); }
    }
    if (!colours_) { use_topology(flow_, layout_); }
    return std::move(flow_);
  }

 private:
  [[nodiscard]] network::Group world_shape() const {
    const auto even = parallel::strided_group(layout_, 1, static_cast<std::int64_t>(job_.ranks()));
    if (even.regular) { return even; }
    std::vector<std::uint32_t> all(job_.ranks());
    std::iota(all.begin(), all.end(), 0U);
    return shape_of(layout_, all);
  }

  void use_pool() {
    blocks_ = blocks_of(flow_.cluster, job_);
    if (!colours_) {
      flow_.pool.devices = devices_on(layout_, job_.ranks());
      return;
    }
    std::vector<std::uint32_t> colours;
    for (std::uint32_t rank = 0; rank < job_.ranks(); ++rank) { colours.push_back(colours_->of[rank]); }
    flow_.pool.folded = blocks_->places(colours);
  }

  // Of a folded job: members of the group near a rank that accesses the same bytes as they.
  void count_members(std::uint32_t group, std::optional<std::uint32_t> family, std::uint32_t rank) {
    if (!colours_ || !blocks_) { return; }
    std::vector<std::uint32_t> members(family ? 0 : job_.ranks());
    std::iota(members.begin(), members.end(), 0U);
    if (family) {
      members = list_of(job_.members(job_.families[*family], *job_.group_of(job_.families[*family], rank)));
    }
    for (std::uint32_t level = 0; level < blocks_->levels(); ++level) {
      flow_.pool.members[{group, flow_.simulated[rank], level}] = blocks_->near(level, rank, members);
    }
  }

  // What the nodes of a class use, in the order of their first use.
  struct Slots {
    std::vector<std::uint32_t> families;       // NodeTask::group is 1 + number of the family
    std::vector<std::uint32_t> combined;       // the same number, or 0: members access the same bytes together
    std::vector<std::uint32_t> peers;          // NodeTask::peer is a position here: the first message to the peer
    std::optional<std::uint32_t> shared_rank;  // whose graph is that of the class
  };

  // The graph of a class with slots. Adds what is in them to `slots`.
  [[nodiscard]] RankGraph graph_with_slots(std::size_t c, Slots& slots) const {
    RankGraph graph = job_.classes[c].graph;
    const Peers peers(job_, c);
    std::vector<bool> is_used(job_.families.size() + 1, false);
    std::map<Peers::Distance, std::uint32_t> peer_slots;
    for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
      NodeTask& task = graph.nodes[node];
      if (!uses_group(task)) { task.group = kWholeMachine; }
      if (uses_group(task) && !is_used[task.group]) {
        is_used[task.group] = true;
        slots.families.push_back(task.group - 1);
      }
      const bool is_new_combined = is_combined(task) && std::find(slots.combined.begin(), slots.combined.end(),
                                                                  task.group) == slots.combined.end();
      if (is_new_combined) { slots.combined.push_back(task.group); }
      if (!is_message(task)) { continue; }
      const auto [found, is_new] =
          peer_slots.try_emplace(peers.distance(node), static_cast<std::uint32_t>(slots.peers.size()));
      if (is_new) { slots.peers.push_back(node); }
      task.peer = found->second;
    }
    return graph;
  }

  [[nodiscard]] RankBinding binding_of(std::uint32_t rank, const Slots& slots) {
    RankBinding binding;
    binding.groups.assign(job_.families.size() + 1, kWholeMachine);
    for (const std::uint32_t family : slots.families) { binding.groups[family + 1] = group_of(family, rank); }
    for (const std::uint32_t slot : slots.combined) {
      count_members(binding.groups[slot], slot == kWholeMachine ? std::nullopt : std::optional(slot - 1), rank);
    }
    const Peers peers(job_, rank / job_.class_ranks);
    for (const std::uint32_t message : slots.peers) {
      const std::uint32_t peer = peers.of(message, rank);
      binding.peers.push_back(
          {flow_.simulated[peer], static_cast<std::uint16_t>(parallel::crossed_dimension(layout_, rank, peer))});
    }
    return binding;
  }

  void add_rank(std::uint32_t rank) {
    const std::size_t c = rank / job_.class_ranks;
    Slots& slots = slots_[c];
    if (slots.shared_rank) {
      flow_.job.rank_graphs.share(*slots.shared_rank, binding_of(rank, slots));
    } else {
      slots.shared_rank = static_cast<std::uint32_t>(flow_.job.rank_graphs.size());
      RankGraph graph = graph_with_slots(c, slots);
      flow_.job.rank_graphs.push_back(std::move(graph), binding_of(rank, slots));
    }
    flow_.job.files.push_back(job_.classes[c].file);
    if (colours_) { flow_.job.real_ranks.push_back(rank); }
  }

  // The simulated ranks of a group, ascending.
  [[nodiscard]] std::vector<std::uint32_t> simulated_of(const StridedRanks& ranks) const {
    if (by_class_) { return classes_of(ranks, job_.class_ranks); }
    std::vector<std::uint32_t> simulated = list_of(ranks);
    if (colours_) {
      for (std::uint32_t& rank : simulated) { rank = colours_->of[rank]; }
    }
    std::sort(simulated.begin(), simulated.end());
    simulated.erase(std::unique(simulated.begin(), simulated.end()), simulated.end());
    return simulated;
  }

  // How many groups have members of these simulated ranks. They have all ranks that these stand for.
  [[nodiscard]] std::uint64_t copies_of(const std::vector<std::uint32_t>& simulated, std::uint64_t members) const {
    std::uint64_t ranks = 0;
    for (const std::uint32_t rank : simulated) { ranks += flow_.ranks_for(rank); }
    return ranks / members;
  }

  // 1 + the group of a rank in FlowJob::job.groups. Folded, groups of the same simulated ranks are one: these ranks are
  // in groups of one kind only.
  std::uint32_t group_of(std::uint32_t number, std::uint32_t rank) {
    const GroupFamily& family = job_.families[number];
    const std::uint64_t group = *job_.group_of(family, rank);
    const auto [known, is_new] = groups_[number].try_emplace(group, 0U);
    if (!is_new) { return known->second; }
    const StridedRanks ranks = job_.members(family, group);
    std::vector<std::uint32_t> simulated = simulated_of(ranks);
    const auto [same, is_first] = known_.try_emplace({number, simulated}, 0U);
    if (is_first) {
      const auto even = even_shape(layout_, family);
      flow_.groups.push_back(
          {even ? *even : shape_of(layout_, list_of(ranks)), kinds_[number], copies_of(simulated, ranks.degree)});
      flow_.job.groups.push_back(
          {colours_ ? family.name : std::to_string(family.first_name + group), std::move(simulated)});
      same->second = static_cast<std::uint32_t>(flow_.job.groups.size());
    }
    return known->second = same->second;
  }

  Layout layout_;
  const ClassJob& job_;
  const std::optional<RankColours>& colours_;
  bool by_class_;
  FlowJob flow_;
  std::optional<PoolBlocks> blocks_;
  std::vector<std::uint32_t> kinds_;                                      // by family
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> groups_;  // by family: of its groups
  std::vector<Slots> slots_;                                              // by class
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t> known_;
};

// The classes of the job.
RankColours class_colours(const ClassJob& job) {
  RankColours made;
  for (std::uint32_t c = 0; c < job.classes.size(); ++c) {
    made.of.add(job.class_ranks, c);
    made.first_rank.push_back(job.first_rank(c));
  }
  made.ranks.assign(job.classes.size(), job.class_ranks);
  return made;
}

}  // namespace

FoldedJob folded(const hardware::Cluster& cluster, const ClassJob& job, Folding folding) {
  FoldedJob made;
  std::optional<RankColours> colours;
  bool by_class = false;
  if (folding == Folding::automatic) {
    made.unfolded_because = fold_obstacle(cluster, job).value_or(FoldObstacle{}).text;
    by_class = made.unfolded_because.empty();
    if (by_class) {
      colours = class_colours(job);
    } else if (!cluster.topology) {
      const auto blocks = uses_pool(cluster, job) ? std::optional(blocks_of(cluster, job)) : std::nullopt;
      colours = fine_colours(layout_of(cluster, job), job, blocks ? &*blocks : nullptr);
    }
    if (colours) { made.unfolded_because.clear(); }
  }
  made.job = FlowJobBuilder(cluster, job, colours, by_class).run();
  return made;
}

}  // namespace orrery::simulate
