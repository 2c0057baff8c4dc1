// Whole tables: what predictions may depend on, order, families, errors.
#include "orrery/validate/validate.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "orrery/validate/csv.hpp"
#include "orrery/validate/serving_rows.hpp"
#include "orrery/validate/setups.hpp"

namespace orrery::validate::validate_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::string shipped_training() { return std::string(ORRERY_SOURCE_DATA_DIR) + "/measurements/training.csv"; }

// A file that lasts as long as its object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    static int count = 0;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ =
        fs::temp_directory_path() / ("orrery_validate_" + std::string(test->name()) + std::to_string(++count) + ".csv");
    std::ofstream(path_, std::ios::binary) << content;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { fs::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

results::Validation validated(const std::vector<std::string>& files, const std::vector<std::string>& families = {}) {
  auto validation = validate_tables(ORRERY_SOURCE_DATA_DIR, files, families);
  EXPECT_TRUE(validation) << (validation ? "" : validation.error().text());
  return validation ? std::move(*validation) : results::Validation{};
}

std::string complaint(const std::vector<std::string>& files, const std::vector<std::string>& families = {}) {
  const auto validation = validate_tables(ORRERY_SOURCE_DATA_DIR, files, families);
  EXPECT_FALSE(validation);
  return validation ? "" : validation.error().text();
}

std::string written(const std::vector<std::string>& cells) {
  std::string line;
  for (const auto& cell : cells) {
    line += line.empty() ? "\"" : ",\"";
    for (const char c : cell) { line += c == '"' ? std::string("\"\"") : std::string(1, c); }
    line += '"';
  }
  return line + "\n";
}

// Of a row with one time.
const std::set<std::string> kMeasured = {
    "value",   "value2",         "value_spread", "step_time_s", "step_time_quality",
    "time_us", "tflops",         "gbps",         "algbw_GBps",  "busbw_GBps",
    "notes",   "unit",           "metric2",      "unit2",       "params_b",
    "quality", "engine_version", "unscored",     "measured_s"};

// The table with its measured columns blank and its names scrambled.
// Commands name files beside their table, and their source is their family.
std::string blinded(const Csv& csv, const std::string& file, const std::set<std::string>& measured = kMeasured) {
  std::set<std::string> names = {"id", "source", "config_group"};
  const bool has_commands = std::find(csv.header.begin(), csv.header.end(), "args") != csv.header.end();
  if (has_commands) { names.erase("source"); }
  const std::regex named("@([a-z0-9-]+)");
  const std::string place = file.substr(0, file.rfind('.')) + "/$1.yaml";
  std::string text = written(csv.header);
  for (const auto& row : csv.rows) {
    std::vector<std::string> cells = row.cells;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (measured.contains(csv.header[i])) { cells[i].clear(); }
      if (csv.header[i] == "args") { cells[i] = std::regex_replace(cells[i], named, place); }
      if (names.contains(csv.header[i])) { cells[i] = std::string(cells[i].rbegin(), cells[i].rend()) + " tp=8"; }
    }
    text += written(cells);
  }
  return text;
}

// All that a prediction says, to the last bit.
std::string bytes_of(const results::Validation& validation) {
  std::string out;
  for (const auto& prediction : validation.predictions) {
    const double time = prediction.predicted_s.value_or(-1.0);
    out.append(reinterpret_cast<const char*>(&time), sizeof time);
    out += prediction.skipped_reason + (prediction.feasible ? "+" : "-") + prediction.family + "\n";
  }
  return out;
}

void expect_blind(const std::string& file) {
  const auto csv = read_table(file);
  ASSERT_TRUE(csv) << csv.error().text();
  const TemporaryFile blind(blinded(*csv, file));
  const auto seeing = validated({file}), unseeing = validated({blind.path()});
  ASSERT_EQ(seeing.predictions.size(), csv->rows.size());
  EXPECT_TRUE(bytes_of(seeing) == bytes_of(unseeing));
  EXPECT_GT(seeing.overall.scored, 0);
  EXPECT_EQ(unseeing.overall.scored, 0);
  EXPECT_EQ(unseeing.overall.predicted, seeing.overall.predicted);
}

