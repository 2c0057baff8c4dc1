#include "orrery/simulate/critical_path.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "orrery/config/codec.hpp"
#include "orrery/network/names.hpp"

namespace orrery::simulate {

namespace {

// Nodes of all ranks have consecutive numbers.
class PathFinder {
 public:
  explicit PathFinder(const PathSource& source) : source_(source), job_(source.job) {
    number_nodes();
    find_waits();
    find_members();
    match_messages();
  }

  [[nodiscard]] results::CriticalPath path() {
    find_slack();
    results::CriticalPath path;
    source_.pieces.empty() ? walk_back(path) : add_pieces(source_.pieces, path);
    std::reverse(path.steps.begin(), path.steps.end());
    sort_parts(path);
    add_activities(path);
    return path;
  }

 private:
  struct Node {
    std::uint32_t rank = 0, node = 0;
    std::uint64_t start = 0, end = 0;
    std::uint32_t parent = kNone;       // the one that ended last
    std::uint32_t slot_before = kNone;  // the node that had its slot before
    std::uint32_t slot_after = kNone;
    std::uint32_t message = kNone;  // of a receive: its send; of a send: its receive
    std::uint32_t collective = kNone;
    std::uint64_t slack = 0;
    bool on_path = false;
  };

  // Its group and peer are not slots.
  [[nodiscard]] NodeTask task(const Node& node) const { return job_.rank_graphs.task(node.rank, node.node); }
  [[nodiscard]] std::uint32_t number(std::uint32_t rank, std::uint32_t node) const { return first_[rank] + node; }

  void number_nodes() {
    std::uint32_t count = 0;
    for (std::uint32_t rank = 0; rank < job_.rank_graphs.size(); ++rank) {
      first_.push_back(count);
      count += static_cast<std::uint32_t>(job_.rank_graphs[rank].nodes.size());
    }
    nodes_.resize(count);
    for (const PhysicalSpan& span : source_.spans) {
      Node& node = nodes_[number(span.rank, span.node)];
      node.rank = span.rank;
      node.node = span.node;
      node.start = span.start;
      node.end = span.end;
    }
  }

  // Spans are in the order of ends, so a node comes after all that it waits for on its rank.
  void find_waits() {
    std::vector<std::uint32_t> in_slot(kSlots * job_.rank_graphs.size(), kNone);
    for (const PhysicalSpan& span : source_.spans) {
      const std::uint32_t self = number(span.rank, span.node);
      const RankGraph& graph = job_.rank_graphs[span.rank];
      for (const std::uint32_t child : graph.children_of(span.node)) {
        std::uint32_t& parent = nodes_[number(span.rank, child)].parent;
        if (parent == kNone || nodes_[parent].end < span.end) { parent = self; }
      }
      const NodeTask& task = graph.nodes[span.node];
      const bool has_slot = source_.has_communication_slot
                                ? task.slot != Slot::none
                                : task.act == Act::busy && task.slot != Slot::none && task.slot != Slot::comm;
      if (!has_slot) { continue; }
      std::uint32_t& before = in_slot[kSlots * span.rank + static_cast<std::size_t>(task.slot)];
      nodes_[self].slot_before = before;
      if (before != kNone) { nodes_[before].slot_after = self; }
      before = self;
    }
  }

  void find_members() {
    members_.resize(source_.match.all().size());
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (task(nodes_[i]).act != Act::collective) { continue; }
      nodes_[i].collective = source_.match.collective_of(nodes_[i].rank, nodes_[i].node);
      members_[nodes_[i].collective].push_back(i);
    }
  }

  // The k-th message with an envelope with the k-th receive with it (EnvelopeMatcher).
  void match_messages() {
    using Envelope = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>;
    std::map<Envelope, std::array<std::vector<std::uint32_t>, 2>> all;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      const NodeTask one = task(node);
      if (one.act == Act::send) { all[{one.tag, one.amount, node.rank, one.peer}][0].push_back(i); }
      if (one.act == Act::receive) { all[{one.tag, one.amount, one.peer, node.rank}][1].push_back(i); }
    }
    const auto by_start = [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(nodes_[a].start, a) < std::tuple(nodes_[b].start, b);
    };
    for (auto& [envelope, ends] : all) {
      for (auto& end : ends) { std::sort(end.begin(), end.end(), by_start); }
      for (std::size_t k = 0; k < std::min(ends[0].size(), ends[1].size()); ++k) {
        nodes_[ends[0][k]].message = ends[1][k];
        nodes_[ends[1][k]].message = ends[0][k];
      }
    }
  }

