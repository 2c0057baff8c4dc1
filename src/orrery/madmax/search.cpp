#include <algorithm>

#include "orrery/madmax/answer.hpp"

namespace orrery::madmax {

namespace {

// Strategies of one class (or of several with the same one), and whether the batch divides by the copies of each.
struct Axis {
  std::vector<LayerClass> classes;  // with the same strategy
  std::vector<Strategy> choices;
  std::vector<bool> is_even;
};

// Experts of a recommender's top MLP use the strategy of its mlp, unless fixed.
std::vector<Axis> axes_of(const Evaluator& evaluator, const GivenStrategies& fixed) {
  const SampleWork& work = evaluator.work();
  const bool experts_follow = work.is_recommender && work.has(LayerClass::moe) && !fixed.contains(LayerClass::moe);
  std::vector<Axis> axes;
  for (const auto layer_class : work.classes()) {
    if (experts_follow && layer_class == LayerClass::moe) { continue; }
    const auto found = fixed.find(layer_class);
    Axis axis{{layer_class}, {}, {}};
    if (experts_follow && layer_class == LayerClass::mlp) { axis.classes.push_back(LayerClass::moe); }
    axis.choices = found != fixed.end() ? std::vector{found->second} : choices(layer_class, work, evaluator.system());
    for (const auto& choice : axis.choices) {
      axis.is_even.push_back(evaluator.job().global_batch % copies(choice, evaluator.system()) == 0);
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

struct Candidate {
  Strategies strategies;
  Seconds time;
};

// Evaluates all points in order; the last axis varies fastest.
class Enumeration {
 public:
  Enumeration(Evaluator& evaluator, std::vector<Axis> axes) : evaluator_(evaluator), axes_(std::move(axes)) {}

  std::vector<Candidate> run(results::MadMaxSearch& counts) {
    extend(0, true, counts);
    return std::move(found_);
  }

 private:
  void extend(std::size_t depth, bool is_even, results::MadMaxSearch& counts) {
    if (depth == axes_.size()) {
      ++counts.points;
      is_even ? price(counts) : void(++counts.uneven_batch);
      return;
    }
    const Axis& axis = axes_[depth];
    for (std::size_t i = 0; i < axis.choices.size(); ++i) {
      for (const auto layer_class : axis.classes) { strategies_[layer_class] = axis.choices[i]; }
      extend(depth + 1, is_even && axis.is_even[i], counts);
    }
  }

  void price(results::MadMaxSearch& counts) {
    ++counts.evaluated;
    const Answer answer = evaluator_.answer(strategies_);
    const bool fits = evaluator_.needed(answer.weights) <= evaluator_.system().memory;
    if (evaluator_.job().memory_rule && !fits) {
      ++counts.over_memory;
      return;
    }
    ++counts.feasible;
    found_.push_back({strategies_, answer.outcome.end});
  }

  Evaluator& evaluator_;
  std::vector<Axis> axes_;
  Strategies strategies_;
  std::vector<Candidate> found_;
};

}  // namespace

results::MadMaxSearch search(Evaluator& evaluator, const Search& request) {
  results::MadMaxSearch result;
  auto found = Enumeration(evaluator, axes_of(evaluator, request.fixed)).run(result);
  const auto shown = found.begin() + static_cast<std::ptrdiff_t>(std::min(request.top, found.size()));
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
  const Strategies base = baseline(evaluator.work());
  result.has_baseline = divides(evaluator.job().global_batch, base, evaluator.work(), evaluator.system());
  if (result.has_baseline) { result.baseline = estimate(evaluator, base); }
  for (auto it = found.begin(); it != shown; ++it) {
    result.best.push_back(estimate(evaluator, it->strategies));
    if (result.has_baseline) {
      result.best.back().gain = result.best.back().samples_per_s / result.baseline.samples_per_s;
    }
  }
  return result;
}

}  // namespace orrery::madmax
