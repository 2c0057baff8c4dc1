#include "orrery/report/text.hpp"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "orrery/report/samples.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report::text_test {
namespace {

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) { longest = std::max(longest, display_width(line)); }
  return longest;
}

TEST(Text, an_estimate_with_terms) {
  const std::vector<std::string> chosen = {"dp 16 (devices / (tp x pp))"};
  EXPECT_EQ(estimate_text(samples::explained(), chosen), R"(tiny on 1,024 devices of box
global batch 1,536 x 2,048 tokens, bf16, stack ideal

plan        tp 8, pp 8, dp 16, vpp 1, micro-batch 2 (48 per replica and step), zero 1,
            recompute selective, schedule 1f1b, sequence-parallel on, tp-overlap none, dp-overlap on
chosen      dp 16 (devices / (tp x pp))

step time   2.000 s
throughput  1.57 M tokens/s, 768 sequences/s
MFU         48.8 %: 195 TFLOP/s of 400 TFLOP/s per device; model FLOPs 400 PFLOP per step (causal
            half of attention)
HFU         61.0 %: with recomputed FLOPs
cost        1.50 USD per step, rented at 2.5 USD a device and hour
energy      3.25 MJ per step, nameplate power, 10000 W a node of 8
validity    the efficiency of fast-link is from measurements of other products of its generation

step time          time   share
  compute        1.00 s  50.0 %  ####################
  recompute      250 ms  12.5 %  #####
  exposed comm   250 ms  12.5 %  #####
  bubble         375 ms  18.8 %  ########
  optimizer      120 ms   6.0 %  ##
  host          5.00 ms   0.2 %

communication   total  exposed  of step
  tp           500 ms   125 ms    6.2 %
  dp           250 ms   125 ms    6.2 %
  total        750 ms   250 ms   12.5 %

memory, stage 3      size   share
  weights        1.00 GiB   6.2 %  ###
  gradients      2.00 GiB  12.5 %  #####
  optimizer       512 MiB   3.1 %  #
  activations    4.00 GiB  25.0 %  ##########
  total          7.50 GiB  46.9 %  ###################
  capacity       16.0 GiB

pipeline stages with identical work
  stages               layers per chunk    busy    memory
  0                    12                1.50 s  1.00 GiB
  1 (and 6 identical)  12                1.25 s   512 MiB

operators of the critical rank per step
  operator             count       FLOPs     bytes     each    total  bound by
  forward: 480 ms
    mlp.in                96  4.00 TFLOP  2.00 MiB  4.00 ms   384 ms  compute
    attention.qkv         96  1.00 TFLOP  1.00 MiB  1.00 ms  96.0 ms  compute
  backward: 768 ms
    mlp.in                96  8.00 TFLOP  4.00 MiB  8.00 ms   768 ms  compute
  finish: 20.0 us
    gradient.norm_sum      1           -       4 B  20.0 us  20.0 us  all_reduce tree/LL

not modelled: weather; stragglers
)");
}

TEST(Text, terms_and_classes_appear_on_request) {
  const std::string text = estimate_text(samples::estimate(), {});
  EXPECT_EQ(text.find("identical work"), std::string::npos);
  EXPECT_EQ(text.find("operators"), std::string::npos);
  EXPECT_EQ(text.find("chosen"), std::string::npos);
}

TEST(Text, an_estimate_that_does_not_fit_says_so_at_the_top) {
  results::Estimate estimate = samples::estimate();
  estimate.feasible = false;
  estimate.infeasible_reason = "memory";
  estimate.memory.capacity = Bytes(4294967296.0);
  const std::string text = estimate_text(estimate, {});
  EXPECT_NE(text.find("stack ideal\nDOES NOT FIT: memory: stage 3 needs 7.50 GiB, a device has 4.00 GiB\n"),
            std::string::npos)
      << text;
}

TEST(Text, crumbs_of_rounding_are_not_shown) {
  results::Estimate estimate = samples::estimate();
  estimate.breakdown.bubble = Seconds(2e-12);
  EXPECT_EQ(estimate_text(estimate, {}).find("bubble"), std::string::npos);
}

TEST(Text, a_ranking_of_plans) {
  EXPECT_EQ(plan_text(samples::search()), R"(tiny on 1,024 devices of box
global batch 1,536 x 2,048 tokens, bf16, stack ideal

#  step time     MFU  tokens/s  tp  pp  dp  vpp  mb  sp  zero  recompute  GiB used  bubble    comm
1    2.000 s  48.8 %    1.57 M   8   8  16    1   2  on     1  selective  7.5/16.0  18.8 %  12.5 %
2    2.500 s  48.8 %    1.57 M   8   8  16    1   2  on     1  selective  7.5/16.0  15.0 %  10.0 %
mb: micro-batch, sp: sequence parallelism, comm: exposed communication
not searched (set with the flag in brackets; most are in --space wide): schedule zero-bubble,
dualpipe, gpipe (--schedule); offload of weights (--offload); tp-overlap (--tp-overlap)

12,345 points: 345 evaluated, 12,000 pruned by a bound. Of the evaluated points, 45 were priced, 45
fit, 300 exceed memory.
24.7 k points/s

- memory is not the limit
)");
}