TEST(Validate, predictions_of_the_shipped_tables_do_not_see_measurements_or_names) {
  for (const auto& file : shipped_tables(ORRERY_SOURCE_DATA_DIR)) { expect_blind(file); }
}

// Tables that are not read by default: their many rows of two cards would outweigh all others.
TEST(Validate, rows_measured_under_pytorch_are_all_predicted_without_their_measurements) {
  const std::string folder = std::string(ORRERY_SOURCE_DATA_DIR) + "/measurements/";
  for (const char* name : {"pytorch.csv", "pytorch_kernels.csv"}) { expect_blind(folder + name); }
  const auto validation = validated({folder + "pytorch.csv", folder + "pytorch_kernels.csv"});
  EXPECT_EQ(validation.overall.rows, 106 + 1190);
  EXPECT_EQ(validation.overall.scored, validation.overall.rows);
}

// One row of sixteen: all take 20 s of one core, and much longer with sanitizers.
Csv some_serving_rows() {
  auto csv = read_table(std::string(ORRERY_SOURCE_DATA_DIR) + "/measurements/serving.csv");
  EXPECT_TRUE(csv) << csv.error().text();
  EXPECT_EQ(csv->rows.size(), 1520u);
  std::vector<CsvRow> kept;
  for (std::size_t i = 0; i < csv->rows.size(); i += 16) { kept.push_back(csv->rows[i]); }
  csv->rows = kept;
  return *csv;
}

TEST(Validate, predictions_of_served_rows_do_not_see_measurements_or_names) {
  std::set<std::string> measured = {"little_ratio", "unscored"};
  for (const auto& metric : serving_metrics()) { measured.emplace(metric.column); }
  const Csv csv = some_serving_rows();
  const TemporaryFile open(blinded(csv, "serving.csv", {})), blind(blinded(csv, "serving.csv", measured));
  const auto seeing = validated({open.path()}), unseeing = validated({blind.path()});
  ASSERT_EQ(seeing.predictions.size(), csv.rows.size() * serving_metrics().size());
  EXPECT_TRUE(bytes_of(seeing) == bytes_of(unseeing));
  EXPECT_GT(seeing.overall.scored, 300);
  EXPECT_EQ(unseeing.overall.scored, 0);
}

// TTFT 100 ms + 9 x 10 ms = 190 ms: an E2E of 180 ms is theirs, one of 60 ms is that of shorter answers.
TEST(Validate, an_e2e_of_answers_that_ended_early_has_no_score) {
  const TemporaryFile table(
      "id,family,model_key,precision,gpus,gpu_type,tp,isl,osl,load_kind,load,engine,ttft_mean_ms,tpot_mean_ms,e2e_mean_"
      "ms\n"
      "whole,f,llama-3.1-8b,bf16,1,H100-SXM,1,512,10,static_batch,1,vllm,100,10,180\n"
      "early,f,llama-3.1-8b,bf16,1,H100-SXM,1,512,10,static_batch,1,vllm,100,10,60\n");
  for (const auto& row : validated({table.path()}).predictions) {
    if (!row.measured_s) { continue; }
    EXPECT_EQ(row.unscored_reason.empty(), row.id == "whole" || row.metric != "e2e_mean_ms") << row.id << row.metric;
  }
}

