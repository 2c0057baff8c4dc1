// Rotary positions as a description has them: without effect on cost, but part of the model that a launch trains.
#pragma once

#include <cstdint>

namespace orrery::workload {

// How the frequencies of rotary positions are changed for sequences beyond those of pre-training.
enum class RopeScaling : std::uint8_t {
  none,
  linear,    // positions divided by the factor
  llama3,    // Llama 3.1: low frequencies divided by the factor, a ramp between low_freq and high_freq
  yarn,      // arXiv:2309.00071: a ramp between beta_fast and beta_slow
  longrope,  // Phi-3: a factor per frequency
  dynamic,   // the base grows with the sequence
};

struct Rope {
  double base = 0.0;            // 0: the description does not have it
  double local_base = 0.0;      // of layers with a window; 0: base (Gemma 3)
  double fraction = 1.0;        // part of a head that is rotated (GPT-NeoX, Phi, GLM)
  std::int64_t none_every = 0;  // every n-th layer has no positions (NoPE; Llama 4); 0: every layer has them
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  std::int64_t original_seq = 0;            // positions before scaling
  double low_freq = 0.0, high_freq = 0.0;   // llama3
  double beta_fast = 0.0, beta_slow = 0.0;  // yarn
  double mscale = 0.0, mscale_all_dim = 0.0;

  friend bool operator==(const Rope&, const Rope&) = default;
};

}  // namespace orrery::workload
