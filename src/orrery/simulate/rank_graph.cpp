#include "orrery/simulate/rank_graph.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/graph/chakra_collective.hpp"
#include "orrery/graph/check.hpp"
#include "orrery/simulate/graph_fields.hpp"

namespace orrery::simulate {

using graph::CollectiveType;
using graph::Graph;
using graph::NodeIndex;
using graph::NodeType;

namespace {

constexpr std::uint64_t kMostTags = 500'000'000;  // tags of messages are taken modulo this

class Compiler {
 public:
  Compiler(const Graph& graph, std::uint32_t rank, const std::string& file, const CompileContext& context)
      : fields_(graph, file, fmt::format("rank {}", rank)), rank_(rank), context_(context) {
    rates_ = context.rates.empty() ? KernelRates{context.system.local_memory_gb, context.system.peak_tflops}
                                   : context.rates[rank];
  }

  Result<RankGraph> run() {
    if (auto runnable = fields_.runnable(); !runnable) { return tl::make_unexpected(runnable.error()); }
    const Graph& graph = fields_.graph();
    std::vector<NodeIndex> by_id(graph.node_count());
    for (NodeIndex i = 0; i < by_id.size(); ++i) { by_id[i] = i; }
    std::sort(by_id.begin(), by_id.end(), [&](NodeIndex a, NodeIndex b) { return graph.id(a) < graph.id(b); });
    RankGraph rank_graph;
    rank_graph.nodes.reserve(by_id.size());
    for (const NodeIndex node : by_id) {
      rank_graph.nodes.push_back(task(node));
      if (context_.kernels) { count_kernel(rank_graph.nodes.back(), node, rank_graph.kernels); }
    }
    if (fields_.failed()) { return tl::make_unexpected(fields_.failure()); }
    rank_graph.cut_durations = cut_durations_;
    rank_graph.replayed_broadcasts = replayed_broadcasts_;
    link(rank_graph, by_id);
    if (context_.tensors) { add_tensors(rank_graph, by_id); }
    if (fields_.failed()) { return tl::make_unexpected(fields_.failure()); }
    if (context_.names) {
      for (const NodeIndex node : by_id) { rank_graph.names.emplace_back(graph.name(node)); }
    }
    return rank_graph;
  }

 private:
  NodeTask task(NodeIndex node) {
    NodeTask task;
    task.id = fields_.graph().id(node);
    const bool on_host = fields_.truth(node, fields_.is_cpu_op);
    const NodeType type = fields_.graph().type(node);
    task.slot = on_host                       ? Slot::cpu
                : type == NodeType::comp      ? Slot::gpu
                : type == NodeType::comm_recv ? Slot::none
                                              : Slot::comm;
    if (context_.system.replay_only && type != NodeType::invalid && type != NodeType::metadata) {
      replay(task, node);
      task.counts_as_compute = !on_host;
      return task;
    }
    switch (type) {
      case NodeType::comp: compute(task, node, on_host); break;
      case NodeType::comm_coll: collective(task, node); break;
      case NodeType::comm_send: message(task, node, Act::send, fields_.comm_dst, "comm_dst"); break;
      case NodeType::comm_recv: message(task, node, Act::receive, fields_.comm_src, "comm_src"); break;
      case NodeType::mem_load:
      case NodeType::mem_store: memory(task, node); break;
      case NodeType::invalid: task.act = Act::no_op; break;
      case NodeType::metadata: task.act = Act::metadata; break;
    }
    if (!graph::is_known(type)) {
      fields_.add_error(node, fmt::format("has the node type {}; valid: 0 to 7", static_cast<int>(type)));
    }
    return task;
  }

  // `inputs` and `outputs` of a node: lists of names, each with its bytes.
  void add_tensors(RankGraph& rank_graph, const std::vector<NodeIndex>& by_id) {
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < by_id.size(); ++i) {
      for (const auto& [key, writes] : {std::pair{fields_.inputs, false}, {fields_.outputs, true}}) {
        const auto value = fields_.value(by_id[i], key);
        if (!value) { continue; }
        const std::vector<std::string_view> texts = value->texts();
        for (std::size_t k = 0; k + 1 < texts.size(); k += 2) {
          const auto bytes = whole_number(texts[k + 1]);
          if (!bytes) {
            fields_.add_error(by_id[i], fmt::format("has the tensor {} of {} bytes; valid: a whole number",
                                                    quote(texts[k]), quote(texts[k + 1])));
            return;
          }
          const auto number = static_cast<std::uint32_t>(numbers.try_emplace(texts[k], numbers.size()).first->second);
          if (*bytes > 0) { rank_graph.tensors.push_back({i, number, *bytes, writes}); }
        }
        if (texts.size() % 2 != 0) {
          fields_.add_error(by_id[i], "has a list of tensors with a name without its bytes");
        }
      }
    }
  }

