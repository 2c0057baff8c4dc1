// Random text as the values of an axis, evaluated with values that overflow and divide by zero.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/explore/space_file.hpp"

namespace {

using namespace orrery::explore;

Vocabulary vocabulary() {
  Vocabulary words;
  words.devices = slot_of(Fact::devices);
  for (std::size_t i = 0; i < kFacts; ++i) {
    const auto fact = static_cast<Fact>(i);
    words.words.push_back({std::string(fact_name(fact)), slot_of(fact), &integers(), ""});
  }
  for (std::size_t i = 0; i < kAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    words.words.push_back({std::string(axis_name(axis)), slot_of(axis), &kind_of(axis), ""});
    words.kinds.push_back(&kind_of(axis));
  }
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Vocabulary words = vocabulary();
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto* kind : {&integers(), &booleans(), &kind_of(Axis::recompute)}) {
    const auto axis = parse_values(orrery::config::plain_node(text, {"axis", 1, 1, ""}), *kind, words);
    if (!axis) { continue; }
    for (const std::int64_t value : {std::int64_t{0}, std::int64_t{12}, std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()}) {
      Slots slots{};
      slots.fill(value);
      for (const ValueSet& set : axis->sets) {
        EvaluationError error;
        std::vector<std::int64_t> out;
        append_values(set, slots, words.devices, out, error);
        if (!set.where.is_empty()) { static_cast<void>(set.where.value(slots, error)); }
      }
    }
  }
  return 0;
}
