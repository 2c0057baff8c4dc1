// Plans written as graphs, checked as a job and run to the end: one for every feature of plans.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/api/generate.hpp"
#include "orrery/api/plan_simulation.hpp"
#include "orrery/api/simulate.hpp"
#include "orrery/api/trace.hpp"
#include "orrery/trace/test_folder.hpp"

namespace orrery::api::generate_test {

using parallel::ScheduleKind;

GenerateRequest request_of(const char* model, std::int64_t devices, std::int64_t batch) {
  GenerateRequest request;
  request.job.model = model;
  request.job.cluster = "dgx-h100";
  request.job.devices = devices;
  request.job.global_batch = batch;
  request.job.seq = 2048;
  request.job.micro_batch = 1;
  request.options.granularity = generate::Granularity::block;
  return request;
}

struct Job {
  const char* name;
  GenerateRequest request;
};

GenerateRequest llama(std::int64_t devices, std::int64_t batch) { return request_of("llama-3.1-8b", devices, batch); }

std::vector<Job> training_jobs() {
  std::vector<Job> jobs;
  const auto add = [&](const char* name, GenerateRequest request, auto&& change) {
    change(request.job);
    jobs.push_back({name, std::move(request)});
  };
  add("tp, sequence parallel, overlap", llama(8, 4), [](auto& job) {
    job.tp = 4;
    job.sequence_parallel = true;
    job.tp_overlap = parallel::TpOverlap::ring;
  });
  add("ring attention", llama(8, 4), [](auto& job) { job.cp = 4; });
  add("ulysses", llama(8, 4), [](auto& job) {
    job.cp = 4;
    job.cp_method = workload::ContextMethod::ulysses;
  });
  add("1f1b", llama(8, 8), [](auto& job) { job.pp = 4; });
  add("interleaved", llama(8, 16), [](auto& job) {
    job.pp = 4;
    job.vpp = 2;
    job.schedule = ScheduleKind::interleaved;
  });
  add("zero-bubble", llama(8, 16), [](auto& job) {
    job.pp = 4;
    job.schedule = ScheduleKind::zero_bubble;
  });
  add("dualpipe with experts", request_of("mixtral-8x22b", 16, 48), [](auto& job) {
    job.pp = 4;
    job.ep = 4;
    job.schedule = ScheduleKind::dualpipe;
  });
  add("HSDP", llama(16, 16), [](auto& job) {
    job.zero = 3;
    job.shard = 8;
  });
  add("offload", llama(8, 8), [](auto& job) {
    job.cluster = "gb200-nvl72";
    job.offload = parallel::Offload{true, true, true};
  });
  add("tp across nodes", llama(16, 16), [](auto& job) {
    job.tp = 2;
    job.placement = parallel::Placement{.tp = 1, .dp = 0};
  });
  add("stages inside a node", llama(16, 16), [](auto& job) {
    job.pp = 4;
    job.placement = parallel::Placement{.pp = 0};
  });
  add("LoRA", llama(8, 8), [](auto& job) {
    job.task = parallel::Task::finetune;
    job.lora = 16;
  });
  return jobs;
}

// What a rank keeps, computes again, or splits.
std::vector<Job> jobs_of_shards() {
  std::vector<Job> jobs;
  const auto add = [&](const char* name, GenerateRequest request, auto&& change) {
    change(request.job);
    jobs.push_back({name, std::move(request)});
  };
  add("tp without sequence parallelism", llama(4, 4), [](auto& job) {
    job.tp = 4;
    job.sequence_parallel = false;
  });
  add("experts split over etp", request_of("mixtral-8x22b", 8, 8), [](auto& job) {
    job.tp = 2;
    job.ep = 4;
    job.etp = 2;
  });
  add("ZeRO 0", llama(4, 8), [](auto& job) { job.zero = 0; });
  add("ZeRO 2", llama(4, 8), [](auto& job) { job.zero = 2; });
  add("ZeRO 3", llama(4, 8), [](auto& job) { job.zero = 3; });
  add("recompute", llama(4, 8), [](auto& job) {
    job.tp = 2;
    job.recompute = parallel::Recompute::full;
  });
  return jobs;
}

std::vector<Job> other_jobs() {
  std::vector<Job> jobs;
  GenerateRequest inference = request_of("llama-3.1-8b", 8, 4);
  inference.job.task = parallel::Task::inference;
  inference.job.global_batch = std::nullopt;
  inference.job.seq = std::nullopt;
  inference.job.micro_batch = std::nullopt;
  inference.job.tp = 2;
  inference.job.pp = 2;
  inference.job.prompt = 512;
  inference.job.generate = 4;
  inference.job.batch = 8;
  jobs.push_back({"prefill and decode", inference});
  inference.job.generate = 1;
  jobs.push_back({"prefill", inference});
  GenerateRequest recommender = request_of("dlrm-criteo-1tb", 8, 4096);
  recommender.job.seq = std::nullopt;
  recommender.job.micro_batch = std::nullopt;
  jobs.push_back({"recommender", recommender});
  jobs.push_back({"encoder-decoder", request_of("t5-large", 8, 8)});
  return jobs;
}

// Rules of ASTRA-sim, whose own program has run jobs like these (docs/guide/generate.md): one communication node per
// rank at a time, and chunk numbers that the ranks of a group must share.
void expect_runs_in_astra_sim(const Job& job, const trace::test::Folder& folder, std::int64_t ranks) {
  simulate::SimulationFiles files;
  files.workload = folder.file("run");
  files.groups = folder.file("run.groups.json");
  files.system = folder.write("system.json", R"({"scheduling-policy": "LIFO", "endpoint-delay": 10,
    "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4, "local-mem-bw": 3350,
    "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["direct"],
    "collective-optimization": "localBWAware"})");
  files.network = folder.write("network.yml", "topology: [Switch]\nnpus_count: [" + std::to_string(ranks) +
                                                  "]\nbandwidth: [50]\nlatency: [500]\n");
  files.memory = folder.write(
      "memory.json", R"({"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 1000, "remote-mem-bw": 50})");
  for (const auto backend : {simulate::Backend::congestion_unaware, simulate::Backend::congestion_aware}) {
    files.backend = backend;
    const auto simulated = simulate(files);
    EXPECT_TRUE(simulated.has_value()) << job.name << ": " << simulated.error().text();
  }
}

