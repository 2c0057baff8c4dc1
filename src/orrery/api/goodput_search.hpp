// The highest load of many deployments, as far as it matters which are the best. Private to the room.
//
// Every unit is bisected by the same loads as alone (goodput_curve), but not always to the end. What a bisection finds
// is below its lowest bad load. A unit is given up when that load would not make it the best of its kind (settings of
// the same degrees), or one of the `best` best kinds, or of the best of a group. That is exact for keys that rise with
// the load, whatever the simulations say: what ends is what would have been found without giving up.
//
// The front of trades (tokens per second of an accelerator and of a user) has the points of all loads that are tried.
// A run is stopped as soon as it misses the service level for certain, and a bisection given up, if their points cannot
// be on the front: if a known point has more of both than
//   tokens of a user            1.05 times those of the unit at the nearest lower load, and
//   tokens of an accelerator    those that are asked for; of loads that are not tried, 1.05 times as many as at those
//                               that are, by their ratio.
// The first is a heuristic: that a user gets no more than 5 % faster answers when more is asked of the same engines.
// A run that was stopped and may be on the front after all is repeated to its end.
//
// Rounds of independent probes: the same for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/api/serve_run.hpp"
#include "orrery/results/serving.hpp"

namespace orrery::api {

// What the best is best in: the first number, then the second. Larger is better.
using GoodputKey = std::pair<double, double>;

struct GoodputUnit {
  LoadBisection bisection;
  std::int64_t gpus = 1;
  std::size_t kind = 0;
  std::vector<std::size_t> groups = {};
};

struct GoodputProbe {
  double load = 0, offered = 0;  // offered: tokens per second, all accelerators
  bool meets_slo = false, is_whole = false;
  double per_gpu = 0, per_user = 0;  // tokens per second, if is_whole; 0: no request has a second token
};

// What is known of a unit.
struct GoodputKnown {
  LoadBisection bisection;
  std::vector<GoodputProbe> probes;
  std::optional<results::Serving> best;  // at bisection.good()
  std::int64_t runs = 0;                 // loads
  std::string why;                       // it cannot run

  [[nodiscard]] bool is_good() const { return why.empty() && bisection.good() > 0; }
};

struct GoodputQuestion {
  std::size_t best = 1;           // kinds
  std::size_t best_of_group = 1;  // kinds
  bool front = true;              // all points of the front of trades are wanted
  // At a load that is good, or would be; the result is that of the unit's highest good load. Empty: it need not rise
  // with the load, and every bisection of a unit runs to the end.
  std::function<GoodputKey(std::size_t unit, double load, const results::Serving& result)> key;
  std::function<Result<LoadTrial>(std::size_t unit, double load, Stops stops)> trial;  // several threads at a time
  int threads = 0;
  std::function<void(std::int64_t done)> progress;  // units
};

[[nodiscard]] std::vector<GoodputKnown> goodput_search(const std::vector<GoodputUnit>& units,
                                                       const GoodputQuestion& question);

}  // namespace orrery::api
