#include "orrery/api/goodput_search.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "orrery/core/parallel_for.hpp"

namespace orrery::api {

namespace {

constexpr double kMargin = 1.05;    // of bounds on trades
constexpr double kRounding = 1e-9;  // relative, of keys
constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr GoodputKey kNoKey{kNone, kNone};

// Known trades: whether one of them has more of both.
class Front {
 public:
  explicit Front(const std::vector<GoodputKnown>& units) {
    for (const auto& unit : units) {
      for (const auto& probe : unit.probes) {
        if (unit.is_good() && probe.is_whole && probe.per_user > 0) {
          trades_.push_back({probe.per_user, probe.per_gpu});
        }
      }
    }
    std::sort(trades_.begin(), trades_.end(), std::greater<>());
    double most = 0;
    for (auto& [per_user, per_gpu] : trades_) { per_gpu = most = std::max(most, per_gpu); }
  }

  // 0 tokens of a user: there is no second token, and no trade.
  [[nodiscard]] bool beats(double per_user, double per_gpu) const {
    if (per_user == 0.0) { return true; }
    const auto slower =
        std::partition_point(trades_.begin(), trades_.end(), [&](const auto& t) { return t.first > per_user; });
    return slower != trades_.begin() && std::prev(slower)->second >= per_gpu;
  }

 private:
  std::vector<std::pair<double, double>> trades_;  // per user, falling; the most per GPU up to here
};

class GoodputSearch {
 public:
  GoodputSearch(const std::vector<GoodputUnit>& units, const GoodputQuestion& question)
      : units_(units), question_(question) {
    for (const auto& unit : units) { known_.push_back({unit.bisection, {}, {}, 0, {}}); }
  }

  std::vector<GoodputKnown> run() {
    parallel_for(units_.size(), question_.threads, [&](std::size_t i) {
      while (known_[i].why.empty() && !known_[i].bisection.is_bracketed()) { try_next(i, Stops::when_missed); }
      report();
    });
    for (auto tasks = next_round(); !tasks.empty(); tasks = next_round()) {
      parallel_for(tasks.size(), question_.threads, [&](std::size_t t) { do_task(tasks[t]); });
    }
    return std::move(known_);
  }

 private:
  struct Task {
    std::size_t unit = 0;
    bool goes_on = false;                 // the next load of its bisection
    Stops stops = Stops::at_the_end;      // of that
    std::vector<std::size_t> unfinished;  // probes that were stopped, and are repeated
  };

  void report() {
    if (!question_.progress) { return; }
    const std::lock_guard lock(mutex_);
    question_.progress(++reported_);
  }

  std::optional<LoadTrial> trial(std::size_t i, double load, Stops stops) {
    auto trial = question_.trial(i, load, stops);
    if (trial) { return std::move(*trial); }
    known_[i].why = trial.error().diagnostics.front().message;
    return std::nullopt;
  }

  GoodputProbe probe_of(std::size_t i, const LoadTrial& trial) const {
    GoodputProbe probe{trial.load, trial.offered, trial.meets_slo(), trial.result.has_value()};
    if (trial.result && trial.result->tpot.mean > 0) {
      probe.per_gpu = trial.result->output_tokens_per_s / static_cast<double>(units_[i].gpus);
      probe.per_user = 1.0 / trial.result->tpot.mean;
    }
    return probe;
  }

  void try_next(std::size_t i, Stops stops) {
    GoodputKnown& known = known_[i];
    ++known.runs;
    auto tried = trial(i, *known.bisection.next(), stops);
    if (!tried) { return; }
    known.probes.push_back(probe_of(i, *tried));
    known.bisection.tell(tried->meets_slo());
    if (tried->meets_slo() && known.bisection.good() == tried->load) { known.best = std::move(tried->result); }
  }

  void do_task(const Task& task) {
    for (const std::size_t p : task.unfinished) {
      if (const auto whole = trial(task.unit, known_[task.unit].probes[p].load, Stops::at_the_end)) {
        known_[task.unit].probes[p] = probe_of(task.unit, *whole);
      }
    }
    if (task.goes_on && known_[task.unit].why.empty()) { try_next(task.unit, task.stops); }
  }

  // ---- what a next probe could change ----

  [[nodiscard]] GoodputKey key(std::size_t i) const {
    return question_.key(i, known_[i].bisection.good(), *known_[i].best);
  }
  // What the unit stays below.
  [[nodiscard]] GoodputKey most(std::size_t i) const {
    GoodputKey most = question_.key(i, known_[i].bisection.bad(), *known_[i].best);
    most.first += kRounding * std::abs(most.first);
    most.second += kRounding * std::abs(most.second);
    return most;
  }

  struct Leaders {
    std::map<std::size_t, double> of_kind;                                // load
    std::map<std::pair<std::size_t, std::size_t>, double> of_group_kind;  // the same in a group
    std::map<std::size_t, GoodputKey> last_of_group;
    GoodputKey last_of_best = kNoKey;
  };

