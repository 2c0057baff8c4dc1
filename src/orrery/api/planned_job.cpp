#include "orrery/api/planned_job.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/api/inputs.hpp"
#include "orrery/api/plan_simulation.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/stack_choice.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/layout.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/rank_nodes.hpp"
#include "orrery/simulate/class_job.hpp"
#include "orrery/validate/commands.hpp"

namespace orrery::api {

namespace {

Result<estimate::Request> request_of(const PlannedJobText& text) {
  for (const std::string& word : validate::words_of(text.flags)) {
    if (word == "--cluster" || word.starts_with("--cluster=")) {
      return fail(Place{{}, 0, 0, "--cluster"}, "is not valid here: the jobs run on the cluster of the file");
    }
  }
  validate::CommandRow row;
  row.args = "estimate --cluster \"" + text.cluster + "\" " + text.flags;
  row.table = text.file;
  return validate::request_of(row);
}

// The part of the cluster that the plan is laid out on, with the nodes on which its ranks lie.
Result<hardware::Cluster> part_on(const JobDevices& where, hardware::Cluster part, const parallel::Layout& layout) {
  const std::vector<hardware::Nodes>& known = where.cluster.nodes;
  std::vector<std::optional<std::size_t>> entries(static_cast<std::size_t>(part.devices / part.node_size()));
  for (std::size_t rank = 0; rank < where.devices.size(); ++rank) {
    const auto number = static_cast<std::int64_t>(rank);
    const auto place = where.by_rank ? rank : static_cast<std::size_t>(parallel::device_of(layout, number));
    const std::size_t entry = where.cluster.nodes_entry(where.devices[place]);
    auto& of_node = entries[static_cast<std::size_t>(parallel::node_of(part, layout, number))];
    if (of_node && *of_node != entry) {
      return fail(
          fmt::format("ranks of one node of the plan lie on nodes of different accelerators ({} and {}), which "
                      "is not modelled; give devices that are whole nodes",
                      known[*of_node].accelerator.name, known[entry].accelerator.name));
    }
    of_node = entry;
  }
  std::vector<std::size_t> all;
  for (const auto& entry : entries) { all.push_back(entry.value_or(0)); }
  part.set_nodes(known, all);
  return part;
}

// What the request names, on the nodes of the job.
Result<Inputs> inputs_on(const JobDevices& where, InputSources sources, const estimate::Request& request) {
  if (where.cluster.nodes.empty()) { return read_inputs(sources, request); }
  ORRERY_TRY(part, sources.cluster(request));
  ORRERY_TRY(model, sources.model(request));
  ORRERY_TRY(stack, sources.stack(estimate::stack_name(request, model, part.accelerator), nullptr));
  const parallel::Plan plan = estimate::plan_with_defaults(request, model, part.devices, stack);
  const bool fills = plan.devices() == part.devices;  // if not, errors follow below
  if (const auto layout = fills ? parallel::placed_layout(part, plan) : std::nullopt) {
    ORRERY_TRY(on_nodes, part_on(where, part, *layout));
    part = std::move(on_nodes);
  }
  sources.cluster = [part](const estimate::Request&) -> Result<hardware::Cluster> { return part; };
  return read_inputs(sources, request);
}

}  // namespace

Result<std::int64_t> planned_devices(const std::string& data_directory, const PlannedJobText& text) {
  ORRERY_TRY(request, request_of(text));
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(part, catalogue_sources(data_directory, catalogue, hardware::UnlikeNodes::modelled).cluster(request));
  return part.devices;
}

Result<PlannedJob> planned_job(const std::string& data_directory, const PlannedJobText& text, const JobDevices& where) {
  ORRERY_TRY(request, request_of(text));
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(inputs,
             inputs_on(where, catalogue_sources(data_directory, catalogue, hardware::UnlikeNodes::modelled), request));
  ORRERY_TRY(resolved, estimate::resolve(request, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
  const auto program = parallel::lower(inputs.model, job, resolved.plan, inputs.cluster, inputs.stack);
  PlanSimulationOptions options;
  options.graphs.steps = text.steps;
  if (auto ok = generate::JobGraphs::writable(program, options.graphs); !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  const generate::JobGraphs graphs(program, inputs.cluster, inputs.stack, options.graphs);
  ORRERY_TRY(classes, class_job(graphs, inputs.cluster, options));
  options.folding = simulate::Folding::off;
  ORRERY_TRY(all, folded_job(inputs.cluster, graphs, classes, options));
  PlannedJob planned;
  planned.job = std::move(all.job.job);
  planned.egress = classes.egress;
  for (std::uint32_t rank = 0; rank < classes.ranks(); ++rank) {
    planned.order.push_back(static_cast<std::uint32_t>(parallel::device_of(classes.layout, rank)));
  }
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  planned.fits = estimator.memory(resolved.plan).fits;
  return planned;
}

}  // namespace orrery::api
