// Requests: defaults of what is not given, errors, and a round trip through text.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/estimate/open_choices.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::estimate::request_test {
namespace {

using parallel::Recompute;
using parallel::ScheduleKind;
using testing::ElementsAre;

// 24 layers of 2048, 64 sequences of 2048 tokens, 16 devices in nodes of 8.
struct Example {
  workload::Model model = parallel::test::gpt(24, 2048, 16, 51200);
  hardware::Cluster cluster = parallel::test::cluster_of({8, 2});
  hardware::Stack stack;
  Request request;

  Example() {
    stack.attention.kernel = hardware::AttentionKernel::plain;
    request.model = "gpt";
    request.cluster = "plain";
    request.global_batch = 64;
    request.seq = 2048;
    request.tp = 2;
  }
  void give_memory(Bytes memory) {
    cluster.accelerator.memory = memory;
    stack.memory_reserve = 0.0;
  }
  [[nodiscard]] Result<ResolvedPlan> resolved() const { return resolve(request, model, cluster, stack); }
  [[nodiscard]] parallel::Plan plan() const {
    const auto answer = resolved();
    if (!answer) {
      ADD_FAILURE() << answer.error().text();
      return {};
    }
    return answer->plan;
  }
  [[nodiscard]] Bytes need(Recompute recompute, std::int64_t micro_batch) const {
    parallel::Plan plan = this->plan();
    plan.recompute = recompute;
    plan.micro_batch = micro_batch;
    return Estimator(model, cluster, stack, job_of(request, model, stack)).memory(plan).need;
  }
};

std::vector<std::string> texts_of(const std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> texts;
  for (const auto& diagnostic : diagnostics) { texts.push_back(diagnostic.text()); }
  return texts;
}

TEST(Resolve, dp_is_devices_over_the_other_degrees) {
  Example e;
  EXPECT_EQ(e.plan().dp, 8);
  e.request.pp = 4;
  EXPECT_EQ(e.plan().dp, 2);
  e.request.dp = 2;
  EXPECT_EQ(e.plan().dp, 2);
}

TEST(Resolve, degrees_that_do_not_fit_the_devices_are_errors) {
  Example e;
  e.request.pp = 3;
  ASSERT_FALSE(e.resolved());
  EXPECT_THAT(e.resolved().error().text(),
              testing::HasSubstr("--pp: tp 2 x pp 3 = 6 does not divide the 16 devices; nearest pp: 2 and 4"));
  e.request.pp = 64;
  EXPECT_FALSE(e.resolved());
  e.request.tp = 0;
  EXPECT_THAT(e.resolved().error().text(), testing::HasSubstr("--tp: \"0\" is too small"));
}

// A replica has 8 sequences of a batch of 64, and 6 of a batch of 48. Without stages, larger kernels are faster.
TEST(Resolve, with_enough_memory_and_without_stages_a_replica_s_batch_is_one_micro_batch) {
  Example e;
  e.give_memory(Bytes(1e15));
  EXPECT_EQ(e.plan().recompute, Recompute::none);
  EXPECT_EQ(e.plan().micro_batch, 8);
  e.request.global_batch = 48;
  EXPECT_EQ(e.plan().micro_batch, 6);
}

// Eight stages with one micro-batch of 8 sequences would wait for each other.
TEST(Resolve, with_many_stages_micro_batches_are_small_and_chunks_interleaved) {
  Example e;
  e.give_memory(Bytes(1e15));
  e.request.tp = 1;
  e.request.pp = 8;
  e.request.global_batch = 16;
  EXPECT_EQ(e.plan().micro_batch, 1);
  EXPECT_GT(e.plan().vpp, 1);
  EXPECT_EQ(e.plan().schedule, ScheduleKind::interleaved);
  e.request.schedule = ScheduleKind::one_f_one_b;
  EXPECT_EQ(e.plan().vpp, 1);
}

TEST(Resolve, when_nothing_fits_the_plan_with_the_lowest_memory_is_returned) {
  Example e;
  e.give_memory(Bytes(1e6));
  EXPECT_EQ(e.plan().recompute, Recompute::full);
  EXPECT_EQ(e.plan().micro_batch, 1);
  e.request.recompute = Recompute::none;
  e.request.micro_batch = 4;
  EXPECT_EQ(e.plan().recompute, Recompute::none);
  EXPECT_EQ(e.plan().micro_batch, 4);
}

TEST(Resolve, given_values_are_kept) {
  Example e;
  e.give_memory(Bytes(1e15));
  e.request.recompute = Recompute::full;
  e.request.micro_batch = 2;
  e.request.dp_overlap = false;
  e.request.schedule = ScheduleKind::gpipe;
  e.request.sequence_parallel = false;
  e.request.dp = 8;
  const auto answer = e.resolved();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->plan.recompute, Recompute::full);
  EXPECT_EQ(answer->plan.micro_batch, 2);
  EXPECT_FALSE(answer->plan.dp_overlap);
  EXPECT_EQ(answer->plan.schedule, ScheduleKind::gpipe);
  EXPECT_THAT(answer->chosen, ElementsAre());
}

