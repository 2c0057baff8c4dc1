#include "orrery/api/plan_simulation.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "orrery/api/faster.hpp"
#include "orrery/api/flops_beyond.hpp"
#include "orrery/api/inputs.hpp"
#include "orrery/api/memory_over_time.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/generate/graph_sink.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/fold.hpp"
#include "orrery/simulate/on_cluster.hpp"

namespace orrery::api {

namespace {

simulate::GroupFamily family_of(const generate::ProcessGroups& groups, const generate::GroupFamily& family) {
  const generate::RankSet first = groups.group(family, 0);
  simulate::GroupFamily made;
  made.name = name_of(family);
  made.first_name = static_cast<std::uint64_t>(family.first_name);
  made.count = static_cast<std::uint64_t>(family.count);
  made.stride = static_cast<std::uint64_t>(first.stride);
  made.degree = static_cast<std::uint64_t>(first.inner);
  if (first.inner < first.degree) {
    made.outer_stride = static_cast<std::uint64_t>(first.outer_stride);
    made.outer_degree = static_cast<std::uint64_t>(first.degree / first.inner);
  }
  made.is_mirrored = family.kind == parallel::GroupKind::mirror;
  return made;
}

// Of the accelerator of every rank, or as if all were on nodes of `entry`; empty if all nodes are alike.
std::vector<simulate::KernelRates> rates_of_ranks(const generate::JobGraphs& graphs, const hardware::Cluster& cluster,
                                                  std::optional<std::size_t> entry) {
  std::vector<simulate::KernelRates> rates;
  for (std::int64_t rank = 0; rank < graphs.ranks() && !cluster.nodes.empty(); ++rank) {
    rates.push_back(simulate::rates_of(cluster.nodes[entry.value_or(graphs.nodes_entry(rank))].accelerator));
  }
  return rates;
}

}  // namespace

Result<simulate::ClassJob> class_job(const generate::JobGraphs& graphs, const hardware::Cluster& cluster,
                                     const PlanSimulationOptions& options) {
  simulate::ClassJob job;
  job.machine = simulate::machine_on(cluster);
  job.machine.kernel_rates = rates_of_ranks(graphs, cluster, options.nodes_entry);
  job.machine.backend = simulate::Backend::flow;
  job.machine.tables = options.tables;
  job.machine.explain = options.explain;
  job.machine.roofline = options.roofline;
  job.machine.energy = options.energy;
  job.machine.chunk_order = options.chunk_order;
  job.machine.by_message = options.by_message;
  job.machine.spans = options.spans || options.tables || options.explain || options.memory;
  job.egress = graphs.egress();
  job.layout = graphs.groups().layout();
  job.class_ranks = static_cast<std::uint32_t>(graphs.stage_ranks());
  for (const generate::GroupFamily& family : graphs.groups().families()) {
    job.families.push_back(family_of(graphs.groups(), family));
  }
  for (std::int64_t stage = 0; stage < graphs.stages(); ++stage) {
    generate::GraphSink sink;
    const std::int64_t rank = graphs.first_rank(stage);
    const std::size_t entry = options.nodes_entry.value_or(graphs.nodes_entry(rank));
    ORRERY_TRY(nodes, graphs.write_on(entry, rank, generate::Naming::classes, sink));
    (void)nodes;
    ORRERY_TRY(graph, sink.builder.finish());
    auto added =
        simulate::add_class(job, graph, fmt::format("stage {}", stage), static_cast<std::size_t>(graphs.stages()));
    if (!added) { return tl::make_unexpected(std::move(added).error()); }
  }
  return job;
}

namespace {

// Time of a class' optimizer before and after the all-reduce over all ranks, if it has one.
std::pair<Seconds, Seconds> finish_parts(const parallel::Program& program, const parallel::RankClass& rank_class,
                                         const network::Fabric& fabric) {
  Seconds before, after;
  for (const auto& use : rank_class.finish) {
    const parallel::Block& block = program.block(use.work);
    after += static_cast<double>(use.repeat) * estimate::price_block(block, fabric, program.mesh).time;
    const bool joins = std::any_of(block.items.begin(), block.items.end(), [](const auto& item) {
      return item.collective() != nullptr && item.collective()->call.group == parallel::GroupKind::world;
    });
    if (!joins) { continue; }
    before += after;
    after = Seconds(0);
  }
  return {before, after};
}

constexpr Seconds kNotable(1e-6);  // shorter effects have no note

std::vector<std::string> notes_on_order(const parallel::Program& program, const hardware::Cluster& cluster,
                                        network::NodeEgress egress) {
  std::vector<std::string> notes;
  if (program.job.is_inference()) { return notes; }
  if (const Seconds slack = optimizer_slack(program, cluster, egress); slack > kNotable) {
    notes.push_back(
        fmt::format("a stage starts its optimizer when its own gradients are synchronized; estimate waits for "
                    "all stages (at most {} longer)",
                    config::format_seconds(slack)));
  }
  return notes;
}

// Both use one stream: gathers of every micro-batch, and reductions that may last longer than their layers' backward.
bool gathers_wait_for_reductions(const parallel::Plan& plan, const hardware::Stack& stack) {
  return plan.zero == 3 && parallel::reduces_under_backward(plan, stack) &&
         !parallel::reduces_every_micro_batch(plan, stack);
}

}  // namespace

Seconds optimizer_slack(const parallel::Program& program, hardware::Cluster cluster, network::NodeEgress egress) {
  Seconds least, most, least_after, most_after;
  bool is_first = true;
  const auto add_classes = [&] {
    const network::Fabric fabric(cluster, egress);
    for (const auto& rank_class : program.classes) {
      const auto [before, after] = finish_parts(program, rank_class, fabric);
      least = is_first ? before : min(least, before);
      least_after = is_first ? after : min(least_after, after);
      most = max(most, before);
      most_after = max(most_after, after);
      is_first = false;
    }
  };
  if (cluster.nodes.empty()) { add_classes(); }
  for (const hardware::Nodes& nodes : cluster.nodes) {
    cluster.accelerator = nodes.accelerator;
    add_classes();
  }
  // With an all-reduce over all ranks, all stages start what follows it together.
  return most > Seconds(0) ? most - least : most_after - least_after;
}

std::vector<std::string> differences(const parallel::Program& program, const hardware::Cluster& cluster,
                                     const hardware::Stack& stack, const generate::JobGraphs& graphs,
                                     const simulate::ClassJob& job) {
  std::vector<std::string> notes;
  if (graphs.slow_kernels()) {
    notes.emplace_back(
        "kernels are slower while a gather or reduction runs; estimate slows whole layers and, for gathers of the "
        "first forwards and reductions of stages with several chunks, adds the loss at the end of the pipeline");
  }
  if (gathers_wait_for_reductions(program.plan, stack) && !program.job.is_inference()) {
    notes.emplace_back(
        "gathers of the weights wait for the reductions of the gradients of earlier layers, which are made once a "
        "step; "
        "estimate does not have that wait (0.1 % of a step in most jobs, up to 2 %)");
  }
  if (cluster.topology && cluster.topology->in_switch) {
    notes.emplace_back(
        "estimate prices a call in switches as if all groups of its kind called at once, over links if one of them "
        "finds no room; each simulated call takes the switches that have room when it starts");
  }
  for (std::string& note : notes_on_order(program, cluster, job.egress)) { notes.push_back(std::move(note)); }
  const auto& families = graphs.groups().families();
  for (std::size_t i = 0; i < families.size(); ++i) {
    const auto shape = common_shape(cluster, job, job.families[i]);
    if (shape && *shape == program.mesh.group(families[i].kind)) { continue; }
    notes.push_back(
        fmt::format("{} groups differ in their shape on the cluster; estimate prices all of them as the slowest",
                    job.families[i].name));
  }
  const auto obstacle = fold_obstacle(cluster, job);
  if (obstacle && obstacle->is_of_messages) {
    notes.push_back(fmt::format("{}; estimate prices all of them on the outermost one", obstacle->text));
  }
  return notes;
}

namespace {

// The same job with the ports of one kind apart, for every kind that lost time. Skipped for large jobs.
Result<std::vector<results::SharingCost>> costs_of_kinds(const simulate::FlowJob& job,
                                                         const results::Simulation& simulation) {
  constexpr std::uint64_t kMostNodes = 1'000'000;
  std::vector<results::SharingCost> costs;
  if (simulation.nodes > kMostNodes) { return costs; }
  for (std::uint32_t kind = 0; kind < job.kinds.size(); ++kind) {
    const bool has_lost = std::any_of(simulation.contention.begin(), simulation.contention.end(),
                                      [&](const auto& row) { return row.kind == job.kinds[kind] && row.lost_ps > 0; });
    if (!has_lost) { continue; }
    ORRERY_TRY(apart, simulate::simulate_flows(job, true, kind));
    costs.push_back({job.kinds[kind], apart.makespan_ns()});
  }
  return costs;
}

Result<void> simulate_variants(simulate::FlowJob& job, results::PlanSimulation& result) {
  ORRERY_TRY(simulation, simulate::simulate_flows(job));
  result.simulation = std::move(simulation);
  result.unshared_ns = result.simulation.makespan_ns();
  if (result.simulation.contention.empty()) { return {}; }
  job.job.tables = job.job.spans = job.job.explain = job.job.roofline = job.job.energy = false;
  job.simulated = {};  // only the makespan matters from here on
  for (std::uint32_t rank = 0; rank < job.job.rank_graphs.size(); ++rank) { job.simulated.push_back(rank); }
  ORRERY_TRY(unshared, simulate::simulate_flows(job, false));
  result.unshared_ns = unshared.makespan_ns();
  if (result.unshared_ns == result.simulation.makespan_ns()) { return {}; }
  ORRERY_TRY(apart, costs_of_kinds(job, result.simulation));
  result.apart = std::move(apart);
  return {};
}

// Nodes of several kinds: kernels of each rank take their time on its accelerator. Requires every rank.
Result<void> set_kernel_times(const generate::JobGraphs& graphs, const hardware::Cluster& cluster,
                              PlanSimulationOptions options, simulate::SimulationJob& job) {
  for (std::size_t entry = 0; entry < cluster.nodes.size(); ++entry) {
    options.nodes_entry = entry;
    ORRERY_TRY(classes, class_job(graphs, cluster, options));
    for (std::size_t c = 0; c < classes.classes.size(); ++c) {
      std::vector<std::uint32_t> ranks;
      for (std::uint32_t rank = classes.first_rank(c); rank < classes.first_rank(c + 1); ++rank) {
        if (graphs.nodes_entry(rank) == entry) { ranks.push_back(rank); }
      }
      if (ranks.empty()) { continue; }
      const simulate::RankGraph& timed = classes.classes[c].graph;
      simulate::RankGraph& own = job.rank_graphs.own_together(ranks);
      own.kernels = timed.kernels;
      auto& tasks = own.nodes;
      ORRERY_ASSERT(tasks.size() == timed.nodes.size());
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i].act == simulate::Act::busy) { tasks[i].amount = timed.nodes[i].amount; }
      }
    }
  }
  return {};
}

}  // namespace

