#include "orrery/graph/job_check.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "orrery/graph/check.hpp"
#include "orrery/graph/topology.hpp"
#include "orrery/graph/wait_graph.hpp"

namespace orrery::graph {

namespace {

// The call of a collective by one rank, or one side of a message.
struct Call {
  NodeIndex node = 0;
  std::uint64_t id = 0;
  std::uint64_t offset = 0;
  std::int64_t type = 0;  // CollectiveType; 0 for messages
  std::uint64_t size = 0;
};

using Calls = std::vector<Call>;
using Channel = std::tuple<std::uint64_t, std::uint64_t, std::int64_t>;  // source, destination, tag

std::string collective_text(const Call& call) {
  return fmt::format("{} of {} bytes (node {})", name_of(static_cast<CollectiveType>(call.type)), call.size, call.id);
}

bool may_differ_in_size(std::int64_t type) {
  switch (static_cast<CollectiveType>(type)) {
    case CollectiveType::gather:
    case CollectiveType::scatter:
    case CollectiveType::all_to_all: return true;
    case CollectiveType::all_reduce:
    case CollectiveType::reduce:
    case CollectiveType::all_gather:
    case CollectiveType::broadcast:
    case CollectiveType::reduce_scatter:
    case CollectiveType::reduce_scatter_block:
    case CollectiveType::barrier: break;
  }
  return false;
}

// Whether the two are the same calls, in any order.
bool same_calls(const Calls& a, const Calls& b) {
  const auto sorted = [](const Calls& calls) {
    std::vector<std::pair<std::int64_t, std::uint64_t>> kinds;
    for (const Call& call : calls) { kinds.emplace_back(call.type, call.size); }
    std::sort(kinds.begin(), kinds.end());
    return kinds;
  };
  return sorted(a) == sorted(b);
}

Example example(std::uint64_t rank, const Call& call, std::string message) {
  return {std::move(message), rank, call.id, call.offset};
}

std::string quoted_group(const std::string& name) {
  return name.empty() ? "all ranks" : fmt::format("group \"{}\"", name);
}

}  // namespace

struct JobCheck::State {
  explicit State(JobCheckOptions how) : options(std::move(how)), found(options.examples) {
    for (const ProcessGroup& group : options.groups) { add_group(group, "the groups file"); }
  }

  JobCheckOptions options;
  Findings found;
  WaitGraph waits;
  std::set<std::uint64_t> ranks;
  std::map<std::string, std::map<std::uint64_t, Calls>> collectives;  // by group, then rank; "" = all ranks
  std::map<Channel, Calls> sends, receives;
  std::map<std::string, std::pair<std::vector<std::uint64_t>, std::string>>
      members;  // ranks, and where they are listed
  std::uint64_t partly_involved = 0;
  bool is_matched = true;  // no mismatch so far; otherwise a search for deadlocks is meaningless

  void mismatch(Problem problem, Example what) {
    is_matched = false;
    found.add(problem, std::move(what));
  }

  void add_group(const ProcessGroup& group, const std::string& from) {
    const auto [listed, is_new] = members.try_emplace(group.name, group.ranks, from);
    if (is_new || listed->second.first == group.ranks) { return; }
    mismatch(Problem::collective_membership,
             {fmt::format("group \"{}\" has ranks {} according to {}, but {} according to {}", group.name,
                          ranks_text(listed->second.first), listed->second.second, ranks_text(group.ranks), from),
              {},
              {},
              {}});
  }

  void add_collective(std::uint64_t rank, const Graph& graph, NodeIndex node) {
    const auto type = graph.value(node, keys::comm_type);
    const auto size = graph.value(node, keys::comm_size);
    const auto group = group_name(graph.value(node, keys::pg_name));
    if (!group && !involves_all(graph.value(node, keys::involved_dim))) {
      ++partly_involved;
      return;
    }
    const Call call{node, graph.id(node), graph.offset(node), type ? type->as_int().value_or(0) : 0,
                    size ? size->as_uint().value_or(0) : 0};
    collectives[group.value_or("")][rank].push_back(call);
  }

  [[nodiscard]] static bool involves_all(const std::optional<Value>& involved) {
    for (std::size_t i = 0; involved && i < involved->size(); ++i) {
      if (involved->as_bool(i) == false) { return false; }
    }
    return true;
  }

