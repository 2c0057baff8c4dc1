// Workloads of every kind against graphs that were derived by hand from what the kind means
// (docs/format/text-workload.md). A node is written as
//   id name nanoseconds <- parents                 (`host`: does not occupy the device)
//   id name COLLECTIVE bytes [dimensions] <- parents
#include "orrery/trace/text_workload.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/feeder.hpp"
#include "orrery/trace/test_records.hpp"

namespace orrery::trace::text_workload_test {
namespace {

using graph::Graph;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Lines = std::vector<std::string>;

TextWorkload fixture(const std::string& name) {
  return read_text_workload(std::string(ORRERY_SOURCE_DATA_DIR) + "/../tests/fixtures/text_workload/" + name + ".txt")
      .value();
}

TextWorkloadOptions over(std::vector<std::uint64_t> dimensions, std::uint64_t passes = 1) {
  TextWorkloadOptions options;
  options.dimensions = std::move(dimensions);
  options.passes = passes;
  return options;
}

std::string written(const Graph& graph, graph::NodeIndex node) {
  const graph::NodeRecord record = graph.record(node);
  std::string text = fmt::format("{} {}", record.id, record.name);
  if (record.type == graph::NodeType::comm_coll) {
    const auto type = static_cast<graph::CollectiveType>(graph.value(node, graph::keys::comm_type)->as_int().value());
    const auto involved = *graph.value(node, graph::keys::involved_dim);
    std::string dims;
    for (std::size_t i = 0; i < involved.size(); ++i) { dims += *involved.as_bool(i) ? '1' : '0'; }
    text += fmt::format(" {} {} [{}]", name_of(type), *graph.value(node, graph::keys::comm_size)->as_int(), dims);
    if (graph.value(node, graph::keys::comm_priority)) { text += " first"; }
    if (const auto group = graph.value(node, graph::keys::pg_name)) { text += fmt::format(" {}", *group->as_text()); }
  } else {
    text += fmt::format(" {}", graph.duration_ns(node));
    if (*graph.value(node, graph::keys::is_cpu_op)->as_bool()) { text += " host"; }
  }
  text += " <-";
  for (const std::uint64_t parent : record.data_deps) { text += fmt::format(" {}", parent); }
  return text;
}

Lines written(const Graph& graph) {
  Lines lines;
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) { lines.push_back(written(graph, node)); }
  return lines;
}

Lines imported(const std::string& name, const TextWorkloadOptions& options) {
  const auto made = text_workload_graph(fixture(name), options);
  return made ? written(made->graph) : Lines{made.error().text()};
}

// The mistakes of a text.
std::string mistakes(const std::string& text) {
  const auto parsed = parse_text_workload(text, "w.txt");
  return parsed ? "none" : parsed.error().text();
}

TEST(TextWorkload, data_parallel_overlaps_gradients_with_the_rest_of_the_backward_pass) {
  EXPECT_THAT(imported("data", over({4}, 2)),
              ElementsAre("0 a.forward 1000 <-", "1 b.forward 4000 <- 0", "2 b.weight_gradient 6000 <- 1",
                          "3 b.weight_gradient.all_reduce ALL_REDUCE 60 [1] <- 2", "4 b.input_gradient 5000 <- 2",
                          "5 a.weight_gradient 3000 <- 4", "6 a.weight_gradient.all_reduce ALL_REDUCE 30 [1] <- 5",
                          "7 a.weight_gradient.update 500 host <- 6",
                          // The second pass: each layer waits for its own weights.
                          "8 a.forward 1000 <- 5 7", "9 b.forward 4000 <- 8 3", "10 b.weight_gradient 6000 <- 9",
                          "11 b.weight_gradient.all_reduce ALL_REDUCE 60 [1] <- 10", "12 b.input_gradient 5000 <- 10",
                          "13 a.weight_gradient 3000 <- 12", "14 a.weight_gradient.all_reduce ALL_REDUCE 30 [1] <- 13",
                          "15 a.weight_gradient.update 500 host <- 14"));
}

TEST(TextWorkload, model_parallel_waits_for_activations_and_has_no_collective_of_weights) {
  EXPECT_THAT(imported("model", over({2, 2})),
              ElementsAre("0 a.forward 1000 <-", "1 a.forward.all_gather ALL_GATHER 10 [11] <- 0",
                          "2 a.forward.update 500 host <- 1", "3 b.forward 4000 <- 2",
                          "4 b.forward.all_reduce ALL_REDUCE 40 [11] <- 3", "5 b.input_gradient 5000 <- 4",
                          "6 b.input_gradient.all_to_all ALL_TO_ALL 50 [11] <- 5", "7 b.weight_gradient 6000 <- 5",
                          // The first layer needs no gradient of its input.
                          "8 a.input_gradient 2000 <- 7 6", "9 a.weight_gradient 3000 <- 8"));
}

Lines hybrid(const std::string& model, const std::string& data) {
  return {"0 a.forward 1000 <-",
          "1 a.forward.all_gather ALL_GATHER 10 " + model + " <- 0",
          "2 a.forward.update 500 host <- 1",
          "3 b.forward 4000 <- 2",
          "4 b.forward.all_reduce ALL_REDUCE 40 " + model + " <- 3",
          "5 b.input_gradient 5000 <- 4",
          "6 b.input_gradient.all_to_all ALL_TO_ALL 50 " + model + " <- 5",
          "7 b.weight_gradient 6000 <- 5",
          "8 b.weight_gradient.all_reduce ALL_REDUCE 60 " + data + " <- 7",
          "9 a.input_gradient 2000 <- 7 6",
          "10 a.weight_gradient 3000 <- 9",
          "11 a.weight_gradient.all_reduce ALL_REDUCE 30 " + data + " <- 10",
          "12 a.weight_gradient.update 500 host <- 11"};
}

TEST(TextWorkload, hybrids_have_one_parallelism_on_the_first_dimension_and_another_on_the_rest) {
  EXPECT_EQ(imported("hybrid_data_model", over({2, 2})), hybrid("[10]", "[01]"));
  EXPECT_EQ(imported("hybrid_model_data", over({2, 2})), hybrid("[01]", "[10]"));
  EXPECT_EQ(imported("hybrid_data_model", over({2, 2, 3})), hybrid("[100]", "[011]"));
}

TEST(TextWorkload, a_transformer_waits_for_the_collective_of_every_input_gradient) {
  const Lines expected = {"0 a.forward 1000 <-",
                          "1 a.forward.all_gather ALL_GATHER 10 [10] <- 0",
                          "2 a.forward.update 500 host <- 1",
                          "3 b.forward 4000 <- 2",
                          "4 b.forward.all_reduce ALL_REDUCE 40 [10] <- 3",
                          "5 b.input_gradient 5000 <- 4",
                          "6 b.input_gradient.all_to_all ALL_TO_ALL 50 [10] <- 5",
                          "7 b.weight_gradient 6000 <- 6",
                          "8 b.weight_gradient.all_reduce ALL_REDUCE 60 [01] <- 7",
                          "9 a.input_gradient 2000 <- 7",
                          "10 a.input_gradient.reduce_scatter REDUCE_SCATTER 20 [10] <- 9",
                          "11 a.input_gradient.update 500 host <- 10",
                          "12 a.weight_gradient 3000 <- 11",
                          "13 a.weight_gradient.all_reduce ALL_REDUCE 30 [01] <- 12",
                          "14 a.weight_gradient.update 500 host <- 13"};
  EXPECT_EQ(imported("hybrid_transformer", over({2, 2})), expected);
  EXPECT_EQ(imported("hybrid_transformer", over({4})), expected);
}

TEST(TextWorkload, layers_from_a_checkpoint_are_recomputed_before_the_initiator) {
  EXPECT_THAT(
      imported("hybrid_transformer_fwd_in_bckwd", over({2, 2})),
      ElementsAre(
          "0 w.forward 1 <-", "1 x.forward 10 <- 0", "2 x.forward.all_reduce ALL_REDUCE 8 [10] <- 1",
          "3 y.forward 100 <- 2", "4 z.forward 1000 <- 3",
          // Before the gradient of z (3), x (1, the checkpoint) and y (2) are recomputed, with their collectives.
          "5 x.recompute 10 <- 4", "6 x.recompute.all_reduce ALL_REDUCE 8 [10] <- 5", "7 y.recompute 100 <- 6",
          "8 z.input_gradient 2000 <- 7", "9 z.weight_gradient 3000 <- 8", "10 y.input_gradient 200 <- 9",
          "11 y.input_gradient.all_reduce ALL_REDUCE 32 [10] <- 10", "12 y.weight_gradient 300 <- 11",
          "13 x.input_gradient 20 <- 12", "14 x.weight_gradient 30 <- 13",
          "15 x.weight_gradient.all_reduce ALL_REDUCE 16 [01] <- 14", "16 w.input_gradient 2 <- 14",
          "17 w.weight_gradient 3 <- 16"));
}

TEST(TextWorkload, a_layer_of_a_customized_workload_has_the_dimensions_of_its_own_kind) {
  EXPECT_THAT(imported("hybrid_customized", over({2, 2})),
              ElementsAre("0 a.forward 1000 <-", "1 a.forward.all_gather ALL_GATHER 10 [10] <- 0",
                          "2 a.forward.update 500 host <- 1", "3 b.forward 4000 <- 2", "4 b.input_gradient 5000 <- 3",
                          "5 b.weight_gradient 6000 <- 4", "6 b.weight_gradient.all_reduce ALL_REDUCE 60 [11] <- 5",
                          "7 a.input_gradient 2000 <- 5", "8 a.weight_gradient 3000 <- 7",
                          "9 a.weight_gradient.all_reduce ALL_REDUCE 30 [01] <- 8",
                          "10 a.weight_gradient.update 500 host <- 9"));
  const auto made = text_workload_graph(fixture("hybrid_customized"), over({2, 2}));
  EXPECT_THAT(
      made->notes,
      ElementsAre(
          HasSubstr("hybrid_customized.txt:4: the collective of the forward of b is dropped: with DATA it "
                    "involves no other rank"),
          HasSubstr("hybrid_customized.txt:4: the collective of the input_gradient of b is dropped: with DATA")));
}

Lines dlrm_pass(std::size_t first, const std::string& embeddings, const Lines& before) {
  const auto id = [&](std::size_t n) { return std::to_string(first + n); };
  return {id(0) + " emb.forward 10 <-" + before[0],
          id(1) + " emb.forward.all_to_all ALL_TO_ALL 100 [1] first <- " + id(0),
          id(2) + " bot.forward 11 <- " + id(0) + before[1],
          id(3) + " mid.forward 12 <- " + id(2) + " " + id(1) + before[2],
          id(4) + " top.forward 13 <- " + id(3) + before[3],
          id(5) + " top.weight_gradient 33 <- " + id(4),
          id(6) + " top.weight_gradient.all_reduce ALL_REDUCE 500 [1] <- " + id(5),
          id(7) + " top.input_gradient 23 <- " + id(5),
          id(8) + " mid.weight_gradient 32 <- " + id(7),
          id(9) + " mid.weight_gradient.all_reduce ALL_REDUCE 400 [1] <- " + id(8),
          id(10) + " mid.input_gradient 22 <- " + id(8),
          id(11) + " emb.input_gradient.all_to_all ALL_TO_ALL 200 [1] first <- " + id(10),
          id(12) + " bot.weight_gradient 31 <- " + id(10),
          id(13) + " bot.weight_gradient.all_reduce ALL_REDUCE 300 [1] <- " + id(12),
          id(14) + " bot.input_gradient 21 <- " + id(12),
          id(15) + " emb.weight_gradient 30 <- " + id(14) + embeddings};
}

// Layer 0 is the embeddings, layer 1 the last bottom layer. Layer 2 depends on the activations of layer 1 and on the
// all-to-all of the embeddings.
TEST(TextWorkload, the_all_to_all_of_embeddings_overlaps_with_the_bottom_layers) {
  for (const auto& [name, next] : {std::pair("hybrid_dlrm", " 15 11"), {"hybrid_dlrm_enhanced", " 15"}}) {
    Lines expected = dlrm_pass(0, "", {"", "", "", ""});
    const Lines second = dlrm_pass(16, "", {next, " 13", " 9", " 6"});
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(imported(name, over({4}, 2)), expected) << name;
  }
}

TEST(TextWorkload, a_benchmark_has_collectives_without_dependencies) {
  EXPECT_THAT(
      imported("micro", over({4}, 2)),
      ElementsAre("0 a.weight_gradient.all_reduce ALL_REDUCE 30 [1] <-", "1 a.weight_gradient.update 500 host <- 0",
                  "2 b.weight_gradient.all_reduce ALL_REDUCE 60 [1] <-",
                  "3 a.weight_gradient.all_reduce ALL_REDUCE 30 [1] <-", "4 a.weight_gradient.update 500 host <- 3",
                  "5 b.weight_gradient.all_reduce ALL_REDUCE 60 [1] <-"));
}

TEST(TextWorkload, inference_has_a_forward_pass_only) {
  EXPECT_THAT(imported("distributed_inference", over({2, 2}, 2)),
              ElementsAre("0 a.forward 1000 <-", "1 a.forward.all_gather ALL_GATHER 10 [11] <- 0",
                          "2 a.forward.update 500 host <- 1", "3 b.forward 4000 <- 2",
                          "4 b.forward.all_reduce ALL_REDUCE 40 [11] <- 3", "5 a.forward 1000 <- 4",
                          "6 a.forward.all_gather ALL_GATHER 10 [11] <- 5", "7 a.forward.update 500 host <- 6",
                          "8 b.forward 4000 <- 7", "9 b.forward.all_reduce ALL_REDUCE 40 [11] <- 8"));
}

// 300 ns are rounded up to 1 us, since 0 would mean no duration.
TEST(TextWorkload, exact_times_are_kept_with_whole_microseconds) {
  const auto workload = parse_text_workload("DATA\n1\na -1 300 NONE 0 1600 NONE 0 3000 NONE 0 0\n", "w.txt");
  const auto made = text_workload_graph(*workload, over({2}));
  EXPECT_EQ(made->graph.duration_us(0), 1U);
  EXPECT_EQ(made->graph.duration_ns(0), 300U);
  EXPECT_EQ(made->graph.duration_us(1), 3U);
  EXPECT_FALSE(made->graph.value(1, graph::keys::duration_ns));
  TextWorkloadOptions options = over({2});
  options.cycle_ns = 1000;
  EXPECT_EQ(text_workload_graph(*workload, options)->graph.duration_us(0), 300U);
  options.cycle_ns = std::uint64_t{1} << 60;
  EXPECT_EQ(text_workload_graph(*workload, options).error().text(), "w.txt:3: a time exceeds the maximum of 7 cycles");
}

// Rank 5 of 2 x 2 x 2 is (1, 0, 1). Its model group is along dimension 0, one of four: ranks 4 and 5, the third by
// first rank. Its data group is along 1 and 2, one of two, numbered after the four: 1, 3, 5, 7.
TEST(TextWorkload, groups_have_the_ranks_along_their_dimensions) {
  TextWorkloadOptions options = over({2, 2, 2});
  options.process_groups = true;
  const auto made = text_workload_graph(fixture("hybrid_data_model"), options, 5);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->graph.groups(),
              ElementsAre(graph::ProcessGroup{"3", {4, 5}}, graph::ProcessGroup{"6", {1, 3, 5, 7}}));
  EXPECT_THAT(written(made->graph).at(1), HasSubstr("[100] 3 <-"));
  EXPECT_THAT(written(made->graph).at(8), HasSubstr("[011] 6 <-"));
  // All ranks are no named group.
  EXPECT_THAT(text_workload_graph(fixture("model"), options, 5)->graph.groups(), IsEmpty());
}

