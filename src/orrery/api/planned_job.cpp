#include "orrery/api/planned_job.hpp"

#include <utility>

#include "orrery/api/inputs.hpp"
#include "orrery/api/plan_simulation.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/layout.hpp"
#include "orrery/parallel/program.hpp"
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

}  // namespace

Result<PlannedJob> planned_job(const std::string& data_directory, const PlannedJobText& text) {
  ORRERY_TRY(request, request_of(text));
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, request));
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
  simulate::FoldedJob all = simulate::folded(inputs.cluster, classes, simulate::Folding::off);
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