TEST(Text, different_batches_have_a_column) {
  results::PlanSearch sample;
  sample.best = {samples::served(), samples::served()};
  sample.best[1].global_batch = 40;
  const std::string text = plan_text(sample);
  const auto at = [&](const char* word) { return text.find(word) - text.rfind('\n', text.find(word)); };
  ASSERT_NE(text.find(" 40 "), std::string::npos);
  EXPECT_EQ(at("batch samples/s") + 2, at(" 40 ")) << text;
}

TEST(Text, several_numbers_of_devices_have_a_table) {
  const std::string text = plan_text(samples::search_of_counts());
  EXPECT_NE(text.find(R"(
fastest plan for each number of devices
devices  step time  samples/s  cost/step  energy/step
     64          -          -          -            -  no plan fits
    512    3.000 s          0          -            -  over the limit
  1,024    2.000 s        768   1.50 USD      3.25 MJ
cost: rented at 2.5 USD a device and hour
energy: nameplate power, 10000 W a node of 8
)"),
            std::string::npos)
      << text;
}

TEST(Text, what_would_change_the_best_plan_is_a_sentence_for_each_figure) {
  const std::string text = plan_text(samples::search_with_changes());
  EXPECT_NE(text.find(R"(
what would change the best plan: the nearest values at which other degrees win
- device memory: at 1.25x (20.0 GiB) tp 8, pp 8, dp 16 wins with 2.000 s per step; at 0.5x (8.00
  GiB) no plan fits
- batch: the same degrees win up to 4x (6144 sequences); no smaller value was searched
)"),
            std::string::npos)
      << text;
}

TEST(Text, plans_of_the_largest_jobs_still_fit_the_page) {
  results::PlanSearch search = samples::search();
  auto& plan = search.best[0].plan;
  plan.set("tp", std::int64_t{16});
  plan.set("pp", std::int64_t{128});
  plan.set("dp", std::int64_t{16384});
  plan.set("vpp", std::int64_t{8});
  plan.set("micro_batch", std::int64_t{16});
  search.best[0].memory.capacity = Bytes(180e9);
  EXPECT_LE(longest_line(plan_text(search)), kPageWidth);
}

TEST(Text, a_validation_with_its_largest_errors_and_skipped_rows) {
  EXPECT_EQ(validation_text(samples::validation()), R"(predicted and measured times

family         rows predicted skipped scored   MAPE median    p90    max   bias in 80 % width infeasible
training/first    2         2       0      2 15.0 % 15.0 % 20.0 % 20.0 % -5.0 %       -     -          1
training/blank    1         0       1      0      -      -      -      -      -       -     -          0
all               3         2       1      2 15.0 % 15.0 % 20.0 % 20.0 % -5.0 %       -     -          1

largest errors  family  measured  predicted    error
  b             first     5.00 s     4.00 s  -20.0 %
  a             first     10.0 s     11.0 s  +10.0 %

skipped rows
     1  no model is called "x"

1 row predicted although columns contradict each other (--out writes the values used)
)");
}

TEST(Text, a_validation_of_two_kinds_has_totals_of_each_and_reasons_for_rows_not_scored) {
  results::Validation sample = samples::validation();
  sample.kinds.push_back(sample.families[1]);
  sample.kinds[1].kind = "inference";
  sample.predictions[0].unscored_reason = "of all or of each";
  const std::string text = validation_text(sample);
  EXPECT_NE(text.find("\ninference         1         0       1      0      -"), std::string::npos) << text;
  EXPECT_NE(text.find("\nrows predicted but not scored\n     1  of all or of each\n"), std::string::npos) << text;
}

TEST(Text, a_listing_and_its_sums) {
  const std::vector<hardware::EntrySummary> entries = {
      {.name = "box", .description = "A box", .figures = 3, .unverified = 1},
      {.name = "a-longer-name", .description = std::string(200, 'x'), .figures = 0, .unverified = 0}};
  const std::string text = listing_text("clusters", entries);
  EXPECT_LE(longest_line(text), kPageWidth);
  EXPECT_NE(text.find("box                  3           1  A box\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n2 clusters, 3 figures, 1 of them unverified\n"), std::string::npos) << text;
}

TEST(Text, entries_without_figures_are_listed_without_counts) {
  const std::vector<hardware::EntrySummary> entries = {{.name = "ring", .description = "neighbour to neighbour"}};
  EXPECT_EQ(listing_text("algorithms", entries), "name  description\nring  neighbour to neighbour\n\n1 algorithms\n");
}

TEST(Text, unverified_figures_stand_below_their_entry) {
  const std::vector<hardware::EntrySummary> entries = {
      {.name = "box", .description = "A box", .figures = 3, .unverified = 1},
      {.name = "sound", .description = "", .figures = 3, .unverified = 0}};
  const std::vector<UnverifiedFigure> figures = {{"box", "weight", "a guess"}};
  EXPECT_EQ(unverified_text("clusters", entries, figures),
            "box: 1 of 3 figures\n  - weight: a guess\n\n2 clusters, 6 figures, 1 of them unverified\n");
}

TEST(Text, colours_are_used_on_request_only) {
  EXPECT_EQ(estimate_text(samples::explained(), {}).find('\x1b'), std::string::npos);
  EXPECT_NE(estimate_text(samples::explained(), {}, {.colour = true}).find('\x1b'), std::string::npos);
  EXPECT_EQ(plan_text(samples::search()).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace orrery::report::text_test
