#include "orrery/madmax/strategy.hpp"

#include <algorithm>

namespace orrery::madmax {

std::string_view name_of(Parallelism parallelism) {
  constexpr std::array<std::string_view, 4> kNames = {"ddp", "fsdp", "tp", "mp"};
  return kNames[static_cast<std::size_t>(parallelism)];
}

bool Strategy::has(Parallelism kind) const { return parallelism[0] == kind || (levels == 2 && parallelism[1] == kind); }

std::string text_of(const Strategy& strategy) {
  std::string text = "(";
  text += name_of(strategy.parallelism[0]);
  if (strategy.levels == 2) {
    text += ",";
    text += name_of(strategy.parallelism[1]);
  }
  return text + ")";
}

std::string text_of(const Strategies& strategies, const SampleWork& work) {
  std::string text;
  for (const auto layer_class : work.classes()) {
    if (!text.empty()) { text += "; "; }
    text += name_of(layer_class);
    text += "=" + text_of(strategies[layer_class]);
  }
  return text;
}

Strategies completed(const GivenStrategies& given, const SampleWork& work) {
  Strategies strategies;
  for (auto& strategy : strategies.of) { strategy.parallelism[0] = Parallelism::fsdp; }
  strategies[LayerClass::emb].parallelism[0] = work.is_recommender ? Parallelism::mp : Parallelism::ddp;
  for (const auto& [layer_class, strategy] : given) { strategies[layer_class] = strategy; }
  if (work.is_recommender && !given.contains(LayerClass::moe)) {
    strategies[LayerClass::moe] = strategies[LayerClass::mlp];
  }
  return strategies;
}

namespace {

// Whether tp can split the MLP layers of every part into pairs: activations are reduced after every second layer of a
// part. Layers of experts may follow layers of another class in their part (cross layers).
bool has_pairs(LayerClass layer_class, const SampleWork& work) {
  std::array<int, 4> layers{};
  for (const auto& layer : work.layers) {
    const auto of = work.shapes[static_cast<std::size_t>(layer.shape)].layer_class;
    auto& count = layers[static_cast<std::size_t>(layer.part)];
    if (of != layer_class) { continue; }
    if (count == 0 && layer.number % 2 != 0) { return false; }
    ++count;
  }
  return layers[static_cast<std::size_t>(Part::bottom)] % 2 == 0 &&
         layers[static_cast<std::size_t>(Part::top)] % 2 == 0;
}

}  // namespace

std::vector<Strategy> choices(LayerClass layer_class, const SampleWork& work, const System& system) {
  const bool tables = layer_class == LayerClass::emb;
  const std::vector<Parallelism> first = tables ? std::vector{Parallelism::mp, Parallelism::ddp}
                                                : std::vector{Parallelism::fsdp, Parallelism::ddp, Parallelism::tp};
  // Experts of a recommender use the strategy of its mlp: both must have pairs.
  const bool experts_follow = layer_class == LayerClass::mlp && work.has(LayerClass::moe);
  const bool may_have_tp =
      tables || (has_pairs(layer_class, work) && (!experts_follow || has_pairs(LayerClass::moe, work)));
  std::vector<Strategy> all;
  for (const Parallelism parallelism : first) {
    if (parallelism != Parallelism::tp || may_have_tp) { all.push_back({{parallelism, parallelism}, 1}); }
  }
  if (system.nodes() == 1 || system.devices_per_node == 1) { return all; }
  for (const Parallelism inner : first) {
    for (const Parallelism outer : first) {
      const bool is_allowed = inner != outer && outer != Parallelism::fsdp;
      const bool has_tp = inner == Parallelism::tp || outer == Parallelism::tp;
      if (is_allowed && (!has_tp || may_have_tp)) { all.push_back({{inner, outer}, 2}); }
    }
  }
  return all;
}

std::int64_t degree(const Strategy& strategy, int level, const System& system) {
  if (strategy.levels == 1) { return system.devices; }
  return level == 0 ? system.devices_per_node : system.nodes();
}

namespace {

template <class Counts>
std::int64_t product_of_degrees(const Strategy& strategy, const System& system, Counts&& counts) {
  std::int64_t product = 1;
  for (int level = 0; level < strategy.levels; ++level) {
    if (counts(strategy.parallelism[static_cast<std::size_t>(level)])) { product *= degree(strategy, level, system); }
  }
  return product;
}

}  // namespace

std::int64_t copies(const Strategy& strategy, const System& system) {
  return product_of_degrees(strategy, system,
                            [](Parallelism s) { return s == Parallelism::ddp || s == Parallelism::fsdp; });
}

std::int64_t shards(const Strategy& strategy, const System& system) {
  return product_of_degrees(strategy, system, [](Parallelism s) { return s != Parallelism::ddp; });
}

}  // namespace orrery::madmax
