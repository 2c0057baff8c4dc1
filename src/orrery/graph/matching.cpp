#include "orrery/graph/matching.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace orrery::graph {

namespace {

using Hashes = std::vector<std::uint64_t>;

constexpr int kRounds = 3;  // radius of the neighbourhood that is compared first, in dependencies

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93U;
  return hash ^ hash >> 29;
}

std::uint64_t mix(std::uint64_t hash, std::string_view text) {
  hash = mix(hash, text.size());
  for (const char c : text) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U; }
  return mix(hash, 0);
}

std::uint64_t hash_of(const std::optional<IoInfo>& io) {
  return io ? mix(mix(mix(1, io->values), io->shapes), io->types) : 0;
}

std::uint64_t hash_of(const Attribute& attribute) {
  std::uint64_t hash = mix(mix(0, attribute.name), static_cast<std::uint64_t>(attribute.value.type()));
  hash = mix(mix(hash, attribute.value.bits()), attribute.value.payload());
  return mix(mix(hash, attribute.doc), attribute.unknown);
}

// One of the two graphs.
class Side {
 public:
  Side(const Graph& graph, const DifferenceOptions& options)
      : partner(graph.node_count(), kUnmatched),
        graph_(graph),
        data_(graph, Children::Of::data),
        ctrl_(graph, Children::Of::ctrl) {
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      type.push_back(mix(7, static_cast<std::uint64_t>(graph.type(node))));
      named.push_back(options.names ? mix(type.back(), graph.name(node)) : type.back());
      rounds[0].push_back(content_hash(node, options));
    }
    for (int round = 1; round <= kRounds; ++round) { add_round(round); }
  }

  [[nodiscard]] NodeIndex size() const { return static_cast<NodeIndex>(graph_.node_count()); }

  // Neighbours of a kind: parents and children by data, parents and children by control.
  static constexpr std::size_t kKinds = 4;
  [[nodiscard]] std::span<const NodeIndex> neighbours(NodeIndex node, std::size_t kind) const {
    switch (kind) {
      case 0: return graph_.data_deps(node);
      case 1: return data_.of(node);
      case 2: return graph_.ctrl_deps(node);
      default: return ctrl_.of(node);
    }
  }
  [[nodiscard]] bool is_unmatched(NodeIndex node) const { return graph_.present(node) && partner[node] == kUnmatched; }

  std::vector<NodeIndex> partner;
  Hashes type, named;                      // of type alone, of type and name
  std::array<Hashes, kRounds + 1> rounds;  // [r]: of a node and its neighbourhood up to r dependencies

 private:
  [[nodiscard]] std::uint64_t content_hash(NodeIndex node, const DifferenceOptions& options) const {
    std::uint64_t hash = named[node];
    if (options.times) { hash = mix(mix(hash, graph_.start_us(node)), graph_.duration_us(node)); }
    if (options.io) { hash = mix(mix(hash, hash_of(graph_.inputs(node))), hash_of(graph_.outputs(node))); }
    std::uint64_t attributes = 0;  // in any order
    for (const Attribute& attribute : graph_.attributes(node)) {
      if (counts(attribute.name, options)) { attributes += hash_of(attribute); }
    }
    return mix(mix(hash, attributes), graph_.unknown(node));
  }

  void add_round(int round) {
    const Hashes& before = rounds.at(static_cast<std::size_t>(round - 1));
    Hashes& after = rounds.at(static_cast<std::size_t>(round));
    after.reserve(before.size());
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      std::uint64_t hash = before[node];
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        std::uint64_t all = 0;  // in any order
        for (const NodeIndex other : neighbours(node, kind)) {
          all += mix(kind + 1, graph_.present(other) ? before[other] : 0);
        }
        hash = mix(hash, all);
      }
      after.push_back(hash);
    }
  }

  const Graph& graph_;
  Children data_, ctrl_;
};

class Matcher {
 public:
  Matcher(const Graph& a, const Graph& b, const DifferenceOptions& options) : a_(a, options), b_(b, options) {}

  Matching match_all() {
    for (int round = kRounds; round >= 0; --round) {
      const auto at = static_cast<std::size_t>(round);
      match_by(a_.rounds.at(at), b_.rounds.at(at), true);
    }
    match_by(a_.named, b_.named, true);
    match_by(a_.type, b_.type, false);
    return {std::move(a_.partner), std::move(b_.partner)};
  }

 private:
  // Matches nodes with equal hashes: first neighbours of matched nodes, then (`anywhere`) nodes whose hash is unique on
  // both sides, then the others in their order.
  void match_by(const Hashes& a, const Hashes& b, bool anywhere) {
    for (NodeIndex node = 0; node < a_.size(); ++node) {
      if (a_.partner[node] != kUnmatched) { queue_.push_back(node); }
    }
    match_neighbours(a, b);
    if (!anywhere) { return; }
    const std::vector<NodeIndex> of_a = unmatched_by_hash(a_, a);
    const std::vector<NodeIndex> of_b = unmatched_by_hash(b_, b);
    for (const bool unique_only : {true, false}) { match_classes(a, of_a, b, of_b, unique_only); }
  }

