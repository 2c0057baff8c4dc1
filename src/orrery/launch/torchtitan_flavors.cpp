#include "orrery/launch/torchtitan_flavors.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/launch/facts.hpp"

namespace orrery::launch {

namespace {

using workload::Model;

Model like_llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t ffn) {
  Model model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.ffn = ffn;
  model.gated_mlp = true;
  model.norm = workload::Normalisation::rmsnorm;
  model.norm_eps = 1e-5;
  model.activation = workload::Activation::silu;
  model.position = workload::Position::rotary;
  return model;
}

// pytorch/torchtitan torchtitan/models/llama3/__init__.py and model/args.py@081cd35c8b: every flavor has the scaling of
// Llama 3.1.
Model llama3(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t ffn) {
  Model model = like_llama(layers, hidden, heads, ffn);
  model.kv_heads = 8;
  model.vocab = 128'256;
  model.rope.base = 500'000.0;
  model.rope.scaling = workload::RopeScaling::llama3;
  model.rope.factor = 8.0;
  model.rope.low_freq = 1.0;
  model.rope.high_freq = 4.0;
  model.rope.original_seq = 8'192;
  return model;
}

// torchtitan/models/deepseek_v3/__init__.py and model/args.py@081cd35c8b; without node-limited routing.
Model deepseek_v3() {
  Model model = like_llama(61, 7'168, 128, 18'432);
  model.vocab = 129'280;
  model.latent = {1'536, 512, 128, 64, 128};
  model.experts.count = 256;
  model.experts.active = 8;
  model.experts.ffn = 2'048;
  model.experts.shared_ffn = 2'048;
  model.experts.first_dense = 3;
  model.experts.score = workload::RouterScore::sigmoid;
  model.experts.score_scale = 2.5;
  model.experts.balance_bias = true;
  model.rope.base = 10'000.0;
  model.rope.scaling = workload::RopeScaling::yarn;
  model.rope.factor = 40.0;
  model.rope.original_seq = 4'096;
  model.rope.beta_fast = 32.0;
  model.rope.beta_slow = 1.0;
  model.rope.mscale = 1.0;
  return model;
}

bool same_sizes(const Model& a, const Model& b) {
  const auto& x = a.experts;
  const auto& y = b.experts;
  return a.layers == b.layers && a.hidden == b.hidden && a.heads == b.heads && a.kv_heads == b.kv_heads &&
         a.head_dim == b.head_dim && a.ffn == b.ffn && a.vocab == b.vocab && a.gated_mlp == b.gated_mlp &&
         a.latent == b.latent && x.count == y.count && x.active == y.active && x.ffn == y.ffn &&
         x.shared_ffn == y.shared_ffn && x.first_dense == y.first_dense;
}

}  // namespace

std::optional<Flavor> flavor_of(const TrainingRun& run) {
  const std::array<Flavor, 4> flavors{{{"llama3", "8B", llama3(32, 4'096, 32, 14'336)},
                                       {"llama3", "70B", llama3(80, 8'192, 64, 28'672)},
                                       {"llama3", "405B", llama3(126, 16'384, 128, 53'248)},
                                       {"deepseek_v3", "671B", deepseek_v3()}}};
  for (Flavor flavor : flavors) {
    flavor.model.max_seq = run.job.seq;  // seq_len sets it
    flavor.model = workload::completed(flavor.model);
    if (same_sizes(flavor.model, run.model)) { return flavor; }
  }
  return std::nullopt;
}

void compare_with_flavor(const TrainingRun& run, const Flavor& flavor, Sheet& sheet) {
  const auto own = described(run.model), built = described(flavor.model);
  const auto in = [](const std::vector<Fact>& facts, const std::string& field) {
    return std::find_if(facts.begin(), facts.end(), [&](const Fact& fact) { return fact.field == field; });
  };
  std::string differences;
  const auto differs = [&](const std::string& field, std::string_view described, std::string_view launched) {
    differences += fmt::format("{}{} {} (launched: {})", differences.empty() ? "" : ", ", field, described, launched);
    sheet.notes_field(field);
  };
  for (const auto& fact : own) {
    const auto other = in(built, fact.field);
    if (sheet.has_note_on(fact.field) || (other != built.end() && other->value == fact.value)) { continue; }
    differs(fact.field, fact.value, other == built.end() ? "none" : other->value);
  }
  for (const auto& fact : built) {
    if (in(own, fact.field) == own.end()) { differs(fact.field, "not described", fact.value); }
  }
  if (!differences.empty()) {
    sheet.note("--model " + run.model.name, fmt::format("the flavor {} differs in {}", flavor.flavor, differences));
  }
}

}  // namespace orrery::launch