// 14 heads on 4 ranks: 16. The time is that of 16 heads, the model's FLOPs are those of 14.
TEST(Resolve, padded_heads_cost_time_and_are_no_work_of_the_model) {
  Example e;
  e.model.heads = e.model.kv_heads = 14;
  e.request.tp = 4;
  ASSERT_FALSE(e.resolved());
  e.stack.pads_heads = true;
  const auto answer = e.resolved();
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->chosen, testing::Contains("14 heads padded to 16 (+14.3 % of attention's work)"));
  const auto estimate = [&](const workload::Model& model) {
    return Estimator(model, e.cluster, e.stack, job_of(e.request, model, e.stack)).estimate(answer->plan);
  };
  Example whole;
  const auto padded = estimate(e.model), of_16 = estimate(whole.model);
  EXPECT_EQ(padded.step_time, of_16.step_time);
  EXPECT_EQ(padded.memory.total(), of_16.memory.total());
  EXPECT_LT(padded.model_flops, of_16.model_flops);
  EXPECT_LT(padded.mfu, of_16.mfu);
  EXPECT_EQ(padded.padding, "14 heads padded to 16 (+14.3 % of attention's work)");
  EXPECT_EQ(of_16.padding, "");
}

TEST(Resolve, chosen_values_are_listed_with_the_cost_of_the_best_alternative) {
  Example e;
  e.stack.overlap.gradient_reduce = false;
  e.request.sequence_parallel = false;
  e.give_memory(e.need(Recompute::none, 1));
  const auto answer = e.resolved();
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->plan.recompute, Recompute::none);
  ASSERT_EQ(answer->plan.micro_batch, 1);
  EXPECT_THAT(answer->chosen,
              ElementsAre("dp 8 (devices / (tp x pp))", testing::StartsWith("micro-batch 1 (2: +"),
                          testing::StartsWith("recompute none (selective: +"), "dp-overlap off (the stack's default)"));
  e.request.recompute = Recompute::none;
  EXPECT_THAT(e.resolved()->chosen, testing::Contains("micro-batch 1 (nothing else fits in memory)"));
  e.request.global_batch = 8;
  EXPECT_THAT(e.resolved()->chosen, testing::Contains("micro-batch 1 (the only valid one)"));
}

TEST(Resolve, vpp_above_1_selects_interleaving_unless_a_schedule_is_given) {
  Example e;
  e.request.pp = 2;
  e.request.vpp = 3;
  EXPECT_EQ(e.plan().schedule, ScheduleKind::interleaved);
  e.request.schedule = ScheduleKind::one_f_one_b;
  ASSERT_FALSE(e.resolved());
  EXPECT_EQ(e.resolved().error().text(), "--vpp: \"3\" needs --schedule interleaved; other schedules: 1");
}

// Of 12 sequences per replica, 3 or 1 micro-batches would leave a group of 2 stages incomplete.
TEST(Resolve, interleaving_keeps_whole_groups_of_micro_batches) {
  Example e;
  e.request.pp = 2;
  e.request.vpp = 2;
  e.request.global_batch = 48;
  for (const auto& plan : open_plans(e.request, e.model, e.cluster, {}, e.plan())) {
    EXPECT_EQ(12 / plan.micro_batch % 2, 0) << plan.micro_batch;
  }
}

Result<Request> request_with(const std::string& fields) {
  const auto node = config::parse_yaml("{model: gpt, cluster: plain, " + fields + "}", "s.yaml");
  if (!node) { return tl::make_unexpected(node.error()); }
  return request_record().read(*node);
}

