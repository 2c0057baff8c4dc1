#include "orrery/simulate/fold.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/simulate/class_parts.hpp"
#include "orrery/simulate/pool_folding.hpp"

namespace orrery::simulate {

namespace {

using Words = std::vector<std::uint64_t>;

// Numbers of lists of words, in the order in which they are first asked for. Equal lists, equal numbers: no hash
// decides.
class Numbering {
 public:
  std::uint32_t of(Words words) {
    return known_.try_emplace(std::move(words), static_cast<std::uint32_t>(known_.size())).first->second;
  }
  [[nodiscard]] std::size_t count() const { return known_.size(); }

 private:
  std::map<Words, std::uint32_t> known_;
};

class Refinement {
 public:
  explicit Refinement(const FlowJob& job, const RankViews* views = nullptr)
      : job_(job), graphs_(job.job.rank_graphs), views_(views), groups_(graphs_.size()) {
    if (uses_pool(job)) {
      std::vector<std::uint32_t> devices = job.pool.devices;
      if (devices.empty()) {
        devices.resize(graphs_.size());
        std::iota(devices.begin(), devices.end(), 0U);
      }
      pool_.emplace(job.cluster.second_tier.levels, std::move(devices));
    }
    for (std::uint32_t rank = 0; rank < graphs_.size(); ++rank) { list_groups(rank); }
    if (pool_) { count_members(); }
    Numbering numbers;
    std::unordered_map<const RankGraph*, std::uint32_t> known;  // graphs that ranks share are compared once
    for (std::uint32_t rank = 0; rank < graphs_.size(); ++rank) {
      const auto [found, is_new] = known.try_emplace(&graphs_[rank], 0U);
      if (is_new) { found->second = numbers.of(graph_words(rank)); }
      classes_.push_back(found->second);
    }
    count_ = numbers.count();
    if (!job.nodes_entries.empty()) { divide_by_nodes(); }
    if (views_ != nullptr) { divide_by_marks(); }
  }

  void run() {
    for (std::size_t before = 0; before != count_;) {
      before = count_;
      refine();
    }
  }

  [[nodiscard]] const std::vector<std::uint32_t>& classes() const { return classes_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  // Of a job with memory accesses to a pool.
  [[nodiscard]] const PoolBlocks* pool() const { return pool_ ? &*pool_ : nullptr; }
  // The groups that a rank uses, in the order of its nodes; and what each is, the same number for groups that fold.
  [[nodiscard]] const std::vector<std::uint32_t>& groups(std::uint32_t rank) const { return groups_[rank]; }
  [[nodiscard]] std::uint32_t folded_group(std::uint32_t group) const { return group_class_.at(group); }
  [[nodiscard]] std::uint64_t copies(std::uint32_t group) const {
    const std::uint32_t number = group_class_.at(group);
    return static_cast<std::uint64_t>(
        std::count_if(group_class_.begin(), group_class_.end(), [=](const auto& one) { return one.second == number; }));
  }

 private:
  static bool uses_pool(const FlowJob& job) {
    const auto is_memory = [](const NodeTask& task) { return task.act == Act::memory; };
    return !job.cluster.second_tier.levels.empty() &&
           std::any_of(job.job.rank_graphs.begin(), job.job.rank_graphs.end(), [&](const RankGraph& graph) {
             return std::any_of(graph.nodes.begin(), graph.nodes.end(), is_memory);
           });
  }

  // Peaks, capacities and power follow from the nodes, even where times are equal.
  void divide_by_nodes() {
    Numbering numbers;
    for (std::uint32_t rank = 0; rank < graphs_.size(); ++rank) {
      classes_[rank] = numbers.of({classes_[rank], job_.nodes_entries[rank]});
    }
    count_ = numbers.count();
  }

  void divide_by_marks() {
    Numbering numbers;
    for (std::uint32_t rank = 0; rank < graphs_.size(); ++rank) {
      Words words{classes_[rank]};
      words.insert(words.end(), views_->marks[rank].begin(), views_->marks[rank].end());
      classes_[rank] = numbers.of(std::move(words));
    }
    count_ = numbers.count();
  }

  // The groups of a rank in the order of their first use: a role of the rank.
  void list_groups(std::uint32_t rank) {
    for (const NodeTask& task : graphs_[rank].nodes) {
      if (!has_group(task)) { continue; }
      auto& list = groups_[rank];
      if (std::find(list.begin(), list.end(), task.group) != list.end()) { continue; }
      members_[task.group].emplace_back(rank, static_cast<std::uint32_t>(list.size()));
      list.push_back(task.group);
    }
  }

  [[nodiscard]] std::uint64_t role(std::uint32_t rank, std::uint32_t group) const {
    const auto& list = groups_[rank];
    return static_cast<std::uint64_t>(std::find(list.begin(), list.end(), group) - list.begin());
  }

  // A graph without the names of groups and peers.
  [[nodiscard]] Words graph_words(std::uint32_t rank) const {
    const RankGraph& graph = graphs_[rank];
    Words words;
    words.reserve(graph.nodes.size() * 6 + graph.children.size());
    for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
      const NodeTask& task = graph.nodes[node];
      words.push_back(std::uint64_t{static_cast<std::uint8_t>(task.act)} << 24U |
                      std::uint64_t{static_cast<std::uint8_t>(task.slot)} << 16U |
                      std::uint64_t{static_cast<std::uint8_t>(task.collective)} << 8U |
                      (task.counts_as_compute ? 1U : 0U));
      words.push_back(task.amount);
      words.push_back(task.tag);
      words.push_back(std::uint64_t{task.dimensions} << 32U | static_cast<std::uint32_t>(task.priority));
      words.push_back(has_group(task) ? role(rank, task.group) : 0);
      const auto children = graph.children_of(node);
      words.push_back(children.size());
      words.insert(words.end(), children.begin(), children.end());
    }
    return words;
  }