  [[nodiscard]] Leaders leaders() const {
    Leaders leaders;
    std::map<std::size_t, GoodputKey> kinds;
    std::map<std::size_t, std::map<std::size_t, GoodputKey>> groups;  // [group][kind]
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (!known_[i].is_good()) { continue; }
      const std::size_t kind = units_[i].kind;
      const auto raise_load = [&](double& load) { load = std::max(load, known_[i].bisection.good()); };
      raise_load(leaders.of_kind[kind]);
      for (const std::size_t group : units_[i].groups) { raise_load(leaders.of_group_kind[{group, kind}]); }
      const GoodputKey own = key(i);
      const auto raise = [&](auto& map, std::size_t index) {
        const auto [at, is_new] = map.try_emplace(index, own);
        if (!is_new) { at->second = std::max(at->second, own); }
      };
      raise(kinds, kind);
      for (const std::size_t group : units_[i].groups) { raise(groups[group], kind); }
    }
    leaders.last_of_best = last_of(kinds, question_.best);
    for (const auto& [group, own] : groups) { leaders.last_of_group[group] = last_of(own, question_.best_of_group); }
    return leaders;
  }

  // The key of the last one of the `count` best kinds; below every key if there are fewer.
  [[nodiscard]] static GoodputKey last_of(const std::map<std::size_t, GoodputKey>& kinds, std::size_t count) {
    if (kinds.size() < count) { return kNoKey; }
    std::vector<GoodputKey> best;
    for (const auto& [kind, own] : kinds) { best.push_back(own); }
    std::sort(best.begin(), best.end(), std::greater<>());
    return best[count - 1];
  }

  [[nodiscard]] bool can_lead(std::size_t i, const Leaders& leaders) const {
    if (!question_.key) { return true; }
    const double bad = known_[i].bisection.bad();
    const std::size_t kind = units_[i].kind;
    const GoodputKey bound = most(i);
    if (bad > leaders.of_kind.at(kind) && bound > leaders.last_of_best) { return true; }
    return std::any_of(units_[i].groups.begin(), units_[i].groups.end(), [&](std::size_t group) {
      return bad > leaders.of_group_kind.at({group, kind}) && bound > leaders.last_of_group.at(group);
    });
  }

  // Tokens per second of a user, at most, at a load. Infinite: no lower load is known.
  [[nodiscard]] double most_per_user(std::size_t i, double load) const {
    double most = std::numeric_limits<double>::infinity();
    for (const auto& probe : known_[i].probes) {
      if (probe.is_whole && probe.load <= load) { most = std::min(most, kMargin * probe.per_user); }
    }
    return most;
  }

  // Whether loads from the highest good one to `load` have points that are not on the front.
  [[nodiscard]] bool is_behind(std::size_t i, double load, const Front& front) const {
    double offered = 0;  // per load
    for (const auto& probe : known_[i].probes) { offered = std::max(offered, probe.offered / probe.load); }
    return front.beats(most_per_user(i, known_[i].bisection.good()),
                       kMargin * offered * load / static_cast<double>(units_[i].gpus));
  }

  // First the bisections that can lead, because their points are those that rule out others; then loads whose points
  // can be on the front; last runs that were stopped and can be on it.
  [[nodiscard]] std::vector<Task> next_round() const {
    std::vector<Task> tasks = leading_tasks();
    if (!tasks.empty() || !question_.front) { return tasks; }
    const Front front(known_);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const auto load = known_[i].bisection.next();
      if (!load || !known_[i].is_good() || is_behind(i, known_[i].bisection.bad(), front)) { continue; }
      tasks.push_back({i, true, is_behind(i, *load, front) ? Stops::when_missed : Stops::at_the_end, {}});
    }
    return tasks.empty() ? unfinished_tasks(front) : tasks;
  }

  [[nodiscard]] std::vector<Task> leading_tasks() const {
    const Leaders best = question_.key ? leaders() : Leaders{};
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (!known_[i].is_good() || !known_[i].bisection.next() || !can_lead(i, best)) { continue; }
      tasks.push_back({i, true, Stops::when_missed, {}});
    }
    return tasks;
  }

  [[nodiscard]] std::vector<Task> unfinished_tasks(const Front& front) const {
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      Task task{i, false, Stops::at_the_end, {}};
      for (std::size_t p = 0; known_[i].is_good() && p < known_[i].probes.size(); ++p) {
        const GoodputProbe& probe = known_[i].probes[p];
        const double per_gpu = probe.offered / static_cast<double>(units_[i].gpus);
        if (!probe.is_whole && !front.beats(most_per_user(i, probe.load), per_gpu)) { task.unfinished.push_back(p); }
      }
      if (!task.unfinished.empty()) { tasks.push_back(std::move(task)); }
    }
    return tasks;
  }

  const std::vector<GoodputUnit>& units_;
  const GoodputQuestion& question_;
  std::vector<GoodputKnown> known_;
  std::mutex mutex_;
  std::int64_t reported_ = 0;
};

}  // namespace

std::vector<GoodputKnown> goodput_search(const std::vector<GoodputUnit>& units, const GoodputQuestion& question) {
  return GoodputSearch(units, question).run();
}

}  // namespace orrery::api
