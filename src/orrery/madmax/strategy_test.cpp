#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/madmax/test_madmax.hpp"

namespace orrery::madmax::strategy_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> texts(LayerClass layer_class, const SampleWork& work, const System& system) {
  std::vector<std::string> all;
  for (const auto& choice : choices(layer_class, work, system)) { all.push_back(text_of(choice)); }
  return all;
}

TEST(Strategy, dense_layers_have_seven_choices_and_tables_four) {
  const SampleWork work = catalogue_work("dlrm_a_transformer");
  const System system = catalogue_system("zionex_128");
  EXPECT_THAT(texts(LayerClass::mlp, work, system),
              ElementsAre("(fsdp)", "(ddp)", "(tp)", "(fsdp,ddp)", "(fsdp,tp)", "(ddp,tp)", "(tp,ddp)"));
  EXPECT_THAT(texts(LayerClass::emb, work, system), ElementsAre("(mp)", "(ddp)", "(mp,ddp)", "(ddp,mp)"));
  EXPECT_EQ(texts(LayerClass::attention, work, system), texts(LayerClass::mlp, work, system));
}

TEST(Strategy, one_node_has_one_level) {
  const SampleWork work = catalogue_work("dlrm_a");
  EXPECT_THAT(texts(LayerClass::mlp, work, catalogue_system("zionex_8")), ElementsAre("(fsdp)", "(ddp)", "(tp)"));
  EXPECT_FALSE(strategies_from("mlp=(tp,ddp)", work, catalogue_system("zionex_8")));
}

TEST(Strategy, an_odd_number_of_mlp_layers_has_no_tp) {
  SampleWork work = catalogue_work("dlrm_a");
  work.layers.pop_back();
  EXPECT_THAT(texts(LayerClass::mlp, work, catalogue_system("zionex_128")),
              ElementsAre("(fsdp)", "(ddp)", "(fsdp,ddp)"));
  const auto wrong = strategies_from("mlp=(tp)", work, catalogue_system("zionex_128"));
  EXPECT_THAT(wrong.error().text(), HasSubstr("number of MLP layers, or of cross layers before them, is odd"));
}

TEST(Strategy, text_is_read_back) {
  const SampleWork work = catalogue_work("dlrm_i_transformer");
  const System system = catalogue_system("zionex_128");
  for (const auto& mlp : choices(LayerClass::mlp, work, system)) {
    for (const auto& tables : choices(LayerClass::emb, work, system)) {
      GivenStrategies given{{LayerClass::emb, tables}, {LayerClass::mlp, mlp}};
      const std::string text = text_of(completed(given, work), work);
      EXPECT_EQ(text_of(strategies(text, work, system), work), text);
    }
  }
}

TEST(Strategy, transformer_is_attention_and_fc_and_fc_of_experts_is_moe) {
  const System system = catalogue_system("dc_A_128");
  const SampleWork dense = catalogue_work("llama_7b");
  EXPECT_EQ(text_of(strategies("transformer=(tp,ddp)", dense, system), dense),
            "emb=(ddp); attention=(tp,ddp); fc=(tp,ddp)");
  EXPECT_EQ(text_of(strategies("fc=tp", dense, system), dense), "emb=(ddp); attention=(fsdp); fc=(tp)");
  const SampleWork experts = catalogue_work("gpt4_1.8t");
  EXPECT_EQ(text_of(strategies("fc=(tp)", experts, system), experts), "emb=(ddp); attention=(fsdp); moe=(tp)");
  EXPECT_FALSE(strategies_from("fc=(tp); moe=(ddp)", experts, system));
}

TEST(Strategy, experts_of_a_recommender_follow_its_mlp_unless_they_have_a_strategy) {
  const System system = catalogue_system("zionex_128");
  const SampleWork work = catalogue_work("dlrm_a_moe");
  EXPECT_EQ(text_of(strategies("mlp=(tp,ddp)", work, system), work), "emb=(mp); mlp=(tp,ddp); moe=(tp,ddp)");
  EXPECT_EQ(text_of(strategies("mlp=(ddp); moe=(ddp,tp)", work, system), work), "emb=(mp); mlp=(ddp); moe=(ddp,tp)");
}

