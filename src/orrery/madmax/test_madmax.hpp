// For tests of the room: catalogue entries, and a machine and layers with round numbers for calculations by hand.
#pragma once

#include <cstdint>
#include <string>

#include "orrery/madmax/answer.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::madmax {

inline SampleWork catalogue_work(const std::string& name, std::int64_t seq = 0) {
  return work_of(workload::load_model(ORRERY_DATA_DIR, "madmax/" + name).value(), hardware::Precision::bf16, seq)
      .value();
}

inline System catalogue_system(const std::string& name, std::int64_t devices = 0) {
  return load_system(ORRERY_DATA_DIR, "madmax/" + name, devices).value();
}

inline Strategies strategies(const std::string& text, const SampleWork& work, const System& system) {
  return completed(strategies_from(text, work, system).value(), work);
}

inline results::MadMaxEstimate estimate_of(const SampleWork& work, const System& system, const std::string& text,
                                           const RunSettings& job, bool with_events = false) {
  Evaluator evaluator(work, system, job);
  return estimate(evaluator, strategies(text, work, system), with_events);
}

// Two nodes of two: 1 TFLOP/s, 1 GB/s of memory, 10 GB/s inside a node, 2 GB/s a device between nodes. An all-reduce
// between nodes runs at 0.75 x 2 + 0.25 x 10 = 4 GB/s; gathers at 20 and 8 GB/s.
inline System round_system() {
  System system;
  system.name = "round";
  system.devices = 4;
  system.devices_per_node = 2;
  system.peak = {FlopsPerSecond(1e12), FlopsPerSecond(1e12), FlopsPerSecond(1e12), FlopsPerSecond(1e12)};
  system.memory = Bytes(1e9);
  system.memory_bandwidth = BytesPerSecond(1e9);
  system.scale_up = {1, BytesPerSecond(20e9), 1.0};
  system.scale_out = {2, BytesPerSecond(4e9), 1.0};
  system.all_reduce_blend = 0.25;
  return system;
}

// One layer of a transformer with two bytes per element. Each half has 4 GFLOP per sample in forward, 2 M weights and 5
// M activations; a sample looks up 1 MB.
inline SampleWork round_transformer(double experts = 1.0) {
  SampleWork work;
  work.model = "round";
  work.seq = 8;
  work.dense_bytes = work.table_bytes = 2;
  work.looked_up_bytes = 1e6;
  work.table_parameters = 1e6;
  work.shapes = {{LayerClass::attention, 2e6, 4e9, 5e6, 1.0},
                 {experts > 1.0 ? LayerClass::moe : LayerClass::fc, 2e6, 4e9, 5e6, experts}};
  work.layers = {{Part::attention, 0, 0}, {Part::fc, 0, 1}};
  return work;
}

inline double milliseconds(Seconds time) { return time.value() * 1e3; }

}  // namespace orrery::madmax
