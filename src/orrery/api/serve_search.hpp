// The search of `orrery plan --task serve`. Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/api/goodput_search.hpp"
#include "orrery/api/serve_plan.hpp"
#include "orrery/api/serve_run.hpp"
#include "orrery/api/shared_trials.hpp"

namespace orrery::api::serve_search {

using results::ServingCandidate;
using results::ServingPlan;
using serving::Degrees;
using serving::EngineSettings;

// Engines of one kind that fit, and what one of them can do by its prices alone.
struct Shape {
  Degrees degrees;
  double prefill_rate = 0, decode_rate = 0;         // requests per second
  bool dispatches = false;                          // tokens travel to experts on other ranks
  std::shared_ptr<serving::Deployment> deployment;  // of one engine
};

// The unit that is simulated, and how often the devices hold it.
struct Unit {
  Degrees engine;
  std::optional<Degrees> prefill;
  EngineSettings settings;
  double start = 1;  // load at which the bisection begins

  [[nodiscard]] std::int64_t gpus() const { return engine.gpus() + (prefill ? prefill->gpus() : 0); }
};

// What became of a unit.
struct Tried {
  std::optional<ServingCandidate> candidate;
  std::vector<results::ServingTrade> trades;
  std::int64_t runs = 0;
  bool is_missed = false;
  double excess = 0;  // missed: by how much the worst limit is exceeded when hardly anything arrives, as a ratio
  std::string why;    // there is no candidate
};

[[nodiscard]] results::ServingDegrees plain(const Degrees& degrees);

// Dollars per hour and watts of the whole fleet, from those of its tokens.
void add_hourly(ServingCandidate& candidate);

// Combinations of degrees of a group that are simulated as whole fleets: a unit may promise less than its fleet
// carries.
inline constexpr std::size_t kBestOfGroup = 3;

class Search {
 public:
  Search(ServingInputs& inputs, const ServePlanRequest& request) : inputs_(inputs), request_(request) {}

  Result<ServingPlan> run();

 private:
  [[nodiscard]] const workload::Model& model() const { return inputs_.model(); }
  [[nodiscard]] std::int64_t branches() const { return request_.base.scenario.branches; }
  [[nodiscard]] Result<void> check_base(serving::Scenario scenario) const;
  Result<void> read_load();
  Result<void> find_shapes();
  void add_shape(const Degrees& degrees);
  [[nodiscard]] std::optional<Shape> shape_of(const Unit& unit);
  [[nodiscard]] std::vector<EngineSettings> knobs(bool all) const;
  [[nodiscard]] static std::vector<EngineSettings> effective(std::vector<EngineSettings> list, const Shape& prompts,
                                                             const Shape& decodes);
  [[nodiscard]] Result<void> check_overlaps() const;
  void add_engines();
  void add_pairs();
  [[nodiscard]] ServeRequest request_of(const Unit& unit, std::int64_t units) const;
  [[nodiscard]] Tried tried(const Unit& unit, std::int64_t units) const;
  [[nodiscard]] double value_of(const ServingCandidate& candidate) const;
  // What no deployment does, for messages.
  [[nodiscard]] const char* found_what() const;
  [[nodiscard]] std::string text_of(const Unit& unit, std::int64_t units) const;
  // Of the settings that are varied, besides limits: ", 1 draft".
  [[nodiscard]] std::string settings_text(const EngineSettings& settings) const;
  void explain_best(const ServingCandidate& best, std::vector<std::string>& lines) const;
  struct Ranked {
    ServingCandidate candidate;
    std::size_t unit = 0;  // of units_
  };
  struct Sized {
    std::optional<ServingCandidate> candidate;  // none: no number of engines within --devices suffices
    std::int64_t runs = 0;
  };
  [[nodiscard]] std::vector<Tried> tried_units() const;
  // serve_bounds.cpp: the same without the loads that cannot change the answer.
  [[nodiscard]] std::vector<Tried> bounded_units() const;
  [[nodiscard]] std::vector<std::size_t> numbered(const std::function<std::string(const Unit&)>& text) const;
  [[nodiscard]] std::vector<GoodputUnit> goodput_units() const;
  [[nodiscard]] Result<LoadTrial> unit_trial(std::size_t unit, std::size_t kind, double load, Stops stops,
                                             SharedTrials& shared) const;
  [[nodiscard]] GoodputKey key_of(std::size_t unit, double load, const results::Serving& result) const;
  [[nodiscard]] Tried tried_of(std::size_t unit, GoodputKnown known) const;
  // Settings of which several values may be tried, and what the explanation calls the best deployment with one of them.
  struct VariedSetting {
    const std::vector<std::int64_t>* values;
    std::int64_t EngineSettings::* field;
    std::int64_t ServingCandidate::* found;
    std::string (*named)(std::int64_t value);
  };
  [[nodiscard]] std::array<VariedSetting, 3> varied_settings() const;
  // Groups of which the best fleets are compared, and named by the explanation.
  [[nodiscard]] std::vector<std::size_t> groups_of(const Unit& unit) const;
  [[nodiscard]] ServingCandidate candidate_of(const Unit& unit, std::int64_t units, double load,
                                              results::Serving result) const;
  [[nodiscard]] std::optional<ServingCandidate> whole_fleet(const Ranked& one, std::int64_t& runs) const;
  [[nodiscard]] ServingCandidate own_result(ServingCandidate candidate, std::size_t unit) const;
  [[nodiscard]] std::vector<Ranked> ranked_units(std::vector<Tried> all, ServingPlan& plan) const;
  [[nodiscard]] std::vector<std::size_t> whole_ones(const std::vector<Ranked>& ranked) const;
  struct Fleets {
    std::vector<ServingCandidate> all;  // whole ones, best first; then units that were simulated alone
    bool are_all_whole = true;          // every unit that was to be simulated as a whole fleet carries a load as one
  };
  [[nodiscard]] Fleets fleets(std::vector<Ranked> ranked, ServingPlan& plan) const;
  // Ranks units, simulates the best as whole fleets. None: of the units that were bounded too many are not known.
  [[nodiscard]] std::optional<ServingPlan> answer(ServingPlan plan, bool is_bounded) const;
  void report(std::int64_t done) const;
  [[nodiscard]] std::vector<std::string> explanation(const std::vector<ServingCandidate>& ranked) const;
  // serve_traffic.cpp: the load is given, and the accelerators are wanted.
  [[nodiscard]] double spent(const ServingCandidate& candidate) const;
  [[nodiscard]] double whole_spent(const ServingCandidate& candidate) const;
  [[nodiscard]] std::size_t most_sized() const { return 3 * request_.top; }
  [[nodiscard]] std::vector<Ranked> to_size(std::vector<Ranked> ranked) const;
  [[nodiscard]] Result<Sized> smallest(const Ranked& one) const;
  [[nodiscard]] ServingCandidate sized_candidate(const Unit& unit, results::Serving result) const;
  void size_for_traffic(std::vector<Ranked> ranked, ServingPlan& plan) const;

  ServingInputs& inputs_;
  const ServePlanRequest& request_;
  double input_ = 1, output_ = 1;  // mean tokens
  double retrieved_ = 0;           // of the input, found in a store
  double traffic_ = 0;             // requests per second, if the load is given
  std::int64_t requests_of_trace_ = 0;
  std::int64_t most_ = 0;  // accelerators of a unit
  std::optional<double> tpot_limit_;
  std::vector<Shape> shapes_;
  std::vector<Unit> units_;
  std::int64_t infeasible_ = 0, matched_out_ = 0;
  std::string why_infeasible_;
};

}  // namespace orrery::api::serve_search
