// Rules for recommenders: what a row of MLPerf's says, and what its stack does besides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/validate/rules_samples.hpp"

namespace orrery::validate::rules_recommenders_test {
namespace {

using namespace samples;
using workload::TableSharding;

// As in dlrm_moe.csv: no sequence, no degrees, a batch for each accelerator.
TrainingRow dcnv2_row() {
  TrainingRow row;
  row.family = "mlperf_dlrm";
  row.model = "DLRM-DCNv2 (MLPerf, Criteo-multihot)";
  row.precision = "fp16/tf32 (hugectr; not parsed)";
  row.gpu_type = "H100-SXM";
  row.gpus = row.gpus_per_node = 8;
  row.micro_batch = 6912;
  row.global_batch = 55296;
  return row;
}

TEST(RulesRecommenders, a_row_of_mlperf_is_dcnv2_on_hugectr) {
  const Scenario s = scenario(dcnv2_row());
  EXPECT_EQ(s.model.recommender.table_count(), 26);
  EXPECT_EQ(s.stack->name, "hugectr");
  EXPECT_EQ(s.job.seq, 1);
  EXPECT_EQ(s.job.precision, hardware::Precision::fp16);
  EXPECT_EQ(s.plan.dp, 8);
  EXPECT_EQ(s.plan.micro_batch, 6912);
  EXPECT_EQ(s.plan.zero, 0);
  EXPECT_EQ(s.plan.tables, (workload::TablePlan{TableSharding::balanced, 0, 16'777}));
}

TEST(RulesRecommenders, several_nodes_reduce_partial_sums) {
  TrainingRow row = dcnv2_row();
  row.gpus = 64;
  row.micro_batch = 2112;
  row.global_batch = 135168;
  EXPECT_EQ(scenario(row).plan.tables, (workload::TablePlan{TableSharding::row, 0, 26'214}));
}

TEST(RulesRecommenders, a_blank_micro_batch_is_a_replicas_batch) {
  TrainingRow row = dcnv2_row();
  row.family = "sok_dlrm";
  row.model = "DLRM (MLPerf v1 Criteo 1TB, 1-hot), TF2+SOK";
  row.precision = "amp";
  row.gpu_type = "V100-SXM2-32GB";
  row.micro_batch.reset();
  row.global_batch = 65536;
  const Scenario s = scenario(row);
  EXPECT_EQ(s.plan.micro_batch, 8192);
  EXPECT_EQ(s.stack->name, "sok");
  EXPECT_EQ(s.model.recommender.interaction.kind, workload::InteractionKind::dot);
}

TEST(RulesRecommenders, missing_tables_skip_the_row) {
  TrainingRow row = dcnv2_row();
  row.model = "DLRM-A2";
  EXPECT_EQ(reason(row), "recommender without published embedding tables");
}

}  // namespace
}  // namespace orrery::validate::rules_recommenders_test