TEST(Request, placement_names_groups_and_dimensions_each_once) {
  EXPECT_FALSE(request_with("placement: \"\"")->placement);
  EXPECT_EQ(request_with("placement: \"tp=0 pp=1,dp=2\"")->placement, (parallel::Placement{0, -1, 2, 1}));
  for (const char* wrong : {"tp", "tp=", "tp=x", "tp=0x", "ep=0", "tp=-1", "tp=0 tp=1", "=1", "tp=100"}) {
    EXPECT_FALSE(request_with(std::string("placement: \"") + wrong + "\"")) << wrong;
  }
}

TEST(Request, fields_of_the_other_semantics_are_errors) {
  Request request;
  request.strategy = "mlp=(tp)";
  request.local_batch = "mlp=1";
  request.freeze = "emb";
  request.memory_rule = false;
  EXPECT_THAT(texts_of(problems(request)), ElementsAre("--strategy: is valid with --semantics mad-max only",
                                                       "--local-batch: is valid with --semantics mad-max only",
                                                       "--freeze: is valid with --semantics mad-max only",
                                                       "--no-memory-rule: is valid with --semantics mad-max only"));
  request.semantics = Semantics::mad_max;
  request.task = parallel::Task::finetune;
  EXPECT_TRUE(problems(request).empty());
  request.task = parallel::Task::pretrain;
  request.tp = 8;
  request.batch = 8;
  request.tables = {workload::TableSharding::none, 4, 0};
  EXPECT_THAT(
      texts_of(problems(request)),
      ElementsAre(
          "--tp: is valid with --semantics physical only; mad-max has --strategy, and degrees follow from the system",
          "--table-ranks: is valid with --semantics physical only; mad-max has emb in --strategy",
          "--batch: is valid with --semantics physical only; mad-max has --global-batch in every task",
          "--freeze: needs --task finetune"));
  EXPECT_TRUE(needed_fields(parallel::Task::pretrain, Semantics::mad_max).empty());
}

TEST(Request, fields_of_another_task_are_errors) {
  Request request;
  request.batch = 8;
  request.prompt = 128;
  request.generate = 2;
  request.lora = 16;
  EXPECT_THAT(texts_of(problems(request)),
              ElementsAre("--batch: is valid with --task inference only; training has --global-batch",
                          "--prompt: is valid with --task inference only; training has --seq",
                          "--generate: is valid with --task inference only", "--lora: needs --task finetune"));
  request.task = parallel::Task::inference;
  request.lora = 0;
  EXPECT_TRUE(problems(request).empty());
  request.seq = 4096;
  request.global_batch = 8;
  EXPECT_THAT(texts_of(problems(request)),
              ElementsAre("--global-batch: training only; --task inference has --batch",
                          "--seq: training only; --task inference has --prompt and --generate"));
}

TEST(Request, formats_of_storage_need_weights_that_are_not_trained_and_a_cache) {
  Request request;
  request.weight_format = hardware::StorageFormat::nf4;
  request.kv_format = hardware::CacheFormat::fp8;
  request.attention_precision = hardware::Precision::fp4;
  EXPECT_THAT(texts_of(problems(request)),
              ElementsAre("--kv-format: inference only: training keeps no KV cache",
                          "--weight-format: \"nf4\" needs weights that are not trained: --task inference, or --task "
                          "finetune with --lora; trained weights are stored in bf16",
                          "--attention-precision: \"fp4\" is not a format of attention; valid: fp8, bf16, fp16, tf32, "
                          "fp32"));
  request.kv_format.reset();
  request.attention_precision = hardware::Precision::fp8;
  request.task = parallel::Task::finetune;
  request.lora = 16;
  EXPECT_TRUE(problems(request).empty());
  request.lora = 0;
  request.precision = hardware::Precision::fp16;
  request.weight_format = hardware::StorageFormat::fp16;
  EXPECT_TRUE(problems(request).empty());  // as trained weights are stored anyway
}

TEST(Request, layers_that_are_not_quantised_need_a_format_and_inference) {
  Request request;
  request.quantized = workload::Quantized::experts;
  request.precision = hardware::Precision::fp8;
  EXPECT_THAT(texts_of(problems(request)),
              ElementsAre("--quantized: inference only: training uses one format for all layers"));
  request.task = parallel::Task::inference;
  EXPECT_TRUE(problems(request).empty());
  request.precision = hardware::Precision::bf16;
  EXPECT_THAT(texts_of(problems(request)),
              ElementsAre("--quantized: has no effect: no format has less than 16 bits; give --precision or "
                          "--weight-format"));
  request.weight_format = hardware::StorageFormat::int4;
  EXPECT_TRUE(problems(request).empty());
}

