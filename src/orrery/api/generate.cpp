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
                      memory.need.value() / kGibibyte, memory.capacity.value() / kGibibyte)};
}

// Readers number devices on the cluster's own grid.
std::vector<std::string> grid_notes(const generate::ProcessGroups& groups, const hardware::Cluster& cluster) {
  std::vector<std::string> used, sizes;
  bool differs = false;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    const std::int64_t positions = parallel::positions_on(groups.layout(), static_cast<int>(d)),
                       size = cluster.dimensions[d].size;
    differs = differs || positions != size;
    used.push_back(std::to_string(positions));
    sizes.push_back(std::to_string(size));
  }
  if (!groups.plan().placement.any() || !differs) { return {}; }
  return {
      fmt::format("the placement uses a grid of {} devices, innermost dimension first, and the ranks are numbered on "
                  "it; cluster \"{}\" has {}: only --classes has the placement for `orrery simulate`",
                  fmt::join(used, " x "), cluster.name, fmt::join(sizes, " x "))};
}

}  // namespace

Result<results::Generation> generate(const std::string& data_directory, const GenerateRequest& request) {
  ORRERY_TRY(names, generate::output_names(request.out));
  const hardware::Catalogue catalogue(data_directory);
  // A graph of a class is that of ranks on nodes of one kind.
  const auto unlike = request.files.classes ? hardware::UnlikeNodes{"--classes"} : hardware::UnlikeNodes::modelled;
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, request.job, unlike));
  ORRERY_TRY(resolved, estimate::resolve(request.job, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request.job, inputs.model, inputs.stack);
  const auto program = parallel::lower(inputs.model, job, resolved.plan, inputs.cluster, inputs.stack);
  if (auto ok = generate::JobGraphs::writable(program, request.options); !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  const generate::JobGraphs graphs(program, inputs.cluster, inputs.stack, request.options);
  ORRERY_TRY(generation, generate::write_job(graphs, names, request.files));
  generation.chosen = resolved.chosen;
  generation.warnings = memory_warnings(inputs, job, resolved.plan);
  if (!request.files.classes) {
    for (std::string& note : grid_notes(graphs.groups(), inputs.cluster)) {
      generation.notes.push_back(std::move(note));
    }
  }
  return generation;
}

}  // namespace orrery::api
