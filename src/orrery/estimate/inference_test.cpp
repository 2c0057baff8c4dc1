// A batch of requests, against programs written by hand and a slow simulation of lowered ones.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/inference.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::estimate::inference_test {
namespace {

using parallel::Program;
using parallel::test::SeededRandom;

struct Served {
  workload::Model model = parallel::test::llama(8, 1024, 16, 4, 4096, 32000);
  parallel::Job job;
  parallel::Plan plan;
  hardware::Cluster cluster;
  hardware::Stack stack;

  Served(std::int64_t batch, std::int64_t prompt, std::int64_t generate) {
    job.task = parallel::Task::inference;
    job.global_batch = batch;
    job.prompt = prompt;
    job.generate = generate;
    job.seq = prompt + generate - 1;
    plan.micro_batch = batch;
    cluster = parallel::test::cluster_of({8});
  }
  void spread(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t micro_batch) {
    plan.tp = tp;
    plan.pp = pp;
    plan.dp = dp;
    plan.micro_batch = micro_batch;
    cluster = parallel::test::cluster_of({plan.devices()});
  }
  [[nodiscard]] Program program() const { return parallel::lower(model, job, plan, cluster, stack); }
  [[nodiscard]] Generation solved() const {
    const network::Fabric fabric(cluster);
    return solve_inference(program(), fabric);
  }
};

Seconds forward(const std::vector<workload::Operator>& operators, const hardware::Accelerator& accelerator) {
  Seconds sum;
  for (const auto& op : operators) { sum += cost::kernel_cost(op.forward, accelerator).time; }
  return sum;
}

// One device, no pipeline: every token takes the sum of its kernels, lowered again for the current cache length.
TEST(Inference, one_device_takes_the_sum_of_its_kernels_token_by_token) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SeededRandom random(seed);
    Served s(random(1, 9), random(1, 700), random(1, 60));
    s.spread(1, 1, 1, s.job.global_batch);
    const auto& gpu = s.cluster.accelerator;
    const auto layers = static_cast<double>(s.model.layers);
    const auto pass = [&](const workload::Slice& slice) {
      return forward(workload::embedding_operators(s.model, s.stack, slice), gpu) +
             layers * forward(workload::layer_operators(s.model, s.stack, slice), gpu) +
             forward(workload::head_operators(s.model, s.stack, slice), gpu);
    };
    const Seconds prefill = pass(parallel::slice_of(s.job, s.plan, workload::Pass::prefill));
    Seconds decode;
    for (std::int64_t token = 1; token < s.job.generate; ++token) {
      auto slice = parallel::slice_of(s.job, s.plan, workload::Pass::decode);
      slice.context = s.job.prompt + token;
      decode += pass(slice);
    }
    const Generation generation = s.solved();
    EXPECT_NEAR(generation.prefill.value(), prefill.value(), 1e-12 + 1e-9 * prefill.value()) << "seed " << seed;
    EXPECT_NEAR(generation.decode.value(), decode.value(), 1e-12 + 1e-9 * decode.value()) << "seed " << seed;
  }
}

TEST(Inference, a_longer_prompt_or_a_larger_batch_never_takes_less) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SeededRandom random(seed);
    const std::int64_t batch = 4 * random(1, 8), prompt = random(1, 1500), generate = random(2, 40);
    Served s(batch, prompt, generate), longer(batch, prompt + random(1, 500), generate),
        more(2 * batch, prompt, generate);
    for (Served* one : {&s, &longer, &more}) { one->spread(2, 2, 1, one->job.global_batch / 2); }
    const Generation usual = s.solved();
    EXPECT_GE(longer.solved().prefill, usual.prefill);
    EXPECT_GE(longer.solved().decode, usual.decode);
    EXPECT_GE(more.solved().total(), usual.total());
    EXPECT_GE(usual.decode / static_cast<double>(generate - 1), usual.last_token * 0.5);
  }
}

// The scan of a prompt that is shorter than a chunk has one block, whose start does not depend on the prompt.
TEST(Inference, a_longer_prompt_of_recurrent_layers_never_takes_less) {
  Seconds before;
  for (std::int64_t prompt = 1; prompt <= 2048; prompt *= 2) {
    Served s(1, prompt, 2);
    auto& mixer = s.model.mixer;
    mixer.kind = workload::MixerKind::mamba2;
    mixer.heads = 16;
    mixer.groups = 2;
    mixer.state = 128;
    mixer.head_dim = 64;
    mixer.chunk = 256;
    mixer.attention_every = 4;
    s.spread(2, 1, 1, 1);
    const Seconds prefill = s.solved().prefill;
    EXPECT_GE(prefill, before) << prompt;
    before = prefill;
  }
}