Result<simulate::FoldedJob> folded_job(const hardware::Cluster& cluster, const generate::JobGraphs& graphs,
                                       const simulate::ClassJob& classes, const PlanSimulationOptions& options) {
  const bool ranks_differ = !options.stragglers.empty() || !options.link_changes.empty();
  const bool by_comparison = !cluster.nodes.empty() && !ranks_differ && options.folding != simulate::Folding::off;
  const bool every_rank = ranks_differ || !cluster.nodes.empty();
  simulate::FoldedJob made = simulate::folded(cluster, classes, every_rank ? simulate::Folding::off : options.folding);
  if (auto timed = set_kernel_times(graphs, cluster, options, made.job.job); !timed) {
    return tl::make_unexpected(std::move(timed).error());
  }
  made.job.job.kernel_rates = classes.machine.kernel_rates;
  for (std::int64_t rank = 0; rank < graphs.ranks() && !cluster.nodes.empty(); ++rank) {
    made.job.nodes_entries.push_back(static_cast<std::uint32_t>(graphs.nodes_entry(rank)));
  }
  if (by_comparison) { return simulate::fold(std::move(made.job)); }
  if (auto slowed = simulate::slow_ranks(made.job.job, options.stragglers); !slowed) {
    return tl::make_unexpected(std::move(slowed).error());
  }
  if (auto changed = simulate::change_links(made.job, options.link_changes); !changed) {
    return tl::make_unexpected(std::move(changed).error());
  }
  return made;
}

