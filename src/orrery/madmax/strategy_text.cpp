// --strategy as text: what it means for a model on a machine, and everything that can be wrong with it.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/madmax/strategy.hpp"

namespace orrery::madmax {

namespace {

constexpr const char* kFlag = "--strategy";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') { text.remove_prefix(1); }
  while (!text.empty() && text.back() == ' ') { text.remove_suffix(1); }
  return text;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = std::min(text.find(separator), text.size());
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.size()) { return parts; }
    text.remove_prefix(end + 1);
  }
}

std::string names_of(const std::vector<LayerClass>& classes) {
  std::vector<std::string> names;
  for (const auto layer_class : classes) { names.emplace_back(name_of(layer_class)); }
  return join(names, ", ");
}

tl::unexpected<Failure> wrong(const std::string& message) { return fail(Place{"", 0, 0, kFlag}, message); }

std::optional<Split> split_named(std::string_view name) {
  for (const Split split : {Split::ddp, Split::fsdp, Split::tp, Split::mp}) {
    if (name_of(split) == name) { return split; }
  }
  return std::nullopt;
}

// "fsdp, ddp, tp, (fsdp,ddp), ..." of a class here.
std::string allowed(LayerClass layer_class, const Work& work, const System& system) {
  std::vector<std::string> texts;
  for (const auto& choice : choices(layer_class, work, system)) { texts.push_back(text_of(choice)); }
  return fmt::format("allowed for {} on {}: {}", name_of(layer_class), system.name, join(texts, " "));
}

// Why a strategy that reads well is none that the class may have here.
std::string refusal(LayerClass layer_class, const Strategy& strategy, const System& system) {
  const auto [inner, outer] = strategy.splits;
  if (strategy.levels == 2 && system.nodes() == 1) {
    return fmt::format("{} is one node, with one level", system.name);
  }
  if (strategy.levels == 2 && system.devices_per_node == 1) {
    return fmt::format("{} has one device in a node, and one level", system.name);
  }
  if (layer_class == LayerClass::emb && (strategy.has(Split::fsdp) || strategy.has(Split::tp))) {
    return "tables take mp and ddp";
  }
  if (layer_class != LayerClass::emb && strategy.has(Split::mp)) { return "mp is of tables"; }
  if (strategy.levels == 2 && inner == outer) { return fmt::format("{} stands twice", name_of(inner)); }
  if (strategy.levels == 2 && outer == Split::fsdp) { return "fsdp stands at position 0 only"; }
  return "tp cuts pairs of MLP layers, and their number is odd, or that of cross layers before them";
}

Result<Strategy> strategy_from(std::string_view text, LayerClass layer_class, const Work& work, const System& system) {
  std::string_view inside = trimmed(text);
  if (inside.starts_with('(') && inside.ends_with(')')) { inside = inside.substr(1, inside.size() - 2); }
  const auto elements = parts_of(inside, ',');
  const auto complain = [&](const std::string& why) {
    return wrong(fmt::format("{}={}: {}; {}", name_of(layer_class), text, why, allowed(layer_class, work, system)));
  };
  if (elements.size() > 2) {
    return complain(fmt::format("{} levels; there are two at most, inside a node and between nodes", elements.size()));
  }
  Strategy strategy;
  strategy.levels = static_cast<int>(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto split = split_named(elements[i]);
    if (!split) { return complain(fmt::format("{} is no strategy", orrery::quoted(elements[i]))); }
    strategy.splits[i] = *split;
  }
  const auto all = choices(layer_class, work, system);
  if (std::find(all.begin(), all.end(), strategy) == all.end()) {
    return complain(refusal(layer_class, strategy, system));
  }
  return strategy;
}

}  // namespace

Result<std::vector<LayerClass>> classes_named(std::string_view name, const Work& work, const char* flag) {
  const Place place{"", 0, 0, flag};
  const std::vector<std::string> known = {"emb", "mlp", "attention", "fc", "transformer", "moe"};
  std::vector<LayerClass> found;
  const LayerClass fc = work.has(LayerClass::fc) || work.is_recommender ? LayerClass::fc : LayerClass::moe;
  if (name == "transformer") { found = {LayerClass::attention, fc}; }
  if (name == "fc") { found = {fc}; }
  for (const auto layer_class : {LayerClass::emb, LayerClass::mlp, LayerClass::attention, LayerClass::moe}) {
    if (name_of(layer_class) == name) { found = {layer_class}; }
  }
  if (found.empty()) {
    const auto near = nearest(std::string(name), known);
    return fail(place, fmt::format("{} is no class of layers; {}", orrery::quoted(name),
                                   near ? fmt::format("did you mean {}?", *near) : "there are " + join(known, ", ")));
  }
  for (const auto layer_class : found) {
    if (!work.has(layer_class)) {
      return fail(place, fmt::format("{} has no {}; its classes are {}", work.model, name, names_of(work.classes())));
    }
  }
  return found;
}

Result<Typed> strategies_from(std::string_view text, const Work& work, const System& system) {
  Typed typed;
  Failure failure;
  const auto keep = [&](const Failure& more) {
    failure.diagnostics.insert(failure.diagnostics.end(), more.diagnostics.begin(), more.diagnostics.end());
  };
  for (const auto part : parts_of(text, ';')) {
    if (part.empty()) { continue; }
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) {
      keep(wrong(fmt::format("{} is no class and strategy, such as mlp=(tp,ddp)", orrery::quoted(part))).value());
      continue;
    }
    const auto classes = classes_named(trimmed(part.substr(0, equals)), work, kFlag);
    if (!classes) {
      keep(classes.error());
      continue;
    }
    for (const auto layer_class : *classes) {
      const auto strategy = strategy_from(trimmed(part.substr(equals + 1)), layer_class, work, system);
      if (!strategy) {
        keep(strategy.error());
      } else if (!typed.emplace(layer_class, *strategy).second) {
        keep(wrong(fmt::format("{} has two strategies", name_of(layer_class))).value());
      }
    }
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return typed;
}

}  // namespace orrery::madmax
