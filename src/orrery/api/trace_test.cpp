#include "orrery/api/trace.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "orrery/api/trace_names.hpp"
#include "orrery/core/test_effort.hpp"
#include "orrery/core/text.hpp"

namespace orrery::api::trace_test {
namespace {

namespace fs = std::filesystem;
using graph::Problem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A temporary folder.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("orrery-trace-test-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

constexpr const char* kStep = R"({"schema":"orrery.trace-nodes/1","version":"0.0.4"}
{"id":1,"name":"mm","type":"COMP_NODE","duration_micros":5,"attr":[{"name":"op_schema","string_val":"aten::mm"}]}
{"id":2,"name":"sum","type":"COMM_COLL_NODE","data_deps":[1],"attr":[{"name":"comm_type","int64_val":0},{"name":"comm_size","int64_val":64}]}
)";

TEST(TraceNames, prefix_rank_and_suffix) {
  const auto parts = [](const std::string& path) {
    const TraceName name = trace_name(path);
    return std::vector<std::string>{name.prefix, name.rank ? std::to_string(*name.rank) : "-", name.suffix};
  };
  EXPECT_THAT(parts("dir.1/w.12.et.gz"), ElementsAre("dir.1/w", "12", ".et.gz"));
  EXPECT_THAT(parts("w.et"), ElementsAre("w", "-", ".et"));
  EXPECT_THAT(parts("w.3"), ElementsAre("w", "3", ""));
  EXPECT_THAT(parts("llama-3.1.0.jsonl"), ElementsAre("llama-3.1", "0", ".jsonl"));
  EXPECT_THAT(parts("dir/.et"), ElementsAre("dir/.et", "-", ""));
}

TEST(TraceNames, several_files_get_several_names) {
  EXPECT_THAT(output_names({"a/w.7.et", "a/w.3.et"}, "o.jsonl.gz"), ElementsAre("o.7.jsonl.gz", "o.3.jsonl.gz"));
  EXPECT_THAT(output_names({"a/w.et", "b/w.et"}, "o.et"), ElementsAre("o.0.et", "o.1.et"));
  EXPECT_THAT(output_names({"a/w.7.et"}, "o.et"), ElementsAre("o.et"));
}

TEST(TraceNames, a_job_is_files_that_differ_in_rank) {
  const auto jobs = jobs_of({"a.1.et", "b.0.et", "a.0.et", "c.et"});
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 1U);
  EXPECT_EQ(jobs->front().name, "a.*.et");
  EXPECT_THAT(jobs->front().files, ElementsAre(2, 0));
  EXPECT_THAT(jobs_of({"a.0.et", "a.00.et"}).error().text(), HasSubstr("has rank 0 of its job, and so has a.0.et"));
}

TEST(Trace, errors_of_all_files_are_collected) {
  const Folder folder;
  const std::string good = folder.write("good.jsonl", kStep);
  const auto info = trace_info({"nowhere.et", good, "nowhere-else.et"});
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().diagnostics.size(), 2U);
  EXPECT_FALSE(trace_check({good, "nowhere.et"}));
}

TEST(Trace, info_counts) {
  const Folder folder;
  const auto info = trace_info({folder.write("a.jsonl", kStep)});
  ASSERT_TRUE(info) << info.error().text();
  const auto& file = info->files.front();
  EXPECT_EQ(file.file.nodes, 2U);
  EXPECT_EQ(file.file.format, "json-lines");
  EXPECT_EQ(file.data_deps, 1U);
  EXPECT_THAT(file.collectives, ElementsAre(std::pair<std::string, std::uint64_t>("ALL_REDUCE", 1)));
}

TEST(Trace, a_file_converted_and_converted_back_has_the_same_bytes) {
  const Folder folder;
  const std::string lines = folder.write("a.jsonl", kStep);
  ASSERT_TRUE(trace_convert({lines}, folder.file("a.et.gz")));
  ASSERT_TRUE(trace_convert({folder.file("a.et.gz")}, folder.file("b.jsonl")));
  EXPECT_EQ(content(folder.file("b.jsonl")), kStep);
  EXPECT_TRUE(trace_diff(lines, folder.file("a.et.gz"))->difference.none());
  ASSERT_TRUE(trace_convert({lines}, folder.file("a.et.zst")));
  EXPECT_EQ(content(folder.file("a.et.zst")).substr(0, 4), "\x28\xb5\x2f\xfd");
  EXPECT_TRUE(trace_diff(lines, folder.file("a.et.zst"))->difference.none());
}

TEST(Trace, anonymized_files_of_a_sound_job_are_sound) {
  const Folder folder;
  const std::vector<std::string> files = {folder.write("a.0.jsonl", kStep), folder.write("a.1.jsonl", kStep)};
  const auto written = trace_anonymize(files, folder.file("plain.et"));
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_THAT(written->files, ElementsAre(folder.file("plain.0.et"), folder.file("plain.1.et")));
  const auto check = trace_check(written->files);
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->sound());
  EXPECT_EQ(check->jobs.size(), 1U);
  EXPECT_THAT(content(written->files[0]), testing::Not(HasSubstr("aten")));
}