namespace {

// The makespan of the same plan on another machine.
Result<std::uint64_t> makespan_on(const hardware::Cluster& cluster, const Inputs& inputs, const parallel::Job& job,
                                  const parallel::Plan& plan, PlanSimulationOptions options) {
  options.spans = options.tables = options.explain = options.roofline = options.energy = options.memory = false;
  const auto program = parallel::lower(inputs.model, job, plan, cluster, inputs.stack);
  const generate::JobGraphs graphs(program, cluster, inputs.stack, options.graphs);
  ORRERY_TRY(classes, class_job(graphs, cluster, options));
  ORRERY_TRY(folded, folded_job(cluster, graphs, classes, options));
  ORRERY_TRY(simulation, simulate::simulate_flows(folded.job));
  return simulation.makespan_ns();
}

// The micro-batch and chunk of a kernel of a task. The kernels of a pair say in their names which pass they are of.
// Under DualPipe micro-batches are counted per direction; those of the second one, chunk 1, follow those of the first.
void set_task(const parallel::Program& program, const parallel::PipelineTask& task, results::SimulatedSpan& span) {
  const bool is_pair = task.kind == parallel::PipelineTask::Kind::pair;
  const bool is_forward = span.name.starts_with("forward.");
  if (is_pair && !is_forward && !span.name.starts_with("backward.") && !span.name.starts_with("weight.")) { return; }
  const bool is_paired = is_pair && !is_forward;
  span.chunk = is_paired ? task.paired_chunk : task.chunk;
  const auto& shape = program.pipeline;
  const bool is_second = shape.schedule == parallel::ScheduleKind::dualpipe && span.chunk == 1;
  span.micro_batch =
      (is_paired ? task.paired_micro_batch : task.micro_batch) + (is_second ? shape.micro_batches / 2 : 0);
}

void add_tasks(const parallel::Program& program, const generate::JobGraphs& graphs, results::Simulation& simulation) {
  std::map<std::int64_t, std::vector<generate::TaskNodes>> of_stages;
  for (results::SimulatedSpan& span : simulation.spans) {
    if (span.row != results::SimulatedSpan::Row::accelerator) { continue; }
    const std::int64_t stage = static_cast<std::int64_t>(span.rank) / graphs.stage_ranks();
    const auto [entry, is_new] = of_stages.try_emplace(stage);
    if (is_new) { entry->second = graphs.tasks(graphs.first_rank(stage)); }
    const auto& tasks = entry->second;
    const auto after = std::upper_bound(tasks.begin(), tasks.end(), span.node,
                                        [](std::uint64_t node, const auto& task) { return node < task.first; });
    if (after == tasks.begin() || span.node >= std::prev(after)->end) { continue; }
    set_task(program, std::prev(after)->task, span);
  }
}

// Spans that nobody asked for are removed.
void add_memory(const Inputs& inputs, const parallel::Program& program, const generate::JobGraphs& graphs,
                const results::RankRuns<std::uint32_t>& simulated, bool keeps_spans, results::Simulation& simulation) {
  parallel::Lowerer lowerer(inputs.model, inputs.cluster, inputs.stack);
  (void)lowerer.lower(program.job, program.plan);
  const auto capacity_of = [&](std::int64_t rank) {
    const hardware::Cluster& cluster = inputs.cluster;
    const auto& accelerator =
        cluster.nodes.empty() ? cluster.accelerator : cluster.nodes[graphs.nodes_entry(rank)].accelerator;
    return accelerator.memory * (1.0 - inputs.stack.memory_reserve);
  };
  simulation.memory = memory_over_time({program, lowerer, graphs}, capacity_of, simulated, simulation);
  if (!keeps_spans) { simulation.spans.clear(); }
}

}  // namespace