  // Shape, kind, and the classes and roles of all members.
  [[nodiscard]] Words group_words(std::uint32_t group) const {
    const FlowGroup& flow = job_.groups[group];
    Words words{flow.kind, flow.shape.regular ? 1U : 0U};
    for (const network::Extent& extent : flow.shape.extents) {
      words.push_back(static_cast<std::uint64_t>(extent.dimension));
      words.push_back(static_cast<std::uint64_t>(extent.members));
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> users;
    for (const auto& [rank, its_role] : members_.at(group)) { users.emplace_back(classes_[rank], its_role); }
    std::sort(users.begin(), users.end());
    for (std::size_t begin = 0, end = 0; begin < users.size(); begin = end) {
      while (end < users.size() && users[end] == users[begin]) { ++end; }
      words.push_back(std::uint64_t{users[begin].first} << 32U | users[begin].second);
      words.push_back(end - begin);
    }
    return words;
  }

  // Members of the groups of each rank that are in its blocks.
  void count_members() {
    for (const auto& list : groups_) { near_.emplace_back(pool_->levels() * list.size()); }
    for (const auto& [group, users] : members_) {
      for (std::size_t level = 0; group != kWholeMachine && level < pool_->levels(); ++level) {
        auto counts = pool_->members_by_block(level, job_.job.groups[group - 1].ranks);
        for (const auto& [rank, its_role] : users) {
          near_[rank][level * groups_[rank].size() + its_role] = counts[pool_->block(level, rank)];
        }
      }
    }
  }

  // On a pool: what the blocks of a rank consist of, and how many members of its groups are in them.
  void add_blocks(std::uint32_t rank, const std::vector<std::vector<std::uint32_t>>& blocks, Words& words) const {
    if (!pool_) { return; }
    for (const auto& level : blocks) { words.push_back(level[rank]); }
    words.insert(words.end(), near_[rank].begin(), near_[rank].end());
  }

  void refine() {
    Numbering groups;
    group_class_.clear();
    std::vector<std::vector<std::uint32_t>> blocks;
    for (std::size_t level = 0; pool_ && level < pool_->levels(); ++level) {
      blocks.push_back(pool_->contents(level, classes_));
    }
    for (const auto& [group, members] : members_) { group_class_[group] = groups.of(group_words(group)); }
    Numbering numbers;
    std::vector<std::uint32_t> next;
    for (std::uint32_t rank = 0; rank < graphs_.size(); ++rank) {
      Words words{classes_[rank]};
      for (const std::uint32_t group : groups_[rank]) { words.push_back(group_class_.at(group)); }
      add_blocks(rank, blocks, words);
      for (const NodeTask& task : graphs_[rank].nodes) {
        if (is_message(task)) { words.push_back(classes_[task.peer]); }
      }
      if (views_ != nullptr) {
        for (const std::uint32_t other : views_->neighbours[rank]) { words.push_back(classes_[other]); }
      }
      next.push_back(numbers.of(std::move(words)));
    }
    classes_ = std::move(next);
    count_ = numbers.count();
  }

  const FlowJob& job_;
  const RankGraphs& graphs_;
  const RankViews* views_;
  std::optional<PoolBlocks> pool_;
  std::vector<std::vector<std::uint32_t>> groups_;                                         // by rank
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>> members_;  // by group: rank, role
  std::vector<std::vector<std::uint32_t>> near_;  // on a pool, by rank: of each of its groups, level by level
  std::map<std::uint32_t, std::uint32_t> group_class_;
  std::vector<std::uint32_t> classes_;
  std::size_t count_ = 0;
};

// Folded, messages are matched by tag, size and classes of both ends: then a rank must not have messages that agree in
// these and differ in their peer.
std::optional<std::string> ambiguous_messages(const FlowJob& job, const Refinement& refined) {
  for (std::uint32_t rank = 0; rank < job.job.rank_graphs.size(); ++rank) {
    std::map<std::tuple<Act, std::uint64_t, std::uint64_t, std::uint32_t>, std::uint32_t> peers;
    for (const NodeTask& task : job.job.rank_graphs[rank].nodes) {
      if (!is_message(task)) { continue; }
      const auto key = std::tuple(task.act, task.tag, task.amount, refined.classes()[task.peer]);
      if (peers.try_emplace(key, task.peer).first->second == task.peer) { continue; }
      return fmt::format("rank {} has messages with the same tag and size to several ranks of a class", rank);
    }
  }
  return std::nullopt;
}

// One rank of each class, its first.
class Folder {
 public:
  Folder(FlowJob& job, const Refinement& refined) : job_(job), refined_(refined) {}

