// Parses --strategy for a model on a machine, with a message for every kind of mistake.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/madmax/strategy.hpp"
#include "orrery/madmax/text_parts.hpp"

namespace orrery::madmax {

namespace {

constexpr const char* kFlag = "--strategy";

std::string names_of(const std::vector<LayerClass>& classes) {
  std::vector<std::string> names;
  for (const auto layer_class : classes) { names.emplace_back(name_of(layer_class)); }
  return join(names, ", ");
}

tl::unexpected<Failure> wrong(const std::string& message) { return fail(Place{"", 0, 0, kFlag}, message); }

std::optional<Parallelism> parallelism_named(std::string_view name) {
  for (const Parallelism parallelism : {Parallelism::ddp, Parallelism::fsdp, Parallelism::tp, Parallelism::mp}) {
    if (name_of(parallelism) == name) { return parallelism; }
  }
  return std::nullopt;
}

// "valid for mlp on zionex_128: (fsdp) (ddp) (tp) ...".
std::string allowed(LayerClass layer_class, const SampleWork& work, const System& system) {
  std::vector<std::string> texts;
  for (const auto& choice : choices(layer_class, work, system)) { texts.push_back(text_of(choice)); }
  return fmt::format("valid for {} on {}: {}", name_of(layer_class), system.name, join(texts, " "));
}

// Why a well-formed strategy is not valid for the class on this machine.
std::string refusal(LayerClass layer_class, const Strategy& strategy, const System& system) {
  const auto [inner, outer] = strategy.parallelism;
  if (strategy.levels == 2 && system.nodes() == 1) {
    return fmt::format("{} has one node, so one level only", system.name);
  }
  if (strategy.levels == 2 && system.devices_per_node == 1) {
    return fmt::format("{} has one device per node, so one level only", system.name);
  }
  if (layer_class == LayerClass::emb && (strategy.has(Parallelism::fsdp) || strategy.has(Parallelism::tp))) {
    return "embedding tables take mp and ddp only";
  }
  if (layer_class != LayerClass::emb && strategy.has(Parallelism::mp)) { return "mp is for embedding tables only"; }
  if (strategy.levels == 2 && inner == outer) { return fmt::format("{} is given for both levels", name_of(inner)); }
  if (strategy.levels == 2 && outer == Parallelism::fsdp) { return "fsdp is valid at position 0 (inside a node) only"; }
  return "tp parallelism pairs of MLP layers, but the number of MLP layers, or of cross layers before them, is odd";
}

Result<Strategy> strategy_from(std::string_view text, LayerClass layer_class, const SampleWork& work,
                               const System& system) {
  std::string_view inside = trimmed(text);
  if (inside.starts_with('(') && inside.ends_with(')')) { inside = inside.substr(1, inside.size() - 2); }
  const auto elements = parts_of(inside, ',');
  const auto error = [&](const std::string& why) {
    return wrong(fmt::format("{}={}: {}; {}", name_of(layer_class), text, why, allowed(layer_class, work, system)));
  };
  if (elements.size() > 2) {
    return error(fmt::format("{} levels; at most two: inside a node, between nodes", elements.size()));
  }
  Strategy strategy;
  strategy.levels = static_cast<int>(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto parallelism = parallelism_named(elements[i]);
    if (!parallelism) { return error(fmt::format("{} is not a strategy", quote(elements[i]))); }
    strategy.parallelism[i] = *parallelism;
  }
  const auto all = choices(layer_class, work, system);
  if (std::find(all.begin(), all.end(), strategy) == all.end()) {
    return error(refusal(layer_class, strategy, system));
  }
  return strategy;
}

}  // namespace

Result<std::vector<LayerClass>> classes_named(std::string_view name, const SampleWork& work, const char* flag) {
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
    return fail(place, fmt::format("{} is not a layer class; {}", quote(name),
                                   near ? fmt::format("did you mean {}?", *near) : "valid: " + join(known, ", ")));
  }
  for (const auto layer_class : found) {
    if (!work.has(layer_class)) {
      return fail(place, fmt::format("{} has no {} layers; valid: {}", work.model, name, names_of(work.classes())));
    }
  }
  return found;
}

Result<GivenStrategies> strategies_from(std::string_view text, const SampleWork& work, const System& system) {
  GivenStrategies given;
  Failure failure;
  const auto keep = [&](const Failure& more) {
    failure.diagnostics.insert(failure.diagnostics.end(), more.diagnostics.begin(), more.diagnostics.end());
  };
  for (const auto part : parts_of(text, ';')) {
    if (part.empty()) { continue; }
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) {
      keep(wrong(fmt::format("{} is not CLASS=(STRATEGY), such as mlp=(tp,ddp)", quote(part))).value());
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
      } else if (!given.emplace(layer_class, *strategy).second) {
        keep(wrong(fmt::format("{} has two strategies", name_of(layer_class))).value());
      }
    }
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return given;
}

}  // namespace orrery::madmax
