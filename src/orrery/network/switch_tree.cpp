#include "orrery/network/switch_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/network/flow_network.hpp"

namespace orrery::network {

namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

using Neighbours = std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>;  // by node: link, other end

Neighbours neighbours_of(const hardware::Topology& topology) {
  Neighbours neighbours(topology.nodes.size());
  for (std::uint32_t i = 0; i < topology.links.size(); ++i) {
    neighbours[topology.links[i].from].emplace_back(i, topology.links[i].to);
  }
  return neighbours;
}

// By breadth, without passing devices: the parent of every node, and its distance.
struct Breadth {
  std::vector<std::uint32_t> parent, distance, order;
};

Breadth breadth_from(const Neighbours& neighbours, std::uint32_t devices, std::uint32_t root) {
  Breadth found;
  found.parent.assign(neighbours.size(), kNowhere);
  found.distance.assign(neighbours.size(), kNowhere);
  found.distance[root] = 0;
  found.order = {root};
  for (std::size_t i = 0; i < found.order.size(); ++i) {
    const std::uint32_t node = found.order[i];
    if (node < devices) { continue; }
    for (const auto& [link, other] : neighbours[node]) {
      if (found.distance[other] != kNowhere) { continue; }
      found.distance[other] = found.distance[node] + 1;
      found.parent[other] = node;
      found.order.push_back(other);
    }
  }
  return found;
}

// The tree of a root, cut to the ways to the devices.
SwitchTree cut_tree(const Neighbours& neighbours, const Breadth& breadth, std::span<const std::uint32_t> devices) {
  std::vector<std::uint32_t> below(neighbours.size(), 0);
  for (const std::uint32_t device : devices) {
    for (std::uint32_t node = device; node != kNowhere; node = breadth.parent[node]) { ++below[node]; }
  }
  SwitchTree tree;
  std::vector<std::uint32_t> place(neighbours.size(), 0);
  for (const std::uint32_t node : breadth.order) {
    if (below[node] == 0) { continue; }
    place[node] = static_cast<std::uint32_t>(tree.nodes.size());
    tree.nodes.push_back(node);
    tree.below.push_back(below[node]);
    const std::uint32_t parent = breadth.parent[node];
    tree.parent.push_back(parent == kNowhere ? 0 : place[parent]);
    tree.up.emplace_back();
    for (const auto& [link, other] : neighbours[node]) {
      if (other == parent) { tree.up.back().push_back(link); }
    }
  }
  return tree;
}

}  // namespace

std::optional<SwitchTree> switch_tree(const hardware::Topology& topology, std::span<const std::uint32_t> devices,
                                      std::size_t which) {
  const Neighbours neighbours = neighbours_of(topology);
  using Cost = std::pair<std::uint32_t, std::size_t>;  // depth, links
  std::optional<Cost> least;
  std::vector<std::uint32_t> roots;
  for (std::uint32_t root = topology.devices; root < topology.nodes.size(); ++root) {
    const Breadth breadth = breadth_from(neighbours, topology.devices, root);
    std::uint32_t depth = 0;
    for (const std::uint32_t device : devices) { depth = std::max(depth, breadth.distance[device]); }
    if (depth == kNowhere || (least && depth > least->first)) { continue; }
    const Cost cost{depth, cut_tree(neighbours, breadth, devices).nodes.size()};
    if (least && cost > *least) { continue; }
    if (!least || cost < *least) { roots.clear(); }
    least = cost;
    roots.push_back(root);
  }
  if (roots.empty()) { return std::nullopt; }
  return cut_tree(neighbours, breadth_from(neighbours, topology.devices, roots[which % roots.size()]), devices);
}

std::uint32_t tree_chunks(double bytes, const TreeLimits& limits) {
  constexpr double kUsual = 64, kLeastBytes = 4096;
  double chunks = std::clamp(std::floor(bytes / kLeastBytes), 1.0, kUsual);
  if (limits.buffer > 0) { chunks = std::max(chunks, std::ceil(2 * bytes / limits.buffer)); }  // two at once
  return chunks > kMostTreeChunks ? 0 : static_cast<std::uint32_t>(chunks);
}

std::string tree_refusal(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::broadcast:
    case Collective::barrier: return {};
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter: break;
  }
  return "in_switch has all_reduce, all_gather, reduce_scatter, all_to_all, broadcast and barrier";
}

