#include "orrery/launch/layout.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/parallel/program.hpp"

namespace orrery::launch {

namespace {

bool all_equal(const std::vector<std::int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

// Layers of the virtual stages whose number is not given.
std::vector<std::int64_t> free_stages(const std::vector<std::int64_t>& layers, const parallel::Plan& plan) {
  std::vector<std::int64_t> free;
  for (std::size_t q = 0; q < layers.size(); ++q) {
    const auto stage = static_cast<std::int64_t>(q) % plan.pp;
    const bool typed =
        (plan.first_stage_layers > 0 && stage == 0) || (plan.last_stage_layers > 0 && stage == plan.pp - 1);
    if (!typed) { free.push_back(layers[q]); }
  }
  return free;
}

LayerSplit split_of(const std::vector<std::int64_t>& layers, const parallel::Plan& plan) {
  const bool typed = plan.first_stage_layers > 0 || plan.last_stage_layers > 0;
  const bool counted = plan.embedding_as_layer || plan.head_as_layer;
  if (typed) { return !counted && all_equal(free_stages(layers, plan)) ? LayerSplit::ends_set : LayerSplit::listed; }
  auto with_ends = layers;
  if (plan.embedding_as_layer) { ++with_ends.front(); }
  if (plan.head_as_layer) { ++with_ends.back(); }
  if (!all_equal(with_ends)) { return LayerSplit::listed; }
  return counted ? LayerSplit::ends_counted : LayerSplit::even;
}

// "[1]*58", "[0]".
std::string run_of(bool value, std::size_t count) {
  return count == 1 ? fmt::format("[{:d}]", value) : fmt::format("[{:d}]*{}", value, count);
}

// Runs of equal values, "[0]*3+[1]*58".
std::string runs(const std::vector<bool>& values) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end < values.size() && values[end] == values[i]) { ++end; }
    parts.push_back(run_of(values[i], end - i));
    i = end;
  }
  return fmt::format("{}", fmt::join(parts, "+"));
}

}  // namespace

Layout layout_of(const workload::Model& model, const parallel::Plan& plan) {
  Layout layout;
  layout.layers = parallel::layers_per_virtual_stage(model, plan);
  layout.split = plan.pp == 1 ? LayerSplit::one_stage : split_of(layout.layers, plan);
  return layout;
}

std::string layout_text(const Layout& layout, std::int64_t mtp_layers) {
  std::vector<std::string> stages;
  for (const std::int64_t layers : layout.layers) { stages.emplace_back(static_cast<std::size_t>(layers), 't'); }
  stages.front() = "E" + stages.front();
  stages.back() += std::string(static_cast<std::size_t>(mtp_layers), 'm') + "L";
  std::string text;
  for (std::size_t i = 0; i + 1 < stages.size();) {
    std::size_t end = i;
    while (end + 1 < stages.size() && stages[end] == stages[i]) { ++end; }
    text += end - i == 1 ? stages[i] + "|" : fmt::format("({}|)*{}", stages[i], end - i);
    i = end;
  }
  return text + stages.back();
}

std::vector<std::vector<std::string>> module_names(const Layout& layout) {
  std::vector<std::vector<std::string>> stages;
  std::int64_t layer = 0;
  for (const std::int64_t layers : layout.layers) {
    auto& names = stages.emplace_back();
    for (std::int64_t i = 0; i < layers; ++i) { names.push_back(fmt::format("layers.{}", layer++)); }
  }
  stages.front().insert(stages.front().begin(), "tok_embeddings");
  stages.back().insert(stages.back().end(), {"norm", "output"});
  return stages;
}

std::vector<bool> expert_layers(const workload::Model& model) {
  std::vector<bool> layers;
  for (std::int64_t i = 0; i < model.depth(); ++i) { layers.push_back(workload::layer_kind(model, i).experts); }
  return layers;
}

std::string expert_pattern(const std::vector<bool>& layers) {
  // After the leading dense layers the pattern may repeat: take the shortest period of whole repeats.
  const auto first = static_cast<std::size_t>(std::find(layers.begin(), layers.end(), true) - layers.begin());
  for (std::size_t lead = 0; lead <= first; ++lead) {
    const std::size_t rest = layers.size() - lead;
    for (std::size_t period = 2; period <= rest / 2; ++period) {
      if (rest % period != 0) { continue; }
      const auto repeats = [&] {
        for (std::size_t i = lead + period; i < layers.size(); ++i) {
          if (layers[i] != layers[i - period]) { return false; }
        }
        return true;
      };
      const std::vector<bool> one(layers.begin() + static_cast<std::ptrdiff_t>(lead),
                                  layers.begin() + static_cast<std::ptrdiff_t>(lead + period));
      if (std::find(one.begin(), one.end(), false) == one.end() || !repeats()) { continue; }
      const std::string repeated = fmt::format("({})*{}", runs(one), rest / period);
      return lead == 0 ? repeated : fmt::format("({}+{})", run_of(false, lead), repeated);
    }
  }
  return "(" + runs(layers) + ")";
}

std::string expert_list(const std::vector<bool>& layers) {
  std::vector<int> values(layers.begin(), layers.end());
  return fmt::format("[{}]", fmt::join(values, ","));
}

}  // namespace orrery::launch
