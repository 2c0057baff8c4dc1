#include "orrery/madmax/strategy.hpp"

#include <algorithm>

namespace orrery::madmax {

std::string_view name_of(Split split) {
  constexpr std::array<std::string_view, 4> kNames = {"ddp", "fsdp", "tp", "mp"};
  return kNames[static_cast<std::size_t>(split)];
}

bool Strategy::has(Split split) const { return splits[0] == split || (levels == 2 && splits[1] == split); }

std::string text_of(const Strategy& strategy) {
  std::string text = "(";
  text += name_of(strategy.splits[0]);
  if (strategy.levels == 2) {
    text += ",";
    text += name_of(strategy.splits[1]);
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

Strategies completed(const Typed& typed, const SampleWork& work) {
  Strategies strategies;
  for (auto& strategy : strategies.of) { strategy.splits[0] = Split::fsdp; }
  strategies[LayerClass::emb].splits[0] = work.is_recommender ? Split::mp : Split::ddp;
  for (const auto& [layer_class, strategy] : typed) { strategies[layer_class] = strategy; }
  if (work.is_recommender && !typed.contains(LayerClass::moe)) {
    strategies[LayerClass::moe] = strategies[LayerClass::mlp];
  }
  return strategies;
}

namespace {

// Activations of an MLP are reduced after every second layer of its part; experts may have layers of another class
// before them there (cross layers).
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
  const std::vector<Split> first =
      tables ? std::vector{Split::mp, Split::ddp} : std::vector{Split::fsdp, Split::ddp, Split::tp};
  // Experts of a recommender use the strategy of its mlp: both must have pairs.
  const bool leads = layer_class == LayerClass::mlp && work.has(LayerClass::moe);
  const bool may_cut = tables || (has_pairs(layer_class, work) && (!leads || has_pairs(LayerClass::moe, work)));
  std::vector<Strategy> all;
  for (const Split split : first) {
    if (split != Split::tp || may_cut) { all.push_back({{split, split}, 1}); }
  }
  if (system.nodes() == 1 || system.devices_per_node == 1) { return all; }
  for (const Split inner : first) {
    for (const Split outer : first) {
      const bool is_allowed = inner != outer && outer != Split::fsdp;
      const bool cuts = inner == Split::tp || outer == Split::tp;
      if (is_allowed && (!cuts || may_cut)) { all.push_back({{inner, outer}, 2}); }
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
    if (counts(strategy.splits[static_cast<std::size_t>(level)])) { product *= degree(strategy, level, system); }
  }
  return product;
}

}  // namespace

std::int64_t copies(const Strategy& strategy, const System& system) {
  return product_of_degrees(strategy, system, [](Split s) { return s == Split::ddp || s == Split::fsdp; });
}

std::int64_t shards(const Strategy& strategy, const System& system) {
  return product_of_degrees(strategy, system, [](Split s) { return s != Split::ddp; });
}

}  // namespace orrery::madmax