void expect_runs(const Job& job) {
  const trace::test::Folder folder;
  GenerateRequest request = job.request;
  request.out = folder.file("run");
  const auto written = generate(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(written.has_value()) << job.name << ": " << written.error().text();
  std::vector<std::string> files;
  for (std::int64_t rank = 0; rank < written->ranks; ++rank) {
    files.push_back(folder.file("run." + std::to_string(rank) + ".et"));
  }
  const auto check = trace_check(files);
  ASSERT_TRUE(check.has_value());
  EXPECT_TRUE(check->sound()) << job.name;
  const auto simulated = simulate_on_cluster(ORRERY_SOURCE_DATA_DIR, request.job.cluster, {request.out}, {});
  ASSERT_TRUE(simulated.has_value()) << job.name << ": " << simulated.error().text();
  EXPECT_EQ(simulated->ranks.size(), static_cast<std::size_t>(written->ranks)) << job.name;
  expect_runs_in_astra_sim(job, folder, written->ranks);
}

TEST(Generate, training_jobs_are_sound_and_run_to_the_end) {
  for (const Job& job : training_jobs()) { expect_runs(job); }
  for (const Job& job : jobs_of_shards()) { expect_runs(job); }
}

TEST(Generate, inference_recommenders_and_encoder_decoders_are_sound_and_run_to_the_end) {
  for (const Job& job : other_jobs()) { expect_runs(job); }
}

simulate::SimulationFiles flow() {
  simulate::SimulationFiles files;
  files.backend = simulate::Backend::flow;
  return files;
}

// A plan simulated in memory, its files by class, and its files by rank: the same times on every rank, folded or not.
void expect_same_times(const Job& job) {
  const trace::test::Folder folder;
  GenerateRequest request = job.request;
  request.out = folder.file("ranks");
  ASSERT_TRUE(generate(ORRERY_SOURCE_DATA_DIR, request).has_value());
  request.out = folder.file("classes");
  request.files.classes = true;
  ASSERT_TRUE(generate(ORRERY_SOURCE_DATA_DIR, request).has_value());
  PlanSimulationOptions options;
  options.graphs = request.options;
  const auto plan = simulate_plan(ORRERY_SOURCE_DATA_DIR, request.job, options);
  ASSERT_TRUE(plan.has_value()) << job.name << ": " << plan.error().text();
  EXPECT_EQ(plan->simulation.simulated_ranks, static_cast<std::uint64_t>(request.job.pp.value_or(1))) << job.name;
  const auto simulated = [&](const char* prefix, simulate::Folding folding) {
    const auto result =
        simulate_on_cluster(ORRERY_SOURCE_DATA_DIR, request.job.cluster, {folder.file(prefix)}, flow(), {folding, {}});
    EXPECT_TRUE(result.has_value()) << job.name << ": " << result.error().text();
    return result ? result->ranks : results::RankRuns<results::SimulatedRank>();
  };
  EXPECT_EQ(simulated("classes", simulate::Folding::automatic), plan->simulation.ranks) << job.name;
  EXPECT_EQ(simulated("classes", simulate::Folding::off), plan->simulation.ranks) << job.name;
  // Files of single ranks are numbered by device.
  const auto by_device = simulated("ranks", simulate::Folding::automatic);
  const auto& by_rank = plan->simulation.ranks;
  EXPECT_TRUE(std::is_permutation(by_device.begin(), by_device.end(), by_rank.begin(), by_rank.end())) << job.name;
  if (!request.job.placement) { EXPECT_EQ(by_device, by_rank) << job.name; }
}

TEST(Generate, a_plan_and_its_files_take_the_same_time) {
  for (const Job& job : training_jobs()) { expect_same_times(job); }
  for (const Job& job : jobs_of_shards()) { expect_same_times(job); }
  for (const Job& job : other_jobs()) { expect_same_times(job); }
}

// Files of single ranks on links of the cluster: with one rank of each class, the results of all ranks. Returns whether
// ranks were folded.
bool expect_folds_on_links(const Job& job) {
  const trace::test::Folder folder;
  GenerateRequest request = job.request;
  request.out = folder.file("ranks");
  EXPECT_TRUE(generate(ORRERY_SOURCE_DATA_DIR, request).has_value()) << job.name;
  simulate::SimulationFiles files;
  files.backend = simulate::Backend::congestion_aware;
  const auto simulated = [&](simulate::Folding folding) {
    return simulate_on_cluster(ORRERY_SOURCE_DATA_DIR, request.job.cluster, {request.out}, files, {folding, {}});
  };
  const auto all = simulated(simulate::Folding::off), some = simulated(simulate::Folding::automatic);
  EXPECT_EQ(all.has_value(), some.has_value()) << job.name;
  if (!all || !some) { return false; }
  EXPECT_EQ(some->ranks, all->ranks) << job.name;
  const bool is_folded = some->simulated_ranks < all->simulated_ranks;
  EXPECT_EQ(some->warnings.size(), all->warnings.size() + (is_folded ? 0 : 1)) << job.name;
  return is_folded;
}

TEST(Generate, files_of_ranks_fold_on_links_without_a_change_of_times) {
  int folded = 0;
  for (const auto& jobs : {training_jobs(), jobs_of_shards(), other_jobs()}) {
    for (const Job& job : jobs) { folded += expect_folds_on_links(job) ? 1 : 0; }
  }
  EXPECT_GE(folded, 8);
  RecordProperty("folded", folded);
}

// Every change of a classes file, or of the graphs, is one error with its place.
TEST(Generate, a_classes_file_that_does_not_match_is_an_error) {
  const trace::test::Folder folder;
  GenerateRequest request = request_of("llama-3.1-8b", 8, 8);
  request.job.tp = 2;
  request.job.pp = 2;
  request.job.cp = 2;
  request.out = folder.file("run");
  request.files.classes = true;
  ASSERT_TRUE(generate(ORRERY_SOURCE_DATA_DIR, request).has_value());
  const std::string right = folder.content("run.classes.json");
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    (void)folder.write("run.classes.json", text);
    const auto result = simulate_on_cluster(ORRERY_SOURCE_DATA_DIR, "dgx-h100", {folder.file("run")}, flow());
    EXPECT_FALSE(result.has_value()) << from << " -> " << to;
    return result ? std::string() : result.error().text();
  };
  const auto expect_error = [&](const char* from, const char* to, const char* message) {
    const std::string text = error_with(from, to);
    EXPECT_NE(text.find(message), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  expect_error("orrery.classes/1", "orrery.classes/2", "valid: \"orrery.classes/1\"");
  expect_error("\"ranks\": 8", "\"ranks\": 16", "is 16, but the classes have 8 ranks together");
  expect_error("run.class1.et", "run.class9.et", "run.class9.et: does not exist");
  expect_error("\"tp\"", "\"tq\"", "has the pg_name \"tp\", but there is no such process group");
  expect_error("\"first_rank\": 4", "\"first_rank\": 5", "has ranks 5 to 8; expected 4 to 7");
  expect_error("\"degree\": 2", "\"degree\": 7", "stride");
  expect_error("\"ranks\": 8", "\"ranks\": 0", "\"0\" is not valid; valid: a whole number from 1");
  expect_error("\"node_ports\": \"all\"", "\"node_ports\": \"two\"", "\"two\" is not valid; valid: one, all");
  expect_error("\"node_ports\"", "\"node_port\"", "unknown key; did you mean \"node_ports\"?");
  expect_error("\"first_name\": 1,", "\"first_name\": 2,", "those of \"tp\" are named 2 to 5");
  expect_error("\"kind\": \"strided\"", "\"kind\": \"striped\"", "\"striped\" is not valid; valid: strided, mirrored");
  // The first stage twice.
  std::filesystem::copy_file(folder.file("run.class0.et"), folder.file("other.et"));
  expect_error("run.class1.et", "other.et", "has the comm_dst 4, its own rank");
  // Larger micro-batches on the second stage.
  request.job.micro_batch = 2;
  request.out = folder.file("more");
  ASSERT_TRUE(generate(ORRERY_SOURCE_DATA_DIR, request).has_value());
  expect_error("run.class1.et", "more.class1.et", "run.class0.et rank 0, node");
}

TEST(Generate, a_plan_that_does_not_fit_is_written_with_a_warning) {
  const trace::test::Folder folder;
  GenerateRequest request = request_of("llama-3.1-405b", 8, 8);
  request.out = folder.file("run");
  const auto written = generate(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(written.has_value());
  ASSERT_EQ(written->warnings.size(), 1U);
  EXPECT_NE(written->warnings.front().find("does not fit in memory"), std::string::npos);
}

}  // namespace orrery::api::generate_test