TEST(Request, scales_of_fp8_need_fp8) {
  Request request;
  request.fp8_recipe = hardware::Fp8Recipe::block;
  EXPECT_THAT(texts_of(problems(request)), ElementsAre("--fp8-recipe: needs --precision fp8"));
  request.precision = hardware::Precision::fp8;
  EXPECT_TRUE(problems(request).empty());
  EXPECT_EQ(stack_of(request, {}).fp8_recipe, hardware::Fp8Recipe::block);
}

TEST(Request, int8_products_are_of_inference_only) {
  Request request;
  request.precision = hardware::Precision::int8;
  EXPECT_THAT(texts_of(problems(request)), ElementsAre("--precision: \"int8\" is a format of inference only; valid in "
                                                       "training: bf16, fp16, fp8, fp4, tf32, fp32"));
  request.task = parallel::Task::inference;
  EXPECT_TRUE(problems(request).empty());
}

TEST(Request, each_task_has_its_required_fields) {
  EXPECT_THAT(needed_fields(parallel::Task::pretrain), ElementsAre("global_batch"));
  EXPECT_THAT(needed_fields(parallel::Task::finetune), ElementsAre("global_batch"));
  EXPECT_THAT(needed_fields(parallel::Task::inference), ElementsAre("batch"));
}

TEST(Request, offload_is_a_list_of_names) {
  EXPECT_EQ(request_with("offload: \"optimizer,weights\"")->offload, (parallel::Offload{true, false, true}));
  EXPECT_THAT(request_with("offload: weight").error().text(),
              testing::HasSubstr("\"weight\" cannot be offloaded; did you mean \"weights\"?"));
  EXPECT_FALSE(request_with("offload: \"\"")->offload);
}

TEST(Request, gradient_settings_default_to_the_stack_s) {
  Request request;
  hardware::Stack stack;
  EXPECT_EQ(stack_of(request, stack).gradients.element, Bytes(4.0));
  request.gradient_precision = hardware::Precision::bf16;
  request.reduce_precision = hardware::Precision::bf16;
  stack.gradients.bucket_parameters_per_replica = 1e6;
  EXPECT_EQ(stack_of(request, stack).gradients.bucket(512), 512e6);
  request.bucket = 4e7;
  EXPECT_EQ(stack_of(request, stack).gradients.bucket(512), 4e7);
  EXPECT_EQ(stack_of(request, stack).gradients.reduce_every, hardware::ReduceEvery::micro_batch);
  request.reduce_every = hardware::ReduceEvery::step;
  EXPECT_EQ(stack_of(request, stack).gradients.reduce_every, hardware::ReduceEvery::step);
  EXPECT_EQ(stack_of(request, stack).gradients.element, Bytes(2.0));
  EXPECT_EQ(stack_of(request, stack).gradients.reduce_element, Bytes(2.0));
  EXPECT_EQ(stack_of(request, stack).gradients.bucket_parameters, 4e7);
}

// 16 devices, tp 2 and pp 2: 4 replicas share 64 sequences, in as many micro-batches as stages.
TEST(Resolve, an_inference_batch_has_one_micro_batch_per_stage) {
  Example e;
  e.request.global_batch = e.request.seq = std::nullopt;
  e.request.task = parallel::Task::inference;
  e.request.prompt = 128;
  e.request.generate = 16;
  e.request.batch = 64;
  e.request.pp = 2;
  EXPECT_EQ(e.plan().micro_batch, 8);
  EXPECT_EQ(e.plan().zero, 0);
  EXPECT_EQ(job_of(e.request, e.model, {}).seq, 143);
  e.request.batch = 12;  // 3 per replica: not divisible by 2
  EXPECT_EQ(e.plan().micro_batch, 3);
  e.request.pp = 4;  // 2 replicas of 6 sequences: 3 micro-batches, because 4 does not divide 6
  EXPECT_EQ(e.plan().micro_batch, 2);
}

template <class T>
std::optional<T> maybe(T value) {
  return *rc::gen::arbitrary<bool>() ? std::optional<T>(value) : std::nullopt;
}

