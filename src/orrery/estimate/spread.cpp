#include "orrery/estimate/spread.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace orrery::estimate {

Result<Spreads> load_spreads(const std::string& data_directory) {
  const std::string path = data_directory + "/uncertainty.yaml";
  std::error_code none;
  if (!std::filesystem::exists(path, none)) { return Spreads{}; }
  ORRERY_TRY(node, config::read_file(path));
  return config::Described<Spreads>::record().read(node);
}

std::vector<std::string> kinds_of(const parallel::Job& job, const workload::Model& model,
                                  const hardware::Cluster& cluster, const hardware::Stack& stack) {
  const bool within = cluster.devices <= cluster.dimensions.front().size;
  const std::string kind = job.is_inference()     ? "inference"
                           : job.adapter.rank > 0 ? "adapters"
                           : model.has_experts()  ? "experts"
                           : within               ? "dense-one-domain"
                                                  : "dense-many-domains";
  std::vector<std::string> kinds = {kind + " " + stack.name, kind, "any"};
  if (cluster.accelerator.basis == hardware::Basis::prior) { kinds.insert(kinds.begin(), "unmeasured-accelerator"); }
  return kinds;
}

std::optional<results::Uncertainty> uncertainty_of(const Spreads& spreads, const std::vector<std::string>& kinds,
                                                   Seconds time) {
  for (const auto& kind : kinds) {
    const auto found = std::find_if(spreads.kinds.begin(), spreads.kinds.end(),
                                    [&](const Spread& spread) { return spread.kind == kind; });
    if (found == spreads.kinds.end()) { continue; }
    return results::Uncertainty{
        found->p10 * time, found->p90 * time, kind,
        fmt::format(
            "measured over predicted times of kind \"{}\": {} published rows of {} configurations, held out from "
            "calibration",
            kind, found->rows, found->groups)};
  }
  return std::nullopt;
}

}  // namespace orrery::estimate

namespace orrery::config {

const Record<estimate::Spread>& Described<estimate::Spread>::record() {
  using estimate::Spread;
  static const Record<Spread> record =
      Record<Spread>("spread", "How far measured times of one kind of job lie from predicted ones.")
          .required("kind", &Spread::kind, "kind of job")
          .required("p10", &Spread::p10, "a tenth of measured / predicted lies below", {.min = 1e-3, .max = 1e3})
          .required("p90", &Spread::p90, "a tenth of measured / predicted lies above", {.min = 1e-3, .max = 1e3})
          .required("rows", &Spread::rows, "measurements", {.min = 1})
          .required("groups", &Spread::groups, "configurations that they are of", {.min = 1});
  return record;
}

const Record<estimate::Spreads>& Described<estimate::Spreads>::record() {
  using estimate::Spreads;
  static const Record<Spreads> record =
      Record<Spreads>("uncertainty", "How far measured times lie from predicted ones.")
          .required("kinds", &Spreads::kinds, "by kind of job")
          .required("source", &Spreads::source, "which rows, and how they were held out");
  return record;
}

}  // namespace orrery::config
