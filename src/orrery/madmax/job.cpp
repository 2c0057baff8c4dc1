#include "orrery/madmax/job.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <system_error>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/madmax/text_parts.hpp"

namespace orrery::madmax {

namespace {

constexpr std::int64_t kLargestBatch = 1'000'000'000;

struct Freezable {
  std::string_view name;
  bool tables = false;
  std::vector<Part> parts = {};
};

const std::vector<Freezable>& freezable() {
  static const std::vector<Freezable> all = {
      {"emb", true, {}},
      {"bottom", false, {Part::bottom}},
      {"top", false, {Part::top}},
      {"mlp", false, {Part::bottom, Part::top}},
      {"attention", false, {Part::attention}},
      {"fc", false, {Part::fc}},
      {"transformer", false, {Part::attention, Part::fc}},
  };
  return all;
}

bool has_part(const SampleWork& work, Part part) {
  return std::any_of(work.layers.begin(), work.layers.end(), [&](const Layer& layer) { return layer.part == part; });
}

bool has(const SampleWork& work, const Freezable& one) { return one.tables || has_part(work, one.parts.front()); }

std::string freezable_names(const SampleWork& work) {
  std::vector<std::string> names;
  for (const auto& one : freezable()) {
    if (has(work, one)) { names.emplace_back(one.name); }
  }
  return join(names, ", ");
}

}  // namespace

Result<Frozen> frozen_from(std::string_view text, const SampleWork& work) {
  const Place place{"", 0, 0, "--freeze"};
  Frozen frozen;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(','), rest.size());
    const auto name = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const auto found =
        std::find_if(freezable().begin(), freezable().end(), [&](const Freezable& one) { return one.name == name; });
    if (found == freezable().end() || !has(work, *found)) {
      return fail(place,
                  fmt::format("{} has no {} to freeze; valid: {}", work.model, quote(name), freezable_names(work)));
    }
    frozen.tables = frozen.tables || found->tables;
    for (const Part part : found->parts) { frozen.parts[static_cast<std::size_t>(part)] = true; }
  }
  const bool all = frozen.tables && std::all_of(work.layers.begin(), work.layers.end(), [&](const Layer& layer) {
                     return frozen.parts[static_cast<std::size_t>(layer.part)];
                   });
  if (all) { return fail(place, "freezes all layers: nothing is left to train"); }
  return frozen;
}

std::string text_of(const Frozen& frozen, const SampleWork& work) {
  std::vector<std::string> names;
  if (frozen.tables) { names.emplace_back("emb"); }
  for (const auto& one : freezable()) {
    if (one.parts.size() != 1 || !has(work, one)) { continue; }
    if (frozen.parts[static_cast<std::size_t>(one.parts.front())]) { names.emplace_back(one.name); }
  }
  return join(names, ",");
}

Result<LocalBatches> local_batches_from(std::string_view text, const SampleWork& work) {
  constexpr const char* kFlag = "--local-batch";
  LocalBatches batches;
  for (const auto one : parts_of(text, ';')) {
    if (one.empty()) { continue; }
    const auto equals = std::min(one.find('='), one.size());
    const auto number = trimmed(one.substr(std::min(equals + 1, one.size())));
    std::int64_t samples = 0;
    const auto [stopped, error] = std::from_chars(number.data(), number.data() + number.size(), samples);
    const bool is_count =
        error == std::errc{} && stopped == number.data() + number.size() && samples >= 1 && samples <= kLargestBatch;
    if (!is_count) {
      return fail(Place{"", 0, 0, kFlag}, fmt::format("{} is not CLASS=SAMPLES, such as mlp=512", quote(one)));
    }
    ORRERY_TRY(classes, classes_named(trimmed(one.substr(0, equals)), work, kFlag));
    for (const auto layer_class : classes) {
      if (!batches.emplace(layer_class, samples).second) {
        return fail(Place{"", 0, 0, kFlag}, fmt::format("{} is given twice", name_of(layer_class)));
      }
    }
  }
  return batches;
}

namespace {

// The smallest batch that divides by the copies of every class.
std::int64_t smallest_batch(const Strategies& strategies, const SampleWork& work, const System& system) {
  std::int64_t batch = 1;
  for (const auto layer_class : work.classes()) { batch = std::lcm(batch, copies(strategies[layer_class], system)); }
  return batch;
}

std::string product_text(LayerClass layer_class, std::int64_t samples, std::int64_t copies_of_class) {
  return fmt::format("{}: {} x {} copies = {}", name_of(layer_class), samples, copies_of_class,
                     samples * copies_of_class);
}

}  // namespace

Result<std::int64_t> global_batch_of(std::optional<std::int64_t> given, const LocalBatches& local,
                                     const Strategies& strategies, const SampleWork& work, const System& system) {
  if (!given && local.empty()) {
    return fail(Place{"", 0, 0, "--global-batch"},
                "is missing: samples per iteration over all devices, such as 65536; or give --local-batch \"mlp=512\"");
  }
  std::optional<std::int64_t> batch = given;
  std::string first = fmt::format("--global-batch {}", given.value_or(0));
  for (const auto& [layer_class, samples] : local) {
    const auto count = copies(strategies[layer_class], system);
    if (batch && *batch != samples * count) {
      return fail(Place{"", 0, 0, "--local-batch"},
                  fmt::format("{}, but {}; all classes must process the same global batch",
                              product_text(layer_class, samples, count), first));
    }
    if (!batch) { first = product_text(layer_class, samples, count); }
    batch = samples * count;
  }
  for (const auto layer_class : work.classes()) {
    const auto count = copies(strategies[layer_class], system);
    if (*batch % count == 0) { continue; }
    return fail(
        Place{"", 0, 0, given ? "--global-batch" : "--local-batch"},
        fmt::format("{} samples do not divide by the {} copies of {}={}; valid: multiples of {}", *batch, count,
                    name_of(layer_class), text_of(strategies[layer_class]), smallest_batch(strategies, work, system)));
  }
  return *batch;
}

bool divides(std::int64_t global_batch, const Strategies& strategies, const SampleWork& work, const System& system) {
  const auto classes = work.classes();
  return std::all_of(classes.begin(), classes.end(), [&](LayerClass layer_class) {
    return global_batch % copies(strategies[layer_class], system) == 0;
  });
}

}  // namespace orrery::madmax
