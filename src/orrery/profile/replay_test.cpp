#include "orrery/profile/replay.hpp"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/profile/job_plan.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/profile/test_profiles.hpp"

namespace orrery::profile::replay_test {

struct Imported {
  std::deque<Profile> profiles;
  JobPlan job;
  std::vector<graph::Graph> graphs;
};

Result<Imported> imported(const std::vector<std::string>& texts) {
  Imported made;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ORRERY_TRY(profile, read_kineto_bytes(texts[i], fmt::format("rank{}.json", i)));
    made.profiles.push_back(std::move(profile));
  }
  std::vector<const Profile*> all;
  for (const Profile& profile : made.profiles) { all.push_back(&profile); }
  ORRERY_TRY(job, job_plan(all));
  made.job = std::move(job);
  for (std::size_t rank = 0; rank < made.job.ranks.size(); ++rank) {
    ORRERY_TRY(graph, graph_of(made.job, rank));
    made.graphs.push_back(std::move(graph));
  }
  return made;
}

// The steps that a replay predicts: [rank][step].
std::vector<std::vector<std::int64_t>> predicted(const Imported& made, const ReplayChange& change) {
  auto job = ReplayJob::of(made.graphs);
  EXPECT_TRUE(job) << job.error().text();
  auto replay = job->run(change);
  EXPECT_TRUE(replay) << replay.error().text();
  std::vector<std::vector<std::int64_t>> steps(made.graphs.size());
  for (const ReplayStep& step : replay->steps) { steps[step.rank].push_back(step.duration_ns); }
  return steps;
}

// A factor may round the end of each operation by half a nanosecond.
void expect_near(const std::vector<std::vector<std::int64_t>>& got, const std::vector<std::vector<std::int64_t>>& want,
                 std::int64_t tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    ASSERT_EQ(got[rank].size(), want[rank].size());
    for (std::size_t step = 0; step < got[rank].size(); ++step) {
      EXPECT_NEAR(static_cast<double>(got[rank][step]), static_cast<double>(want[rank][step]),
                  static_cast<double>(tolerance))
          << "rank " << rank << " step " << step;
    }
  }
}

class MadeJobs : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, MadeJobs, ::testing::Range(0U, 12U));

TEST_P(MadeJobs, a_replay_of_a_made_job_follows_every_change) {
  const MadeJob truth(2 + static_cast<int>(GetParam() % 3), 4, GetParam());
  const auto made = imported(truth.profiles());
  ASSERT_TRUE(made) << made.error().text();
  expect_near(predicted(*made, {}), truth.steps(), 0);
  for (const double factor : {0.5, 2.0, 4.0}) {
    ReplayChange change;
    change.comm = factor;
    expect_near(predicted(*made, change), truth.steps({1, factor, -1, 0}), 40);
    change.comm = 1;
    change.compute = factor;
    expect_near(predicted(*made, change), truth.steps({factor, 1, -1, 0}), 40);
  }
  ReplayChange late;
  late.late.push_back({1, 3'000'000, 1});
  expect_near(predicted(*made, late), truth.steps({1, 1, 1, 3'000'000}), 0);
}

// What is not on the wire is waiting: the last member does not wait.
TEST_P(MadeJobs, waiting_and_wire_of_collectives_are_those_of_the_truth) {
  for (const std::int64_t clock : {0, 4'700'000}) {
    const MadeJob truth(2 + static_cast<int>(GetParam() % 3), 4, GetParam() + 100, clock);
    const auto made = imported(truth.profiles());
    ASSERT_TRUE(made) << made.error().text();
    ASSERT_EQ(made->job.collectives.size(), truth.wires().size());
    for (std::size_t step = 0; step < truth.wires().size(); ++step) {
      std::int64_t least_waiting = INT64_MAX;
      for (const CollectiveMember& member : made->job.collectives[step].members) {
        EXPECT_EQ(member.wire_ns, truth.wires()[step]);
        const PlannedNode& kernel = made->job.ranks[member.rank].nodes[member.node];
        EXPECT_EQ(member.wire_ns + member.waiting_ns, kernel.duration);
        least_waiting = std::min(least_waiting, member.waiting_ns);
      }
      EXPECT_EQ(least_waiting, 0);
    }
  }
}

