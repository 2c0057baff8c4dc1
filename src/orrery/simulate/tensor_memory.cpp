#include "orrery/simulate/tensor_memory.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace orrery::simulate {

namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

struct Times {
  std::uint64_t start = kUnknown, end = 0;
};

struct Life {
  std::uint64_t bytes = 0;
  std::uint64_t from = kUnknown, until = 0;
  bool is_read = false;
};

std::vector<Life> lives_of(const RankGraph& graph, const std::vector<Times>& nodes) {
  std::vector<Life> lives;
  for (const TensorUse& use : graph.tensors) {
    if (use.tensor >= lives.size()) { lives.resize(use.tensor + 1); }
    Life& life = lives[use.tensor];
    if (life.bytes == 0) { life.bytes = use.bytes; }
    const Times& node = nodes[use.node];
    if (node.start == kUnknown) { continue; }  // it has not run
    if (use.writes) {
      life.from = std::min(life.from, node.start);
    } else {
      life.is_read = true;
      life.until = std::max(life.until, node.end);
    }
  }
  return lives;
}

results::MemoryRank memory_of(const std::vector<Life>& lives, std::uint64_t end_ns) {
  std::map<std::uint64_t, double> changes = {{0, 0.0}};
  for (const Life& life : lives) {
    if (life.from == kUnknown && !life.is_read) { continue; }
    const auto bytes = static_cast<double>(life.bytes);
    changes[life.from == kUnknown ? 0 : life.from] += bytes;
    if (life.is_read && life.until < end_ns) { changes[life.until] -= bytes; }
  }
  results::MemoryRank rank;
  double now = 0, sum = 0;
  rank.held = std::numeric_limits<double>::infinity();
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    now += change->second;
    const auto next = std::next(change);
    const std::uint64_t until = next == changes.end() ? end_ns : next->first;
    sum += now * static_cast<double>(until - change->first);
    rank.points.push_back({change->first, now});
    rank.held = std::min(rank.held, now);
    if (now > rank.peak) { rank.peak = now, rank.peak_ns = change->first; }
  }
  rank.mean = end_ns > 0 ? sum / static_cast<double>(end_ns) : now;
  return rank;
}

}  // namespace

results::MemoryOverTime tensor_memory(const SimulationJob& job, const results::Simulation& simulation) {
  std::vector<std::vector<Times>> nodes;
  for (const RankGraph& graph : job.rank_graphs) { nodes.emplace_back(graph.nodes.size()); }
  std::uint64_t end_ns = 0;
  for (const results::SimulatedSpan& span : simulation.spans) {
    const auto& graph = job.rank_graphs[span.rank].nodes;
    const auto found = std::lower_bound(graph.begin(), graph.end(), span.node,
                                        [](const NodeTask& task, std::uint64_t id) { return task.id < id; });
    nodes[span.rank][static_cast<std::size_t>(found - graph.begin())] = {span.start_ns, span.end_ns};
    end_ns = std::max(end_ns, span.end_ns);
  }
  results::MemoryOverTime memory;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    memory.ranks.add(1, memory_of(lives_of(job.rank_graphs[rank], nodes[rank]), end_ns));
  }
  return memory;
}

}  // namespace orrery::simulate
