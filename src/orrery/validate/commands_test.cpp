// Rows that are commands.
#include "orrery/validate/commands.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/estimate/estimator.hpp"
#include "orrery/validate/validate.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::validate::test::commands_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CommandRow row(const std::string& args) {
  CommandRow row;
  row.args = args;
  row.table = "folder/runs.csv";
  return row;
}

std::string error_of(const std::string& args) {
  const auto request = request_of(row(args));
  return request ? "" : request.error().text();
}

TEST(Commands, words_are_split_as_a_shell_does) {
  EXPECT_THAT(words_of("estimate  --placement \"tp=0 dp=1\" --set 'a b'c \t x"),
              ElementsAre("estimate", "--placement", "tp=0 dp=1", "--set", "a bc", "x"));
  EXPECT_TRUE(words_of("  ").empty());
}

TEST(Commands, flags_are_those_of_estimate) {
  const auto request =
      request_of(row("orrery estimate --model @tiny --cluster dgx-h100 --devices=8 --global-batch 64 --seq 2048 --tp 2 "
                     "--no-dp-overlap --sequence-parallel"));
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(request->model, "folder/runs/tiny.yaml");
  EXPECT_EQ(request->devices, 8);
  EXPECT_EQ(request->tp, 2);
  EXPECT_EQ(request->dp_overlap, false);
  EXPECT_EQ(request->sequence_parallel, true);
  EXPECT_THAT(error_of("estimate --modle x"), HasSubstr("did you mean --model?"));
  EXPECT_THAT(error_of("estimate --tp"), HasSubstr("needs a value"));
  EXPECT_THAT(error_of("estimate --tp two"), HasSubstr("is not a number"));
  EXPECT_THAT(error_of("simulate --tp 2"), HasSubstr("not a row of"));
}

TEST(Commands, an_attention_core_has_a_batch_and_a_stack) {
  const auto usual = request_of(row("attn llama-3.1-8b dgx-h100 4096"));
  ASSERT_TRUE(usual) << usual.error().text();
  EXPECT_EQ(usual->micro_batch, 1);
  const auto request = request_of(row("attn llama-3.1-8b dgx-h100 4096 4 pytorch-eager"));
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(request->micro_batch, 4);
  EXPECT_EQ(request->global_batch, 4);
  EXPECT_EQ(request->stack, "pytorch-eager");
  const auto burst = request_of(row("attn llama-3.1-8b dgx-h100 4096 4 burst"));
  ASSERT_TRUE(burst) << burst.error().text();
  EXPECT_EQ(burst->micro_batch, 4);
  EXPECT_TRUE(burst->stack.empty());
  EXPECT_THAT(error_of("attn llama-3.1-8b dgx-h100"), HasSubstr("takes a model"));
  EXPECT_THAT(error_of("attn llama-3.1-8b burst"), HasSubstr("takes a model"));
  EXPECT_THAT(error_of("attn llama-3.1-8b dgx-h100 4096 4 fsdp more"), HasSubstr("takes a model"));
  EXPECT_THAT(error_of("attn llama-3.1-8b dgx-h100 4096 four"), HasSubstr("is not a number"));
}

// With a batch on the command line, the core takes a little less than that many times one sequence; kernels without
// Hopper's instructions take longer.
TEST(Commands, attention_of_a_batch_and_of_older_kernels) {
  const std::string file = ::testing::TempDir() + "attention.csv";
  std::ofstream(file) << "id,args,measured_s\n"
                         "one,attn llama-3.1-8b dgx-h100 4096,1\n"
                         "four,attn llama-3.1-8b dgx-h100 4096 4,1\n"
                         "old,attn llama-3.1-8b dgx-h100 4096 4 pytorch-eager,1\n";
  const auto validation = validate_tables(ORRERY_DATA_DIR, {file}, {});
  ASSERT_TRUE(validation) << validation.error().text();
  const auto& rows = validation->predictions;
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& each : rows) { ASSERT_TRUE(each.predicted_s) << each.skipped_reason; }
  EXPECT_LE(*rows[1].predicted_s, 4.0 * *rows[0].predicted_s);
  EXPECT_GT(*rows[1].predicted_s, 3.0 * *rows[0].predicted_s);
  EXPECT_GT(*rows[2].predicted_s, *rows[1].predicted_s);
}

// A kernel of 2 ms is limited by arithmetic: in a burst it takes 1 / (1 + power_slowdown) of its time in a long job,
// plus a latency of microseconds in both.
TEST(Commands, attention_in_a_burst_is_faster_by_the_power_slowdown) {
  const std::string file = ::testing::TempDir() + "burst.csv";
  std::ofstream(file) << "id,args,measured_s\n"
                         "long,attn llama-3.1-8b dgx-h100 16384,1\n"
                         "burst,attn llama-3.1-8b dgx-h100 16384 1 burst,1\n";
  const auto validation = validate_tables(ORRERY_DATA_DIR, {file}, {});
  ASSERT_TRUE(validation) << validation.error().text();
  const auto& rows = validation->predictions;
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& each : rows) { ASSERT_TRUE(each.predicted_s) << each.skipped_reason; }
  const auto chip = hardware::Catalogue(ORRERY_DATA_DIR).cluster("dgx-h100", 8);
  ASSERT_TRUE(chip);
  EXPECT_NEAR(*rows[0].predicted_s / *rows[1].predicted_s, 1.0 + chip->accelerator.power_slowdown, 0.002);
}

TEST(Commands, a_row_is_predicted_as_the_command_prints_it) {
  const std::string file = ::testing::TempDir() + "runs.csv";
  std::ofstream(file)
      << "id,args,measured_s,source\n"
         "a,estimate --model llama-3.1-8b --cluster dgx-h100 --devices 8 --global-batch 64 --seq 8192,2,mine\n"
         "b,estimate --model llama-3.1-8b --cluster dgx-h100 --devices 8 --seq 8192,,mine\n"
         "c,gemm H100 bf16 4096 4096 4096,0.0002,\n";
  const auto validation = validate_tables(ORRERY_DATA_DIR, {file}, {});
  ASSERT_TRUE(validation) << validation.error().text();
  ASSERT_EQ(validation->predictions.size(), 3U);
  const auto& [a, b, c] = std::tie(validation->predictions[0], validation->predictions[1], validation->predictions[2]);
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  const auto request =
      request_of(row("estimate --model llama-3.1-8b --cluster dgx-h100 --devices 8 --global-batch 64 --seq 8192"));
  const auto model = workload::load_model(ORRERY_DATA_DIR, "llama-3.1-8b").value();
  const auto cluster = catalogue.cluster("dgx-h100", 8).value();
  const auto stack = catalogue.stack("megatron-core").value();
  const auto plan = estimate::resolve(*request, model, cluster, stack).value().plan;
  estimate::Estimator estimator(model, cluster, stack, estimate::job_of(*request, model, stack));
  EXPECT_EQ(a.predicted_s, estimator.step_time(plan).value());
  EXPECT_EQ(a.measured_s, 2.0);
  EXPECT_EQ(a.family, "mine");
  EXPECT_FALSE(b.predicted_s);
  EXPECT_NE(b.skipped_reason, "");
  ASSERT_TRUE(c.predicted_s) << c.skipped_reason;
  EXPECT_GT(*c.predicted_s, 2.0 * 4096 * 4096 * 4096 / 989e12);
  EXPECT_EQ(c.family, "commands");
}

}  // namespace
}  // namespace orrery::validate::test::commands_test
