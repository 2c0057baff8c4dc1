#include "orrery/validate/consistent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::validate::consistent_test {
namespace {

using estimate::Request;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

Request request(std::int64_t tp, std::int64_t pp, std::int64_t batch) {
  Request made;
  made.seq = 64;
  made.tp = tp;
  made.pp = pp;
  made.global_batch = batch;
  return made;
}

workload::Model gpt() { return parallel::test::gpt(8, 512, 8, 1024); }

TEST(Possible, replicas_take_what_other_degrees_leave) {
  Request r = request(2, 2, 32);
  r.dp = 3;
  EXPECT_THAT(make_consistent(r, gpt(), 16), ElementsAre("dp 3 -> 4"));
  EXPECT_EQ(r.dp, 4);
  EXPECT_EQ(r.global_batch, 32);
}

// 30 sequences of 8 replicas: some have 4. Five at a time are one pass of 4; three at a time two passes of 2.
TEST(Possible, the_busiest_replica_decides) {
  for (const auto& [micro_batch, even] : {std::pair{5, 4}, {3, 2}, {1, 1}, {4, 4}}) {
    Request r = request(1, 1, 30);
    r.micro_batch = micro_batch;
    EXPECT_THAT(make_consistent(r, gpt(), 8), Contains("global_batch 30 -> 32"));
    EXPECT_EQ(r.global_batch, 32);
    EXPECT_EQ(r.micro_batch, even);
  }
  Request r = request(1, 1, 3);  // five replicas have nothing to do
  EXPECT_THAT(make_consistent(r, gpt(), 8), ElementsAre("global_batch 3 -> 8"));
  EXPECT_EQ(r.global_batch, 8);
}

TEST(Possible, what_is_possible_stays) {
  Request r = request(2, 2, 32);
  r.micro_batch = 2;
  r.vpp = 2;
  r.sequence_parallel = true;
  const Request before = r;
  EXPECT_THAT(make_consistent(r, gpt(), 16), IsEmpty());
  EXPECT_EQ(r.global_batch, before.global_batch);
  EXPECT_EQ(r.micro_batch, before.micro_batch);
  EXPECT_EQ(r.vpp, before.vpp);
  EXPECT_EQ(r.seq, before.seq);
  EXPECT_EQ(r.sequence_parallel, before.sequence_parallel);
}

TEST(Possible, chunks_are_as_many_as_there_are_layers_for_where_passes_go_round_the_stages) {
  Request r = request(1, 4, 16);
  r.micro_batch = 1;
  r.vpp = 3;
  EXPECT_THAT(make_consistent(r, gpt(), 8), ElementsAre("vpp 3 -> 2"));  // 8 layers: 2 a stage; 8 passes of 4 stages
  EXPECT_EQ(r.vpp, 2);
  r.vpp = 2;
  r.global_batch = 12;  // 6 passes
  EXPECT_THAT(make_consistent(r, gpt(), 8), ElementsAre("vpp 2 -> 1"));
  EXPECT_EQ(r.vpp, 1);
}

TEST(Possible, a_row_without_degrees_is_sliced_only_where_replicas_would_be_idle) {
  EXPECT_EQ(default_tensor_parallelism(gpt(), 64, 8, 64), 1);
  EXPECT_EQ(default_tensor_parallelism(gpt(), 64, 8, 16), 4);
  EXPECT_EQ(default_tensor_parallelism(gpt(), 64, 8, 2), 1);  // no node is large enough: idle all the same
}

// Whatever rows say, what is made of it is a plan, as long as degrees divide the devices and the heads.
RC_GTEST_PROP(Possible, whatever_is_stated_becomes_a_plan, ()) {
  const auto any = [](std::int64_t first, std::int64_t last) { return *rc::gen::inRange(first, last + 1); };
  workload::Model model = gpt();
  if (any(0, 1) == 1) { model.experts = {.count = 2 * any(1, 8), .active = 1, .ffn = 512}; }
  model = workload::completed(std::move(model));
  Request r = request(std::int64_t{1} << any(0, 3), any(1, 8), any(1, 100));
  r.cp = any(1, 3);
  r.seq = any(1, 300);
  r.ep = any(1, 20);
  r.vpp = r.pp > 1 ? any(1, 9) : 1;
  r.dp = any(1, 9);
  if (any(0, 1) == 1 || r.pp > 1) { r.micro_batch = any(1, 12); }
  r.sequence_parallel = r.tp > 1 && any(0, 1) == 1;
  const hardware::Cluster cluster = parallel::test::cluster_of({*r.tp * *r.cp * *r.pp * any(1, 6)});
  (void)make_consistent(r, model, cluster.devices);
  const auto resolved = estimate::resolve(r, model, cluster, hardware::Stack{});
  if (!resolved) { RC_FAIL(resolved.error().text()); }
}

}  // namespace
}  // namespace orrery::validate::consistent_test
