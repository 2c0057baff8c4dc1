#include "orrery/api/generate.hpp"

#include <utility>

#include <fmt/format.h>

#include "orrery/api/inputs.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/generate/job_graphs.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::api {

namespace {

std::vector<std::string> memory_warnings(const Inputs& inputs, const parallel::Job& job, const parallel::Plan& plan) {
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  const auto memory = estimator.memory(plan);
  if (memory.fits) { return {}; }
  constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
  return {fmt::format("the plan does not fit in memory: {:.1f} GiB a device of {:.1f} GiB; the graphs are written",
                      memory.need.value() / kGibibyte, estimator.capacity().value() / kGibibyte)};
}

}  // namespace

Result<results::Generation> generate(const std::string& data_directory, const GenerateRequest& request) {
  ORRERY_TRY(names, generate::output_names(request.out));
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, request.job));
  ORRERY_TRY(resolved, estimate::resolve(request.job, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request.job, inputs.model);
  const auto program = parallel::lower(inputs.model, job, resolved.plan, inputs.cluster, inputs.stack);
  if (auto ok = generate::JobGraphs::writable(program, request.options); !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  const generate::JobGraphs graphs(program, inputs.cluster, inputs.stack, request.options);
  ORRERY_TRY(generation, generate::write_job(graphs, names, request.files));
  generation.chosen = resolved.chosen;
  generation.warnings = memory_warnings(inputs, job, resolved.plan);
  generation.notes = graphs.notes();
  return generation;
}

}  // namespace orrery::api
