// What one engine keeps in the memory of its ranks.
#include <algorithm>

#include "orrery/core/integers.hpp"
#include "orrery/serving/program_price.hpp"

namespace orrery::serving {

EngineMemory ProgramPrice::memory(std::int64_t most_tokens, std::int64_t most_sequences) {
  EngineMemory memory;
  const Table& one = table(1);
  memory.kv_per_token = one.most_kept;
  memory.kv_of_stages = one.kept;
  memory.kv_without_windows = one.most_whole;
  memory.kv_in_windows = one.most_windowed;
  memory.window = one.most_windowed > Bytes(0) ? model_.sliding_window : 0;
  // Activations of prompts grow with their tokens; the head has one row for each sequence.
  constexpr std::int64_t kPrompt = 1024;
  const std::int64_t rows = per_rank(most_tokens);
  const std::int64_t divided = options_.two_batch_prompts;  // shorter iterations are not
  const std::int64_t at_once = is_two_batches(rows, divided) ? std::max((rows + 1) / 2, divided - 1) : rows;
  const std::int64_t prompt = std::min(at_once, kPrompt);
  const double prompts = real(at_once) / real(prompt);
  for (const auto& need : lower(1, prompt).memory) {
    memory.weights = max(memory.weights, need.weights);
    memory.activations = max(memory.activations, prompts * need.activations + need.buffers);
  }
  if (job_.formats.wide_absorption && model_.is_latent()) { memory.weights += absorbed_copies(); }
  if (model_.has_mixers()) {  // their steps of decode work in the states
    memory.state = state_of_a_sequence();
  } else {
    for (const auto& need : lower(std::min(rows, per_rank(most_sequences)), 1).memory) {
      memory.activations = max(memory.activations, need.activations + need.buffers);
    }
  }
  if (options_.drafts > 0) {
    // Layers of the draft model, each like one of the model's.
    const double part = 1.0 + options_.draft_layers / static_cast<double>(model_.layers);
    memory.weights *= part;
    const Bytes drafts = (part - 1.0) * memory.kv_of_stages;  // all on one stage
    memory.kv_per_token += drafts;
    memory.kv_without_windows += drafts;
    memory.kv_of_stages *= part;
  }
  return memory;
}

// Copies in 16 bits of the weights that decode steps of latent attention absorb, besides those that prompts multiply.
Bytes ProgramPrice::absorbed_copies() const {
  const auto& latent = model_.latent;
  const std::int64_t layers = ceil_div(model_.layers, plan_.pp), heads = ceil_div(model_.heads, plan_.tp);
  return hardware::element_size(hardware::Precision::bf16) *
         real(layers * heads * latent.kv_rank * (latent.nope_dim + latent.value_dim));
}

// What recurrent layers keep of a sequence, whatever its length.
Bytes ProgramPrice::state_of_a_sequence() {
  const auto cache = [&](std::int64_t prompt) {
    Bytes most;
    for (const auto& need : lower(1, prompt).memory) { most = max(most, need.kv_cache); }
    return most;
  };
  constexpr std::int64_t kShort = 64;
  const Bytes shorter = cache(kShort), longer = cache(2 * kShort);
  return max(Bytes(0), shorter - (longer - shorter));
}

}  // namespace orrery::serving