  // ---- the path ----------------------------------------------------------------------------------------------------

  // What the node waited for longest; kNone if it waited for nothing.
  [[nodiscard]] std::uint32_t last_wait(const Node& node) const {
    std::uint32_t found = kNone;
    const auto consider = [&](std::uint32_t other) {
      if (other == kNone || nodes_[other].end > node.end) { return; }
      if (found == kNone || nodes_[found].end < nodes_[other].end) { found = other; }
    };
    consider(node.parent);
    consider(node.slot_before);
    if (task(node).act == Act::receive) { consider(node.message); }
    if (node.collective != kNone) {
      for (const std::uint32_t member : members_[node.collective]) { consider(nodes_[member].parent); }
    }
    return found;
  }

  // What the node waited for until it started.
  std::uint32_t before_start(std::uint32_t self, std::uint64_t start, results::CriticalPath& path) {
    Node& node = nodes_[self];
    node.on_path = true;
    std::uint32_t before = kNone;
    for (const std::uint32_t other : {node.parent, node.slot_before}) {
      if (other == kNone || nodes_[other].end > start) { continue; }
      if (before == kNone || nodes_[before].end < nodes_[other].end) { before = other; }
    }
    const std::uint64_t from = before == kNone ? 0 : nodes_[before].end;
    if (start > from) { add_wait(node, from, start, path); }
    return before;
  }

  void add_wait(const Node& node, std::uint64_t from, std::uint64_t start, results::CriticalPath& path) {
    const char* name = "before the start of the node";
    path.steps.push_back({node.rank, task(node).id, activity_of(name), "", from, start});
    parts_[name] += start - from;
  }

