// Refinement of colours until they are stable, on what the graphs of a class have in common: which families of groups
// they use, and which distances their messages have. The proof is that of docs/models/flow.md.
#include "orrery/simulate/class_refinement.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "orrery/simulate/class_parts.hpp"

namespace orrery::simulate {

namespace {

constexpr std::uint32_t kNoGroup = 0xFFFFFFFF;
constexpr int kMostRounds = 64;  // more are chains of ranks, each different from the next

// Numbers of lists of words, in the order in which they are first asked for.
class WordNumbers {
 public:
  std::uint32_t of(const std::vector<std::uint64_t>& words) {
    return known_.try_emplace(words, static_cast<std::uint32_t>(known_.size())).first->second;
  }
  [[nodiscard]] std::size_t count() const { return known_.size(); }

 private:
  std::map<std::vector<std::uint64_t>, std::uint32_t> known_;
};

class ColourRefinement {
 public:
  ColourRefinement(const parallel::Layout& layout, const ClassJob& job, const PoolBlocks* pool)
      : layout_(layout), job_(job), pool_(pool) {
    groups_.resize(job.families.size());
    for (std::size_t c = 0; c < job.classes.size(); ++c) { list_uses(c); }
    for (std::uint32_t family = 0; family < job.families.size(); ++family) {
      if (is_used(family)) { list_groups(family); }
    }
  }

  std::optional<RankColours> run() {
    colour_by(&ColourRefinement::first_words);
    for (std::size_t before = 0, rounds = 0; before != count_; ++rounds) {
      if (rounds == kMostRounds || 2 * count_ > job_.ranks()) { return std::nullopt; }
      before = count_;
      colour_groups();
      colour_blocks();
      colour_by(&ColourRefinement::next_words);
    }
    RankColours made = colours();
    return has_ambiguous_messages(made) ? std::nullopt : std::optional(std::move(made));
  }

 private:
  struct Uses {
    std::vector<std::uint32_t> families;
    std::vector<std::uint32_t> combined;  // of these, those whose members access the same bytes of the pool
    std::vector<std::uint32_t> messages;  // a node for each distance
  };
  struct Groups {
    std::vector<std::uint32_t> of;                    // by rank: index into `members`, or kNoGroup
    std::vector<std::vector<std::uint32_t>> members;  // ranks
    std::vector<std::uint32_t> shapes, colours;       // by group
    // On a pool, by level and rank: members of its group in its block.
    std::vector<std::vector<std::uint32_t>> near;
  };

  static void add_once(std::vector<std::uint32_t>& list, std::uint32_t number) {
    if (std::find(list.begin(), list.end(), number) == list.end()) { list.push_back(number); }
  }

  void list_uses(std::size_t c) {
    Uses& uses = uses_.emplace_back();
    const Peers peers(job_, c);
    std::map<Peers::Distance, bool> known;
    const auto& nodes = job_.classes[c].graph.nodes;
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      if (nodes[node].act == Act::collective && nodes[node].group != kWholeMachine) {
        add_once(uses.families, nodes[node].group - 1);
      }
      if (pool_ != nullptr && is_combined(nodes[node]) && nodes[node].group != kWholeMachine) {
        add_once(uses.families, nodes[node].group - 1);
        add_once(uses.combined, nodes[node].group - 1);
      }
      if (is_message(nodes[node]) && known.emplace(peers.distance(node), true).second) {
        uses.messages.push_back(node);
      }
    }
  }

  [[nodiscard]] bool is_used(std::uint32_t family) const {
    return std::any_of(uses_.begin(), uses_.end(), [&](const Uses& uses) {
      return std::find(uses.families.begin(), uses.families.end(), family) != uses.families.end();
    });
  }

  void list_groups(std::uint32_t family) {
    Groups& groups = groups_[family];
    groups.of.assign(job_.ranks(), kNoGroup);
    WordNumbers shapes;
    for (std::uint32_t rank = 0; rank < job_.ranks(); ++rank) {
      const auto group = job_.group_of(job_.families[family], rank);
      if (!group || groups.of[rank] != kNoGroup) { continue; }
      auto members = list_of(job_.members(job_.families[family], *group));
      for (const std::uint32_t member : members) {
        groups.of[member] = static_cast<std::uint32_t>(groups.members.size());
      }
      const network::Group shape = shape_of(layout_, members);
      std::vector<std::uint64_t> words{shape.regular ? 1U : 0U};
      for (const network::Extent& extent : shape.extents) {
        words.push_back(static_cast<std::uint64_t>(extent.dimension));
        words.push_back(static_cast<std::uint64_t>(extent.members));
      }
      groups.shapes.push_back(shapes.of(words));
      groups.members.push_back(std::move(members));
    }
    count_members(groups);
  }

  void count_members(Groups& groups) const {
    for (std::size_t level = 0; pool_ != nullptr && level < pool_->levels(); ++level) {
      auto& near = groups.near.emplace_back(job_.ranks());
      for (const auto& members : groups.members) {
        const auto counts = pool_->members_by_block(level, members);
        for (const std::uint32_t member : members) { near[member] = counts.at(pool_->block(level, member)); }
      }
    }
  }

