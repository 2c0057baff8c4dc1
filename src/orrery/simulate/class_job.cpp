#include "orrery/simulate/class_job.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/simulate/class_parts.hpp"

namespace orrery::simulate {

std::optional<std::uint64_t> ClassJob::group_of(const GroupFamily& family, std::uint64_t rank) const {
  if (family.is_mirrored) {
    const std::uint64_t number = rank / class_ranks, other = classes.size() - 1 - number;
    return std::min(number, other) * class_ranks + rank % class_ranks;
  }
  const std::uint64_t block = family.stride * family.degree;
  const std::uint64_t outer = family.outer_degree > 1 ? family.outer_stride : block;  // ranks per inner number
  const std::uint64_t before = rank / (outer * family.outer_degree) * (outer / block) + rank % outer / block;
  const std::uint64_t group = before * family.stride + rank % family.stride;
  return group < family.count ? std::optional(group) : std::nullopt;
}

StridedRanks ClassJob::members(const GroupFamily& family, std::uint64_t group) const {
  if (family.is_mirrored) {
    const std::uint64_t number = group / class_ranks;
    return {group, (classes.size() - 1 - 2 * number) * class_ranks, 2};
  }
  const std::uint64_t block = family.stride * family.degree;
  const std::uint64_t outer = family.outer_degree > 1 ? family.outer_stride : block;
  const std::uint64_t before = group / family.stride;
  const std::uint64_t first =
      before / (outer / block) * outer * family.outer_degree + before % (outer / block) * block + group % family.stride;
  return {first, family.stride, family.size(), family.degree, outer};
}

std::vector<std::uint32_t> classes_of(const StridedRanks& ranks, std::uint32_t class_ranks) {
  std::vector<std::uint32_t> classes;
  const auto add = [&](std::uint64_t number) {
    if (classes.empty() || classes.back() != number) { classes.push_back(static_cast<std::uint32_t>(number)); }
  };
  // The first position at or behind which a rank, `stride` further with each position, is of a later class.
  const auto next = [&](std::uint64_t rank, std::uint64_t stride) {
    const std::uint64_t left = class_ranks - rank % class_ranks;
    return (left - 1) / stride + 1;
  };
  const std::uint64_t blocks = ranks.degree / ranks.inner;
  const std::uint64_t width = ranks.stride * (ranks.inner - 1);  // from the first to the last rank of a block
  for (std::uint64_t block = 0; block < blocks;) {
    const std::uint64_t first = ranks.first + block * ranks.outer_stride;
    for (std::uint64_t i = 0; i < ranks.inner; i += next(first + i * ranks.stride, ranks.stride)) {
      add((first + i * ranks.stride) / class_ranks);
    }
    const bool is_in_one = first / class_ranks == (first + width) / class_ranks && ranks.outer_stride > 0;
    block += is_in_one ? next(first + width, ranks.outer_stride) : 1;
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

std::optional<std::uint32_t> Peers::ring_of(std::uint32_t node) const {
  const auto& rings = graph_.ring_messages;
  const auto ring = std::lower_bound(rings.begin(), rings.end(), std::pair{node, 0U});
  return ring == rings.end() || ring->first != node ? std::nullopt : std::optional(ring->second);
}

StridedRanks Peers::members(const GroupFamily& family, std::uint32_t rank) const {
  const auto group = job_.group_of(family, rank);
  ORRERY_ASSERT(group);  // add_class checks the first rank
  return job_.members(family, *group);
}

std::uint32_t Peers::of(std::uint32_t node, std::uint32_t rank) const {
  const std::uint32_t peer = graph_.graph.nodes[node].peer;
  const auto ring = ring_of(node);
  if (!ring) { return peer + (rank - first_); }  // as many ranks away
  const GroupFamily& family = job_.families[*ring];
  const StridedRanks first = members(family, first_), own = members(family, rank);
  const std::uint64_t away = first.place(peer) + first.degree - first.place(first_);
  return static_cast<std::uint32_t>(own.rank((own.place(rank) + away) % own.degree));
}

Peers::Distance Peers::distance(std::uint32_t node) const {
  const std::uint32_t peer = graph_.graph.nodes[node].peer;
  const auto ring = ring_of(node);
  if (!ring) { return {std::int64_t{peer} - std::int64_t{first_}, 0}; }
  const GroupFamily& family = job_.families[*ring];
  const StridedRanks first = members(family, first_);
  return {static_cast<std::int64_t>((first.place(peer) + first.degree - first.place(first_)) % first.degree),
          1 + *ring};
}

namespace {

// Finds the messages whose peers are neighbours in a group.
Result<void> find_rings(const ClassJob& job, const graph::Graph& graph, std::uint32_t rank, ClassGraph& made) {
  const auto key = graph.find_key(graph::keys::peer_group);
  if (!key) { return {}; }
  std::unordered_map<std::uint64_t, std::uint32_t> node_of;
  for (std::uint32_t i = 0; i < made.graph.nodes.size(); ++i) { node_of.emplace(made.graph.nodes[i].id, i); }
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
    const auto value = graph.value(node, key);
    const std::uint32_t number = node_of.at(graph.id(node));
    if (!value || !is_message(made.graph.nodes[number])) { continue; }
    const std::string name(value->as_text().value_or(""));
    const auto family = std::find_if(job.families.begin(), job.families.end(),
                                     [&](const GroupFamily& one) { return one.name == name; });
    const auto group = family != job.families.end() ? job.group_of(*family, rank) : std::nullopt;
    const std::uint32_t peer = made.graph.nodes[number].peer;
    if (!group || !job.members(*family, *group).contains(peer)) {
      return fail(Place{made.file, 0, 0, fmt::format("node {}", graph.id(node))},
                  fmt::format("has the peer_group {}, which does not join ranks {} and {}", quote(name), rank, peer));
    }
    made.ring_messages.emplace_back(number, static_cast<std::uint32_t>(family - job.families.begin()));
  }
  std::sort(made.ring_messages.begin(), made.ring_messages.end());
  return {};
}

// A rank of the class `first`, ... that is in no group of the family.
std::optional<std::uint64_t> rank_without_group(const ClassJob& job, const GroupFamily& family, std::uint64_t first) {
  if (family.is_mirrored || family.count * family.size() == job.ranks()) { return std::nullopt; }
  // Numbers of groups grow with ranks within a stride: the last rank has the highest.
  const std::uint64_t step = family.stride % job.class_ranks == 0 ? job.class_ranks : 1;
  for (std::uint64_t i = step - 1; i < job.class_ranks; i += step) {
    if (!job.group_of(family, first + i)) { return first + i; }
  }
  return std::nullopt;
}

// All ranks of a class are in groups of the families that its graph uses.
Result<void> check_groups(const ClassJob& job, std::uint32_t first, const ClassGraph& made) {
  std::vector<std::uint32_t> used;
  for (const NodeTask& task : made.graph.nodes) {
    if (uses_group(task)) { used.push_back(task.group - 1); }
  }
  for (const auto& ring : made.ring_messages) { used.push_back(ring.second); }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (const std::uint32_t family : used) {
    const auto rank = rank_without_group(job, job.families[family], first);
    if (!rank) { continue; }
    return fail(
        Place{made.file, 0, 0, {}},
        fmt::format("is the graph of ranks {} to {} and has collectives of {}, but rank {} is in none of the {} "
                    "groups of that name",
                    first, first + job.class_ranks - 1, quote(job.families[family].name), *rank,
                    job.families[family].count));
  }
  return {};
}

// Peers of all ranks of a class exist, if those of the first and of the last one do.
Result<void> check_peers(const ClassJob& job, std::uint32_t first, std::uint64_t ranks, const ClassGraph& made) {
  for (std::uint32_t node = 0; node < made.graph.nodes.size(); ++node) {
    const NodeTask& task = made.graph.nodes[node];
    if (!is_message(task)) { continue; }
    const auto ring = std::lower_bound(made.ring_messages.begin(), made.ring_messages.end(), std::pair{node, 0U});
    if (ring != made.ring_messages.end() && ring->first == node) { continue; }
    const std::uint64_t last = std::uint64_t{task.peer} + job.class_ranks - 1;
    if (last < ranks && task.peer % job.class_ranks == 0) { continue; }
    return fail(
        Place{made.file, 0, 0, fmt::format("node {}", task.id)},
        fmt::format("has the peer {}, which is not the first rank of a class: ranks {} to {} have no common peer "
                    "class",
                    task.peer, first, first + job.class_ranks - 1));
  }
  return {};
}

}  // namespace

Result<void> add_class(ClassJob& job, const graph::Graph& graph, const std::string& file, std::size_t classes) {
  ClassGraph made;
  made.file = file;
  // The groups of the first rank, by the names of their families.
  const std::uint64_t ranks = std::uint64_t{job.class_ranks} * classes;
  const std::uint32_t first = job.first_rank(job.classes.size());
  ClassJob whole;
  whole.class_ranks = job.class_ranks;
  whole.classes.resize(classes);
  std::vector<GroupIndex::Sized> groups;
  std::vector<std::uint32_t> family_of;
  for (std::uint32_t i = 0; i < job.families.size(); ++i) {
    const GroupFamily& family = job.families[i];
    if (!whole.group_of(family, first)) { continue; }
    groups.push_back({group_key(family.name), static_cast<std::uint32_t>(family.size())});
    family_of.push_back(i);
  }
  const GroupIndex index(std::move(groups));
  CompileContext context = compile_context(job.machine, index);
  context.ranks = static_cast<std::uint32_t>(ranks);
  auto compiled = compile(graph, first, file, context);
  if (!compiled) {  // most often, all its errors have one cause
    compiled.error().diagnostics.resize(1);
    return tl::make_unexpected(std::move(compiled).error());
  }
  made.graph = std::move(*compiled);
  for (NodeTask& task : made.graph.nodes) {
    if (uses_group(task)) { task.group = 1 + family_of[task.group - 1]; }
  }
  whole.families = job.families;
  if (auto found = find_rings(whole, graph, first, made); !found) { return found; }
  if (auto checked = check_groups(whole, first, made); !checked) { return checked; }
  if (auto checked = check_peers(job, first, ranks, made); !checked) { return checked; }
  job.classes.push_back(std::move(made));
  return {};
}

}  // namespace orrery::simulate
