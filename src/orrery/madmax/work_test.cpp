// MAD-Max work of recommenders that are described for physical runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/madmax/test_madmax.hpp"
#include "orrery/workload/test_recommenders.hpp"

namespace orrery::madmax::work_test {
namespace {

using hardware::Precision;
using ::testing::ElementsAre;
using workload::DensePart;
using workload::InteractionKind;
using workload::Recommender;
using workload::test::completed_recommender;
using workload::test::small_recommender;

const auto kRandomInteger = [](std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange<std::int64_t>(low, high);
};

double dense_parameters(const SampleWork& work) { return work.parameters() - work.table_parameters; }

// Parameters that the equations do not include: biases and the router of experts.
double uncounted_parameters(const Recommender& r) {
  double sum = 0;
  for (const auto out : r.bottom) { sum += static_cast<double>(out); }
  for (const auto& kind : workload::dense_layers(r)) {
    const double copies = kind.experts ? static_cast<double>(r.top_experts.count) : 1.0;
    const bool is_biased = kind.part == DensePart::top || kind.part == DensePart::cross;
    if (is_biased) { sum += static_cast<double>(kind.out) * copies; }
    if (kind.opens) { sum += static_cast<double>(kind.in + 1) * copies; }
  }
  return sum;
}

// Tables 4 x 1000 x 8 of fp32, three lookups in each per sample; GEMMs 4 x 16, 16 x 8, 18 x 32, 32 x 1.
TEST(SampleWork, a_recommender_by_hand) {
  const SampleWork work = work_of(completed_recommender(small_recommender()), Precision::bf16, 0).value();
  EXPECT_EQ(work.table_parameters, 32000);
  EXPECT_EQ(work.looked_up_bytes, 4 * 3 * 8 * 4);
  EXPECT_EQ(work.dense_bytes, 2);
  EXPECT_EQ(dense_parameters(work), 64 + 128 + 576 + 32);
  EXPECT_EQ(work.flops(), 2 * (64 + 128 + 576 + 32));
  EXPECT_EQ(work.reads_embedding, 2U);
  EXPECT_THAT(work.not_counted, ElementsAre("dot products of the feature interaction"));
}

// Four experts, two of them active: the top MLP has its weights four times and its GEMMs twice. Transformer layers of
// width 8 and inner width 16, over five vectors.
TEST(SampleWork, experts_and_transformer_layers_by_hand) {
  Recommender r = small_recommender();
  r.interaction = {InteractionKind::transformer, 2, 0, 2, 16};
  r.interaction.output = 18;
  r.top_experts = {4, 2};
  const SampleWork work = work_of(completed_recommender(r), Precision::bf16, 0).value();
  const double layer = 4 * 64 + 2 * 8 * 16, top = 576 + 32;
  EXPECT_EQ(dense_parameters(work), 64 + 128 + 2 * layer + 4 * top);
  EXPECT_EQ(work.flops(), 2 * (64 + 128 + 5 * 2 * layer + 2 * top));
  EXPECT_TRUE(work.has(LayerClass::attention));
  EXPECT_TRUE(work.has(LayerClass::moe));
}

TEST(SampleWork, dense_layers_may_have_their_own_precision) {
  Recommender r = small_recommender();
  r.dense_precision = Precision::fp32;
  EXPECT_EQ(work_of(completed_recommender(r), Precision::bf16, 0)->dense_bytes, 4);
}

RC_GTEST_PROP(SampleWork, weights_exclude_biases_and_router, ()) {
  const Recommender r = workload::test::any_recommender(kRandomInteger);
  RC_PRE(!workload::inconsistency(r) && r.interaction.kind != InteractionKind::transformer);
  const auto model = completed_recommender(r);
  const SampleWork work = work_of(model, Precision::bf16, 0).value();
  const auto count = workload::parameter_count(model);
  RC_ASSERT(work.table_parameters == static_cast<double>(count.embedding));
  RC_ASSERT(dense_parameters(work) == static_cast<double>(count.layers) - uncounted_parameters(r));
}

// With one GEMM of a cross layer before them, the layers of experts have odd numbers, so tp cannot pair them.
TEST(SampleWork, experts_after_an_odd_number_of_cross_layers_have_no_tp) {
  Recommender r = small_recommender();
  r.top_experts = {4, 2};
  for (const std::int64_t layers : {1, 2}) {
    r.interaction = {InteractionKind::cross, layers};
    const SampleWork work = work_of(completed_recommender(r), Precision::bf16, 0).value();
    const System system = catalogue_system("zionex_128");
    EXPECT_EQ(choices(LayerClass::moe, work, system).size(), layers == 1 ? 3U : 7U);
  }
}

TEST(SampleWork, mlps_of_odd_experts_have_no_tp) {
  Recommender r = small_recommender();
  r.top = {32, 16, 1};
  const System system = catalogue_system("zionex_128");
  for (const std::int64_t experts : {0, 4}) {
    r.top_experts = {experts, experts / 2};
    r.interaction.kind = InteractionKind::concat;
    const SampleWork work = work_of(completed_recommender(r), Precision::bf16, 0).value();
    EXPECT_EQ(choices(LayerClass::mlp, work, system).size(), 3U);
  }
  r.top.pop_back();
  EXPECT_EQ(choices(LayerClass::mlp, work_of(completed_recommender(r), Precision::bf16, 0).value(), system).size(), 7U);
}

// Recommenders of the catalogue work like MAD-Max's own configurations.
TEST(SampleWork, recommenders_of_the_catalogue_run) {
  for (const char* name : {"dlrm-dcnv2", "dlrm-criteo-1tb", "dlrm-criteo-kaggle"}) {
    const auto model = workload::load_model(ORRERY_DATA_DIR, name).value();
    const SampleWork work = work_of(model, Precision::fp32, 0).value();
    const System system = catalogue_system("zionex_128");
    Evaluator evaluator(work, system, {Task::pretrain, {}, 65536, true});
    const auto found = search(evaluator, {{}, 1});
    ASSERT_EQ(found.best.size(), 1U) << name;
    EXPECT_GT(found.best[0].samples_per_s, 0.0) << name;
  }
}

}  // namespace
}  // namespace orrery::madmax::work_test