  // Shape, and the colours of all members.
  void colour_groups() {
    for (Groups& groups : groups_) {
      WordNumbers numbers;
      groups.colours.clear();
      std::vector<std::uint64_t> words;
      for (std::size_t group = 0; group < groups.members.size(); ++group) {
        words.assign(1, groups.shapes[group]);
        for (const std::uint32_t member : groups.members[group]) { words.push_back(colours_[member]); }
        std::sort(words.begin() + 1, words.end());
        groups.colours.push_back(numbers.of(words));
      }
    }
  }

  void colour_blocks() {
    blocks_.clear();
    for (std::size_t level = 0; pool_ != nullptr && level < pool_->levels(); ++level) {
      blocks_.push_back(pool_->contents(level, colours_));
    }
  }

  void first_words(const Peers& peers, const Uses& uses, std::uint32_t rank, std::vector<std::uint64_t>& words) const {
    words.push_back(rank / job_.class_ranks);
    for (const std::uint32_t family : uses.families) {
      const Groups& groups = groups_[family];
      words.push_back(groups.of[rank] == kNoGroup ? kNoGroup : groups.shapes[groups.of[rank]]);
    }
    for (const std::uint32_t family : uses.combined) {
      const Groups& groups = groups_[family];
      for (std::size_t level = 0; groups.of[rank] != kNoGroup && level < pool_->levels(); ++level) {
        words.push_back(groups.near[level][rank]);
      }
    }
    for (const std::uint32_t node : uses.messages) {
      words.push_back(static_cast<std::uint64_t>(parallel::crossed_dimension(layout_, rank, peers.of(node, rank))));
    }
  }

  void next_words(const Peers& peers, const Uses& uses, std::uint32_t rank, std::vector<std::uint64_t>& words) const {
    words.push_back(colours_[rank]);
    for (const std::uint32_t family : uses.families) {
      const Groups& groups = groups_[family];
      words.push_back(groups.of[rank] == kNoGroup ? kNoGroup : groups.colours[groups.of[rank]]);
    }
    for (const std::uint32_t node : uses.messages) { words.push_back(colours_[peers.of(node, rank)]); }
    for (const auto& contents : blocks_) { words.push_back(contents[rank]); }
  }

  using WordsOfRank = void (ColourRefinement::*)(const Peers&, const Uses&, std::uint32_t,
                                                 std::vector<std::uint64_t>&) const;
  void colour_by(WordsOfRank add_words) {
    WordNumbers numbers;
    std::vector<std::uint32_t> next;
    next.reserve(job_.ranks());
    std::vector<std::uint64_t> words;
    for (std::size_t c = 0; c < job_.classes.size(); ++c) {
      const Peers peers(job_, c);
      for (std::uint32_t i = 0; i < job_.class_ranks; ++i) {
        words.clear();
        (this->*add_words)(peers, uses_[c], job_.first_rank(c) + i, words);
        next.push_back(numbers.of(words));
      }
    }
    colours_ = std::move(next);
    count_ = numbers.count();
  }

  [[nodiscard]] RankColours colours() const {
    RankColours made;
    made.ranks.assign(count_, 0);
    for (std::uint32_t rank = 0; rank < job_.ranks(); ++rank) {
      if (colours_[rank] == made.first_rank.size()) { made.first_rank.push_back(rank); }
      made.of.push_back(colours_[rank]);
      ++made.ranks[colours_[rank]];
    }
    return made;
  }

  // Folded, messages are matched by tag, size and the colours of both ends: these must define the distance.
  [[nodiscard]] bool has_ambiguous_messages(const RankColours& made) const {
    for (const std::uint32_t rank : made.first_rank) {
      const std::size_t c = rank / job_.class_ranks;
      const Peers peers(job_, c);
      std::map<std::tuple<Act, std::uint64_t, std::uint64_t, std::uint32_t>, Peers::Distance> known;
      const auto& nodes = job_.classes[c].graph.nodes;
      for (std::uint32_t node = 0; node < nodes.size(); ++node) {
        if (!is_message(nodes[node])) { continue; }
        const auto key =
            std::tuple(nodes[node].act, nodes[node].tag, nodes[node].amount, colours_[peers.of(node, rank)]);
        const Peers::Distance distance = peers.distance(node);
        if (known.try_emplace(key, distance).first->second != distance) { return true; }
      }
    }
    return false;
  }

  const parallel::Layout& layout_;
  const ClassJob& job_;
  const PoolBlocks* pool_;
  std::vector<std::vector<std::uint32_t>> blocks_;  // [level of the pool][rank]: contents of its block
  std::vector<Uses> uses_;                          // by class
  std::vector<Groups> groups_;                      // by family
  std::vector<std::uint32_t> colours_;
  std::size_t count_ = 0;
};

}  // namespace

std::optional<RankColours> fine_colours(const parallel::Layout& layout, const ClassJob& job, const PoolBlocks* pool) {
  return ColourRefinement(layout, job, pool).run();
}

}  // namespace orrery::simulate