LinkBytes bytes_on(const TreeCall& call, std::size_t i, bool has_root_below, double chunk) {
  const auto members = static_cast<double>(call.tree.below.front());
  const double inside = static_cast<double>(call.tree.below[i]) / members;
  switch (call.collective) {
    case Collective::all_reduce: return {chunk, chunk};
    case Collective::reduce_scatter: return {chunk, chunk * inside};
    case Collective::all_gather: return {chunk * inside, chunk * (1 - inside)};
    case Collective::all_to_all: {
      const double crossing = static_cast<double>(call.tree.below[i]) * (1 - inside) * chunk;
      return {crossing, crossing};
    }
    case Collective::broadcast: return has_root_below ? LinkBytes{chunk, std::nullopt} : LinkBytes{std::nullopt, chunk};
    case Collective::barrier: return {0.0, 0.0};
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter: break;
  }
  throw_internal_error("a collective of switches", __FILE__, __LINE__);
}

bool reduces_upwards(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

TreeChunks chunks_of(const TreeCall& call, const TreeLimits& limits) {
  TreeChunks made;
  made.count = tree_chunks(call.bytes, limits);
  ORRERY_ASSERT(made.count > 0);
  made.bytes = call.bytes / made.count;
  made.window = limits.buffer > 0 ? static_cast<std::uint32_t>(std::max(1.0, limits.buffer / std::max(made.bytes, 1.0)))
                                  : made.count;
  made.on_way.assign(call.tree.nodes.size(), false);
  if (call.collective != Collective::broadcast) { return made; }
  const auto leaf = std::find(call.tree.nodes.begin(), call.tree.nodes.end(), call.root);
  for (auto i = static_cast<std::uint32_t>(leaf - call.tree.nodes.begin()); i != 0; i = call.tree.parent[i]) {
    made.on_way[i] = true;
  }
  made.on_way[0] = true;
  return made;
}

// ---- the run -------------------------------------------------------------------------------------------------------

namespace {

// Transfers and reductions with what each waits for. All numbers are known before the run.
class TreeRun {
 public:
  TreeRun(const hardware::Topology& topology, std::span<const LevelRule> levels, const TreeLimits& limits)
      : topology_(topology), levels_(levels), limits_(limits), network_(rates(topology, levels)) {
    times_.carried.assign(topology.links.size(), 0.0);
    free_at_.assign(topology.nodes.size(), 0.0);
  }

  void add(const TreeCall& call);
  void add(const SteppedCollective& call, hardware::Routes& routes, std::span<const LevelRule> levels);
  SteppedTimes run();

 private:
  struct Task {
    std::uint32_t call = 0;
    std::vector<std::uint32_t> route;  // of a transfer: links
    std::uint32_t node = kNowhere;     // of a reduction: the switch
    double bytes = 0, latency = 0;
    std::uint32_t waits = 0;
    double ready = 0;                 // the last end of what it waits for
    double not_before = 0;            // the last end of the transfer before it on the link
    std::vector<std::uint32_t> next;  // tasks that wait for its end
    std::uint32_t behind = kNowhere;  // the next transfer on the link: its bytes follow
  };
  struct Start {
    double time = 0;
    std::uint32_t task = 0;
    bool is_end = false;  // of a reduction, or of a transfer without bytes
    bool operator>(const Start& other) const {
      return std::tie(time, task, is_end) > std::tie(other.time, other.task, other.is_end);
    }
  };

  // Tasks by node of the tree; none: kNowhere.
  struct Chunk {
    std::vector<std::uint32_t> up, down;  // on the link above the node
    std::vector<std::uint32_t> done;      // the switch has what comes from below
    std::uint32_t sent = kNowhere;        // the top has sent it to all below
  };
  Chunk make_chunk(const TreeCall& call, const std::vector<bool>& on_way, std::uint32_t k, double bytes);
  void order_chunk(const TreeCall& call, const std::vector<bool>& on_way, const Chunk& chunk);
  void order_after(const TreeCall& call, const std::vector<Chunk>& chunks, std::uint32_t k, std::uint32_t window);

  static std::vector<double> rates(const hardware::Topology& topology, std::span<const LevelRule> levels) {
    std::vector<double> made;
    for (const auto& link : topology.links) { made.push_back(link.bandwidth * levels[link.level].payload); }
    return made;
  }

  std::uint32_t transfer(std::uint32_t call, std::vector<std::uint32_t> route, double bytes, double latency) {
    Task& made = tasks_.emplace_back();
    made.call = call;
    made.route = std::move(route);
    made.bytes = bytes;
    made.latency = latency;
    return static_cast<std::uint32_t>(tasks_.size() - 1);
  }
  std::uint32_t reduction(std::uint32_t call, std::uint32_t node, double bytes) {
    Task& made = tasks_.emplace_back();
    made.call = call;
    made.node = node;
    made.bytes = bytes;
    return static_cast<std::uint32_t>(tasks_.size() - 1);
  }
  void wait(std::uint32_t later, std::uint32_t earlier) {
    if (earlier == kNowhere || later == kNowhere) { return; }
    tasks_[earlier].next.push_back(later);
    ++tasks_[later].waits;
  }
  void follow(std::uint32_t later, std::uint32_t earlier) {
    if (earlier == kNowhere || later == kNowhere) { return; }
    tasks_[earlier].behind = later;
    ++tasks_[later].waits;
  }

  void ready(std::uint32_t number) {
    Task& task = tasks_[number];
    if (task.node == kNowhere) {
      const double time = std::max(task.ready + task.latency, task.not_before);
      return starts_.push({time, number, false});
    }
    if (task.bytes <= 0) { return starts_.push({task.ready, number, true}); }  // nothing to reduce
    double& free = free_at_[task.node];
    free = std::max(free, task.ready) + (limits_.rate > 0 ? task.bytes / limits_.rate : 0.0);
    starts_.push({free, number, true});
  }
  void end(std::uint32_t number, double now) {
    Task& task = tasks_[number];
    times_.finish[task.call] = std::max(times_.finish[task.call], now);
    if (task.node == kNowhere) { ++times_.messages; }
    for (const std::uint32_t other : task.next) {
      tasks_[other].ready = std::max(tasks_[other].ready, now);
      if (--tasks_[other].waits == 0) { ready(other); }
    }
    if (task.behind == kNowhere) { return; }
    tasks_[task.behind].not_before = now;
    if (--tasks_[task.behind].waits == 0) { ready(task.behind); }
  }

  const hardware::Topology& topology_;
  std::span<const LevelRule> levels_;
  TreeLimits limits_;
  FlowNetwork network_;
  std::vector<Task> tasks_;
  std::vector<std::uint32_t> flows_;  // by flow: its task
  std::vector<double> free_at_;       // by node: when its reductions so far end
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  SteppedTimes times_;
};

void TreeRun::add(const TreeCall& call) {
  const TreeChunks chunks = chunks_of(call, limits_);
  std::vector<Chunk> made;
  for (std::uint32_t k = 0; k < chunks.count; ++k) {
    made.push_back(make_chunk(call, chunks.on_way, k, chunks.bytes));
    order_chunk(call, chunks.on_way, made.back());
    order_after(call, made, k, chunks.window);
  }
  times_.finish.push_back(0.0);
}

// The tasks of a chunk.
TreeRun::Chunk TreeRun::make_chunk(const TreeCall& call, const std::vector<bool>& on_way, std::uint32_t k,
                                   double bytes) {
  const SwitchTree& tree = call.tree;
  const std::size_t count = tree.nodes.size();
  const auto number = static_cast<std::uint32_t>(times_.finish.size());
  Chunk made;
  made.up.assign(count, kNowhere);
  made.down.assign(count, kNowhere);
  made.done.assign(count, kNowhere);
  std::vector<double> arriving(count, 0.0);
  for (std::size_t i = count; i-- > 1;) {
    const LinkBytes on_link = bytes_on(call, i, on_way[i], bytes);
    const std::uint32_t link = tree.up[i][k % tree.up[i].size()];
    const double latency = levels_[topology_.links[link].level].latency;
    if (on_link.up) {
      made.up[i] = transfer(number, {link}, *on_link.up, latency);
      arriving[tree.parent[i]] += *on_link.up;
    }
    if (on_link.down) { made.down[i] = transfer(number, {link ^ 1U}, *on_link.down, latency); }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (tree.nodes[i] < topology_.devices) { continue; }
    made.done[i] = reduction(number, tree.nodes[i], reduces_upwards(call.collective) ? arriving[i] : 0.0);
  }
  made.sent = reduction(number, tree.nodes[0], 0.0);
  return made;
}

// Up through all switches, then down.
void TreeRun::order_chunk(const TreeCall& call, const std::vector<bool>& on_way, const Chunk& chunk) {
  const SwitchTree& tree = call.tree;
  for (std::size_t i = 1; i < tree.nodes.size(); ++i) {
    const std::uint32_t parent = tree.parent[i];
    wait(chunk.done[parent], chunk.up[i]);
    wait(chunk.up[i], chunk.done[i]);
    wait(chunk.down[i], parent == 0 || on_way[parent] ? chunk.done[parent] : chunk.down[parent]);
    if (parent == 0) { wait(chunk.sent, chunk.down[i]); }
  }
}

// On each link behind the chunk before it; and a parent has room when it has sent an earlier chunk on: upwards, the top
// to all below.
void TreeRun::order_after(const TreeCall& call, const std::vector<Chunk>& chunks, std::uint32_t k,
                          std::uint32_t window) {
  const SwitchTree& tree = call.tree;
  for (std::size_t i = 1; i < tree.nodes.size(); ++i) {
    const auto cables = static_cast<std::uint32_t>(tree.up[i].size());
    if (k >= cables) {
      follow(chunks[k].up[i], chunks[k - cables].up[i]);
      follow(chunks[k].down[i], chunks[k - cables].down[i]);
    }
    if (k < window) { continue; }
    const Chunk& earlier = chunks[k - window];
    wait(chunks[k].up[i], tree.parent[i] == 0 ? earlier.sent : earlier.up[tree.parent[i]]);
  }
}

// A gate for each member and step: it has all messages of earlier steps.
void TreeRun::add(const SteppedCollective& call, hardware::Routes& routes, std::span<const LevelRule> levels) {
  const auto number = static_cast<std::uint32_t>(times_.finish.size());
  const std::uint32_t steps = step_count(call.schedule), members = call.schedule.members;
  std::vector<std::uint32_t> gates(members, kNowhere);
  std::vector<std::vector<std::uint32_t>> received(members);
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::vector<std::vector<std::uint32_t>> arriving(members);
    for (std::uint32_t p = 0; p < members; ++p) {
      const std::uint32_t gate = reduction(number, call.nodes[p], 0.0);
      wait(gate, gates[p]);
      for (const std::uint32_t message : received[p]) { wait(gate, message); }
      gates[p] = gate;
      for (std::uint32_t i = 0; i < send_count(call.schedule, p, step); ++i) {
        const StepMessage message = send(call.schedule, p, step, i);
        std::vector<std::uint32_t> route = routes.route(call.nodes[p], call.nodes[message.peer]);
        std::uint8_t outermost = 0;
        for (const std::uint32_t link : route) { outermost = std::max(outermost, topology_.links[link].level); }
        const double latency = levels[outermost].latency + hardware::added_latency(topology_, route).value();
        const std::uint32_t made = transfer(number, std::move(route), call.block_bytes * message.count, latency);
        wait(made, gate);
        arriving[message.peer].push_back(made);
      }
    }
    received = std::move(arriving);
  }
  times_.finish.push_back(0.0);
}

SteppedTimes TreeRun::run() {
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].waits == 0) { ready(i); }
  }
  std::vector<FlowNetwork::Ended> ended;
  while (!starts_.empty() || !network_.empty()) {
    double now = network_.empty() ? starts_.top().time : network_.next_end();
    if (!starts_.empty()) { now = std::min(now, starts_.top().time); }
    const double until = now + kInstant * now;
    if (!network_.empty() && network_.next_end() <= until) {
      ended = network_.take_ended(until);
      std::sort(ended.begin(), ended.end());
      for (const auto& [flow, time] : ended) { end(flows_[flow], time); }
    }
    while (!starts_.empty() && starts_.top().time <= until) {
      const Start start = starts_.top();
      starts_.pop();
      const Task& task = tasks_[start.task];
      if (start.is_end || task.bytes <= 0) {
        end(start.task, start.time);
        continue;
      }
      const std::uint32_t flow = network_.start(start.time, task.bytes, task.route);
      if (flows_.size() <= flow) { flows_.resize(flow + 1); }
      flows_[flow] = start.task;
      for (const std::uint32_t link : task.route) { times_.carried[link] += task.bytes; }
    }
    network_.settle(now);
  }
  ORRERY_ASSERT(std::all_of(tasks_.begin(), tasks_.end(), [](const Task& task) { return task.waits == 0; }));
  times_.updates = network_.updates();
  return std::move(times_);
}

}  // namespace

SteppedTimes run_trees(hardware::Routes& routes, std::span<const LevelRule> levels, std::span<const LevelRule> others,
                       const TreeCalls& calls, const TreeLimits& limits) {
  TreeRun run(routes.topology(), levels, limits);
  for (const TreeCall& call : calls.trees) { run.add(call); }
  for (const SteppedCollective& call : calls.others) { run.add(call, routes, others); }
  return run.run();
}

std::uint64_t message_count(const MemberSchedule& schedule) {
  std::uint64_t count = 0;
  for (std::uint32_t step = 0; step < step_count(schedule); ++step) {
    count += std::uint64_t{send_count(schedule, 0, step)} * schedule.members;
  }
  return count;
}

}  // namespace orrery::network
