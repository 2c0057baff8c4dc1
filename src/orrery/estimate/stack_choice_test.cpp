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
  EXPECT_EQ(stack_name(request, model("llama-3.1-8b"), accelerator("trainium2")), "neuronx-distributed");
  EXPECT_EQ(stack_name(request, model("vit-22b"), accelerator("trainium2")), "megatron-core");
  EXPECT_EQ(problem(request, "vit-22b", "trainium2"), "");
  request.task = parallel::Task::inference;
  EXPECT_EQ(stack_name(request, model("llama-3.1-8b"), accelerator("trainium2")), "vllm");
  EXPECT_EQ(stack_name(request, model("llama-3.1-8b"), accelerator("gaudi2")), "vllm");
  request.stack = "ideal";
  EXPECT_EQ(stack_name(request, model("llama-3.1-8b"), accelerator("gaudi2")), "ideal");
}

TEST_F(StackChoice, refuses_shardings_and_overlaps_that_the_software_does_not_have) {
  Request request;
  request.stack = "fsdp";
  request.zero = 3;
  request.shard = 8;
  request.tp_overlap = parallel::TpOverlap::none;
  EXPECT_EQ(problem(request, "llama-3.1-8b", "h100-sxm"), "");
  request.tp_overlap = parallel::TpOverlap::ring;
  EXPECT_THAT(problem(request, "llama-3.1-8b", "h100-sxm"), HasSubstr("has the overlaps"));
  request.tp_overlap.reset();
  request.zero = 1;
  EXPECT_THAT(problem(request, "llama-3.1-8b", "h100-sxm"),
              HasSubstr("has the shardings (--zero) 0, 2, 3, hybrid, not 1"));
  request.stack = "hai-llm";
  EXPECT_THAT(problem(request, "deepseek-v3", "h100-sxm"), HasSubstr("has the shardings 0, 1, not hybrid"));
}

TEST_F(StackChoice, zero_defaults_to_what_the_software_has) {
  EXPECT_EQ(default_zero(catalogue_.stack("ideal").value()), 1);
  EXPECT_EQ(default_zero(catalogue_.stack("fsdp").value()), 3);
  EXPECT_EQ(default_zero(catalogue_.stack("megatron-2021").value()), 0);
}

// Names in files are names of values: a misspelt one would allow nothing.
TEST_F(StackChoice, limits_of_the_catalogue_allow_some_values_and_not_all) {
  int limited = 0;
  for (const auto& name : hardware::entry_names(ORRERY_DATA_DIR, hardware::kStackEntries)) {
    const auto stack = catalogue_.stack(name).value();
    for (const auto& limit : choice_limits(stack)) {
      EXPECT_FALSE(limit.values.empty()) << name;
      EXPECT_FALSE(limit.missing.empty()) << name;
      ++limited;
    }
    const auto named = [&](const std::vector<std::string>& words, parallel::PlanField field, std::size_t all) {
      for (const auto& limit : choice_limits(stack)) {
        if (limit.field == field) { EXPECT_EQ(limit.values.size() + limit.missing.size(), all) << name; }
      }
      return words.size();
    };
    const std::size_t hybrid = std::count(stack.limits.shardings.begin(), stack.limits.shardings.end(), "hybrid");
    for (const auto& limit : choice_limits(stack)) {
      using parallel::PlanField;
      if (limit.field == PlanField::schedule) {
        EXPECT_EQ(limit.values.size(), named(stack.limits.schedules, PlanField::schedule, 5)) << name;
      }
      if (limit.field == PlanField::zero) {
        EXPECT_EQ(limit.values.size() + hybrid, named(stack.limits.shardings, PlanField::zero, 4)) << name;
      }
      if (limit.field == PlanField::tp_overlap) {
        EXPECT_EQ(limit.values.size(), named(stack.limits.overlaps, PlanField::tp_overlap, 3)) << name;
      }
    }
  }
  EXPECT_GT(limited, 10);
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
