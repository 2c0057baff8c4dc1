// `orrery plan --task serve`: the deployment with the most goodput within a service level, or the smallest one for a
// given traffic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/api/serve.hpp"
#include "orrery/results/serving_plan.hpp"

namespace orrery::api {

enum class ServeObjective : std::uint8_t {
  gpu,   // requests per second within the service level
  usd,   // output tokens per dollar
  watt,  // output tokens per joule
};

enum class Pools : std::uint8_t { both, aggregated, disaggregated };

struct ServePlanRequest {
  ServeRequest base;         // the scenario's degrees are not read; its load gives lengths and arrivals
  std::int64_t devices = 0;  // for_traffic: at most so many; 0: no limit, an engine or a pair of pools has four nodes
  bool for_traffic = false;  // the load is given (a rate, or the arrivals of a trace), and the accelerators are wanted
  // Values to try; empty: powers of two that the machine and the model allow.
  std::vector<std::int64_t> tp, pp, ep, attention_dp, max_batched_tokens, max_sequences;
  // The same of EngineSettings; empty: the profile's value. Two batches only where tokens travel to experts.
  std::vector<std::int64_t> speculative_tokens, two_batch_decodes, two_batch_prompts;
  Pools pools = Pools::both;
  ServeObjective objective = ServeObjective::gpu;
  std::size_t top = 5;
  bool front = true;  // the front of trades is wanted: more simulations
  int threads = 0;
  bool exhaustive = false;  // every bisection to its end: slower, the same answer
  std::function<void(std::int64_t done, std::int64_t all)> progress;
};

// Every deployment is simulated as its smallest unit (one engine, or a pair of pools) by bisection of its load; the
// best ones again as the whole fleet. Loads that cannot change the answer are left out (docs/models/serving.md). Pairs
// of pools in all ratios of up to 16 engines are sorted by what rate matching promises, and the best 200 are simulated
// (fewer where several limits are tried, 48 at least). For a traffic these are 48 pairs of up to 8 engines; the 3 x top
// units that need the fewest accelerators by their highest loads are simulated under the traffic itself, with ever
// fewer engines as long as the service level holds.
[[nodiscard]] Result<results::ServingPlan> plan_serving(const std::string& data_directory,
                                                        const ServePlanRequest& request);

}  // namespace orrery::api

namespace orrery::config {

template <>
struct EnumNames<api::ServeObjective> {
  using O = api::ServeObjective;
  static constexpr std::array<std::pair<O, std::string_view>, 3> value{
      {{O::gpu, "gpu"}, {O::usd, "usd"}, {O::watt, "watt"}}};
};
template <>
struct EnumNames<api::Pools> {
  using P = api::Pools;
  static constexpr std::array<std::pair<P, std::string_view>, 3> value{
      {{P::both, "both"}, {P::aggregated, "aggregated"}, {P::disaggregated, "disaggregated"}}};
};

}  // namespace orrery::config