TEST(Trace, a_failed_conversion_leaves_no_file) {
  const Folder folder;
  const std::string cut = folder.write("cut.jsonl", std::string(kStep) + "{\"id\":");
  EXPECT_FALSE(trace_convert({cut}, folder.file("o.et")));
  EXPECT_FALSE(trace_timeline({cut}, folder.file("o.json")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

// ---- files in use ----

fs::path shared(const std::string& name) {
  return fs::path(ORRERY_SOURCE_DATA_DIR).parent_path().parent_path() / "shared/data" / name;
}

std::vector<std::string> traces_in(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".et") { found.push_back(entry.path().string()); }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Problem> problems(const results::TraceCheck& check) {
  std::vector<Problem> found;
  const auto add = [&](const std::vector<graph::Finding>& findings) {
    for (const auto& finding : findings) { found.push_back(finding.problem); }
  };
  for (const auto& file : check.files) { add(file.findings); }
  for (const auto& job : check.jobs) { add(job.findings); }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

TEST(SharedTraces, generated_jobs_are_sound) {
  if (!fs::exists(shared("traces"))) { GTEST_SKIP() << shared("traces") << " is not here"; }
  for (const char* job : {"traces/stg/gpt4L_dp2_tp2_pp2", "traces/astrasim_et/custom_ring_allreduce_8npus_1MB"}) {
    const auto check = trace_check(traces_in(shared(job)));
    ASSERT_TRUE(check) << check.error().text();
    EXPECT_EQ(check->files.size(), 8U);
    EXPECT_EQ(check->jobs.size(), 1U);
    EXPECT_TRUE(check->sound()) << job;
    EXPECT_THAT(problems(*check), IsEmpty());
  }
  TraceCheckOptions options;
  options.groups = shared("traces/stg/gpt4L_dp2_tp2_pp2/workload.json").string();
  EXPECT_TRUE(trace_check(traces_in(shared("traces/stg/gpt4L_dp2_tp2_pp2")), options)->sound());
}

// The converter drops the root node of the process but keeps dependencies on it, for which strict readers reject the
// files.
TEST(SharedTraces, converted_ranks_depend_on_a_missing_root_and_match_each_other) {
  const fs::path folder = shared("traces/derived/dlrm8_rf_injected");
  if (!fs::exists(folder)) { GTEST_SKIP() << folder << " is not here"; }
  const auto check = trace_check(traces_in(folder));
  ASSERT_TRUE(check) << check.error().text();
  EXPECT_THAT(problems(*check), ElementsAre(Problem::missing_parent));
  for (const auto& file : check->files) { EXPECT_EQ(file.findings.front().count, 2U); }
  EXPECT_TRUE(check->jobs.front().sound());
}

TEST(SharedTraces, a_step_of_an_old_converter_has_these_problems) {
  const fs::path archive = shared("traces/chakra/feeder_tests_trace.tar.gz");
  if (!fs::exists(archive)) { GTEST_SKIP() << archive << " is not here"; }
  const Folder folder;
  ASSERT_EQ(std::system(("tar -xf '" + archive.string() + "' -C '" + folder.path().string() + "'").c_str()), 0);
  const auto check = trace_check({folder.file("tests/data/chakra.0.et")});
  ASSERT_TRUE(check) << check.error().text();
  EXPECT_THAT(problems(*check), ElementsAre(Problem::missing_parent, Problem::cycle, Problem::self_dependency,
                                            Problem::missing_attribute, Problem::not_compared));
  EXPECT_EQ(check->files[0].findings[3].count, 28U);  // 14 of 21 collectives have neither type nor size
}

// Every folder of the archive is a sound job, or several.
TEST(SharedTraces, inputs_of_astra_sim_are_sound_and_convert_to_json_lines_and_back) {
  const fs::path archive = shared("astra-sim/inputs.tar.xz");
  if (!fs::exists(archive)) { GTEST_SKIP() << archive << " is not here"; }
  const Folder folder;
  ASSERT_EQ(std::system(("tar -xf '" + archive.string() + "' -C '" + folder.path().string() + "'").c_str()), 0);
  std::map<std::string, std::vector<std::string>> jobs;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.path().extension() == ".et") { jobs[entry.path().parent_path().string()].push_back(entry.path()); }
  }
  EXPECT_GT(jobs.size(), 50U);
  constexpr std::size_t kStride = orrery::test::kSanitizers ? 5 : 1;
  std::size_t read = 0;
  for (auto& [name, files] : jobs) {
    if (read++ % kStride != 0) { continue; }
    const auto check = trace_check(files);
    ASSERT_TRUE(check) << check.error().text();
    EXPECT_TRUE(check->sound()) << name;
    const std::string lines = folder.file("lines.jsonl");
    const std::string back = folder.file("back.et");
    const std::string again = folder.file("again.et");
    ASSERT_TRUE(trace_convert({files[0]}, lines) && trace_convert({lines}, back) && trace_convert({files[0]}, again));
    EXPECT_EQ(content(back), content(again)) << name;
    EXPECT_TRUE(trace_diff(files[0], back)->difference.none()) << name;
  }
}

}  // namespace
}  // namespace orrery::api::trace_test