Request any_request() {
  const auto number = [](std::int64_t high) { return *rc::gen::inRange<std::int64_t>(1, high); };
  const auto choice = [&](int count) { return static_cast<int>(*rc::gen::inRange(0, count)); };
  Request r;
  r.model = *rc::gen::element<std::string>("gpt3-175b", "a b: c#", "./x/config.json", "\"quoted\"", "12", "null");
  r.cluster = *rc::gen::element<std::string>("dgx-a100", "- x", "é", "true");
  r.devices = maybe(number(1'000'000));
  r.semantics = static_cast<Semantics>(choice(2));
  r.task = static_cast<parallel::Task>(choice(3));
  r.global_batch = number(1'000'000'000);
  r.seq = number(1'000'000'000);
  r.precision = *rc::gen::element(hardware::Precision::fp8, hardware::Precision::bf16, hardware::Precision::tf32);
  for (auto* degree : {&r.tp, &r.cp, &r.pp, &r.ep, &r.vpp}) { *degree = number(100); }
  r.lora = number(1000) - 1;
  for (auto* count : {&r.shard, &r.first_stage_layers}) { *count = maybe(number(1000) - 1); }
  for (auto* count : {&r.prompt, &r.generate, &r.batch}) { *count = maybe(number(1000)); }
  r.etp = maybe(number(100));
  r.gradient_precision = maybe(hardware::Precision::bf16);
  r.weight_format = maybe(static_cast<hardware::StorageFormat>(choice(8)));
  r.kv_format = maybe(static_cast<hardware::CacheFormat>(choice(5)));
  r.attention_precision = maybe(hardware::Precision::fp8);
  r.quantized = maybe(static_cast<workload::Quantized>(choice(4)));
  r.fp8_recipe = maybe(static_cast<hardware::Fp8Recipe>(choice(3)));
  r.optimizer = maybe(static_cast<hardware::OptimizerKind>(choice(4)));
  r.bucket = maybe(4e7);
  r.reduce_every = maybe(hardware::ReduceEvery::step);
  r.cp_method = static_cast<workload::ContextMethod>(choice(2));
  r.dp = maybe(number(100));
  r.micro_batch = maybe(number(100));
  r.sequence_parallel = maybe(*rc::gen::arbitrary<bool>());
  r.zero = maybe(choice(4));
  r.recompute = maybe(static_cast<Recompute>(choice(3)));
  r.schedule = maybe(static_cast<ScheduleKind>(choice(5)));
  r.tp_overlap = static_cast<parallel::TpOverlap>(choice(3));
  r.dp_overlap = maybe(*rc::gen::arbitrary<bool>());
  r.offload = maybe(parallel::Offload{true, true, false});
  r.recompute_modules = maybe(parallel::RecomputeModules{.norms = true, .expert_activations = true});
  r.placement = maybe(parallel::Placement{0, -1, -1, 1});
  r.strategy = *rc::gen::element<std::string>("", "mlp=(tp,ddp)");
  r.local_batch = *rc::gen::element<std::string>("", "mlp=512");
  return r;
}

RC_GTEST_PROP(RequestRecord, what_is_printed_reads_back, ()) {
  const Request request = any_request();
  const std::string text = request_record().print_yaml(request);
  const auto node = config::parse_yaml(text, "scenario.yaml");
  RC_ASSERT(node.has_value());
  const auto again = request_record().read(*node);
  RC_ASSERT(again.has_value());
  RC_ASSERT(request_record().print_yaml(*again) == text);
  RC_ASSERT(again->model == request.model);
  RC_ASSERT(again->dp == request.dp);
  RC_ASSERT(again->micro_batch == request.micro_batch);
  RC_ASSERT(again->recompute == request.recompute);
  RC_ASSERT(again->schedule == request.schedule);
  RC_ASSERT(again->dp_overlap == request.dp_overlap);
  RC_ASSERT(again->seq == request.seq);
  RC_ASSERT(again->offload == request.offload);
  RC_ASSERT(again->recompute_modules == request.recompute_modules);
  RC_ASSERT(again->placement == request.placement);
}

TEST(RequestRecord, bounds_and_names_are_checked) {
  const auto node = config::parse_yaml(
      "{model: gpt3-175b, cluster: dgx-a100, global_batch: 0, seq: 2048, zero: 4, recompute: some, tpp: 8}", "s.yaml");
  ASSERT_TRUE(node);
  const auto request = request_record().read(*node);
  ASSERT_FALSE(request);
  const std::string text = request.error().text();
  for (const char* part : {"/global_batch", "/zero", "/recompute", "/tpp"}) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
}

}  // namespace
}  // namespace orrery::estimate::request_test