  static std::vector<NodeIndex> unmatched_by_hash(const Side& side, const Hashes& hashes) {
    std::vector<NodeIndex> nodes;
    for (NodeIndex node = 0; node < side.size(); ++node) {
      if (side.is_unmatched(node)) { nodes.push_back(node); }
    }
    std::stable_sort(nodes.begin(), nodes.end(), [&](NodeIndex x, NodeIndex y) { return hashes[x] < hashes[y]; });
    return nodes;
  }

  void match_classes(const Hashes& a, const std::vector<NodeIndex>& of_a, const Hashes& b,
                     const std::vector<NodeIndex>& of_b, bool unique_only) {
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < of_a.size() && j < of_b.size()) {
      const std::uint64_t hash = a[of_a[i]];
      if (hash != b[of_b[j]]) {
        hash < b[of_b[j]] ? ++i : ++j;
        continue;
      }
      const std::size_t first_i = i;
      const std::size_t first_j = j;
      while (i < of_a.size() && a[of_a[i]] == hash) { ++i; }
      while (j < of_b.size() && b[of_b[j]] == hash) { ++j; }
      if (unique_only && (i - first_i > 1 || j - first_j > 1)) { continue; }
      match_in_order(
          {of_a.begin() + static_cast<std::ptrdiff_t>(first_i), of_a.begin() + static_cast<std::ptrdiff_t>(i)},
          {of_b.begin() + static_cast<std::ptrdiff_t>(first_j), of_b.begin() + static_cast<std::ptrdiff_t>(j)}, a, b);
    }
  }

  void match_in_order(std::span<const NodeIndex> of_a, std::span<const NodeIndex> of_b, const Hashes& a,
                      const Hashes& b) {
    std::size_t j = 0;
    for (const NodeIndex node : of_a) {
      if (!a_.is_unmatched(node)) { continue; }
      while (j < of_b.size() && !b_.is_unmatched(of_b[j])) { ++j; }
      if (j == of_b.size()) { return; }
      match(node, of_b[j]);
      match_neighbours(a, b);
    }
  }

  void match(NodeIndex of_a, NodeIndex of_b) {
    a_.partner[of_a] = of_b;
    b_.partner[of_b] = of_a;
    queue_.push_back(of_a);
  }

  // From matched pairs to their neighbours with equal hashes, repeatedly.
  void match_neighbours(const Hashes& a, const Hashes& b) {
    while (!queue_.empty()) {
      const NodeIndex node = queue_.back();
      queue_.pop_back();
      for (std::size_t kind = 0; kind < Side::kKinds; ++kind) {
        unmatched_neighbours(a_, node, kind, a, of_a_);
        if (of_a_.empty()) { continue; }
        unmatched_neighbours(b_, a_.partner[node], kind, b, of_b_);
        for (std::size_t i = 0, j = 0; i < of_a_.size() && j < of_b_.size();) {
          const std::uint64_t hash = a[of_a_[i]];
          const std::uint64_t other = b[of_b_[j]];
          if (hash == other) { match(of_a_[i], of_b_[j]); }
          if (hash <= other) { ++i; }
          if (other <= hash) { ++j; }
        }
      }
    }
  }

  static void unmatched_neighbours(const Side& side, NodeIndex node, std::size_t kind, const Hashes& hashes,
                                   std::vector<NodeIndex>& into) {
    into.clear();
    for (const NodeIndex other : side.neighbours(node, kind)) {
      if (side.is_unmatched(other)) { into.push_back(other); }
    }
    std::sort(into.begin(), into.end(),
              [&](NodeIndex x, NodeIndex y) { return hashes[x] != hashes[y] ? hashes[x] < hashes[y] : x < y; });
    into.erase(std::unique(into.begin(), into.end()), into.end());
  }

  Side a_, b_;
  std::vector<NodeIndex> queue_;  // matched nodes of A whose neighbours are not yet matched
  std::vector<NodeIndex> of_a_, of_b_;
};

}  // namespace

bool counts(std::string_view attribute, const DifferenceOptions& options) {
  if (!options.times && (attribute == keys::start_time_ns || attribute == keys::duration_ns)) { return false; }
  return std::find(options.attributes.begin(), options.attributes.end(), attribute) == options.attributes.end();
}

Matching match(const Graph& a, const Graph& b, const DifferenceOptions& options) {
  return Matcher(a, b, options).match_all();
}

}  // namespace orrery::graph
