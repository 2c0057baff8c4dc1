// How far a run of an engine stayed from its limits. A limit that it did not reach did not change it: with limits that
// are as far away, or farther, every iteration is the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace orrery::serving {

struct EngineLimits {
  std::int64_t sequences = 0;  // at a time, all ranks
  std::int64_t tokens = 0;     // of an iteration, all ranks
  std::int64_t chunk = 0;      // of one prompt in an iteration
  std::int64_t blocks = 0;     // of the cache, all ranks
  std::int64_t ranks = 1;      // each request must fit on one
  bool cuts_prompts = true;    // the tokens of an iteration act in no other way than by cutting prompts
  bool is_shared_out = false;  // over ranks or micro-batches, each of which computes at most `chunk` tokens
};

struct Headroom {
  std::int64_t most_sequences = 0, most_tokens = 0, largest_chunk = 0;
  std::int64_t least_free = std::numeric_limits<std::int64_t>::max();  // blocks; negative: they were short
  std::int64_t largest_request = 0;                                    // blocks

  void add(const Headroom& other) {
    most_sequences = std::max(most_sequences, other.most_sequences);
    most_tokens = std::max(most_tokens, other.most_tokens);
    largest_chunk = std::max(largest_chunk, other.largest_chunk);
    least_free = std::min(least_free, other.least_free);
    largest_request = std::max(largest_request, other.largest_request);
  }

  // Whether a run within `had` is the same within `other`.
  [[nodiscard]] bool allows(const EngineLimits& had, const EngineLimits& other) const {
    const auto is_free = [](std::int64_t reached, std::int64_t a, std::int64_t b) {
      return a == b || reached < std::min(a, b);
    };
    const bool same_tokens = had.tokens == other.tokens && had.chunk == other.chunk;
    const bool tokens =
        same_tokens || (had.cuts_prompts && other.cuts_prompts && is_free(most_tokens, had.tokens, other.tokens) &&
                        is_free(had.is_shared_out ? most_tokens : largest_chunk, had.chunk, other.chunk));
    constexpr std::int64_t kOfOneRequest = 2;  // that one alone must fit with, and need not use
    const std::int64_t fewer = had.blocks - other.blocks;
    const bool fits = largest_request <= other.blocks / other.ranks;
    const bool blocks = fewer == 0 || least_free >= (fewer > 0 ? fewer + kOfOneRequest : 0);
    return tokens && fits && blocks && is_free(most_sequences, had.sequences, other.sequences);
  }
};

}  // namespace orrery::serving