  [[nodiscard]] bool physical() const { return context_.semantics == Semantics::physical; }

  void replay(NodeTask& task, NodeIndex node) {
    if (physical()) { return replay_physically(task, node); }
    constexpr std::uint64_t kMost = 1'000'000'000'000'000;  // microseconds; the clock holds a few of these
    if (fields_.graph().duration_us(node) > kMost) {
      return fields_.add_error(node, "has a duration that the clock cannot count");
    }
    const std::uint64_t recorded = fields_.graph().duration_us(node) * 1000;
    task.act = Act::busy;
    task.amount = recorded == 0 ? 1 : recorded;
    cut_durations_ = cut_durations_ || fields_.duration_ns(node) != recorded;
  }

  // The recorded duration to the nanosecond.
  void replay_physically(NodeTask& task, NodeIndex node) {
    constexpr std::uint64_t kPicoseconds = 1'000;           // of a nanosecond
    constexpr std::uint64_t kMost = 1'000'000'000'000'000;  // nanoseconds
    const std::uint64_t recorded = fields_.duration_ns(node);
    if (recorded > kMost) { return fields_.add_error(node, "has a duration that the clock cannot count"); }
    task.act = Act::busy;
    task.amount = recorded * kPicoseconds;
  }

  void compute(NodeTask& task, NodeIndex node, bool on_host) {
    // Physical semantics uses the recorded time if the graph does not have the number of operations, and on a cluster
    // of the catalogue, whose kernels do not run at the peaks of a roofline, wherever there is one.
    const bool recorded = physical() && (!fields_.value(node, fields_.num_ops) ||
                                         (context_.system.recorded_first && fields_.duration_ns(node) > 0));
    if (on_host || recorded || !context_.system.roofline) {
      replay(task, node);
      task.counts_as_compute = !on_host;
      return;
    }
    const std::uint64_t operations = fields_.need(node, fields_.num_ops, "num_ops");
    const std::uint64_t bytes = fields_.need(node, fields_.tensor_size, "tensor_size");
    if (physical()) { return compute_physically(task, node, operations, bytes); }
    if (bytes == 0) {
      task.act = Act::no_op;
      return;
    }
    // Double precision in the order of ASTRA-sim, for the same last bit.
    const double intensity = static_cast<double>(operations) / static_cast<double>(bytes);
    const double reachable = std::min(rates_.local_memory_gb * 1e9 * intensity, rates_.peak_tflops * 1e12);
    const double seconds = operations == 0 ? 0.0 : static_cast<double>(operations) / reachable;
    constexpr double kMost = 1e18;  // the clock holds a few of these
    if (!(seconds * 1e9 < kMost)) { return fields_.add_error(node, "has a duration that the clock cannot count"); }
    task.amount = static_cast<std::uint64_t>(seconds * 1e9);
    task.counts_as_compute = true;
  }

  // Roofline: the longer of arithmetic and memory traffic.
  void compute_physically(NodeTask& task, NodeIndex node, std::uint64_t operations, std::uint64_t bytes) {
    const double arithmetic = static_cast<double>(operations) / rates_.peak_tflops;     // 1e-12 s
    const double movement = static_cast<double>(bytes) / rates_.local_memory_gb * 1e3;  // 1e-12 s
    const double picoseconds = std::ceil(std::max(arithmetic, movement));
    constexpr double kMost = 1e18;
    if (!(picoseconds < kMost)) { return fields_.add_error(node, "has a duration that the clock cannot count"); }
    task.amount = static_cast<std::uint64_t>(picoseconds);
    task.counts_as_compute = true;
  }

  // A kernel of one operation stands for one without arithmetic.
  void count_kernel(const NodeTask& task, NodeIndex node, KernelTotals& totals) {
    if (task.act != Act::busy || task.slot != Slot::gpu) { return; }
    const auto operations = fields_.value(node, fields_.num_ops), bytes = fields_.value(node, fields_.tensor_size);
    if (!operations || !bytes) {
      ++totals.without_figures;
      totals.time_without_figures += task.amount;
      return;
    }
    const double work = static_cast<double>(fields_.need(node, fields_.num_ops, "num_ops"));
    const double moved = static_cast<double>(fields_.need(node, fields_.tensor_size, "tensor_size"));
    totals.operations += work;
    totals.bytes += moved;
    ++totals.kernels;
    totals.time += task.amount;
    // 1e-12 s: operations / TFLOP/s, and bytes / GB/s x 1e3.
    const double arithmetic = work / rates_.peak_tflops;
    const double movement = moved / rates_.local_memory_gb * 1e3;
    if (movement > arithmetic) { totals.memory_bound += task.amount; }
  }