  void walk_back(results::CriticalPath& path) {
    const auto last =
        std::max_element(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) { return a.end < b.end; });
    if (last == nodes_.end()) { return; }
    for (auto self = static_cast<std::uint32_t>(last - nodes_.begin()); self != kNone;) {
      Node& node = nodes_[self];
      node.on_path = true;
      std::uint64_t first = 0;
      if (const std::uint32_t found = follow_trace(node, first, path); found != kNone) {
        self = before_start(found, first, path);
        continue;
      }
      const std::uint32_t before = last_wait(node);
      node.on_path = true;
      const std::uint64_t start = before == kNone ? release(node) : nodes_[before].end;
      if (node.end > start) { add_step(node, start, path); }
      if (before == kNone && start > 0) { add_late_start(node, start, path); }
      self = before;
    }
  }

  // The pieces that led to the end of the node: returns the node that the first of them waited for, at `start`.
  std::uint32_t follow_trace(const Node& node, std::uint64_t& start, results::CriticalPath& path) {
    if (!source_.trace || (node.collective == kNone && task(node).act != Act::send)) { return kNone; }
    const auto trace = source_.trace({node.rank, node.node, node.start, node.end});
    if (!trace || trace->pieces.empty()) { return kNone; }
    add_pieces(trace->pieces, path);
    start = trace->pieces.back().start;
    return number(trace->rank, trace->node);
  }

  void add_pieces(const std::vector<PathPiece>& pieces, results::CriticalPath& path) {
    for (const PathPiece& piece : pieces) {
      const bool has_node = piece.node != kNone;
      if (has_node) { nodes_[number(piece.rank, piece.node)].on_path = true; }
      const NodeTask task = has_node ? job_.rank_graphs.task(piece.rank, piece.node) : NodeTask();
      const std::uint32_t activity = activity_of(has_node ? source_.activity(task) : "waiting for others");
      path.steps.push_back({piece.rank, task.id, activity, piece.name, piece.start, piece.end});
      for (const auto& [name, time] : piece.parts) {
        if (time > 0) { parts_[name] += time; }
      }
      if (piece.from.empty()) { continue; }
      auto& [steps, time] = traced_links_[{piece.from, piece.to}];
      ++steps;
      time += piece.end - piece.start;
    }
  }

  void add_step(const Node& node, std::uint64_t start, results::CriticalPath& path) {
    const RankGraph& graph = job_.rank_graphs[node.rank];
    const std::uint32_t activity = activity_of(source_.activity(task(node)));
    path.steps.push_back({node.rank, task(node).id, activity,
                          graph.names.empty() ? std::string() : graph.names[node.node], start, node.end});
    std::uint64_t left = node.end - start;
    const NodeParts parts = source_.parts(node.rank, node.node);
    for (const auto& [name, time] : parts.parts) {
      const std::uint64_t part = std::min(time, left);
      left -= part;
      if (part > 0) { parts_[name] += part; }
    }
    if (left > 0) { parts_[parts.rest] += left; }
    if (parts.link == kNone) { return; }
    auto& [steps, time] = links_[parts.link];
    ++steps;
    time += node.end - start;
  }

  // The first rank of the path does not start at 0.
  void add_late_start(const Node& node, std::uint64_t start, results::CriticalPath& path) {
    const char* name = "before the start of the rank";
    path.steps.push_back({node.rank, task(node).id, activity_of(name), "", 0, start});
    parts_[name] += start;
  }

  void sort_parts(results::CriticalPath& path) const {
    for (const auto& [name, time] : parts_) { path.parts.push_back({name, time}); }
    std::stable_sort(path.parts.begin(), path.parts.end(),
                     [](const auto& a, const auto& b) { return a.time_ps > b.time_ps; });
    path.crosses_links = !traced_links_.empty();
    for (const auto& [ends, use] : traced_links_) {
      path.links.push_back({ends.first, ends.second, use.first, use.second});
    }
    for (const auto& [link, use] : links_) {
      auto [from, to] = source_.ends_of_link(link);
      path.links.push_back({std::move(from), std::move(to), use.first, use.second});
    }
    std::stable_sort(path.links.begin(), path.links.end(),
                     [](const auto& a, const auto& b) { return a.time_ps > b.time_ps; });
  }

  // ---- slack -------------------------------------------------------------------------------------------------------

  // When all that the node waits for is there.
  [[nodiscard]] std::uint64_t release(const Node& node) const {
    std::uint64_t time = node.start;
    if (node.collective != kNone) {
      for (const std::uint32_t member : members_[node.collective]) { time = std::max(time, nodes_[member].start); }
    } else if (task(node).act == Act::receive && node.message != kNone) {
      time = std::max(time, nodes_[node.message].end);
    }
    return std::min(time, node.end);
  }

  // The first member stands for a collective.
  [[nodiscard]] std::uint32_t unit_of(std::uint32_t self) const {
    return nodes_[self].collective == kNone ? self : members_[nodes_[self].collective].front();
  }

  template <class Visit>
  void each_member(std::uint32_t unit, Visit&& visit) const {
    if (nodes_[unit].collective == kNone) { return visit(unit); }
    for (const std::uint32_t member : members_[nodes_[unit].collective]) { visit(member); }
  }

  // What waits for the node: children, what has its slot next, the receive of a send.
  template <class Visit>
  void each_waiting(std::uint32_t self, Visit&& visit) const {
    const Node& node = nodes_[self];
    for (const std::uint32_t child : job_.rank_graphs[node.rank].children_of(node.node)) {
      visit(number(node.rank, child));
    }
    if (node.slot_after != kNone) { visit(node.slot_after); }
    if (task(node).act == Act::send && node.message != kNone && nodes_[node.message].end >= node.end) {
      visit(node.message);
    }
  }

  // Units, each after all that it waits for.
  [[nodiscard]] std::vector<std::uint32_t> order() const {
    std::vector<std::uint32_t> waits(nodes_.size(), 0), ready;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      each_waiting(i, [&](std::uint32_t other) { ++waits[unit_of(other)]; });
    }
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (unit_of(i) == i && waits[i] == 0) { ready.push_back(i); }
    }
    for (std::size_t done = 0; done < ready.size(); ++done) {
      each_member(ready[done], [&](std::uint32_t member) {
        each_waiting(member, [&](std::uint32_t other) {
          if (--waits[unit_of(other)] == 0) { ready.push_back(unit_of(other)); }
        });
      });
    }
    return ready;
  }

  void find_slack() {
    std::uint64_t last = 0;
    for (const Node& node : nodes_) { last = std::max(last, node.end); }
    std::vector<std::uint64_t> releases(nodes_.size());
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      releases[i] = unit_of(i) == i ? release(nodes_[i]) : releases[unit_of(i)];
    }
    const std::vector<std::uint32_t> units = order();
    for (std::size_t i = units.size(); i-- > 0;) {
      std::uint64_t slack = last;
      each_member(units[i], [&](std::uint32_t member) {
        const std::uint64_t end = nodes_[member].end;
        slack = std::min(slack, last - end);
        each_waiting(member, [&](std::uint32_t other) {
          const std::uint64_t at = releases[other];
          slack = std::min(slack, nodes_[other].slack + (at > end ? at - end : 0));
        });
      });
      each_member(units[i], [&](std::uint32_t member) { nodes_[member].slack = slack; });
    }
  }

  // ---- activities --------------------------------------------------------------------------------------------------

  std::uint32_t activity_of(const std::string& name) {
    const auto [found, is_new] = activity_numbers_.try_emplace(name, activity_names_.size());
    if (is_new) { activity_names_.push_back(name); }
    return static_cast<std::uint32_t>(found->second);
  }

  // Sorts activities and gives those of steps their new numbers.
  void add_activities(results::CriticalPath& path) {
    __extension__ using Wide = unsigned __int128;
    Wide ranks = 0;
    for (std::uint32_t rank = 0; rank < job_.rank_graphs.size(); ++rank) { ranks += source_.copies(rank); }
    std::vector<Wide> sums;
    std::vector<std::vector<std::uint64_t>> slacks;
    for (const Node& node : nodes_) {
      const std::uint64_t time = node.end - release(node);
      if (time == 0) { continue; }
      const std::uint32_t activity = activity_of(source_.activity(task(node)));
      if (activity >= sums.size()) { sums.resize(activity + 1, 0), slacks.resize(activity + 1); }
      sums[activity] += Wide{time} * source_.copies(node.rank);
      if (!node.on_path) { slacks[activity].push_back(node.slack); }
    }
    sums.resize(activity_names_.size(), 0);
    slacks.resize(activity_names_.size());
    std::vector<results::PathActivity> rows(activity_names_.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = {activity_names_[i], 0, 0, static_cast<std::uint64_t>(sums[i] / ranks), slacks[i].size(), 0, 0};
      if (slacks[i].empty()) { continue; }
      std::sort(slacks[i].begin(), slacks[i].end());
      rows[i].least_slack_ps = slacks[i].front();
      rows[i].median_slack_ps = slacks[i][slacks[i].size() / 2];
    }
    for (const results::PathStep& step : path.steps) {
      ++rows[step.activity].steps;
      rows[step.activity].on_path_ps += step.end_ps - step.start_ps;
    }
    sort_activities(rows, path);
  }

  static void sort_activities(const std::vector<results::PathActivity>& rows, results::CriticalPath& path) {
    std::vector<std::uint32_t> order(rows.size()), place(rows.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) { order[i] = i; }
    const auto key = [&](std::uint32_t i) { return std::tuple(~rows[i].on_path_ps, ~rows[i].per_rank_ps, i); };
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      path.activities.push_back(rows[order[i]]);
    }
    for (results::PathStep& step : path.steps) { step.activity = place[step.activity]; }
  }

  const PathSource& source_;
  const SimulationJob& job_;
  std::vector<std::uint32_t> first_;  // by rank: the number of its first node
  std::vector<Node> nodes_;
  std::vector<std::vector<std::uint32_t>> members_;  // by collective
  std::map<std::string, std::size_t> activity_numbers_;
  std::vector<std::string> activity_names_;
  std::map<std::string, std::uint64_t> parts_;
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> links_;  // steps, picoseconds
  std::map<std::pair<std::string, std::string>, std::pair<std::uint64_t, std::uint64_t>> traced_links_;
};

}  // namespace

std::string activity_name(const NodeTask& task) {
  switch (task.act) {
    case Act::busy:
      return task.slot == Slot::cpu ? "host" : task.slot == Slot::gpu ? "compute" : "recorded communication";
    case Act::collective: return std::string(config::enum_name(task.collective));
    case Act::send:
    case Act::receive: return "messages";
    case Act::memory: return "memory accesses";
    case Act::no_op:
    case Act::metadata: break;
  }
  return "mark";
}

results::CriticalPath critical_path(const PathSource& source) { return PathFinder(source).path(); }

}  // namespace orrery::simulate
