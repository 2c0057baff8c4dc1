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

namespace {

constexpr std::string_view kAny = "any", kTraining = "training";
constexpr double kPercent = 100.0;

// "experts measured", "experts".
void add_kind(std::vector<std::string>& kinds, std::string_view kind, hardware::Basis basis) {
  kinds.push_back(fmt::format("{} {}", kind, hardware::name_of(basis)));
  kinds.emplace_back(kind);
}

std::string_view training_kind(const parallel::Job& job, const workload::Model& model) {
  if (job.adapter.rank > 0) { return "adapters"; }
  if (model.is_recommender()) { return "recommenders"; }
  return model.has_experts() ? "experts" : "dense";
}

}  // namespace

std::vector<std::string> kinds_of(std::string_view kind, hardware::Basis basis) {
  std::vector<std::string> kinds;
  add_kind(kinds, kind, basis);
  kinds.emplace_back(kAny);
  return kinds;
}

std::vector<std::string> kinds_of_collective(const network::Group& group, const hardware::Cluster& cluster) {
  hardware::Basis of_links = hardware::Basis::measured;
  for (const auto& extent : group.extents) {
    of_links = std::max(of_links, cluster.dimensions[static_cast<std::size_t>(extent.dimension)].link.basis);
  }
  const bool in_one_domain = group.extents.empty() || group.extents.back().dimension == 0;
  std::vector<std::string> kinds;
  add_kind(kinds, in_one_domain ? "collectives-one-domain" : "collectives-many-domains", of_links);
  add_kind(kinds, "collectives", of_links);
  kinds.emplace_back(kAny);
  return kinds;
}

std::vector<std::string> kinds_of(const parallel::Job& job, const workload::Model& model,
                                  const hardware::Cluster& cluster) {
  const hardware::Basis basis = hardware::weakest_ground(cluster).basis;
  if (job.is_inference()) { return kinds_of("inference", basis); }
  std::vector<std::string> kinds;
  add_kind(kinds, training_kind(job, model), basis);
  add_kind(kinds, kTraining, basis);
  kinds.emplace_back(kAny);
  return kinds;
}

std::optional<results::Uncertainty> uncertainty_of(const Spreads& spreads, const std::vector<std::string>& kinds,
                                                   Seconds time) {
  for (const auto& kind : kinds) {
    const auto found = std::find_if(spreads.kinds.begin(), spreads.kinds.end(),
                                    [&](const Spread& spread) { return spread.kind == kind; });
    if (found == spreads.kinds.end()) { continue; }
    return results::Uncertainty{found->p10 * time, found->p90 * time, kind,
                                fmt::format("measured over predicted times of kind \"{}\": {} published rows of {} "
                                            "sources; a source that is left out has "
                                            "{:.0f} % of its rows inside",
                                            kind, found->rows, found->sources, kPercent * found->coverage)};
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
          .required("sources", &Spread::sources, "publications and campaigns that they come from", {.min = 1})
          .required("scatter", &Spread::scatter, "standard deviation of log(measured / predicted) inside a source",
                    {.min = 0.0, .max = 10.0})
          .required("between", &Spread::between, "standard deviation of the medians of sources",
                    {.min = 0.0, .max = 10.0})
          .required("coverage", &Spread::coverage, "part of the rows inside, of sources that were left out",
                    {.min = 0.0, .max = 1.0});
  return record;
}

const Record<estimate::Spreads>& Described<estimate::Spreads>::record() {
  using estimate::Spreads;
  static const Record<Spreads> record =
      Record<Spreads>("uncertainty", "How far measured times lie from predicted ones.")
          .required("kinds", &Spreads::kinds, "by kind of job")
          .required("source", &Spreads::source, "which rows, and how sources were left out");
  return record;
}

}  // namespace orrery::config