  void add_message(std::uint64_t rank, const Graph& graph, NodeIndex node) {
    const bool sends_it = graph.type(node) == NodeType::comm_send;
    const auto peer = graph.value(node, sends_it ? keys::comm_dst : keys::comm_src);
    const auto other = peer ? peer->as_uint() : std::nullopt;
    if (!other) { return; }  // check.hpp reports it
    const auto tag = graph.value(node, keys::comm_tag);
    const auto size = graph.value(node, keys::comm_size);
    const Channel channel{sends_it ? rank : *other, sends_it ? *other : rank, tag ? tag->as_int().value_or(0) : 0};
    (sends_it ? sends : receives)[channel].push_back(
        {node, graph.id(node), graph.offset(node), 0, size ? size->as_uint().value_or(0) : 0});
  }

  // ---- collectives ----

  void check_members(const std::string& group, const std::map<std::uint64_t, Calls>& by_rank) {
    const auto listed = members.find(group);
    if (listed == members.end()) { return; }
    const auto& [list, from] = listed->second;
    for (const std::uint64_t member : list) {
      if (!ranks.contains(member) && !options.partial) {
        mismatch(Problem::group_members,
                 {fmt::format("group \"{}\" has rank {} (according to {}), which has no file", group, member, from),
                  {},
                  {},
                  {}});
      }
    }
    const std::set<std::uint64_t> members_of_group(list.begin(), list.end());
    for (const auto& [rank, calls] : by_rank) {
      if (members_of_group.contains(rank)) { continue; }
      mismatch(Problem::group_members,
               example(rank, calls.front(),
                       fmt::format("is a collective of group \"{}\", whose ranks ({}, according to {}) do not include "
                                   "this rank",
                                   group, ranks_text(list), from)));
    }
  }

  // The ranks that must call the same collectives: those of the list of the group; all ranks for no group; otherwise
  // those that call any.
  [[nodiscard]] std::vector<std::uint64_t> expected(const std::string& group,
                                                    const std::map<std::uint64_t, Calls>& by_rank) const {
    std::vector<std::uint64_t> found_ranks;
    const auto listed = members.find(group);
    if (listed != members.end()) {
      for (const std::uint64_t rank : listed->second.first) {
        if (ranks.contains(rank)) { found_ranks.push_back(rank); }
      }
      std::sort(found_ranks.begin(), found_ranks.end());
    } else if (group.empty()) {
      found_ranks.assign(ranks.begin(), ranks.end());
    } else {
      for (const auto& [rank, calls] : by_rank) { found_ranks.push_back(rank); }
    }
    return found_ranks;
  }

  void check_group(const std::string& group, const std::map<std::uint64_t, Calls>& by_rank) {
    check_members(group, by_rank);
    const auto& [first, calls] = *by_rank.begin();
    static const Calls kNone;
    for (const std::uint64_t rank : expected(group, by_rank)) {
      const auto own = by_rank.find(rank);
      if (rank != first) { compare(group, first, calls, rank, own == by_rank.end() ? kNone : own->second); }
    }
  }