  void collective(NodeTask& task, NodeIndex node) {
    const auto type = static_cast<CollectiveType>(fields_.need(node, fields_.comm_type, "comm_type"));
    if (type == CollectiveType::broadcast && !physical()) {
      replayed_broadcasts_ = true;
      return replay(task, node);
    }
    task.act = Act::collective;
    task.amount = fields_.need(node, fields_.comm_size, "comm_size");
    task.priority = static_cast<std::int32_t>(fields_.integer(node, fields_.comm_priority));
    task.group = group(node);
    task.tag = slowed_kernels(node);
    involve(task, node);
    use_switch(task, node);
    const auto known = graph::collective_of(type);
    if (!graph::is_known(type)) {
      return fields_.add_error(node,
                               fmt::format("has the comm_type {}; valid: 0 to 9", static_cast<std::uint64_t>(type)));
    }
    if (!known || static_cast<std::size_t>(*known) >= kCollectives) {
      return fields_.add_error(
          node,
          fmt::format("is a {}, which is not simulated; simulated: ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, "
                      "BROADCAST",
                      graph::name_of(type)));
    }
    task.collective = *known;
    if (task.collective == Collective::broadcast) { return; }  // needs no algorithm: a chain
    const auto* list = std::get_if<std::vector<DimensionAlgorithm>>(
        &context_.system.algorithms[static_cast<std::size_t>(task.collective)]);
    const bool small =
        task.group != kWholeMachine && context_.groups.size(task.group - 1) < context_.ranks;  // ring then
    if (list != nullptr && list->empty() && (physical() || !small) &&
        !context_.system.custom_of_node.contains(task.id)) {
      fields_.add_error(node,
                        fmt::format("is an {}, but the system file has no algorithm for it", graph::name_of(type)));
    }
    if (!physical() && task.collective == Collective::all_gather && task.amount < context_.system.splits) {
      fields_.add_error(
          node, fmt::format("is an ALL_GATHER of {} B, which cannot be split into {} chunks (preferred-dataset-splits)",
                            task.amount, context_.system.splits));
    }
  }

  std::uint64_t slowed_kernels(NodeIndex node) {
    constexpr std::int64_t kWhole = 1'000'000;
    const std::int64_t part = fields_.integer(node, fields_.slows_kernels);
    if (part >= 0 && part < kWhole) { return static_cast<std::uint64_t>(part); }
    fields_.add_error(node, fmt::format("has the {} {}; valid: 0 to {}", graph::keys::slows_kernels, part, kWhole - 1));
    return 0;
  }

  void involve(NodeTask& task, NodeIndex node) {
    const auto value = fields_.value(node, fields_.involved_dim);
    if (!value) { return; }
    task.dimensions = 0;
    for (std::size_t i = 0; i < value->size() && i < 15; ++i) {
      const auto is_in = value->as_bool(i);
      if (!is_in) { return fields_.add_error(node, "has an involved_dim that is not a list of booleans"); }
      if (*is_in) { task.dimensions = static_cast<std::uint16_t>(task.dimensions | (1U << i)); }
    }
  }

  // ASTRA-sim's rules: a collective in the switch, which is the last rank.
  void use_switch(NodeTask& task, NodeIndex node) {
    if (!fields_.truth(node, fields_.in_switch) || physical()) { return; }
    const std::uint32_t last = context_.ranks - 1;
    const bool is_all_others = task.group != kWholeMachine && context_.groups.size(task.group - 1) == last &&
                               !context_.groups.contains(task.group - 1, last);
    if (!is_all_others) {
      fields_.add_error(node,
                        fmt::format("has in_switch, but its group is not ranks 0 to {}; rank {}, the last one, is "
                                    "the switch",
                                    static_cast<std::int64_t>(last) - 1, last));
    }
    if (context_.system.rendezvous) { fields_.add_error(node, "has in_switch, which --rendezvous-protocol excludes"); }
    task.dimensions = kInSwitch;
  }

  // 1 + the position of the node's group; 0: all ranks.
  std::uint32_t group(NodeIndex node) {
    const auto text = graph::group_name(fields_.value(node, fields_.pg_name));
    if (!text || text->empty()) { return kWholeMachine; }
    const std::string name = group_key(*text);
    if (const auto found = context_.groups.find(name)) {
      if (!context_.groups.contains(*found, rank_)) {
        const bool is_collective = fields_.graph().type(node) == NodeType::comm_coll;
        fields_.add_error(node, fmt::format("is {} group {}, which does not contain rank {}",
                                            is_collective ? "a collective of" : "an access of", name, rank_));
      }
      return *found + 1;
    }
    if (name != "0") { fields_.add_error(node, unknown_group(name)); }
    return kWholeMachine;
  }

