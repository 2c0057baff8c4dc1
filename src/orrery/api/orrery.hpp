// The front of the library: one call per question. Reads catalogue data and the files a request names; never prints.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orrery/campaign/spec.hpp"
#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/explore/space_file.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/launch/launch.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/results/mad_max.hpp"
#include "orrery/results/plan.hpp"
#include "orrery/results/sample.hpp"
#include "orrery/results/validation.hpp"

namespace orrery::api {

struct EstimateAnswer {
  results::Estimate estimate;
  std::vector<std::string> chosen;  // open fields and what they were settled to
};

// A plan as the configuration of a training program, and what it comes to.
struct LaunchAnswer {
  launch::Launch launch;
  EstimateAnswer answer;
};

struct PlanRequest {
  estimate::Request job;                         // choices of a plan that are given are fixed, not searched
  std::optional<explore::SpaceFile> space;       // absent: the one that ships for the task
  bool wide = false;                             // of the spaces that ship, the one with more axes
  config::Node values = config::mapping_node();  // values of axes instead of those of the space: {tp: [4, 8]}
  double headroom = 0.0;                         // part of a device's usable memory that plans leave free
  std::vector<std::int64_t> device_counts;       // searched one after the other, instead of job.devices
  results::Objective objective = results::Objective::step_time;
  campaign::Spec campaign;        // for objectives of campaigns
  std::optional<Seconds> within;  // the longest step that counts; not where batches follow from plans
  std::size_t top = 5;
  bool variants = false;  // the best plans, however alike; else the best of every combination of degrees
  bool exhaustive = false;
  bool front = false;  // also what no plan beats in both time and memory
  bool explain = false;
  bool what_if =
      false;  // also what would change the answer (what_if.hpp): a hundred searches; of one number of devices
  int threads = 0;
  std::function<void(std::int64_t done, std::int64_t points)> progress;
  std::function<void(std::int64_t done, std::int64_t questions)> what_if_progress;
};

// The job of `job` under a plan that a search found, nothing left open: `launch` and `estimate` of it are of that plan.
[[nodiscard]] estimate::Request request_of(estimate::Request job, const results::PlanSummary& plan);
// The same with the batch, the length and the devices that it was found at, which a space file may leave to the search.
[[nodiscard]] estimate::Request request_of(estimate::Request job, const results::Estimate& found);

// Flags of `orrery estimate` that mean a request: what is as when nothing is said is not among them.
[[nodiscard]] std::vector<std::string> flags_of(const estimate::Request& request);

// Engines have the names of their stacks; this stands before the name in Orrery::describe.
inline constexpr std::string_view kEnginePrefix = "engines/";

class Orrery {
 public:
  explicit Orrery(std::string data_directory);

  [[nodiscard]] Result<EstimateAnswer> estimate(const estimate::Request& request, estimate::Detail detail = {}) const;
  // Fails for what no training program here launches: see launch/launch.hpp.
  [[nodiscard]] Result<LaunchAnswer> launch(const estimate::Request& request, launch::Tool tool) const;
  // A search in which nothing fits answers with an empty `best` and why; fixed values that no plan can have are a
  // mistake, and it fails. Several numbers of devices are searched each by itself, exactly, and their answers merged; a
  // number for which no plan is valid has a row that says so, unless that is so for all.
  [[nodiscard]] Result<results::PlanSearch> plan(const PlanRequest& request) const;
  // `count` points of the space, drawn evenly, and what each comes to. Of the request the job and the space count.
  [[nodiscard]] Result<results::Sample> sample(const PlanRequest& request, std::int64_t count,
                                               std::uint64_t seed) const;
  // Requests with Semantics::mad_max: one set of strategies, or the best of all of them.
  [[nodiscard]] Result<results::MadMaxEstimate> mad_max_estimate(const estimate::Request& request,
                                                                 bool with_events = false) const;
  [[nodiscard]] Result<results::MadMaxSearch> mad_max_plan(const estimate::Request& request, std::size_t top) const;
  // `files` empty: the tables that ship with Orrery. `worst`: of so many rows of each family what their predictions are
  // made of.
  [[nodiscard]] Result<results::Validation> validate(const std::vector<std::string>& files,
                                                     const std::vector<std::string>& families,
                                                     std::size_t worst = 0) const;

  // kind: "models", "clusters", "accelerators", "stacks", "engines", "algorithms".
  [[nodiscard]] Result<std::vector<hardware::EntrySummary>> list(const std::string& kind) const;
  // A catalogue entry of any kind, as YAML with its sources.
  [[nodiscard]] Result<std::string> describe(const std::string& name, const std::string& as = {}) const;

 private:
  std::string data_directory_;
  hardware::Catalogue catalogue_;
};

}  // namespace orrery::api
