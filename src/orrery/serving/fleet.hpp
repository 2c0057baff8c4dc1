// Engines behind a router: one pool that prefills and decodes, or a pool for each with a transfer of keys and values
// between them. Docs: docs/models/serving.md.
//
// Events in the order of time; at equal times arrivals are first, then engines by number. Engines are independent
// between routing decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "orrery/config/codec.hpp"
#include "orrery/core/error.hpp"
#include "orrery/serving/admission.hpp"
#include "orrery/serving/autoscale.hpp"
#include "orrery/serving/engine.hpp"
#include "orrery/serving/station.hpp"

namespace orrery::serving {

enum class Routing : std::uint8_t {
  round_robin,
  random,
  least_outstanding,  // requests that wait or run
  least_tokens,       // prompt tokens that wait, and blocks that are held
  prefix_aware,       // prompt tokens left to compute after hits, and blocks that are held
  session,            // the engine of the session; least outstanding for a new one, or if that engine is off
};

struct Pool {
  const EngineSettings* settings = nullptr;
  EngineShape shape;
  StepPrice* price = nullptr;  // shared by its engines
  std::int64_t replicas = 1;   // with autoscaling: the most that are on
  AutoscaleOptions autoscale = {};
};

// From a prefill engine to a decode engine. The first token counts when the decode engine takes the request.
struct TransferPolicy {
  Ticks latency = 0;
  Ticks token = 0;                       // a position of the cache, all lanes together
  std::int64_t layers = 0;               // sent while later layers compute; 0: after the prompt. Layers need a place
                                         // on a decode engine before the prompt begins, else when it has ended
  std::int64_t sends = 1, receives = 1;  // at the same time, of a prefill and of a decode engine
};

struct FleetOptions {
  Routing routing = Routing::least_outstanding;
  Ticks signal_age = 0;  // how old the router's view of engines may be
  TransferPolicy transfer;
  std::vector<StationOptions> stations;  // that requests pass outside the engines
  std::int64_t store_tokens = 0;         // that fit in a store of engines with all tiers, its last one; 0: no store
  Ticks store_token = 0;                 // of the store's links, to read or write a position; 0: they are no limit
  AdmissionOptions admission;            // of open loops only
  std::uint64_t seed = 1;
  Ticks reply = 0;                                    // from an answer to the client that sends the next request
  std::function<bool(std::int64_t done)> keep_going;  // called now and then; false: stop with an error
  // Called at the end of each request; true: the run stops there, and its totals are those of its beginning.
  std::function<bool(std::int64_t request, const Outcome& outcome)> stops_after;
};

struct FleetRun {
  std::vector<Outcome> outcomes;            // [request]
  std::vector<EngineTotals> engines;        // of the pools, one after the other
  std::vector<AutoscaleTotals> autoscaled;  // [pool]
  std::vector<double> tokenised_s;          // [pool]: time in which servers tokenise, sum over engines
  std::vector<StationTotals> stations;
  Ticks end = 0;               // when the last request ended
  double system_integral = 0;  // of the number of requests in the system, over time in seconds
  std::int64_t most_in_system = 0;
  std::int64_t refused = 0;
  double store_peak = 0;     // part of the shared store that was in use
  double store_busy_s = 0;   // of its links
  double transferred_s = 0;  // in which links were in use, sum over transfers
  bool stopped = false;      // by stops_after
};

// `pools`: one, or prefill and decode. Sets arrivals of a closed loop in `load`. Errors: a request that no cache holds.
// An admission limit is of open loops only.
[[nodiscard]] Result<FleetRun> run_fleet(Workload& load, const std::vector<Pool>& pools, const FleetOptions& options);

}  // namespace orrery::serving

namespace orrery::config {

template <>
struct EnumNames<serving::Routing> {
  using R = serving::Routing;
  static constexpr std::array<std::pair<R, std::string_view>, 6> value{{{R::round_robin, "round-robin"},
                                                                        {R::random, "random"},
                                                                        {R::least_outstanding, "least-outstanding"},
                                                                        {R::least_tokens, "least-tokens"},
                                                                        {R::prefix_aware, "prefix-aware"},
                                                                        {R::session, "session"}}};
};

}  // namespace orrery::config