  [[nodiscard]] std::string unknown_group(const std::string& name) const {
    const std::string text = fmt::format("has the pg_name {}, but there is no such process group of the {} ranks; ",
                                         quote(name), context_.ranks);
    const std::vector<std::string> known = context_.groups.names();
    if (known.empty()) { return text + "neither the graph nor a file of groups lists one"; }
    constexpr std::size_t kMost = 8;
    const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
    const auto near = is_number ? std::nullopt : nearest(name, known);
    if (near) { return text + fmt::format("did you mean {}?", quote(*near)); }
    const std::vector<std::string> first(known.begin(),
                                         known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kMost)));
    return text + fmt::format("groups are {}{}", join(first, ", "), known.size() > kMost ? ", …" : "");
  }

  void message(NodeTask& task, NodeIndex node, Act act, std::optional<graph::KeyIndex> key, const char* name) {
    task.act = act;
    task.amount = fields_.need(node, fields_.comm_size, "comm_size");
    const std::uint64_t peer = fields_.need(node, key, name);
    task.tag = static_cast<std::uint64_t>(fields_.integer(node, fields_.comm_tag)) % kMostTags;
    if (peer >= context_.ranks) {
      fields_.add_error(node, fmt::format("has the {} {}; the ranks are 0 to {}", name, peer, context_.ranks - 1));
    } else if (peer == rank_) {
      fields_.add_error(node, fmt::format("has the {} {}, its own rank", name, peer));
    } else if (task.amount == 0) {
      fields_.add_error(node, "has comm_size 0; valid: at least 1 B");
    }
    task.peer = static_cast<std::uint32_t>(peer);
  }

  void memory(NodeTask& task, NodeIndex node) {
    task.act = Act::memory;
    task.tag = fields_.graph().type(node) == NodeType::mem_load ? kLoad : kStore;
    task.amount = fields_.need(node, fields_.tensor_size, "tensor_size");
    if (const auto name = graph::group_name(fields_.value(node, fields_.pg_name));
        physical() && name && !name->empty()) {
      task.group = group(node);
      task.dimensions = kCombined;
    }
    if (context_.memory == memory::Arrangement::NO_MEMORY_EXPANSION) {
      fields_.add_error(node,
                        fmt::format("is a {}, but the machine has no memory for it (memory-type NO_MEMORY_EXPANSION)",
                                    graph::name_of(fields_.graph().type(node))));
    }
  }

  // Data and control dependencies as one set.
  void link(RankGraph& rank_graph, const std::vector<NodeIndex>& by_id) {
    const Graph& graph = fields_.graph();
    const auto count = static_cast<std::uint32_t>(by_id.size());
    std::vector<std::uint32_t> place(count);
    for (std::uint32_t i = 0; i < count; ++i) { place[by_id[i]] = i; }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    edges.reserve(graph.data_dep_count() + graph.ctrl_dep_count());
    rank_graph.child_begin.assign(count + 1, 0);
    std::vector<std::uint32_t> parents;
    for (std::uint32_t i = 0; i < count; ++i) {
      parents.clear();
      for (const NodeIndex parent : graph.data_deps(by_id[i])) { parents.push_back(place[parent]); }
      for (const NodeIndex parent : graph.ctrl_deps(by_id[i])) { parents.push_back(place[parent]); }
      std::sort(parents.begin(), parents.end());
      parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
      rank_graph.nodes[i].parents = static_cast<std::uint32_t>(parents.size());
      for (const std::uint32_t parent : parents) {
        edges.emplace_back(parent, i);
        ++rank_graph.child_begin[parent + 1];
      }
    }
    for (std::uint32_t i = 0; i < count; ++i) { rank_graph.child_begin[i + 1] += rank_graph.child_begin[i]; }
    rank_graph.children.resize(edges.size());
    std::vector<std::uint32_t> at(rank_graph.child_begin.begin(), rank_graph.child_begin.end() - 1);
    for (const auto& [parent, child] : edges) { rank_graph.children[at[parent]++] = child; }
  }

  GraphFields fields_;
  bool cut_durations_ = false, replayed_broadcasts_ = false;
  std::uint32_t rank_;
  const CompileContext& context_;
  KernelRates rates_;
};

}  // namespace

Result<RankGraph> compile(const Graph& graph, std::uint32_t rank, const std::string& file,
                          const CompileContext& context) {
  return Compiler(graph, rank, file, context).run();
}

}  // namespace orrery::simulate
