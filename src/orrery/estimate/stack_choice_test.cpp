// Which stack runs a job, and what a stack refuses.
#include "orrery/estimate/stack_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::estimate::test::stack_choice_test {
namespace {

using ::testing::HasSubstr;

class StackChoice : public ::testing::Test {
 protected:
  workload::Model model(const char* name) { return workload::load_model(ORRERY_DATA_DIR, name).value(); }
  hardware::Accelerator accelerator(const char* name) { return catalogue_.accelerator(name).value(); }

  std::string problem(const Request& request, const char* model_name, const char* chip) {
    const hardware::Accelerator device = accelerator(chip);
    const workload::Model work = model(model_name);
    const auto stack = catalogue_.stack(stack_name(request, work, device)).value();
    const auto found = stack_problems(request, work, device, stack);
    return found.empty() ? "" : found.front().text();
  }

  hardware::Catalogue catalogue_{ORRERY_DATA_DIR};
};

TEST_F(StackChoice, follows_task_model_and_maker) {
  Request request;
  EXPECT_EQ(stack_name(request, model("llama-3.1-8b"), accelerator("h100-sxm")), "megatron-core");
  EXPECT_EQ(stack_name(request, model("llama-3.1-8b"), accelerator("tpu-v5p")), "maxtext");
  EXPECT_EQ(stack_name(request, model("dlrm-dcnv2"), accelerator("h100-sxm")), "hugectr");
  EXPECT_EQ(stack_name(request, model("dlrm-dcnv2"), accelerator("mi300x")), "ideal");
  request.task = parallel::Task::inference;
  EXPECT_EQ(stack_name(request, model("llama-3.1-8b"), accelerator("gaudi2")), "vllm");
  request.stack = "ideal";
  EXPECT_EQ(stack_name(request, model("llama-3.1-8b"), accelerator("gaudi2")), "ideal");
}

TEST_F(StackChoice, refuses_what_the_software_does_not_have) {
  Request request;
  request.stack = "hugectr";
  EXPECT_THAT(problem(request, "llama-3.1-8b", "h100-sxm"), HasSubstr("hugectr runs models of class recommender, not"));
  request.stack = "hai-llm";
  EXPECT_THAT(problem(request, "llama-3.1-8b", "mi300x"), HasSubstr("runs on accelerators of NVIDIA, not AMD"));
  request.stack = "tensorrt-llm";
  EXPECT_THAT(problem(request, "llama-3.1-8b", "h100-sxm"), HasSubstr("runs the tasks inference, not pretrain"));
  request.stack = "megatron-core";
  EXPECT_EQ(problem(request, "llama-3.1-8b", "h100-sxm"), "");
  request.schedule = parallel::ScheduleKind::dualpipe;
  EXPECT_THAT(problem(request, "llama-3.1-8b", "h100-sxm"),
              HasSubstr("has the schedules 1f1b, interleaved, not dualpipe"));
  request.stack = "";
  EXPECT_EQ(problem(request, "llama-3.1-8b", "h100-sxm"), "");  // a default stack is no decision
  request.stack = "ideal";
  EXPECT_EQ(problem(request, "llama-3.1-8b", "mi300x"), "");
}

// A default never refuses the job that it was chosen for.
TEST_F(StackChoice, defaults_run_what_they_are_chosen_for) {
  const auto accelerators = catalogue_.accelerators().value();
  for (const auto& entry : accelerators) {
    for (const auto& name : {"llama-3.1-8b", "mixtral-8x22b", "t5-11b", "vit-22b", "dlrm-dcnv2", "bert-large"}) {
      for (const auto task : {parallel::Task::pretrain, parallel::Task::finetune, parallel::Task::inference}) {
        const bool tuned_recommender = task == parallel::Task::finetune && std::string_view(name) == "dlrm-dcnv2";
        if (tuned_recommender) { continue; }
        Request request;
        request.task = task;
        EXPECT_EQ(problem(request, name, entry.name.c_str()), "") << entry.name << ' ' << name;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::estimate::test::stack_choice_test