TEST(Validate, tables_that_ship_are_read_by_name) {
  EXPECT_EQ(validated({"pytorch"}).overall.rows, 106);
  const auto unknown = validate_tables(ORRERY_SOURCE_DATA_DIR, {"servng"}, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text(),
            "--data: \"servng\" is neither a file nor a table that ships; did you mean \"serving\"?");
  const auto missing = validate_tables(ORRERY_SOURCE_DATA_DIR, {"./serving"}, {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("does not exist"));
}

TEST(Validate, every_row_of_the_shipped_tables_is_predicted_or_says_why_not) {
  const auto validation = validated({});
  EXPECT_EQ(validation.overall.rows, 533 + 840 + 272 + 583 + 343 + 1282 + 151);
  std::vector<std::string> kinds;
  for (const auto& kind : validation.kinds) { kinds.push_back(kind.kind); }
  EXPECT_THAT(kinds, ElementsAre("training", "dlrm_moe", "inference", "kernels", "collectives", "commands"));
  std::set<std::string> ids;
  for (const auto& row : validation.predictions) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_NE(row.predicted_s.has_value(), !row.skipped_reason.empty()) << row.id;
    if (row.predicted_s) { EXPECT_GT(*row.predicted_s, 0.0) << row.id; }
    const bool scored = row.measured_s && row.predicted_s && row.unscored_reason.empty();
    EXPECT_EQ(row.signed_error().has_value(), scored) << row.id;
  }
}

// Provenance: the first word of `source` is a key of sources.csv, and every source has a title, a place and a date.
TEST(Validate, every_shipped_row_has_a_source) {
  const auto sources = read_csv(std::string(ORRERY_SOURCE_DATA_DIR) + "/measurements/sources.csv");
  ASSERT_TRUE(sources) << sources.error().text();
  std::set<std::string> known;
  for (const auto& row : sources->rows) {
    EXPECT_TRUE(known.insert(row.cells[*sources->column("key")]).second) << row.cells[0];
    const std::string& place = row.cells[*sources->column("place")];
    EXPECT_TRUE(place.starts_with("https://") || place == "README.md") << row.cells[0];  // else measured by ourselves
    for (const char* column : {"title", "read"}) { EXPECT_NE(row.cells[*sources->column(column)], "") << row.cells[0]; }
  }
  auto files = shipped_tables(ORRERY_SOURCE_DATA_DIR);
  for (const char* name : {"serving.csv", "pytorch.csv", "pytorch_kernels.csv"}) {
    files.push_back(std::string(ORRERY_SOURCE_DATA_DIR) + "/measurements/" + name);
  }
  for (const auto& file : files) {
    const auto csv = read_table(file);
    ASSERT_TRUE(csv) << csv.error().text();
    for (const auto& row : csv->rows) {
      const std::string& source = row.cells[*csv->column("source")];
      EXPECT_TRUE(known.contains(source.substr(0, source.find(' ')))) << file << ":" << row.line << " " << source;
    }
  }
}

constexpr const char* kHeader =
    "id,family,model,layers,hidden,heads,seq,gpus,gpu_type,global_batch,tp,micro_batch,recompute,step_time_s,extra\n";
constexpr const char* kGood = "a,mosaic_mpt,MPT-1b,24,2048,16,2048,8,A100-40GB,8,1,1,full,";

TEST(Validate, rows_keep_their_order_and_families_that_of_their_first_row) {
  const TemporaryFile table(std::string(kHeader) + kGood + "2.5,x\n" +
                            "b,zeta,GPT-1B,24,2048,16,2048,8,A100-40GB,8,8,1,none,,\n" + kGood + ",\n" +
                            "c,alpha,GPT-1B,24,2048,16,2048,8,TPU-v9,8,8,1,none,1,\n");
  const auto validation = validated({table.path()});
  ASSERT_EQ(validation.predictions.size(), 4U);
  EXPECT_EQ(validation.predictions[1].id, "b");
  EXPECT_EQ(validation.predictions[3].skipped_reason, "no accelerator \"TPU-v9\" in the catalogue");
  ASSERT_EQ(validation.families.size(), 3U);
  EXPECT_EQ(validation.families[0].family, "mosaic_mpt");
  EXPECT_EQ(validation.families[0].kind, "training");
  EXPECT_EQ(validation.families[0].rows, 2);
  EXPECT_EQ(validation.families[0].scored, 1);
  EXPECT_EQ(validation.families[1].family, "zeta");
  EXPECT_EQ(validation.families[2].skipped, 1);
  EXPECT_EQ(validation.overall.rows, 4);
  EXPECT_EQ(validation.overall.predicted, 3);
  EXPECT_EQ(validation.predictions[0].predicted_s, validation.predictions[2].predicted_s);
}