TEST_P(MadeJobs, clocks_that_differ_do_not_change_the_answer) {
  const MadeJob apart(3, 4, GetParam(), 4'700'000);
  const auto made = imported(apart.profiles());
  ASSERT_TRUE(made) << made.error().text();
  // Only the differences between the clocks of ranks matter.
  EXPECT_EQ(made->job.clock_offsets[1] - made->job.clock_offsets[0], -4'700'000);
  ReplayChange change;
  change.comm = 4;
  expect_near(predicted(*made, change), apart.steps({1, 4, -1, 0}), 40);
}

TEST(Replay, refuses_a_part_of_the_ranks_a_rank_twice_and_graphs_of_two_imports) {
  const auto made = imported(MadeJob(3, 4, 1).profiles());
  const auto other = imported(MadeJob(2, 4, 1).profiles());
  ASSERT_TRUE(made && other);
  const auto error = [](const std::vector<graph::Graph>& graphs) {
    const auto job = ReplayJob::of(graphs);
    return job ? std::string() : job.error().text();
  };
  EXPECT_EQ(error(made->graphs), "");
  EXPECT_NE(error({made->graphs[0], made->graphs[2]}).find("1 of 3 ranks imported together has no file: 1"),
            std::string::npos);
  EXPECT_NE(error({made->graphs[1]}).find("2 of 3 ranks imported together have no file: 0, 2"), std::string::npos);
  EXPECT_NE(error({made->graphs[0], made->graphs[0]}).find("is a graph of rank 0, as another file is"),
            std::string::npos);
  EXPECT_NE(error({made->graphs[0], other->graphs[1], made->graphs[2]}).find("of another import"), std::string::npos);
}

TEST_P(MadeJobs, waiting_has_causes_and_idle_is_explained) {
  const MadeJob truth(3, 4, GetParam());
  const auto made = imported(truth.profiles());
  ASSERT_TRUE(made) << made.error().text();
  for (const RankPlan& rank : made->job.ranks) {
    EXPECT_EQ(rank.counts.unexplained_idle_ns, 0);
    EXPECT_EQ(rank.counts.blocked_with_cause_ns, rank.counts.blocked_ns);
    EXPECT_EQ(rank.counts.coincidences, 0U);
  }
}

// All kernels of the made job that compute are products: their class is all of them, and factors multiply.
TEST_P(MadeJobs, factors_of_a_class_and_of_a_name_are_those_of_its_kernels) {
  const MadeJob truth(2, 4, GetParam());
  const auto made = imported(truth.profiles());
  ASSERT_TRUE(made) << made.error().text();
  ReplayChange change;
  change.kernels = {{KernelClass::gemm, {}, 4}};
  expect_near(predicted(*made, change), truth.steps({4, 1, -1, 0}), 40);
  change.compute = 0.25;
  expect_near(predicted(*made, change), truth.steps(), 40);
  change.kernels = {{std::nullopt, "gem", 2}};
  expect_near(predicted(*made, change), truth.steps({0.5, 1, -1, 0}), 40);
}

TEST(Replay, factors_of_kernels_that_do_not_occur_are_refused) {
  const auto made = imported(MadeJob(2, 2, 1).profiles());
  ASSERT_TRUE(made) << made.error().text();
  const auto job = ReplayJob::of(made->graphs);
  ASSERT_TRUE(job);
  ReplayChange change;
  change.kernels = {{KernelClass::attention, {}, 2}};
  EXPECT_EQ(job->run(change).error().text(), "the profile has no kernel of the class attention; it has gemm");
  change.kernels = {{std::nullopt, "flash", 2}};
  EXPECT_EQ(job->run(change).error().text(), "no kernel of the profile has \"flash\" in its name");
}