// 16 nodes of 8.
TEST(Strategy, degrees_follow_from_the_machine) {
  const SampleWork work = catalogue_work("dlrm_a");
  const System system = catalogue_system("zionex_128");
  const auto count = [&](const char* text, auto of) {
    return of(strategies(text, work, system)[LayerClass::mlp], system);
  };
  EXPECT_EQ(count("mlp=(ddp)", copies), 128);
  EXPECT_EQ(count("mlp=(fsdp)", copies), 128);
  EXPECT_EQ(count("mlp=(tp)", copies), 1);
  EXPECT_EQ(count("mlp=(tp,ddp)", copies), 16);
  EXPECT_EQ(count("mlp=(ddp,tp)", copies), 8);
  EXPECT_EQ(count("mlp=(fsdp,tp)", copies), 8);
  EXPECT_EQ(count("mlp=(ddp)", shards), 1);
  EXPECT_EQ(count("mlp=(fsdp)", shards), 128);
  EXPECT_EQ(count("mlp=(fsdp,ddp)", shards), 8);
  EXPECT_EQ(count("mlp=(fsdp,tp)", shards), 128);
  EXPECT_EQ(count("mlp=(ddp,tp)", shards), 16);
}

TEST(Batch, the_global_batch_is_a_local_batch_times_copies) {
  const SampleWork work = catalogue_work("dlrm_a");
  const System system = catalogue_system("zionex_128");
  const auto batch = [&](std::optional<std::int64_t> given, const char* local) {
    return global_batch_of(given, local_batches_from(local, work).value(), strategies("mlp=(tp,ddp)", work, system),
                           work, system);
  };
  EXPECT_EQ(batch({}, "mlp=4096").value(), 65536);
  EXPECT_EQ(batch({}, "emb=65536").value(), 65536);
  EXPECT_EQ(batch(65536, "mlp=4096; emb=65536").value(), 65536);
  EXPECT_FALSE(batch(65536, "mlp=512"));
  EXPECT_FALSE(batch({}, "mlp=4096; emb=4096"));
  EXPECT_FALSE(batch({}, ""));
  EXPECT_FALSE(batch(1000, ""));
}

TEST(System, only_whole_nodes_and_one_node_stays_one) {
  EXPECT_EQ(catalogue_system("zionex_128", 256).nodes(), 32);
  EXPECT_FALSE(scaled(catalogue_system("zionex_128"), 100));
  EXPECT_FALSE(scaled(catalogue_system("zionex_8"), 16));
  EXPECT_EQ(catalogue_system("zionex_128", 8).nodes(), 1);
}

// An entry of the catalogue that is scaled equals the entry of the larger size.
TEST(System, catalogue_entries_of_several_sizes_agree) {
  System scaled_up = catalogue_system("cloud_A_a100.40_128", 1024);
  const System entry = catalogue_system("cloud_A_a100.40_1024");
  scaled_up.name = entry.name;
  scaled_up.description = entry.description;
  EXPECT_EQ(scaled_up, entry);
}

// 12 x 50 GB/s, both directions, x 0.6667 / 2 = 200 GB/s; per device of a node of 8, 8 x 25 GB/s x 0.56 / 2 / 8 = 7
// GB/s.
TEST(System, rates_are_of_one_direction_times_utilisation) {
  const System system = catalogue_system("zionex_128");
  EXPECT_NEAR(system.scale_up.rate().value(), 200.01e9, 1e3);
  EXPECT_NEAR(system.scale_out.rate().value() / 8.0, 7e9, 1e-3);
  EXPECT_NEAR(system.effective_peak(4).value(), 109.98e12, 1e3);
  EXPECT_NEAR(system.effective_peak(2).value(), 219.96e12, 1e3);
  EXPECT_EQ(system.effective_peak(8), system.peak.fp64 * system.peak_utilisation);
  EXPECT_EQ(system.effective_peak(1), system.peak.int8 * system.peak_utilisation);
}

TEST(Systems, all_load_print_and_read_back) {
  const auto listed = list_systems(ORRERY_DATA_DIR).value();
  EXPECT_EQ(listed.size(), 66U);
  for (const auto& entry : listed) {
    const System system = load_system(ORRERY_DATA_DIR, entry.name, 0).value();
    const auto again = config::Described<System>::record().read(config::parse_yaml(describe(system), "again").value());
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, system);
    EXPECT_EQ(entry.unverified, 0) << entry.name;
  }
}

