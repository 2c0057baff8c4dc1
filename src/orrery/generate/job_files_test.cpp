// The files of a job: all of them or none.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "orrery/config/node.hpp"
#include "orrery/config/record.hpp"
#include "orrery/generate/job_files.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/trace/node_stream.hpp"
#include "orrery/trace/test_folder.hpp"

namespace orrery::generate::job_files_test {

namespace fs = std::filesystem;
using trace::test::Folder;

// Eight ranks: tp 2, pp 2, dp 2; four layers.
struct Job {
  Job() {
    c.model = parallel::test::llama(4, 512, 8, 8, 1024, 1024);
    c.plan.tp = c.plan.pp = c.plan.dp = 2;
    c.job.global_batch = 8;
    c.job.seq = 128;
    c.cluster = parallel::test::cluster_of({8});
    program.emplace(parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack));
    graphs.emplace(*program, c.cluster, c.stack, Options{});
  }
  parallel::test::Case c;
  std::optional<parallel::Program> program;
  std::optional<JobGraphs> graphs;

  [[nodiscard]] Result<results::Generation> write(const std::string& out, const JobFileOptions& options = {}) const {
    ORRERY_TRY(names, output_names(out));
    return write_job(*graphs, names, options);
  }
};

graph::Graph read(const std::string& file) {
  auto loaded = trace::load(file, {});
  ORRERY_ASSERT(loaded.has_value());
  return std::move(loaded->graph);
}

TEST(JobFiles, a_file_per_rank_and_the_groups_that_each_rank_is_in) {
  const Folder folder;
  const auto written = Job().write(folder.file("run"));
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(folder.files(), 9U);
  EXPECT_EQ(written->ranks, 8);
  const graph::Graph graph = read(folder.file("run.5.et"));
  // Rank 5 = tp 1, dp 0, stage 1. Groups by kind: tp 1-4, then dp 5-8, then dp beside the work 9-12.
  ASSERT_FALSE(graph.groups().empty());
  EXPECT_EQ(graph.groups().front().name, "3");
  EXPECT_EQ(graph.groups().front().ranks, (std::vector<std::uint64_t>{4, 5}));
  EXPECT_TRUE(folder.content("run.groups.json").starts_with("{\n\"1\": [0, 1],\n\"2\": [2, 3],\n\"3\": [4, 5]"));
}

TEST(JobFiles, every_format_has_the_same_graph) {
  const Folder folder;
  const Job job;
  for (const char* name : {"a", "b.et.gz", "c.jsonl", "d.jsonl.gz", "e.et.zst", "f.jsonl.zst"}) {
    ASSERT_TRUE(job.write(folder.file(name)));
  }
  const graph::Graph graph = read(folder.file("a.3.et"));
  for (const char* name : {"b.3.et.gz", "c.3.jsonl", "d.3.jsonl.gz", "e.3.et.zst", "f.3.jsonl.zst"}) {
    EXPECT_TRUE(read(folder.file(name)) == graph) << name;
  }
}

TEST(JobFiles, a_job_that_exists_is_replaced_as_a_whole_or_not_at_all) {
  const Folder folder;
  const Job job;
  const std::string stale = folder.write("run.12.et", "of a larger job");
  const std::string other = folder.write("run.notes.txt", "of the user");
  const auto refused = job.write(folder.file("run"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().diagnostics.front().place.file, stale);
  EXPECT_EQ(folder.files(), 2U);
  ASSERT_TRUE(job.write(folder.file("run"), {.classes = false, .replace = true, .interrupted = {}}).has_value());
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_EQ(folder.files(), 10U);
}

TEST(JobFiles, an_interrupted_job_leaves_nothing) {
  const Folder folder;
  int asked = 0;
  const auto written =
      Job().write(folder.file("run"), {.classes = false, .replace = false, .interrupted = [&] { return ++asked > 3; }});
  EXPECT_FALSE(written.has_value());
  EXPECT_GT(asked, 3);
  EXPECT_EQ(folder.files(), 0U);
}

// A folder that gets the name of a file while the job is written: the last rename that can fail.
TEST(JobFiles, a_job_that_cannot_be_replaced_stays_as_it_was) {
  const Folder folder;
  for (const char* name : {"run.0.et", "run.7.et", "run.12.et"}) { (void)folder.write(name, "of an earlier job"); }
  const auto obstruct = [&] {
    fs::create_directories(fs::path(folder.file("run.5.et")) / "of the user");
    return false;
  };
  const auto written = Job().write(folder.file("run"), {.classes = false, .replace = true, .interrupted = obstruct});
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().diagnostics.front().place.file, folder.file("run.5.et"));
  for (const char* name : {"run.0.et", "run.7.et", "run.12.et"}) {
    EXPECT_EQ(folder.content(name), "of an earlier job") << name;
  }
  EXPECT_EQ(folder.files(), 4U);
  EXPECT_TRUE(fs::exists(fs::path(folder.file("run.5.et")) / "of the user"));
  // It is there from the beginning now: refused before anything is written, with --force too.
  const auto again = Job().write(folder.file("run"), {.classes = false, .replace = true, .interrupted = {}});
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().diagnostics.front().place.file, folder.file("run.5.et"));
}

TEST(JobFiles, a_file_with_the_name_of_the_folder_of_incomplete_files_is_kept) {
  const Folder folder;
  (void)folder.write("run.partial", "of the user");
  EXPECT_FALSE(Job().write(folder.file("run"), {.classes = false, .replace = true, .interrupted = {}}).has_value());
  EXPECT_EQ(folder.content("run.partial"), "of the user");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(JobFiles, the_folder_of_an_interrupted_run_is_not_touched_without_force) {
  const Folder folder;
  fs::create_directory(folder.file("run.partial"));
  EXPECT_FALSE(Job().write(folder.file("run")).has_value());
  EXPECT_TRUE(fs::exists(folder.file("run.partial")));
  EXPECT_TRUE(Job().write(folder.file("run"), {.classes = false, .replace = true, .interrupted = {}}).has_value());
  EXPECT_FALSE(fs::exists(folder.file("run.partial")));
}

TEST(JobFiles, classes_are_one_graph_per_stage) {
  const Folder folder;
  const auto written = Job().write(folder.file("run"), {.classes = true, .replace = false, .interrupted = {}});
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->classes, 2);
  EXPECT_EQ(folder.files(), 3U);
  const auto index = config::parse_json(folder.content("run.classes.json"), "run.classes.json");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->find("schema")->scalar, "orrery.classes/1");
  EXPECT_EQ(index->find("classes")->items.size(), 2U);
  EXPECT_EQ(index->find("groups")->items.front().find("name")->scalar, "tp");
}

TEST(JobFiles, names_of_files) {
  const Folder folder;
  EXPECT_EQ(output_names(folder.file("run.et.gz"))->of_rank(3), folder.file("run.3.et.gz"));
  EXPECT_EQ(output_names(folder.file("run"))->of_class(1), folder.file("run.class1.et"));
  EXPECT_EQ(output_names(folder.file("run.et.zst"))->of_rank(3), folder.file("run.3.et.zst"));
  EXPECT_FALSE(output_names(folder.file("missing/run")).has_value());
  EXPECT_FALSE(output_names(folder.file("")).has_value());
  EXPECT_FALSE(output_names(folder.write("file", "") + "/run").has_value());
  EXPECT_FALSE(output_names("/dev/null").has_value());
}

}  // namespace orrery::generate::job_files_test