// 175 billion parameters on 8 accelerators of 40 GB.
TEST(Validate, a_time_is_predicted_where_memory_does_not_suffice) {
  const TemporaryFile table(std::string(kHeader) +
                            "a,megatron_sc21,GPT-175B,96,12288,96,2048,8,A100-40GB,8,8,1,full,10,\n");
  const auto validation = validated({table.path()});
  EXPECT_FALSE(validation.predictions[0].feasible);
  EXPECT_TRUE(validation.predictions[0].predicted_s.has_value());
  EXPECT_EQ(validation.overall.infeasible, 1);
}

TEST(Validate, rows_with_a_reason_have_no_score) {
  const TemporaryFile table(
      "id,family,model,layers,hidden,heads,seq,gpus,gpu_type,global_batch,step_time_s,unscored\n"
      "a,mosaic_mpt,MPT-1b,24,2048,16,2048,8,A100-40GB,8,2,\n"
      "b,mosaic_mpt,MPT-1b,24,2048,16,2048,8,A100-40GB,8,3,superseded by a newer release\n");
  const auto validation = validated({table.path()});
  EXPECT_EQ(validation.overall.predicted, 2);
  EXPECT_EQ(validation.overall.scored, 1);
  EXPECT_EQ(validation.predictions[0].unscored_reason, "");
  EXPECT_EQ(validation.predictions[1].unscored_reason, "superseded by a newer release");
  EXPECT_EQ(validation.predictions[1].measured_s, 3.0);
  EXPECT_EQ(validation.predictions[1].signed_error(), std::nullopt);
}

TEST(Validate, families_choose_rows) {
  EXPECT_EQ(validated({shipped_training()}, {"megatron_seqsel"}).overall.rows, 4);
  EXPECT_EQ(complaint({shipped_training()}, {"vtrain_mutli"}),
            "--family: unknown family \"vtrain_mutli\"; did you mean \"vtrain_multi\"?");
}

TEST(Validate, several_tables_are_one) {
  const TemporaryFile first(std::string(kHeader) + kGood + "2,\n");
  const TemporaryFile second(std::string(kHeader) + kGood + "4,\n" + kGood + "4,\n");
  EXPECT_EQ(validated({first.path(), second.path()}).families.front().rows, 3);
}

constexpr const char* kMixtures =
    "id,family,model,layers,hidden,heads,experts,topk,moe_ffn,seq,gpus,gpu_type,global_batch,ep,micro_batch,"
    "step_time_s\n";
constexpr const char* kRequests =
    "id,family,model,layers,hidden,heads,gpus,gpu_type,tp,batch_or_concurrency,isl,osl,mode,metric,value,unit\n";

