// Formats of weights, of the KV cache and of attention: laws of memory and time with the shipped catalogue.
#include <array>

#include <gtest/gtest.h>

#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::estimate::formats_test {
namespace {

using hardware::CacheFormat;
using hardware::StorageFormat;

// From the widest to the narrowest.
constexpr std::array kWeights = {StorageFormat::bf16, StorageFormat::fp8, StorageFormat::fp4, StorageFormat::nf4,
                                 StorageFormat::int4};
constexpr std::array kCaches = {CacheFormat::bf16, CacheFormat::int8, CacheFormat::fp8, CacheFormat::int4};

// Eight sequences, or the sequences of one training step, on `devices` with tp only.
struct Work {
  workload::Model model;
  hardware::Cluster cluster;
  hardware::Stack stack;
  parallel::Job job;
  parallel::Plan plan;

  Work(const char* model_name, const char* cluster_name, std::int64_t devices) {
    const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
    model = workload::load_model(ORRERY_DATA_DIR, model_name).value();
    cluster = catalogue.cluster(cluster_name, devices).value();
    stack = catalogue.stack("ideal").value();
    plan.tp = devices;
  }
  Work& serves(std::int64_t prompt, std::int64_t generate) {
    job.task = parallel::Task::inference;
    job.prompt = prompt;
    job.generate = generate;
    job.seq = prompt + generate - 1;
    plan.micro_batch = job.global_batch = 8;
    return *this;
  }
  Work& adapts(std::int64_t rank, std::int64_t seq) {
    job.task = parallel::Task::finetune;
    job.adapter.rank = rank;
    job.global_batch = plan.micro_batch = 1;
    job.seq = seq;
    return *this;
  }
  [[nodiscard]] results::Estimate estimate() const { return Estimator(model, cluster, stack, job).estimate(plan); }
};

double gib(Bytes bytes) { return bytes.value() / (1024.0 * 1024.0 * 1024.0); }

// Layers 68.5 G weights of 4.127 bits, embedding and head 2 x 128,256 x 8,192 of 16 bits: 32.9 + 3.9 GiB. The factors
// of rank 8 have 16 MiB.
TEST(Formats, qlora_of_llama_3_70b_holds_its_weights_in_37_gib_and_fits_one_gpu) {
  Work work = Work("llama-3.1-70b", "dgx-a100", 1).adapts(8, 1024);
  work.job.formats.weights = StorageFormat::nf4;
  work.plan.recompute = parallel::Recompute::full;
  const auto e = work.estimate();
  EXPECT_GT(gib(e.memory.weights), 35.0);
  EXPECT_LT(gib(e.memory.weights), 37.0);
  EXPECT_TRUE(e.feasible) << e.infeasible_reason;
  // The copy of the largest matrix, gate and up projection of 8,192 x 57,344, in 16 bits.
  EXPECT_GE(e.memory.buffers, Bytes(2.0 * 8192 * 57344));
  work.job.formats.weights.reset();
  EXPECT_FALSE(work.estimate().feasible);
}

// Whatever is not a layer's weights takes the same bytes in every format of at most 16 bits.
TEST(Formats, memory_of_weights_scales_with_the_bits_of_the_format) {
  Work work = Work("llama-3.1-8b", "dgx-h100", 1).serves(128, 8);
  const auto layers = static_cast<double>(workload::parameter_count(work.model).layers);
  work.job.formats.weights = StorageFormat::bf16;
  const Bytes wide = work.estimate().memory.weights;
  for (const auto format : kWeights) {
    work.job.formats.weights = format;
    const double saved = (wide - work.estimate().memory.weights).value();
    EXPECT_NEAR(saved, layers * (2.0 - hardware::element_size(format).value()), 1e-4 * layers)
        << hardware::name_of(format);
  }
}

TEST(Formats, the_default_is_the_format_of_gemm_inputs) {
  Work work = Work("llama-3.1-8b", "dgx-h100", 1).serves(512, 16);
  const auto usual = work.estimate();
  work.job.formats.weights = StorageFormat::bf16;
  work.job.formats.cache = CacheFormat::bf16;
  work.job.formats.attention = hardware::Precision::bf16;
  const auto stated = work.estimate();
  EXPECT_EQ(usual.step_time, stated.step_time);
  EXPECT_EQ(usual.memory.total(), stated.memory.total());
}

// Every token reads all weights and the cache.
void expect_above_bandwidth(const results::Estimate& e, const Work& work) {
  const auto& chip = work.cluster.accelerator;
  const auto embedding = static_cast<double>(workload::parameter_count(work.model).embedding) * 2.0;
  const Bytes read = e.memory.weights - Bytes(embedding) / static_cast<double>(work.plan.tp);
  EXPECT_GE(e.inference->time_per_output_token, read / chip.memory_bandwidth);
}

TEST(Formats, decode_never_gets_slower_with_narrower_weights_and_is_never_faster_than_memory) {
  for (const char* name : {"dgx-a100", "dgx-h100"}) {
    for (const std::int64_t devices : {1, 4}) {
      Work work = Work("llama-3.1-8b", name, devices).serves(1024, 32);
      Seconds before = infinite<Seconds>();
      for (const auto format : kWeights) {
        work.job.formats.weights = format;
        const auto e = work.estimate();
        EXPECT_LE(e.inference->time_per_output_token, before) << hardware::name_of(format);
        before = e.inference->time_per_output_token;
        expect_above_bandwidth(e, work);
      }
    }
  }
}

TEST(Formats, a_narrower_cache_takes_less_memory_and_never_more_time) {
  for (const char* model : {"llama-3.1-8b", "deepseek-v2-lite", "gpt-oss-20b"}) {
    Work work = Work(model, "dgx-a100", 1).serves(4096, 32);
    Seconds before = infinite<Seconds>();
    Bytes cache = infinite<Bytes>();
    for (const auto format : kCaches) {
      work.job.formats.cache = format;
      const auto e = work.estimate();
      EXPECT_LT(e.memory.kv_cache, cache) << model;
      EXPECT_LT(e.inference->time_per_output_token, before) << model;
      EXPECT_EQ(e.inference->time_to_first_token, work.estimate().inference->time_to_first_token);
      before = e.inference->time_per_output_token;
      cache = e.memory.kv_cache;
    }
  }
}

TEST(Formats, fp8_attention_saves_less_than_half_of_attention_and_changes_no_memory) {
  Work work = Work("llama-3.1-8b", "dgx-h100", 8);
  work.plan.sequence_parallel = true;
  work.job.global_batch = work.plan.micro_batch = 1;
  work.job.seq = 32768;
  const auto usual = work.estimate();
  work.job.formats.attention = hardware::Precision::fp8;
  const auto narrow = work.estimate();
  EXPECT_LT(narrow.step_time, usual.step_time);
  EXPECT_GT(narrow.step_time, 0.5 * usual.step_time);
  EXPECT_EQ(narrow.memory.total(), usual.memory.total());
}

// A pass over each tensor, or scales per block that the GEMMs load and apply: never faster than delayed scaling, and
// the same memory.
TEST(Formats, scales_of_the_tensor_or_of_blocks_cost_time) {
  Work work = Work("llama-3.1-8b", "dgx-h100", 8);
  work.plan.sequence_parallel = true;
  work.job.global_batch = 8;
  work.job.seq = 4096;
  work.job.precision = hardware::Precision::fp8;
  const auto delayed = work.estimate();
  for (const auto recipe : {hardware::Fp8Recipe::current, hardware::Fp8Recipe::block}) {
    work.stack.fp8_recipe = recipe;
    const auto other = work.estimate();
    EXPECT_GT(other.step_time, delayed.step_time) << hardware::name_of(recipe);
    EXPECT_LT(other.step_time, 1.25 * delayed.step_time) << hardware::name_of(recipe);
    EXPECT_EQ(other.memory.total(), delayed.memory.total()) << hardware::name_of(recipe);
  }
}

// W8A8 on A100: half the weights of bf16 and twice the rate. Casts, attention, head and cache keep their time, so the
// prefill is between half and all of that of bf16.
TEST(Formats, int8_products_halve_weights_and_speed_up_the_prefill) {
  Work work = Work("llama-3.1-8b", "dgx-a100", 1).serves(2048, 32);
  const auto wide = work.estimate();
  work.job.precision = hardware::Precision::int8;
  const auto narrow = work.estimate();
  const auto layers = static_cast<double>(workload::parameter_count(work.model).layers);
  EXPECT_NEAR((wide.memory.weights - narrow.memory.weights).value(), layers, 1e-3 * layers);
  EXPECT_EQ(narrow.memory.kv_cache, wide.memory.kv_cache);
  EXPECT_LT(narrow.inference->time_to_first_token, wide.inference->time_to_first_token);
  EXPECT_GT(narrow.inference->time_to_first_token, 0.5 * wide.inference->time_to_first_token);
  EXPECT_LT(narrow.inference->time_per_output_token, wide.inference->time_per_output_token);
  expect_above_bandwidth(narrow, work);
}

// Activations cost the same casts, and the units of H100 have the same rate: int8 and fp8 differ only where a stack
// keeps the cache in fp8.
TEST(Formats, int8_takes_as_long_as_fp8_where_units_have_the_same_rate) {
  Work work = Work("llama-3.1-8b", "dgx-h100", 2).serves(1024, 16);
  work.job.precision = hardware::Precision::fp8;
  const auto fp8 = work.estimate();
  work.job.precision = hardware::Precision::int8;
  const auto int8 = work.estimate();
  EXPECT_EQ(int8.step_time, fp8.step_time);
  EXPECT_EQ(int8.memory.total(), fp8.memory.total());
}

// QLoRA pays for the conversion of every weight, forward and backward: less memory, more time.
TEST(Formats, qlora_trades_time_for_memory) {
  Work work = Work("llama-3.1-8b", "dgx-a100", 1).adapts(16, 2048);
  const auto usual = work.estimate();
  work.job.formats.weights = StorageFormat::nf4;
  const auto narrow = work.estimate();
  EXPECT_LT(narrow.memory.total(), usual.memory.total());
  EXPECT_GT(narrow.step_time, usual.step_time);
  EXPECT_LT(narrow.step_time, 1.6 * usual.step_time);
}

}  // namespace
}  // namespace orrery::estimate::formats_test
