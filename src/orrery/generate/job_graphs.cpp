#include "orrery/generate/job_graphs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/generate/request_batch.hpp"
#include "orrery/generate/stage_messages.hpp"
#include "orrery/generate/streams.hpp"
#include "orrery/parallel/rank_nodes.hpp"

namespace orrery::generate {

namespace {

class NoSink : public NodeSink {
 public:
  Result<void> write(const graph::NodeRecord&) override { return {}; }
};

}  // namespace

JobGraphs::JobGraphs(const parallel::Program& program, const hardware::Cluster& cluster, const hardware::Stack& stack,
                     const Options& options)
    : program_(program),
      stack_(stack),
      cluster_(cluster),
      tier_(cluster.second_tier),
      options_(options),
      groups_(program, cluster) {
  for (const hardware::Nodes& nodes : cluster.nodes) { works_.emplace_back(program, nodes.accelerator); }
  if (works_.empty()) { works_.emplace_back(program, cluster.accelerator); }
  const network::Fabric fabric(cluster, egress());
  network::PriceCache prices(fabric);
  parallel::ItemTimes times(program, fabric, prices);
  pairs_ = parallel::pair_orders(program, times);
}

Result<void> JobGraphs::writable(const parallel::Program& program, const Options& options) {
  if (tags_needed(program, options.steps) > kMostTags) {
    return fail(Place{{}, 0, 0, "--steps"},
                fmt::format("{} steps have more than 500,000,000 messages between two ranks, and readers take message "
                            "tags modulo that",
                            options.steps));
  }
  return {};
}

std::size_t JobGraphs::nodes_entry(std::int64_t rank) const {
  return parallel::nodes_entry(cluster_, groups_.layout(), rank);
}

Result<std::uint64_t> JobGraphs::write(std::int64_t rank, Naming naming, NodeSink& sink) const {
  return write_on(nodes_entry(rank), rank, naming, sink);
}

Result<std::uint64_t> JobGraphs::write_on(std::size_t entry, std::int64_t rank, Naming naming, NodeSink& sink) const {
  NodeWriter writer(groups_, rank, naming, sink);
  Streams streams(program_, works_.at(entry), tier_, options_.granularity, stack_.overlap.interference, writer);
  if (program_.job.is_inference()) {
    RequestBatches(program_, streams).write(options_.steps);
  } else {
    TrainingSteps(program_, stack_, pairs_, streams).write(options_.steps);
  }
  if (auto written = writer.result(); !written) { return tl::make_unexpected(std::move(written).error()); }
  return writer.count();
}

std::vector<TaskNodes> JobGraphs::tasks(std::int64_t rank) const {
  std::vector<TaskNodes> tasks;
  if (program_.job.is_inference()) { return tasks; }
  NoSink sink;
  NodeWriter writer(groups_, rank, Naming::classes, sink);
  Streams streams(program_, works_.front(), tier_, options_.granularity, stack_.overlap.interference, writer);
  TrainingSteps(program_, stack_, pairs_, streams).write(options_.steps, &tasks);
  return tasks;
}

bool JobGraphs::slow_kernels() const {
  const auto& families = groups_.families();
  return stack_.overlap.interference > 0.0 && std::any_of(families.begin(), families.end(), [](const auto& family) {
           return family.lane == Lane::overlapped;
         });
}

}  // namespace orrery::generate
