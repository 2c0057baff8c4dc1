#include "orrery/calibrate/nccl_output.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::calibrate::nccl_output_test {
namespace {

using ::testing::HasSubstr;

const std::string kRanks =
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1\n"
    "#\n# Using devices\n"
    "#  Rank  0 Group  0 Pid     11 on     node1 device  0 [0x10] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid     12 on     node1 device  1 [0x20] NVIDIA H100 80GB HBM3\n#\n";
const std::string kColumns =
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
const std::string kRows =
    "           0             0     float     sum      -1     0.20    0.00    0.00      0     0.20    0.00    0.00     "
    " 0\n"
    "     1048576        262144     float     sum      -1    30.00   34.95   34.95      0    29.00   36.16   36.16     "
    " 0\n"
    "   134217728      33554432     float     sum      -1   640.50  209.55  209.55    N/A   630.10  213.01  213.01    "
    "N/A\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100.0\n#\n";

TEST(NcclOutput, is_read_as_it_is_printed) {
  const auto runs =
      parse_nccl_output("# Collective test starting: all_reduce_perf\n" + kRanks + kColumns + kRows, "nccl.txt");
  ASSERT_TRUE(runs) << runs.error().text();
  ASSERT_EQ(runs->size(), 1U);
  EXPECT_EQ(runs->front().collective, Collective::all_reduce);
  EXPECT_EQ(runs->front().ranks, 2);
  ASSERT_EQ(runs->front().rows.size(), 2U);  // not the row of no bytes
  EXPECT_EQ(runs->front().rows[0].bytes, 1048576.0);
  EXPECT_DOUBLE_EQ(runs->front().rows[0].seconds, 30.0e-6);
  EXPECT_DOUBLE_EQ(runs->front().rows[1].seconds, 640.5e-6);
  EXPECT_EQ(runs->front().rows[1].line, 13);
}

// Of two ranks busbw is algbw for an all-reduce, and half of it for a reduce-scatter.
TEST(NcclOutput, the_operation_follows_from_the_bandwidths) {
  const auto runs = parse_nccl_output(kRanks + kColumns + kRows, "nccl.txt");
  ASSERT_TRUE(runs) << runs.error().text();
  EXPECT_EQ(runs->front().collective, Collective::all_reduce);
  const std::string halved =
      "  134217728  33554432  float  sum  -1  640.50  209.55  104.78  0  630.10  213.01  106.5  0\n";
  EXPECT_EQ(parse_nccl_output(kRanks + kColumns + halved, "nccl.txt")->front().collective, Collective::reduce_scatter);
  const std::string rooted =
      "  134217728  33554432  float  none  0  640.50  209.55  209.55  0  630.10  213.01  213.0  0\n";
  EXPECT_EQ(parse_nccl_output(kRanks + kColumns + rooted, "nccl.txt")->front().collective, Collective::broadcast);
}

TEST(NcclOutput, prefixes_of_launchers_and_other_text_are_ignored) {
  std::string text;
  std::string all = "# Collective test starting: all_gather_perf\n" + kRanks + kColumns + kRows;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find('\n', at);
    text += "[1,0]<stdout>:" + all.substr(at, end - at) + "\r\n";
    at = end + 1;
  }
  const auto runs = parse_nccl_output("NCCL version 2.21.5\n" + text, "nccl.txt");
  ASSERT_TRUE(runs) << runs.error().text();
  EXPECT_EQ(runs->front().collective, Collective::all_gather);
  EXPECT_EQ(runs->front().rows.size(), 2U);
}

TEST(NcclOutput, outputs_may_follow_one_another) {
  const auto runs = parse_nccl_output(
      kRanks + kColumns + kRows + "# Collective test starting: alltoall_perf\n" + kRanks + kColumns + kRows,
      "nccl.txt");
  ASSERT_TRUE(runs) << runs.error().text();
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[0].collective, Collective::all_reduce);
  EXPECT_EQ((*runs)[1].collective, Collective::all_to_all);
}

TEST(NcclOutput, the_tables_of_orrery_collective_are_read_too) {
  const auto runs = parse_nccl_output(
      "# all_reduce among 8 devices of dgx-h100 (8 nvlink); closed form, physical semantics\n#\n"
      "#         size          count    type  redop  root         time    algbw    busbw  algorithm\n"
      "#          (B)     (elements)                                (us)   (GB/s)   (GB/s)\n"
      "       1048576         262144   float    sum    -1        22.60    46.40    81.20  ring\n"
      "# 80 % interval: 0.75 to 1.33 times these; measured\n",
      "table.txt");
  ASSERT_TRUE(runs) << runs.error().text();
  EXPECT_EQ(runs->front().ranks, 8);
  EXPECT_DOUBLE_EQ(runs->front().rows.front().seconds, 22.6e-6);
}

std::string error_of(const std::string& text, const NcclDefaults& defaults = {}) {
  const auto runs = parse_nccl_output(text, "nccl.txt", defaults);
  return runs ? "" : runs.error().text();
}

TEST(NcclOutput, errors_name_the_line_and_what_to_do) {
  EXPECT_THAT(error_of("hello\n"), HasSubstr("no lines of nccl-tests"));
  EXPECT_THAT(error_of(kColumns + kRows), HasSubstr("--devices"));
  EXPECT_EQ(error_of(kColumns + kRows, {Collective::all_reduce, 2}), "");
  const std::string gathered =
      "  134217728  33554432  float  none  -1  640.5  209.55  104.78  0  630.1  213.0  106.5  0\n";
  EXPECT_THAT(error_of(kRanks + kColumns + gathered), HasSubstr("--op"));
  EXPECT_EQ(error_of(kRanks + kColumns + gathered, {Collective::all_gather, 0}), "");
  EXPECT_THAT(error_of("# Collective test starting: sendrecv_perf\n" + kRanks + kColumns + kRows),
              HasSubstr("sendrecv"));
  EXPECT_THAT(error_of(kRanks + kColumns + "  1024  256  float  sum  -1  fast  1  1\n"),
              HasSubstr("nccl.txt:10: time: \"fast\" is not a number"));
}

}  // namespace
}  // namespace orrery::calibrate::nccl_output_test