RC_GTEST_PROP(TextWorkload, groups_partition_the_ranks_and_have_one_name, (std::uint64_t seed)) {
  test::Random random(seed);
  TextWorkloadOptions options = over({1 + random.below(4), 1 + random.below(4), 1 + random.below(3)});
  options.process_groups = true;
  std::map<std::string, std::vector<std::uint64_t>> groups;
  const std::uint64_t ranks = options.dimensions[0] * options.dimensions[1] * options.dimensions[2];
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const auto made = text_workload_graph(fixture("hybrid_model_data"), options, rank);
    for (const graph::ProcessGroup& group : made->graph.groups()) {
      RC_ASSERT(std::count(group.ranks.begin(), group.ranks.end(), rank) == 1);
      RC_ASSERT(std::is_sorted(group.ranks.begin(), group.ranks.end()));
      RC_ASSERT(groups.try_emplace(group.name, group.ranks).first->second == group.ranks);
    }
  }
}

TEST(TextWorkload, every_kind_runs_to_its_end_on_every_rank) {
  for (const char* name : {"data", "model", "hybrid_data_model", "hybrid_model_data", "hybrid_transformer",
                           "hybrid_transformer_fwd_in_bckwd", "hybrid_customized", "hybrid_dlrm",
                           "hybrid_dlrm_enhanced", "micro", "distributed_inference"}) {
    auto feeder = Feeder::of_graph(text_workload_graph(fixture(name), over({2, 2}, 3))->graph, name);
    ASSERT_TRUE(feeder) << feeder.error().text();
    for (auto node = feeder->next(); *node != nullptr; node = feeder->next()) {
      ASSERT_TRUE(feeder->complete((*node)->id));
    }
    EXPECT_TRUE(feeder->done()) << name;
    EXPECT_TRUE(is_text_workload(name_of(fixture(name).parallelism))) << name;
  }
  EXPECT_FALSE(is_text_workload("{\"a\": 1}"));
  EXPECT_FALSE(is_text_workload(""));
}

