// What the description of a model says, as fields and values; what a launch does not say of it becomes a note.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/launch/sheet.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::launch {

struct Fact {
  std::string field;  // of the description: "layers", "rope.base"
  std::string value;

  friend bool operator==(const Fact&, const Fact&) = default;
};

// Every field of a complete model with another value than the default of a description, in the order of a description.
// Without its name, sources, the parts that launchers refuse (encoder, vision, recommender), and what follows from
// another field: kv_heads and head_dim of latent attention, position_rows equal to max_seq.
[[nodiscard]] std::vector<Fact> described(const workload::Model& model);

// "rope.base 500000, norm_eps 1e-05".
[[nodiscard]] std::string text_of(const std::vector<Fact>& facts);

// Adds one note with the facts that neither a setting nor a note of the sheet states. `why`: "Megatron-LM has no option
// for".
void note_unsaid(const TrainingRun& run, std::string_view why, Sheet& sheet);

// Adds a note with what the description leaves open and `tool` needs: the base of rotary positions, the epsilon of
// norms; the tool's defaults for them.
struct ToolDefaults {
  std::string_view tool;
  std::string_view rope_base, norm_eps;
};
void note_defaults(const TrainingRun& run, const ToolDefaults& defaults, Sheet& sheet);

}  // namespace orrery::launch