Result<results::PlanSimulation> simulate_plan(const std::string& data_directory, const estimate::Request& request,
                                              const PlanSimulationOptions& options) {
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, request, hardware::UnlikeNodes::modelled));
  if (auto routed = require_routes(inputs.cluster, options.by_message); !routed) {
    return tl::make_unexpected(std::move(routed).error());
  }
  ORRERY_TRY(resolved, estimate::resolve(request, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
  const auto program = parallel::lower(inputs.model, job, resolved.plan, inputs.cluster, inputs.stack);
  if (auto ok = generate::JobGraphs::writable(program, options.graphs); !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  results::PlanSimulation result;
  result.estimate = with_uncertainty(estimator.estimate(resolved.plan), inputs, job);
  result.chosen = resolved.chosen;
  const generate::JobGraphs graphs(program, inputs.cluster, inputs.stack, options.graphs);
  ORRERY_TRY(classes, class_job(graphs, inputs.cluster, options));
  result.notes = differences(program, inputs.cluster, inputs.stack, graphs, classes);
  ORRERY_TRY(folded, folded_job(inputs.cluster, graphs, classes, options));
  const results::RankRuns<std::uint32_t> simulated = folded.job.simulated;
  if (auto done = simulate_variants(folded.job, result); !done) { return tl::make_unexpected(std::move(done).error()); }
  if (options.spans) { add_tasks(program, graphs, result.simulation); }
  if (options.memory) {
    add_memory(inputs, program, graphs, simulated, options.spans || options.tables || options.explain,
               result.simulation);
  }
  if (result.simulation.roofline && !job.is_inference()) {
    results::Roofline& roofline = *result.simulation.roofline;
    roofline.hfu_flops = result.estimate.hardware_flops.value();
    roofline.beyond_hfu = flops_beyond_hfu(program, inputs, roofline.operations(), roofline.hfu_flops);
  }
  auto& warnings = result.simulation.warnings;
  if (!folded.unfolded_because.empty()) {
    warnings.push_back(fmt::format("every rank is simulated: {}", folded.unfolded_because));
  }
  if (result.simulation.path) {
    const auto simulate_on = [&](const hardware::Cluster& cluster) {
      return makespan_on(cluster, inputs, job, resolved.plan, options);
    };
    auto saved = add_savings(inputs.cluster, simulate_on, *result.simulation.path);
    if (!saved) { return tl::make_unexpected(std::move(saved).error()); }
  }
  if (options.chunk_order) { result.notes.emplace_back("estimate does not order chunks over dimensions"); }
  if (!options.link_changes.empty()) {
    result.notes.emplace_back("links change: not in estimate, and not in the step without contention");
  }
  if (!result.estimate.memory.fits()) { warnings.emplace_back("the plan does not fit in memory"); }
  return result;
}

}  // namespace orrery::api
