// Prices of iterations for tests: affine, with times chosen by hand.
#pragma once

#include <limits>

#include "orrery/serving/fleet.hpp"

namespace orrery::serving {

class AffinePrice final : public StepPrice {
 public:
  Ticks step = ticks_of(Seconds(10e-3));  // of any iteration
  Ticks decode_token = ticks_of(Seconds(20e-6));
  Ticks prompt_token = ticks_of(Seconds(100e-6));
  Ticks context_token = ticks_of(Seconds(0.1e-6));
  std::int64_t line = std::numeric_limits<std::int64_t>::max();  // contexts of a line at most: multiples of it

  DecodeLine decode(std::int64_t sequences, std::int64_t contexts) override {
    const std::int64_t last = line == std::numeric_limits<std::int64_t>::max() ? line : (contexts / line + 1) * line;
    return {step + sequences * decode_token + contexts * context_token, context_token, last};
  }
  Ticks mixed(const MixedStep& mixed) override {
    Ticks time = step + mixed.decodes * decode_token + mixed.contexts * context_token;
    for (const Chunk& chunk : mixed.chunks) { time += chunk.tokens * prompt_token; }
    return time;
  }
};

struct TestFleet {
  EngineSettings settings;
  EngineShape shape;
  AffinePrice price;
  FleetOptions options;
  std::int64_t replicas = 1;
  AutoscaleOptions autoscale;

  TestFleet() { shape.blocks = 1 << 20; }
  FleetRun run(Workload& load) {
    auto run = run_fleet(load, {Pool{&settings, shape, &price, replicas, autoscale}}, options);
    ORRERY_ASSERT(run.has_value());
    return std::move(*run);
  }
};

}  // namespace orrery::serving