  FlowJob run() {
    FlowJob folded = job_;
    folded.job.rank_graphs.clear();
    folded.job.files.clear();
    folded.job.groups.clear();
    folded.groups.assign(1, job_.groups.front());
    folded.job.real_ranks = first_ranks();
    folded.simulated = {};
    folded.ranks_of.assign(refined_.count(), 0);
    for (const std::uint32_t c : refined_.classes()) {
      folded.simulated.push_back(c);
      ++folded.ranks_of[c];
    }
    if (refined_.pool() != nullptr) { folded.pool.folded = refined_.pool()->places(refined_.classes()); }
    for (const std::uint32_t rank : folded.job.real_ranks) { add_rank(rank, folded); }
    return folded;
  }

 private:
  // Classes are numbered in the order of their first ranks.
  [[nodiscard]] std::vector<std::uint32_t> first_ranks() const {
    std::vector<std::uint32_t> first;
    for (std::uint32_t rank = 0; rank < refined_.classes().size(); ++rank) {
      if (refined_.classes()[rank] == first.size()) { first.push_back(rank); }
    }
    return first;
  }

  void add_rank(std::uint32_t rank, FlowJob& folded) {
    RankGraph graph = std::move(job_.job.rank_graphs.own(rank));
    for (NodeTask& task : graph.nodes) {
      if (has_group(task)) {
        const std::uint32_t group = task.group;
        task.group = group_of(group, folded);
        if (is_combined(task)) { count_members(rank, group, task.group, folded); }
      }
      if (is_message(task)) { task.peer = refined_.classes()[task.peer]; }
    }
    folded.job.rank_graphs.push_back(std::move(graph));
    folded.job.files.push_back(job_.job.files.empty() ? "" : job_.job.files[rank]);
  }

  // Members of the group of a rank near it that access the same bytes of the pool.
  void count_members(std::uint32_t rank, std::uint32_t group, std::uint32_t made, FlowJob& folded) const {
    if (refined_.pool() == nullptr) { return; }
    std::vector<std::uint32_t> all(job_.job.rank_graphs.size());
    std::iota(all.begin(), all.end(), 0U);
    const auto& members = group == kWholeMachine ? all : job_.job.groups[group - 1].ranks;
    for (std::uint32_t level = 0; level < refined_.pool()->levels(); ++level) {
      folded.pool.members[{made, refined_.classes()[rank], level}] = refined_.pool()->near(level, rank, members);
    }
  }

  // 1 + its position in the groups of the folded job.
  std::uint32_t group_of(std::uint32_t group, FlowJob& folded) {
    if (group == kWholeMachine) { return kWholeMachine; }
    const auto [known, is_new] = made_.try_emplace(refined_.folded_group(group), 0U);
    if (!is_new) { return known->second; }
    std::vector<std::uint32_t> classes;
    for (const std::uint32_t rank : job_.job.groups[group - 1].ranks) { classes.push_back(refined_.classes()[rank]); }
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    folded.job.groups.push_back({job_.job.groups[group - 1].name, std::move(classes)});
    folded.groups.push_back(job_.groups[group]);
    folded.groups.back().copies = refined_.copies(group);
    return known->second = static_cast<std::uint32_t>(folded.job.groups.size());
  }

  FlowJob& job_;
  const Refinement& refined_;
  std::map<std::uint32_t, std::uint32_t> made_;  // by class of groups
};

}  // namespace

StableClasses stable_classes(const FlowJob& job, const RankViews& views) {
  Refinement refined(job, &views);
  refined.run();
  return {refined.classes(), ambiguous_messages(job, refined).value_or("")};
}

FoldedJob fold(FlowJob job) {
  if (!job.devices.empty()) { return {std::move(job), "ranks that are alike share the links of the topology"}; }
  for (std::uint32_t rank = 0; rank < job.job.rank_graphs.size() && job.job.rank_graphs.has_slots(); ++rank) {
    (void)job.job.rank_graphs.own(rank);
  }
  Refinement refined(job);
  refined.run();
  FoldedJob made;
  if (refined.count() < job.job.rank_graphs.size()) {
    made.unfolded_because = ambiguous_messages(job, refined).value_or("");
    if (made.unfolded_because.empty()) {
      made.job = Folder(job, refined).run();
      return made;
    }
  }
  made.job = std::move(job);
  return made;
}

}  // namespace orrery::simulate