// Faster links, more memory bandwidth or a higher peak never increase the time.
TEST(Evaluator, no_strategy_is_slower_on_a_better_machine) {
  for (const char* model : {"dlrm_a_moe", "dlrm_i_transformer", "llama_7b", "vit_l"}) {
    const SampleWork work = catalogue_work(model);
    const System system = catalogue_system("zionex_128");
    std::vector<System> better(4, system);
    better[0].scale_up.bandwidth *= 2.0;
    better[1].scale_out.bandwidth *= 2.0;
    better[2].memory_bandwidth *= 2.0;
    better[3].peak_utilisation = 1.0;
    for (const Task task : {Task::pretrain, Task::inference}) {
      const RunSettings job{task, {}, 65536, false};
      Evaluator plain(work, system, job);
      for (const auto& machine : better) {
        Evaluator improved(work, machine, job);
        for (const auto& one : search(plain, {{}, 10'000}).best) {
          const auto same = strategies(one.strategy, work, system);
          EXPECT_LE(improved.answer(same).outcome.end, one.step_time * (1.0 + 1e-12)) << one.strategy;
        }
      }
    }
  }
}

// The iteration takes at least the busy time of each stream, and at most that of both together.
TEST(Evaluator, an_iteration_is_between_its_longer_stream_and_the_sum) {
  for (const char* model : {"dlrm_a_moe", "dlrm_i_transformer", "llama_7b", "gpt4_1.8t", "vit_l"}) {
    const SampleWork work = catalogue_work(model);
    const System system = catalogue_system("zionex_128");
    Evaluator evaluator(work, system, {Task::pretrain, {}, 65536, false});
    for (const auto& one : search(evaluator, {{}, 10'000}).best) {
      const Seconds compute = one.breakdown.gemm + one.breakdown.embedding;
      EXPECT_GE(one.step_time, max(compute, one.breakdown.communication()) * (1.0 - 1e-12)) << one.strategy;
      EXPECT_LE(one.step_time, (compute + one.breakdown.communication()) * (1.0 + 1e-12)) << one.strategy;
    }
  }
}

TEST(Search, evaluates_every_strategy_and_the_memory_rule_only_excludes) {
  const SampleWork work = catalogue_work("dlrm_a_transformer");
  const System system = catalogue_system("zionex_128");
  Evaluator with_rule(work, system, {Task::pretrain, {}, 65536, true});
  Evaluator without_rule(work, system, {Task::pretrain, {}, 65536, false});
  const auto fitting_results = search(with_rule, {{}, 10'000});
  const auto all = search(without_rule, {{}, 10'000});
  EXPECT_EQ(fitting_results.points, 4 * 7 * 7 * 7);
  EXPECT_EQ(fitting_results.feasible + fitting_results.over_memory, fitting_results.evaluated);
  EXPECT_EQ(all.best.size(), static_cast<std::size_t>(all.points));
  EXPECT_TRUE(std::is_sorted(all.best.begin(), all.best.end(),
                             [](const auto& a, const auto& b) { return a.step_time < b.step_time; }));
  std::vector<std::string> fitting;
  for (const auto& one : all.best) {
    if (one.needed <= one.capacity) { fitting.push_back(one.strategy); }
  }
  std::vector<std::string> found;
  for (const auto& one : fitting_results.best) { found.push_back(one.strategy); }
  EXPECT_EQ(found, fitting);
}

TEST(Search, strategies_with_fractions_of_samples_are_excluded_and_counted) {
  const SampleWork work = catalogue_work("dlrm_a");
  const System system = catalogue_system("zionex_128");
  Evaluator evaluator(work, system, {Task::pretrain, {}, 16, false});
  const auto found = search(evaluator, {{}, 100});
  EXPECT_EQ(found.points, 28);
  EXPECT_EQ(found.points, found.evaluated + found.uneven_batch);
  EXPECT_FALSE(found.has_baseline);  // (fsdp) has 128 copies
  for (const auto& one : found.best) {
    for (const auto& each : one.classes) { EXPECT_EQ(each.local_batch * each.copies, 16) << one.strategy; }
  }
}

TEST(SampleWork, unsupported_models_are_refused_and_uncounted_parts_are_reported) {
  const auto of = [](const char* name) {
    return work_of(workload::load_model(ORRERY_DATA_DIR, name).value(), hardware::Precision::bf16, 2048);
  };
  EXPECT_FALSE(of("t5-11b"));
  EXPECT_FALSE(of("deepseek-v3"));  // its first layers are dense
  EXPECT_THAT(of("llama-2-70b")->not_counted, ::testing::SizeIs(2));
  EXPECT_FALSE(work_of(workload::load_model(ORRERY_DATA_DIR, "madmax/dlrm_a").value(), hardware::Precision::bf16, 64));
}

}  // namespace
}  // namespace orrery::madmax::strategy_test