TEST(TextWorkload, a_file_per_rank_is_written) {
  const auto folder = std::filesystem::temp_directory_path() / ("orrery-text-test-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "w.txt") << "DATA\n1\nonly -1 2000 NONE 0 0 NONE 0 1000 ALLREDUCE 64 0\n";
  std::vector<std::string> files;
  for (int rank = 0; rank < 6; ++rank) { files.push_back((folder / fmt::format("w.{}.et", rank)).string()); }
  const auto notes = import_text_workload((folder / "w.txt").string(), files, over({2, 3}));
  ASSERT_TRUE(notes) << notes.error().text();
  EXPECT_THAT(*notes, IsEmpty());
  for (const std::string& file : files) {
    const auto read = read_chakra(file);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_THAT(read->report.notes, IsEmpty());
    EXPECT_THAT(written(read->graph), ElementsAre("0 only.forward 2000 <-", "1 only.weight_gradient 1000 <- 0",
                                                  "2 only.weight_gradient.all_reduce ALL_REDUCE 64 [11] <- 1"));
    EXPECT_EQ(read->graph.metadata().find("parallelism")->value.as_text(), "DATA");
    EXPECT_EQ(read->graph.metadata().find("network_dimensions")->value.as_uint(1), 3U);
  }
  std::filesystem::remove_all(folder);
  EXPECT_EQ(read_text_workload((folder / "w.txt").string()).error().text(),
            (folder / "w.txt").string() + ": cannot be read");
}

TEST(TextWorkload, mistakes_have_a_line_and_the_nearest_valid_word) {
  EXPECT_EQ(mistakes(""), "w.txt: is empty; the first line of a workload is its kind of parallelism");
  EXPECT_EQ(mistakes("HYBRID_DLMR 1\n"),
            "w.txt:1:1: \"HYBRID_DLMR\" is not a kind of parallelism; did you mean \"HYBRID_DLRM\"?");
  EXPECT_EQ(mistakes("DATA\n"), "w.txt:1: the file ends after its first line; expected the number of layers");
  EXPECT_EQ(mistakes("DATA 4\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
            "w.txt:1:6: \"4\" is not valid after DATA; nothing is");
  EXPECT_EQ(mistakes("DATA\n1\n\na -1 1 NONE 0 1 NONE 0 1 ALREDUCE 0 1\n"),
            "w.txt:4:26: \"ALREDUCE\" is not a collective; did you mean \"ALLREDUCE\"?");
  EXPECT_EQ(mistakes("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0\n"),
            "w.txt:3: the update time is missing: a layer of DATA has 12 columns, this one 11");
  EXPECT_EQ(mistakes("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1 MODEL\n"),
            "w.txt:3:35: \"MODEL\" is one column too many: a layer of DATA has 12");
  EXPECT_EQ(
      mistakes("HYBRID_CUSTOMIZED\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
      "w.txt:3: the layer's kind of parallelism is missing: a layer of HYBRID_CUSTOMIZED has 13 columns, this one 12");
  EXPECT_EQ(mistakes("HYBRID_CUSTOMIZED\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1 MODL\n"),
            "w.txt:3:35: \"MODL\" is not a kind of parallelism; did you mean \"MODEL\"?");
  EXPECT_EQ(mistakes("DATA\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"), "w.txt:2:1: 2 layers are declared, but 1 follow");
  EXPECT_EQ(mistakes("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\nb -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
            "w.txt:4: line 2 declares 1 layers; this is one more");
  EXPECT_EQ(mistakes("DATA\n1\na x 1.5 NONE -3 1 NONE 9999999999999999999 1 ALLREDUCEALLTOALL 0 1\n"),
            "w.txt:3:3: the reserved number (-1): \"x\" is not a whole number\n"
            "w.txt:3:5: the forward time: \"1.5\" is not a whole number of at least 0\n"
            "w.txt:3:14: the forward collective's bytes: \"-3\" is not a whole number of at least 0\n"
            "w.txt:3:24: the input gradient's collective's bytes: \"9999999999999999999\" is too large\n"
            "w.txt:3:46: ALLREDUCEALLTOALL is not supported: the file does not give the size of its all-to-all");
  EXPECT_EQ(mistakes("HYBRID_DLRM\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
            "w.txt:1: the number of the last bottom layer is missing after HYBRID_DLRM");
  EXPECT_EQ(mistakes("HYBRID_DLRM 1\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
            "w.txt:1: the last bottom layer is number 1, but layers have numbers 0 to 0");
  EXPECT_EQ(mistakes("HYBRID_TRANSFORMER model_parallel_NPU_groups: 4\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
            "w.txt:1:20: \"model_parallel_NPU_groups:\" is not valid after HYBRID_TRANSFORMER; did you mean "
            "\"model_parallel_NPU_group:\"?");
  EXPECT_THAT(mistakes("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1\n1\n"),
              HasSubstr("w.txt:1:61: ep: belongs to a later dialect (SimAI), which orrery does not read"));
}

std::string recomputing(const std::string& lists) {
  std::string text = "HYBRID_TRANSFORMER_FWD_IN_BCKWD " + lists + "\n6\n";
  for (int i = 0; i < 6; ++i) { text += "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"; }
  return mistakes(text);
}

TEST(TextWorkload, recomputed_forward_passes_need_a_checkpoint) {
  EXPECT_EQ(recomputing("checkpoints: 2 0 3 checkpoint_initiates: 2 5 2"), "none");
  EXPECT_EQ(recomputing("checkpoints: 1 3 checkpoint_initiates: 1 2"),
            "w.txt:1: layer 2 initiates a forward pass in the backward pass, but no layer before it is a checkpoint");
  EXPECT_EQ(recomputing("checkpoints: 1 3 checkpoint_initiates: 1 3"),
            "w.txt:1: layer 3 initiates a forward pass in the backward pass, but is a checkpoint itself");
  EXPECT_EQ(recomputing("checkpoints: 1 0 checkpoint_initiates: 2 5 2"),
            "w.txt:1: layer 5 initiates a forward pass from checkpoint 0, and so does layer 2 between them: there must "
            "be a checkpoint between");
  EXPECT_EQ(recomputing("checkpoints: 1 9 checkpoint_initiates: 0"),
            "w.txt:1: checkpoints: names layer 9, but layers have numbers 0 to 5");
  EXPECT_EQ(recomputing("checkpoints: 3 0 1"), "w.txt:1:33: checkpoints: declares 3 layers but lists 2");
}

TEST(TextWorkload, a_network_that_the_parallelism_cannot_be_mapped_to_is_refused) {
  const auto refusal = [](const std::string& name, const TextWorkloadOptions& options) {
    const auto made = text_workload_graph(fixture(name), options);
    return made ? "accepted" : made.error().text();
  };
  EXPECT_THAT(refusal("hybrid_data_model", over({8})),
              HasSubstr(".txt:1: hybrid parallelism needs a network of at least two"));
  EXPECT_THAT(refusal("hybrid_customized", over({8})),
              HasSubstr(".txt:3: hybrid parallelism needs a network of at least two"));
  EXPECT_EQ(refusal("hybrid_data_model", over({8, 1})), "accepted");
  EXPECT_THAT(refusal("hybrid_transformer", over({3, 3})),
              HasSubstr("model-parallel groups of 2 ranks cannot be mapped to dimensions of 3 x 3"));
  EXPECT_THAT(refusal("hybrid_transformer", over({1})), HasSubstr("cannot be mapped to"));
  EXPECT_EQ(refusal("data", over({})), "--dimensions: a network must have at least one dimension");
  EXPECT_EQ(refusal("data", over({4, 0})), "--dimensions: a dimension must have at least one rank");
  EXPECT_EQ(refusal("data", over({1 << 20, 1 << 20})),
            "--dimensions: 1048576 x 1048576 exceeds the maximum of 1048576 ranks");
  auto older = fixture("hybrid_transformer");
  older.model_group.reset();
  EXPECT_THAT(text_workload_graph(older, over({2, 2})).error().text(), HasSubstr("is missing"));
  TextWorkloadOptions options = over({2, 2});
  options.model_group = 4;
  EXPECT_TRUE(text_workload_graph(older, options));
}

}  // namespace
}  // namespace orrery::trace::text_workload_test
