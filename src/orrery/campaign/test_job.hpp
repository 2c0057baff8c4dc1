// A job for tests of campaigns, without an estimator behind it. Private to tests.
#pragma once

#include "orrery/campaign/setting.hpp"

namespace orrery::campaign::test {

// 16,384 devices in nodes of eight, replicas of 16 nodes, a step of 7.5 s of 16 M tokens, 405.853e9 parameters of 14
// bytes.
[[nodiscard]] inline Job large_job() {
  Job job;
  job.cluster.name = "test";
  job.cluster.devices = job.estimate.devices = 16'384;
  hardware::NetworkDimension inner, outer;
  inner.size = 8;
  outer.size = 2048;
  job.cluster.dimensions = {inner, outer};
  job.cluster.accelerator.tdp_watts = 700.0;
  job.cluster.node_power_watts = 10'200.0;
  job.estimate.model = "large";
  job.estimate.step_time = Seconds(7.5);
  job.estimate.global_batch = 2048;
  job.estimate.seq = 8192;
  job.estimate.plan.set("dp", std::int64_t{128});
  job.parameters = 405.853e9;
  job.bytes_per_parameter = 14.0;
  job.grid_g_per_kwh = 400.0;
  job.grid = "test";
  return job;
}

[[nodiscard]] inline Spec large_spec() {
  Spec spec;
  spec.tokens = "15.6T";
  return spec;
}

}  // namespace orrery::campaign::test