// A stage waits for its previous micro-batch and for the previous stage; simulated token by token.
TEST(Inference, the_pipeline_follows_its_recurrence) {
  for (const std::int64_t pp : {1, 2, 4, 8}) {
    for (const std::int64_t cuts : {1, 2, 4, 8}) {
      Served s(8, 256, 12);
      s.spread(1, pp, 1, 8 / cuts);
      const Program program = s.program();
      const network::Fabric fabric(s.cluster);
      const auto stages = static_cast<std::size_t>(pp);
      const auto block = [&](const parallel::Segment& segment, std::int64_t grown) {
        Seconds sum;
        for (const auto& use : segment) {
          for (const auto& item : program.block(use.work).items) {
            const auto* collective = item.collective();
            sum += static_cast<double>(use.repeat) * (collective != nullptr
                                                          ? price_call(collective->call, fabric, program.mesh)
                                                          : price_kernel(*item.kernel(), fabric, grown));
          }
        }
        return sum;
      };
      const auto chunk = [&](std::size_t stage) -> const parallel::ChunkProgram& {
        return program.program_of(program.class_of(static_cast<std::int64_t>(stage)).chunks[0]);
      };
      const auto hop = [&](std::size_t stage, Bytes bytes) {
        return pp == 1 ? Seconds() : fabric.transfer(bytes, program.mesh.transfer_dimension[stage]);
      };
      std::vector<std::vector<Seconds>> end(static_cast<std::size_t>(cuts), std::vector<Seconds>(stages));
      Seconds latest;
      for (std::size_t j = 0; j < end.size(); ++j) {
        for (std::size_t i = 0; i < stages; ++i) {
          Seconds start = i > 0 ? end[j][i - 1] + hop(i - 1, program.transfer_bytes) : Seconds();
          if (j > 0) { start = max(start, end[j - 1][i]); }
          end[j][i] = start + block(chunk(i).forward, 0);
          latest = max(latest, end[j][i]);
        }
      }
      const Generation generation = s.solved();
      EXPECT_NEAR(generation.prefill.value(), latest.value(), 1e-9 * latest.value());
      const Seconds started = latest;
      std::vector<Seconds> left, busy_until(stages);  // a micro-batch decodes when its own prefill has ended
      for (const auto& ends : end) { left.push_back(ends.back()); }
      if (pp == 1) { left = {left.back()}; }  // all sequences together
      for (std::size_t i = 0; i < stages; ++i) { busy_until[i] = end.back()[i]; }
      const Seconds back = hop(stages - 1, Bytes(8.0 * static_cast<double>(s.plan.micro_batch)));
      for (std::int64_t token = 1; token < s.job.generate; ++token) {
        for (std::size_t j = 0; j < left.size(); ++j) {
          Seconds at = left[j] + back;
          for (std::size_t i = 0; i < stages; ++i) {
            if (i > 0) { at += hop(i - 1, program.transfer_bytes / static_cast<double>(s.job.prompt)); }
            at = max(at, busy_until[i]) + block(chunk(i).decode, token - 1);
            busy_until[i] = at;
          }
          left[j] = at;
        }
      }
      const Seconds decode = *std::max_element(left.begin(), left.end()) - started;
      EXPECT_NEAR(generation.decode.value(), decode.value(), 1e-9 * decode.value()) << pp << " " << cuts;
    }
  }
}

// Prompts are read in parts, and the weights once for every generated token.
TEST(Inference, without_stages_decode_does_not_depend_on_how_prompts_are_split) {
  const auto with_micro_batch = [](std::int64_t micro_batch) {
    Served s(8, 256, 12);
    s.spread(2, 1, 1, micro_batch);
    return s;
  };
  const Served whole = with_micro_batch(8);
  for (const std::int64_t micro_batch : {1, 2, 4}) {
    const Served split = with_micro_batch(micro_batch);
    const double decode = whole.solved().decode.value();
    EXPECT_NEAR(split.solved().decode.value(), decode, 1e-12 * decode);
    EXPECT_GT(split.solved().prefill, whole.solved().prefill);
    EXPECT_LT(split.program().memory[0].activations, whole.program().memory[0].activations);
  }
}

TEST(Inference, reported_figures_are_consistent) {
  Served s(16, 512, 64);
  s.spread(2, 2, 2, 4);
  Estimator estimator(s.model, s.cluster, s.stack, s.job);
  const auto e = estimator.estimate(s.plan, {.terms = true});
  ASSERT_TRUE(e.inference);
  EXPECT_NEAR(e.breakdown.total().value(), e.step_time.value(), 1e-12);
  EXPECT_NEAR((e.inference->time_to_first_token + 63.0 * e.inference->time_per_output_token).value(),
              e.step_time.value(), 1e-12);
  EXPECT_NEAR(e.inference->output_tokens_per_s, 16.0 * 64.0 / e.step_time.value(), 1e-6);
  EXPECT_EQ(e.inference->kv_bytes_per_token, Bytes(2.0 * 8 * 2 * 256));  // 8 layers, keys and values of 4 heads of 64
  // 8 sequences per replica, 575 positions, half of the layers and of the heads.
  EXPECT_EQ(e.memory.kv_cache, Bytes(8.0 * 575.0 * 2.0 * 4 * 2 * 128));
  EXPECT_EQ(e.step_time, estimator.step_time(s.plan));
  EXPECT_FALSE(e.terms.empty());
}

TEST(Inference, a_single_token_is_a_prefill) {
  Served s(4, 128, 1);
  s.spread(1, 1, 1, 4);
  const Generation generation = s.solved();
  EXPECT_EQ(generation.decode, Seconds());
  EXPECT_EQ(generation.total(), generation.prefill);
}

}  // namespace
}  // namespace orrery::estimate::inference_test