TEST(KernelClass, is_known_by_the_names_of_libraries) {
  const std::pair<const char*, KernelClass> kNames[] = {
      {"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", KernelClass::gemm},
      {"Cijk_Ailk_Bljk_HHS_BH_MT128x128x16", KernelClass::gemm},
      {"void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>", KernelClass::attention},
      {"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>", KernelClass::normalization},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>", KernelClass::elementwise},
      {"Memcpy HtoD (Pageable -> Device)", KernelClass::copy},
      {"my_kernel", KernelClass::other}};
  for (const auto& [name, kind] : kNames) { EXPECT_EQ(kernel_class(name, ""), kind) << name; }
  EXPECT_EQ(kernel_class("my_kernel", "aten::layer_norm"), KernelClass::normalization);
}

// From the last end back to where a rank starts: no time is left out.
TEST_P(MadeJobs, the_critical_path_covers_all_of_its_time) {
  const auto made = imported(MadeJob(3, 4, GetParam()).profiles());
  ASSERT_TRUE(made) << made.error().text();
  const auto job = ReplayJob::of(made->graphs);
  ASSERT_TRUE(job);
  for (const double factor : {0.5, 1.0, 8.0}) {
    ReplayChange change;
    change.common_start = true;  // so that every path begins at the same time
    change.comm = factor;
    const auto replay = job->run(change);
    ASSERT_TRUE(replay);
    EXPECT_EQ(replay->path.time_ns(), replay->makespan_ns);
    EXPECT_EQ(replay->path.unexplained_ns, 0);
    EXPECT_GT(replay->path.communication_ns, 0);
  }
}

TEST(Job, two_files_of_one_rank_are_refused) {
  const auto texts = MadeJob(2, 2, 1).profiles();
  const auto made = imported({texts[0], texts[0]});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text(), "rank1.json: is rank 0, and so is rank0.json");
}

TEST(Job, a_missing_rank_is_noted) {
  const auto texts = MadeJob(3, 2, 1).profiles();
  const auto made = imported({texts[0], texts[2]});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_THAT(made->job.notes, ::testing::Contains(::testing::HasSubstr("1 of 3 ranks have no file (rank 1)")));
}

TEST(Job, ranks_of_jobs_of_different_size_are_refused) {
  const auto made = imported({MadeJob(2, 2, 1).profiles()[0], MadeJob(3, 2, 1).profiles()[1]});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text(), ::testing::HasSubstr("is of a job of 3 ranks, and rank0.json is of a job of 2"));
}

TEST(Job, ranks_without_a_common_step_are_refused) {
  auto texts = MadeJob(2, 2, 1).profiles();
  for (const auto& [from, to] : {std::pair{"ProfilerStep#0", "ProfilerStep#7"}, {"ProfilerStep#1", "ProfilerStep#8"}}) {
    texts[1].replace(texts[1].find(from), std::string_view(from).size(), to);
  }
  const auto made = imported(texts);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text(),
            "rank1.json: rank 1 was recorded in steps 7 to 8, rank 0 in steps 0 to 1: they have no step in common");
}

// Kernels of a collective that one rank has and the others have at another time are not one collective.
TEST(Job, impossible_order_is_refused_with_the_rank) {
  auto texts = MadeJob(2, 4, 3).profiles();
  // All-reduce 1 of rank 1 takes the identity of all-reduce 3, and the other way round.
  const auto swap = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = texts[1].find(from); at != std::string::npos; at = texts[1].find(from, at + to.size())) {
      texts[1].replace(at, from.size(), to);
    }
  };
  swap("\"Seq\":1}", "\"Seq\":9}");
  swap("\"Seq\":3}", "\"Seq\":1}");
  swap("\"Seq\":9}", "\"Seq\":3}");
  const auto made = imported(texts);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text(), ::testing::HasSubstr("before the last rank starts it"));
}

TEST(Replay, changes_of_ranks_and_steps_that_do_not_exist_are_refused) {
  const auto made = imported(MadeJob(2, 2, 1).profiles());
  ASSERT_TRUE(made) << made.error().text();
  const auto job = ReplayJob::of(made->graphs);
  ASSERT_TRUE(job);
  ReplayChange change;
  change.late = {{5, 1000, std::nullopt}};
  EXPECT_EQ(job->run(change).error().text(), "rank 5 has no file");
  change.late = {{1, 1000, 77}};
  EXPECT_EQ(job->run(change).error().text(), "rank 1 has no step 77");
}

}  // namespace orrery::profile::replay_test
