// Hand-made results for the tests of the room: round figures, no formula behind them.
#pragma once

#include "orrery/results/estimate.hpp"
#include "orrery/results/plan.hpp"
#include "orrery/results/validation.hpp"

namespace orrery::report::samples {

// tp 8, pp 8, dp 16 with 48 micro-batches of 2.
inline results::PlanSummary plan() {
  const auto number = [](std::int64_t value) { return value; };
  results::PlanSummary plan;
  plan.values = {{"tp", number(8)},
                 {"cp", number(1)},
                 {"pp", number(8)},
                 {"ep", number(1)},
                 {"etp", number(1)},
                 {"dp", number(16)},
                 {"vpp", number(1)},
                 {"micro_batch", number(2)},
                 {"zero", number(1)},
                 {"recompute", "selective"},
                 {"schedule", "1f1b"},
                 {"sequence_parallel", true},
                 {"tp_overlap", "none"},
                 {"cp_method", "ring"},
                 {"dp_overlap", true},
                 {"shard", number(0)},
                 {"offload", ""},
                 {"placement", ""},
                 {"micro_batches", number(48), false, true}};
  return plan;
}

inline results::Estimate estimate() {
  results::Estimate sample;
  sample.model = "tiny";
  sample.cluster = "box";
  sample.stack = "ideal";
  sample.precision = "bf16";
  sample.global_batch = 1536;
  sample.seq = 2048;
  sample.devices = 1024;
  sample.step_time = Seconds(2.0);
  sample.samples_per_s = 768.0;
  sample.tokens_per_s = 768.0 * 2048.0;
  sample.model_flops = Flops(4e17);
  sample.hardware_flops = Flops(5e17);
  sample.peak = FlopsPerSecond(400e12);
  sample.mfu = 0.48828125;
  sample.hfu = 0.6103515625;
  sample.causal_half = true;
  sample.breakdown.compute = Seconds(1.0);
  sample.breakdown.recompute = Seconds(0.25);
  sample.breakdown.exposed_comm = Seconds(0.25);
  sample.breakdown.bubble = Seconds(0.375);
  sample.breakdown.optimizer = Seconds(0.12);
  sample.breakdown.host = Seconds(0.005);
  sample.comm_by_group = {
      {"tp", Seconds(0.5), Seconds(0.125)}, {"dp", Seconds(0.25), Seconds(0.125)}, {"pp", Seconds(0), Seconds(0)}};
  sample.comm_total = Seconds(0.75);
  sample.comm_exposed = Seconds(0.25);
  sample.memory.weights = Bytes(1073741824.0);
  sample.memory.gradients = Bytes(2147483648.0);
  sample.memory.optimizer = Bytes(536870912.0);
  sample.memory.activations = Bytes(4294967296.0);
  sample.memory.capacity = Bytes(16.0 * 1073741824.0);
  sample.memory.stage = 3;
  sample.cost = {1.5, "rented at 2.5 USD a device and hour"};
  sample.energy = {3.25e6, "nameplate power, 10000 W a node of 8"};
  sample.task = "pretrain";
  sample.validity = "generation";
  sample.validity_note = "fast-link";
  sample.plan = plan();
  sample.not_modelled = {"weather", "stragglers"};
  return sample;
}

// A batch of requests.
inline results::Estimate served() {
  results::Estimate sample = estimate();
  sample.task = "inference";
  sample.global_batch = 32;
  results::Inference inference;
  inference.prompt = 1024;
  inference.generate = 128;
  inference.time_to_first_token = Seconds(0.25);
  inference.time_per_output_token = Seconds(0.0125);
  inference.last_token = Seconds(0.013);
  inference.output_tokens_per_s = 2048;
  inference.decode_tokens_per_s = 2500;
  inference.kv_bytes_per_token = Bytes(131072.0);
  sample.inference = inference;
  sample.memory.kv_cache = Bytes(1073741824.0);
  sample.memory.offloaded = Bytes(2147483648.0);
  sample.memory.second_tier = Bytes(4.0 * 1073741824.0);
  return sample;
}

// As with --terms.
inline results::Estimate explained() {
  results::Estimate sample = estimate();
  sample.terms = {
      {"attention.qkv", "forward", 96, Flops(1e12), Bytes(1048576.0), Seconds(0.001), "compute"},
      {"mlp.in", "forward", 96, Flops(4e12), Bytes(2097152.0), Seconds(0.004), "compute"},
      {"mlp.in", "backward", 96, Flops(8e12), Bytes(4194304.0), Seconds(0.008), "compute"},
      {"gradient.norm_sum", "finish", 1, Flops(0), Bytes(4.0), Seconds(0.00002), "all_reduce tree/LL"},
  };
  sample.classes = {{0, 1, "12", Seconds(1.5), Bytes(1073741824.0)}, {1, 7, "12", Seconds(1.25), Bytes(536870912.0)}};
  return sample;
}

inline results::PlanSearch search() {
  results::PlanSearch sample;
  sample.space = {.points = 12345,
                  .evaluated = 345,
                  .pruned = 12000,
                  .priced = 45,
                  .feasible = 45,
                  .rejected_memory = 300,
                  .rejected_network = 0};
  sample.wall_s = 0.5;
  sample.best = {estimate(), explained()};
  sample.best[1].step_time = Seconds(2.5);
  sample.not_searched = {"schedule zero-bubble, dualpipe, gpipe (--schedule)", "offload of weights (--offload)",
                         "tp-overlap (--tp-overlap)"};
  sample.explanation = {"memory is not the limit"};
  return sample;
}

// Of several numbers of devices: nothing fits, too slow, and best.
inline results::PlanSearch search_of_counts() {
  results::PlanSearch sample = search();
  sample.objective = results::Objective::cost;
  results::DeviceRow best{.devices = 1024, .feasible = true, .step_time = Seconds(2.0), .samples_per_s = 768.0};
  best.cost = estimate().cost;
  best.energy = estimate().energy;
  results::DeviceRow slow{.devices = 512, .feasible = true, .within = false, .step_time = Seconds(3.0)};
  sample.by_devices = {{}, slow, best};
  sample.by_devices[0].devices = 64;
  return sample;
}

// Of every kind of answer to what would change it.
inline results::PlanSearch search_with_changes() {
  results::PlanSearch sample = search();
  results::Flip flip;
  flip.knob = "device_memory";
  flip.name = "device memory";
  flip.searches = 9;
  flip.farthest = 1.5;
  flip.factor = 1.25;
  flip.same_until = 1.24;
  flip.value = 20.0 * 1073741824.0;
  flip.value_text = "20.0 GiB";
  flip.winner = estimate();
  results::Flip nothing = flip;
  nothing.up = false;
  nothing.factor = 0.5;
  nothing.value_text = "8.00 GiB";
  nothing.winner.reset();
  results::Flip same = flip;
  same.knob = "global_batch";
  same.name = "batch";
  same.farthest = 4;
  same.factor.reset();
  same.value_text = "6144 sequences";
  same.winner.reset();
  results::Flip none = same;
  none.up = false;
  none.farthest = 1;
  sample.what_if = {flip, nothing, same, none};
  return sample;
}

inline results::Validation validation() {
  results::Validation sample;
  sample.families = {{.kind = "training",
                      .family = "first",
                      .rows = 2,
                      .predicted = 2,
                      .skipped = 0,
                      .scored = 2,
                      .infeasible = 1,
                      .mape = 0.15,
                      .median_ape = 0.15,
                      .p90_ape = 0.2,
                      .max_ape = 0.2,
                      .bias = -0.05},
                     {.kind = "training", .family = "blank", .rows = 1, .predicted = 0, .skipped = 1}};
  sample.overall = sample.families[0];
  sample.overall.rows = 3;
  sample.overall.skipped = 1;
  sample.kinds = {sample.overall};
  sample.predictions = {{.id = "a", .family = "first", .measured_s = 10.0, .predicted_s = 11.0, .skipped_reason = ""},
                        {.id = "b",
                         .family = "first",
                         .measured_s = 5.0,
                         .predicted_s = 4.0,
                         .skipped_reason = "",
                         .taken_as = "dp 3 -> 4"},
                        {.id = "c,\"d\"",
                         .family = "blank",
                         .measured_s = {},
                         .predicted_s = {},
                         .skipped_reason = "no model is called \"x\""}};
  return sample;
}

}  // namespace orrery::report::samples
