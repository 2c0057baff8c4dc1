#include "orrery/simulate/merged_jobs.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "orrery/core/random.hpp"
#include "orrery/simulate/class_parts.hpp"
#include "orrery/simulate/on_cluster.hpp"

namespace orrery::simulate {

namespace {

class Merger {
 public:
  Merger(const hardware::Cluster& cluster, const std::vector<PlacedJob>& jobs)
      : jobs_(jobs), layout_(parallel::rank_order(cluster)) {
    made_.cluster = cluster;
    made_.job = machine_on(cluster);
    made_.job.backend = Backend::flow;
    made_.job.network = network_of(cluster);
    made_.kinds = first_kinds();
    if (!jobs.empty()) { made_.egress = jobs.front().egress; }
  }

  FlowJob run() {
    std::vector<std::uint32_t> all;
    for (const PlacedJob& job : jobs_) { all.insert(all.end(), job.devices.begin(), job.devices.end()); }
    made_.groups.push_back({shape_of(layout_, all), kind_of("all jobs")});
    for (const PlacedJob& job : jobs_) { add(job); }
    for (std::uint32_t rank = 0; rank < all.size(); ++rank) { made_.simulated.push_back(rank); }
    if (!made_.cluster.topology) { made_.pool.devices = all; }
    use_topology(made_, std::move(all));
    if (!made_.cluster.nodes.empty()) {
      for (const PlacedJob& job : jobs_) { made_.parts.push_back(part_of(job)); }
    }
    made_.by_link = !made_.devices.empty();
    return std::move(made_);
  }

 private:
  // The cluster, with the nodes of one job only.
  [[nodiscard]] hardware::Cluster part_of(const PlacedJob& job) const {
    hardware::Cluster part = made_.cluster;
    std::set<std::size_t> entries;
    for (const std::uint32_t device : job.devices) { entries.insert(made_.cluster.nodes_entry(device)); }
    part.set_nodes(made_.cluster.nodes, {entries.begin(), entries.end()});
    return part;
  }

  std::uint32_t kind_of(std::string name) {
    made_.kinds.push_back(std::move(name));
    return static_cast<std::uint32_t>(made_.kinds.size() - 1);
  }

  void add_group(const PlacedJob& job, const std::string& name, std::vector<std::uint32_t> ranks, std::uint32_t kind) {
    std::vector<std::uint32_t> devices;
    for (const std::uint32_t rank : ranks) { devices.push_back(job.devices[rank]); }
    for (std::uint32_t& rank : ranks) { rank += first_; }
    made_.job.groups.push_back({job.name + "/" + name, std::move(ranks)});
    made_.groups.push_back({shape_of(layout_, devices), kind, 1, made_.cluster.nodes.empty() ? 0 : 1 + job_});
  }

  void add(const PlacedJob& job) {
    const auto first_group = static_cast<std::uint32_t>(made_.job.groups.size());
    std::vector<std::uint32_t> ranks(job.devices.size());
    std::iota(ranks.begin(), ranks.end(), 0U);
    const std::uint32_t kind = kind_of(job.name);
    add_group(job, "world", ranks, kind);
    for (const Group& group : job.job.groups) { add_group(job, group.name, group.ranks, kind); }
    RankGraphs graphs = job.job.rank_graphs;
    for (const std::uint32_t rank : ranks) {
      RankGraph graph = std::move(graphs.own(rank));
      for (NodeTask& task : graph.nodes) {
        // kWholeMachine: the job's world
        if (has_group(task)) { task.group += first_group + 1; }
        if (!is_message(task)) { continue; }
        task.dimensions =
            static_cast<std::uint16_t>(parallel::crossed_dimension(layout_, job.devices[rank], job.devices[task.peer]));
        task.peer += first_;
      }
      made_.job.rank_graphs.push_back(std::move(graph));
      made_.job.files.push_back(job.job.files[rank]);
      made_.starts_ps.push_back(job.start_ps);
      made_.rank_kinds.push_back(kind);
    }
    first_ += static_cast<std::uint32_t>(ranks.size());
    ++job_;
  }

  const std::vector<PlacedJob>& jobs_;
  parallel::Layout layout_;
  FlowJob made_;
  std::uint32_t first_ = 0, job_ = 0;
};

}  // namespace

void order_devices(PlacedJob& job) {
  if (job.order.empty()) { return; }
  std::vector<std::uint32_t> devices;
  for (const std::uint32_t place : job.order) { devices.push_back(job.devices[place]); }
  job.devices = std::move(devices);
}

FlowJob merged(const hardware::Cluster& cluster, const std::vector<PlacedJob>& jobs) {
  return Merger(cluster, jobs).run();
}

std::vector<std::uint32_t> placement_order(const hardware::Cluster& cluster, Placement placement, std::uint64_t seed) {
  const std::int64_t size = cluster.node_size(), nodes = cluster.devices / size;
  std::vector<std::int64_t> order(static_cast<std::size_t>(nodes));
  std::iota(order.begin(), order.end(), 0);
  switch (placement) {
    case Placement::packed: break;
    case Placement::spread: {
      const std::int64_t blocks = cluster.dimensions.size() > 1 ? cluster.dimensions.back().size : 1;
      const std::int64_t in_block = std::max<std::int64_t>(nodes / blocks, 1);
      std::stable_sort(order.begin(), order.end(), [=](auto a, auto b) { return a % in_block < b % in_block; });
      break;
    }
    case Placement::random: {
      RandomStream random(seed);
      for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
      }
      break;
    }
  }
  std::vector<std::uint32_t> devices;
  for (const std::int64_t node : order) {
    for (std::int64_t i = 0; i < size; ++i) { devices.push_back(static_cast<std::uint32_t>(node * size + i)); }
  }
  return devices;
}

}  // namespace orrery::simulate