// Each row: what is printed, and the time of the batch that it stands for.
TEST(Validate, the_time_of_a_batch_follows_from_what_a_table_prints) {
  const std::string start = "a,trtllm_v06_static,GPT-1B,24,2048,16,";
  const TemporaryFile table(std::string(kRequests) +                                                         //
                            start + "2,A100-80GB,2,4,128,16,static batch,end_to_end_latency,250,ms\n" +      //
                            start + "2,A100-80GB,2,4,128,1,static batch,first_token_latency,0.5,s\n" +       //
                            start + "2,A100-80GB,2,4,128,16,static batch,first_token_latency,0.5,s\n" +      //
                            start + "1,A100-80GB,1,4,128,16,static batch,output_throughput,32,tokens/s\n" +  //
                            start + "2,A100-80GB,2,4,128,16,static batch,output_throughput,32,tokens/s\n" +  //
                            start + "2,A100-80GB,2,4,128,16,static batch,output_throughput_per_gpu,32,tokens/s/GPU\n" +
                            start + "2,A100-80GB,2,4,128,16,static batch,end_to_end_latency,,ms\n");
  const auto validation = validated({table.path()});
  std::vector<double> measured;
  for (const auto& row : validation.predictions) {
    EXPECT_TRUE(row.predicted_s) << row.skipped_reason;
    measured.push_back(row.measured_s.value_or(0.0));
  }
  // 4 sequences of 16 tokens at 32 tokens/s: 2 s; of two accelerators with 32 each: 1 s.
  EXPECT_THAT(measured, ElementsAre(0.25, 0.5, 0.0, 2.0, 0.0, 1.0, 0.0));
  EXPECT_THAT(validation.predictions[2].unscored_reason, HasSubstr("is not the time of a batch"));
  EXPECT_THAT(validation.predictions[4].unscored_reason, HasSubstr("per job or per accelerator"));
  EXPECT_EQ(validation.predictions[6].unscored_reason, "");
}

TEST(Validate, tables_of_several_kinds_are_scored_apart_and_together) {
  const TemporaryFile steps(std::string(kHeader) + kGood + "2,\n");
  const TemporaryFile mixtures(std::string(kMixtures) +
                               "m,mosaic_mpt,Mixtral-8x7B,32,4096,32,8,2,14336,2048,8,H100-SXM,8,8,1,2\n"
                               "n,recommenders,DLRM,,,,,,,,8,H100-SXM,8,,,2\n");
  const TemporaryFile requests(std::string(kRequests) +
                               "r,ft,GPT-1B,24,2048,16,1,A100-80GB,1,4,128,16,static batch,"
                               "end_to_end_latency,250,ms\n");
  const auto validation = validated({steps.path(), mixtures.path(), requests.path()});
  std::vector<std::string> families, kinds;
  for (const auto& score : validation.families) { families.push_back(score.kind + "/" + score.family); }
  for (const auto& score : validation.kinds) { kinds.push_back(score.kind); }
  EXPECT_THAT(families,
              ElementsAre("training/mosaic_mpt", "dlrm_moe/mosaic_mpt", "dlrm_moe/recommenders", "inference/ft"));
  EXPECT_THAT(kinds, ElementsAre("training", "dlrm_moe", "inference"));
  EXPECT_EQ(validation.kinds[1].rows, 2);
  EXPECT_EQ(validation.kinds[1].scored, 1);
  EXPECT_EQ(validation.kinds[1].skipped, 1);
  EXPECT_EQ(validation.overall.rows, 4);
  EXPECT_EQ(validation.overall.scored, 3);
  EXPECT_EQ(validated({steps.path(), mixtures.path(), requests.path()}, {"mosaic_mpt"}).overall.rows, 2);
}

TEST(Validate, measured_cells_that_are_not_numbers_are_errors) {
  const TemporaryFile table(std::string(kHeader) + kGood + "fast,\n" + kGood + "n/a,\n" + kGood + "~2,\n");
  EXPECT_EQ(complaint({table.path()}), table.path() + ":2 step_time_s: \"fast\" is not a number of seconds\n" +
                                           table.path() + ":4 step_time_s: \"~2\" is not a number of seconds");
}

TEST(Validate, cells_that_cannot_be_read_skip_their_row) {
  const TemporaryFile table(std::string(kHeader) + "a,mosaic_mpt,MPT-1b,24.5,2048,16,2048,8,A100-40GB,8,1,1,full,1,\n" +
                            "b,mosaic_mpt,MPT-1b,24,2048,16,2048,-8,A100-40GB,8,1,1,full,1,\n" +
                            "c,mosaic_mpt,MPT-1b,24,2048,16,2048,8.0,A100-40GB,8,9e99,1,full,1,\n");
  const auto validation = validated({table.path()});
  EXPECT_EQ(validation.predictions[0].skipped_reason, "layers: \"24.5\" is not a whole number");
  EXPECT_EQ(validation.predictions[1].skipped_reason, "gpus: \"-8\" is less than 1");
  EXPECT_EQ(validation.predictions[2].skipped_reason, "tp: \"9e99\" is more than 2147483648");
}

