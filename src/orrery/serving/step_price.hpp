// The time of one iteration of an engine.
#pragma once

#include <cstdint>
#include <span>

#include "orrery/serving/ticks.hpp"

namespace orrery::serving {

// Time of a decode iteration of b sequences, by the sum of their contexts (the new tokens included): affine from the
// sum that it was asked for up to `last`.
struct DecodeLine {
  Ticks at = 0;         // at the sum that it was asked for
  Ticks per_token = 0;  // for each further position in a cache
  std::int64_t last = 0;

  // Sum over `steps` iterations whose contexts grow by `grown` positions each.
  [[nodiscard]] Ticks of_steps(std::int64_t steps, std::int64_t grown) const {
    return steps * at + per_token * (grown * (steps * (steps - 1) / 2));
  }
};

// `tokens` of a prompt, after `context` positions that are in the cache.
struct Chunk {
  std::int64_t tokens = 0, context = 0;
};

// An iteration with parts of prompts.
struct MixedStep {
  std::span<const Chunk> chunks;
  std::int64_t decodes = 0;   // sequences with one new token each
  std::int64_t contexts = 0;  // sum of theirs, the new tokens included
  std::int64_t sampling = 0;  // sequences that get a token: decodes, and prompts that end
};

class StepPrice {
 public:
  virtual ~StepPrice() = default;
  [[nodiscard]] virtual DecodeLine decode(std::int64_t sequences, std::int64_t contexts) = 0;
  [[nodiscard]] virtual Ticks mixed(const MixedStep& step) = 0;
};

}  // namespace orrery::serving
