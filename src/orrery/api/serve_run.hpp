// Runs of deployments, for the commands that compare several. Private to the room.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/api/load_bisection.hpp"
#include "orrery/api/serve.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/serving/deployment.hpp"

namespace orrery::api {

// What deployments have, so that settings of an engine have an effect.
struct EngineUses {
  bool single = true;         // engines that prefill and decode
  bool pools = false;         // of prefill and decode
  bool attention_dp = false;  // above 1
  bool ep = false;            // above 1
  bool experts = false;       // of the model
  bool traced = false;        // arrivals or lengths of a trace
  bool windows = false;       // of the model's layers, in one pool
};

[[nodiscard]] EngineUses uses_of(const serving::Scenario& scenario);

// Errors: settings that are given as flags (not in a file) and have no effect.
[[nodiscard]] Result<void> check_effects(const serving::EngineSettings& engine, const config::Node& given,
                                         const EngineUses& uses);

// What all deployments of a request have in common, read once. Several threads may ask at a time.
class ServingInputs {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ServingInputs>> read(const std::string& data_directory,
                                                                   const ServeRequest& request, const EngineUses& uses);

  [[nodiscard]] const workload::Model& model() const { return model_; }
  [[nodiscard]] const serving::EngineSettings& engine() const { return engine_; }
  [[nodiscard]] const hardware::Stack& stack() const { return stack_; }
  [[nodiscard]] Result<hardware::Accelerator> accelerator(const std::string& name);
  [[nodiscard]] Result<hardware::Cluster> cluster(const std::string& name, std::int64_t devices);

 private:
  explicit ServingInputs(const std::string& data_directory) : catalogue_(data_directory) {}

  hardware::Catalogue catalogue_;
  workload::Model model_;
  serving::EngineSettings engine_;
  hardware::Stack stack_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::int64_t>, hardware::Cluster> clusters_;
};

struct PreparedServing {
  std::unique_ptr<serving::Deployment> deployment;
  std::vector<results::ServiceLevel> slo;
};

// A limit on TPOT means nothing where no answer has a second token.
[[nodiscard]] Result<void> check_service_level(const std::vector<results::ServiceLevel>& slo,
                                               const serving::Workload& load);

// Experts are shared out only where the model has them. `flag`: of the degree.
[[nodiscard]] Result<void> check_expert_degree(const workload::Model& model, std::int64_t ep, const char* flag);

// `settings`: of the engine, if they are not those of the inputs.
[[nodiscard]] Result<PreparedServing> prepare_serving(ServingInputs& inputs, const ServeRequest& request,
                                                      const serving::EngineSettings* settings = nullptr);

[[nodiscard]] Result<results::Serving> run_serving(const PreparedServing& prepared, const serving::Scenario& scenario,
                                                   bool each);

// The scenario's own load. If the number of requests is not given, a rate has as many as a probe of goodput_curve().
[[nodiscard]] Result<results::Serving> serve_traffic(const PreparedServing& prepared,
                                                     const serving::Scenario& scenario);

// Of measured / predicted, of deployments that were left out: TTFT, TPOT, throughput of closed loops.
[[nodiscard]] Result<std::vector<results::ServingRange>> serving_ranges(const std::string& data_directory);

// One point of a curve: the scenario at another rate or number of clients.
[[nodiscard]] Result<results::ServingPoint> serving_probe(const PreparedServing& prepared,
                                                          const serving::Scenario& scenario, double load);

// Whether a load meets the service level. A run that misses it is stopped as soon as that is certain.
struct LoadTrial {
  double load = 0;
  double offered =
      0;  // tokens that are asked for, per second from the first arrival to the last: no run generates more
  bool is_open = true;                      // requests come at a rate, whatever is served
  std::optional<results::Serving> result;   // of a run that was not stopped
  std::vector<serving::Headroom> headroom;  // [pool]

  [[nodiscard]] bool meets_slo() const { return result && result->is_sustained(is_open); }
};

enum class Stops : std::uint8_t { when_missed, at_the_end };

// As a probe of goodput_curve() at this load.
[[nodiscard]] Result<LoadTrial> load_trial(const PreparedServing& prepared, const serving::Scenario& scenario,
                                           double load, Stops stops);

// That have something to do: no more than there are requests, or sessions.
[[nodiscard]] double most_clients(const serving::Scenario& scenario);

// Where goodput_curve() tries loads.
[[nodiscard]] LoadBisection bisection_of(const serving::Scenario& scenario);

// No load meets the service level: the failure that names the nearest one, from a run at the lowest load.
[[nodiscard]] Failure no_load_failure(const results::ServingPoint& lowest, bool counts);

// The rate, or the number of clients, of the scenario; 1 request per second if it has neither.
[[nodiscard]] double load_of(const serving::Scenario& scenario);

// Of the arrivals, per second; 1 if all come at once.
[[nodiscard]] double mean_rate(const serving::Workload& load);

// With the number of requests of a trace, and its mean rate if the scenario has no other load.
[[nodiscard]] Result<serving::Scenario> with_own_rate(serving::Scenario scenario);

// Loads around that of the scenario until the highest one that meets the service level is known to 1 %. If the number
// of requests is not given, they arrive for long enough that a load 2.5 % too high misses a limit on TTFT. Fails with
// the nearest load where none meets it.
[[nodiscard]] Result<results::ServingCurve> goodput_curve(const PreparedServing& prepared,
                                                          const serving::Scenario& scenario);

}  // namespace orrery::api