// 2 x 1024 x 4096 x 4096 operations at 312 TFLOP/s take at least 110 us.
TEST(Validate, kernels_are_predicted_where_their_sizes_are_stated) {
  const TemporaryFile kernels(
      "id,family,op,gpu_type,dtype,m,n,k,groups,time_us\n"
      "a,bench,gemm,A100-80GB,fp16,1024,4096,4096,,150\n"
      "b,bench,grouped gemm,A100-80GB,bfloat16,256,4096,4096,4,150\n"
      "c,bench,gemm,A100-80GB,fp16,,4096,4096,,150\n"
      "d,bench,softmax,A100-80GB,fp16,1024,4096,4096,,150\n"
      "e,bench,gemm,A100-80GB,fp8_block,1024,4096,4096,,150\n");
  const auto rows = validated({kernels.path()}).predictions;
  EXPECT_GT(*rows[0].predicted_s, 110e-6);
  EXPECT_DOUBLE_EQ(*rows[0].measured_s, 150e-6);
  EXPECT_GT(*rows[1].predicted_s, 110e-6);
  EXPECT_EQ(rows[2].skipped_reason, "not stated: m");
  EXPECT_EQ(rows[3].skipped_reason, "op: \"softmax\" is not a GEMM");
  EXPECT_DOUBLE_EQ(*rows[4].predicted_s, *rows[0].predicted_s);  // no units for it: converted to two bytes
  EXPECT_EQ(rows[4].taken_as, "dtype fp8_block -> bf16");
  EXPECT_EQ(rows[0].taken_as, "");
}

// A tenth of the errors may lie on either side of the range, which is that of a kind and not of a family.
TEST(Validate, ranges_hold_the_prediction_and_the_worst_rows_say_what_they_are_made_of) {
  const auto validation = validate_tables(ORRERY_SOURCE_DATA_DIR, {shipped_training()}, {}, 2);
  ASSERT_TRUE(validation);
  std::size_t explained = 0;
  for (const auto& row : validation->predictions) {
    EXPECT_EQ(row.p10_s && row.p90_s, row.predicted_s.has_value()) << row.id;
    if (!row.predicted_s) { continue; }
    EXPECT_LT(*row.p10_s, *row.p90_s);
    EXPECT_NE(row.spread, "") << row.id;
    if (row.family == "mosaic_mpt") { EXPECT_EQ(row.spread, "dense measured"); }
    if (row.terms.empty()) { continue; }
    ++explained;
    double sum = 0.0;
    for (const auto& term : row.terms) { sum += term.seconds; }
    EXPECT_NEAR(sum, *row.predicted_s, 1e-6 * *row.predicted_s) << row.id;
  }
  std::size_t worst = 0;  // two of a family, or as many as it has
  for (const auto& family : validation->families) {
    worst += static_cast<std::size_t>(std::min<std::int64_t>(2, family.scored));
  }
  EXPECT_EQ(explained, worst);
  EXPECT_EQ(validation->overall.ranged, validation->overall.scored);
  EXPECT_GT(validation->overall.covered, 0);
}

TEST(Validate, other_tables_are_named) {
  const TemporaryFile batches("id,family,model,gpus,gpu_type,isl,osl,mode\n");
  EXPECT_THAT(complaint({batches.path()}),
              HasSubstr("not a table of inference measurements: missing column batch_or_concurrency"));
  const TemporaryFile other("id,family,model,layer,hidden,heads,seq,gpus,gpu_type,global_batch\n");
  EXPECT_THAT(complaint({other.path()}), HasSubstr("missing column layers; nearest: \"layer\""));
  EXPECT_THAT(complaint({"/no/such/table.csv"}), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace orrery::validate::validate_test