  void compare(const std::string& group, std::uint64_t first, const Calls& a, std::uint64_t rank, const Calls& b) {
    const bool same = a.size() == b.size() && same_calls(a, b);
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].type == b[i].type && a[i].size == b[i].size) { continue; }
      std::string what = fmt::format("collective {} of {} is {} here and {} on rank {}", i, quoted_group(group),
                                     collective_text(b[i]), collective_text(a[i]), first);
      if (a[i].type == b[i].type && may_differ_in_size(a[i].type)) {
        found.add(Problem::collective_size, example(rank, b[i], std::move(what)), false);
        continue;
      }
      const Problem problem = same                     ? Problem::collective_order
                              : a[i].type != b[i].type ? Problem::collective_type
                                                       : Problem::collective_size;
      return mismatch(problem, example(rank, b[i], std::move(what)));
    }
    if (a.size() == b.size()) { return; }
    const bool fewer = b.size() < a.size();
    const Call& more = fewer ? a[b.size()] : b[a.size()];
    mismatch(Problem::collective_membership,
             example(fewer ? first : rank, more,
                     fmt::format("is collective {} of {} ({}), but rank {} calls only {} of them",
                                 std::min(a.size(), b.size()), quoted_group(group),
                                 name_of(static_cast<CollectiveType>(more.type)), fewer ? rank : first,
                                 std::min(a.size(), b.size()))));
  }

  // ---- messages ----

  [[nodiscard]] bool is_not_given(std::uint64_t rank) const { return options.partial && !ranks.contains(rank); }

  void unmatched(const Channel& channel, const Calls& calls, std::size_t from, bool are_sends) {
    const auto& [source, destination, tag] = channel;
    const std::uint64_t peer = are_sends ? destination : source;
    if (is_not_given(peer)) { return; }
    const std::string why = ranks.contains(peer)
                                ? fmt::format("no {} of that rank matches it", are_sends ? "receive" : "send")
                                : "that rank has no file";
    for (std::size_t i = from; i < calls.size(); ++i) {
      mismatch(are_sends ? Problem::unmatched_send : Problem::unmatched_receive,
               example(are_sends ? source : destination, calls[i],
                       fmt::format("{} {} bytes {} rank {} with tag {}; {}", are_sends ? "sends" : "receives",
                                   calls[i].size, are_sends ? "to" : "from", peer, tag, why)));
    }
  }

  void check_messages() {
    for (const auto& [channel, calls] : sends) {
      const auto other = receives.find(channel);
      unmatched(channel, calls, other == receives.end() ? 0 : other->second.size(), true);
    }
    for (const auto& [channel, calls] : receives) {
      const auto other = sends.find(channel);
      unmatched(channel, calls, other == sends.end() ? 0 : other->second.size(), false);
      if (other == sends.end()) { continue; }
      for (std::size_t i = 0; i < std::min(calls.size(), other->second.size()); ++i) {
        const auto& [source, destination, tag] = channel;
        const Call& send = other->second[i];
        waits.wait(waits.member(destination, calls[i].node), waits.member(source, send.node));
        if (calls[i].size == send.size) { continue; }
        mismatch(Problem::message_size, example(destination, calls[i],
                                                fmt::format("receives {} bytes, but node {} of rank {} sends {}",
                                                            calls[i].size, send.id, source, send.size)));
      }
    }
  }

  // ---- all ranks together ----

  void check_ranks() {
    if (options.partial || ranks.empty()) { return; }
    for (std::uint64_t rank = 0, last = *ranks.rbegin(); rank <= last && last <= kMostRanks; ++rank) {
      if (!ranks.contains(rank)) {
        mismatch(Problem::missing_rank,
                 {fmt::format("rank {} has no file, but rank {} has one", rank, last), rank, {}, {}});
      }
    }
  }

  void check_deadlock() {
    for (const auto& [group, by_rank] : collectives) {
      const auto& [first, calls] = *by_rank.begin();
      for (const auto& [rank, own] : by_rank) {
        for (std::size_t i = 0; i < std::min(calls.size(), own.size()); ++i) {
          waits.join(waits.member(first, calls[i].node), waits.member(rank, own[i].node));
        }
      }
    }
    const auto cycle = waits.cycle();
    if (cycle.empty()) { return; }
    std::string text;
    for (const auto& step : cycle) { text += fmt::format("node {} of rank {} -> ", step.id, step.rank); }
    found.add(Problem::deadlock,
              {fmt::format("ranks wait for each other: {}node {} of rank {} (each waits for the next)", text,
                           cycle.front().id, cycle.front().rank),
               cycle.front().rank, cycle.front().id, std::nullopt});
  }

  static constexpr std::uint64_t kMostRanks = std::uint64_t{1} << 24;
};

JobCheck::JobCheck(JobCheckOptions options) : state_(std::make_unique<State>(std::move(options))) {}
JobCheck::JobCheck(JobCheck&&) noexcept = default;
JobCheck& JobCheck::operator=(JobCheck&&) noexcept = default;
JobCheck::~JobCheck() = default;

void JobCheck::add(std::uint64_t rank, const Graph& graph) {
  State& state = *state_;
  state.ranks.insert(rank);
  state.waits.add(rank, graph);
  for (const ProcessGroup& group : graph.groups()) { state.add_group(group, fmt::format("the file of rank {}", rank)); }
  std::vector<NodeIndex> order = run_order(graph);
  if (order.size() < graph.node_count()) {
    state.is_matched = false;
    std::vector<bool> runs(graph.node_count(), false);
    for (const NodeIndex node : order) { runs[node] = true; }
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      if (!runs[node]) { order.push_back(node); }
    }
  }
  for (const NodeIndex node : order) {
    const NodeType type = graph.type(node);
    if (type == NodeType::comm_coll) { state.add_collective(rank, graph, node); }
    if (type == NodeType::comm_send || type == NodeType::comm_recv) { state.add_message(rank, graph, node); }
  }
}

std::vector<Finding> JobCheck::findings() {
  State& state = *state_;
  state.check_ranks();
  for (const auto& [group, by_rank] : state.collectives) { state.check_group(group, by_rank); }
  state.check_messages();
  if (state.is_matched) { state.check_deadlock(); }
  if (state.partly_involved > 0) {
    state.found.add(Problem::not_compared,
                    {fmt::format("{} collectives involve only some network dimensions (involved_dim); the files do not "
                                 "specify which ranks these are",
                                 state.partly_involved),
                     {},
                     {},
                     {}},
                    false);
  }
  return state.found.take();
}

}  // namespace orrery::graph
