#include "orrery/validate/serving_rows.hpp"

#include <gtest/gtest.h>

namespace orrery::validate::serving_rows_test {
namespace {

ServingRow old_vllm(std::int64_t tokens) {
  ServingRow row;
  row.family = "of_a_test";
  row.model_key = "llama-3.1-8b";
  row.precision = "bf16";
  row.gpu_type = "H100-SXM";
  row.engine = "vLLM";
  row.engine_version = "0.6.3";
  row.gpus = row.tp = 1;
  row.isl = 400.0;
  row.osl = 100.0;
  row.load_kind = "poisson_rate";
  row.load = 1000.0;  // all requests wait from the start
  row.num_requests = 600;
  row.max_batch = 512;
  row.max_batched_tokens = tokens;
  return row;
}

// With 512 tokens an iteration, prompts are cut and decodes go first: as many sequences run as prompts refill, R / 100
// = (512 - R) / 400, R = 102, and an iteration has all 512 tokens. Without chunks all 512 sequences run.
TEST(served, old_vllm_cuts_prompts_where_an_iteration_has_512_tokens) {
  const auto cut = served(old_vllm(512), ORRERY_SOURCE_DATA_DIR);
  const auto whole = served(old_vllm(8192), ORRERY_SOURCE_DATA_DIR);
  ASSERT_TRUE(cut) << cut.error();
  ASSERT_TRUE(whole) << whole.error();
  const auto running = [](const results::Serving& s) { return s.output_tokens_per_s * s.tpot.mean; };
  EXPECT_NEAR(running(*cut), 102.0, 25.0);  // the start and the end of the run have fewer
  EXPECT_GT(running(*whole), 200.0);
}

}  // namespace
}  // namespace orrery::validate::serving_rows_test
