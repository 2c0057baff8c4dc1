// What an execution trace adds to a profile, and the graph of an execution trace alone.
#include "orrery/profile/host_details.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/profile/host_comm.hpp"
#include "orrery/profile/host_graph.hpp"
#include "orrery/profile/job_plan.hpp"
#include "orrery/profile/kineto_read.hpp"

namespace orrery::profile::host_details_test {

// record_param_comms as each schema writes it: an address, a name and a pair for the group; attributes from 1.1.0 on.
TEST(HostComm, is_read_from_every_schema) {
  RawHostNode node;
  node.name = "record_param_comms";
  node.input_types = R"x(["Tensor(float)","Int","Int","Int","String","GenericList[]","GenericList[]"])x";
  node.inputs = R"x([[718,715,0,6144,4,"cuda:0"],147,94594108284448,3,"all_to_allv",[768,768],[768,768]])x";
  node.outputs = R"x([[719,716,0,6144,4,"cuda:0"]])x";
  HostComm comm = host_comm_of(node);
  EXPECT_EQ(comm.record.name, "all_to_allv");
  EXPECT_EQ(comm.record.sequence, std::optional<std::uint64_t>(147));
  EXPECT_EQ(comm.record.peer_or_root, std::optional<std::int64_t>(3));
  EXPECT_EQ(comm.record.in_elements, 6144);
  EXPECT_EQ(comm.record.out_elements, 6144);
  EXPECT_EQ(comm.record.dtype, "Float");
  EXPECT_EQ(comm.record.group, "");
  EXPECT_EQ(comm.group_address, std::optional<std::uint64_t>(94594108284448));

  node.input_types = R"x(["GenericList[Tensor(c10::BFloat16),Tensor(c10::BFloat16)]","Int"])x";
  node.inputs = R"x([[[1,2,0,10,2,"cuda:0"],[3,4,0,20,2,"cuda:0"]],[33,false],["7","tp"],0,"broadcast",[],[],0,1,4])x";
  comm = host_comm_of(node);
  EXPECT_EQ(comm.record.name, "broadcast");
  EXPECT_EQ(comm.record.sequence, std::optional<std::uint64_t>(33));
  EXPECT_EQ(comm.record.group, "7");
  EXPECT_EQ(comm.record.group_description, "tp");
  EXPECT_EQ(comm.record.in_elements, 30);
  EXPECT_EQ(comm.record.group_size, 4);
  EXPECT_EQ(comm.record.dtype, "BFloat16");

  node.inputs = R"x([33,"0",0,"wait",[],[],-1,-1,1])x";
  comm = host_comm_of(node);
  EXPECT_EQ(comm.record.name, "wait");
  EXPECT_EQ(comm.record.sequence, std::optional<std::uint64_t>(33));
  EXPECT_EQ(comm.record.group, "0");

  node.collective = "allreduce";
  node.dtype = "Half";
  node.in_elements = node.out_elements = "512";
  node.group = "2";
  node.group_size = "8";
  comm = host_comm_of(node);
  EXPECT_EQ(comm.record.name, "allreduce");
  EXPECT_EQ(comm.record.in_elements, 512);
  EXPECT_EQ(comm.record.group_size, 8);
}

TEST(HostComm, groups_of_all_ranks_get_their_ranks) {
  RawHostNode node;
  node.inputs = R"x(["[{\"pg_name\": \"0\", \"ranks\": [], \"group_size\": 3}, )x"
                R"x({\"pg_name\": \"1\", \"backend_id\": 77, \"ranks\": [0, 2], \"group_size\": 2}]"])x";
  const auto groups = host_groups_of(node);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].group.ranks, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(groups[1].group.ranks, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(groups[1].address, std::optional<std::uint64_t>(77));
}

// Two gathers are launched before the first is waited for, as FSDP prefetches them.
constexpr const char* kHost =
    R"x({"schema":"1.1.0-chakra.0.0.4","pid":9,"nodes":[
{"id":2,"name":"[pytorch|profiler|execution_trace|thread]","ctrl_deps":1},
{"id":3,"name":"## process_group:init ##","ctrl_deps":2,
 "inputs":{"values":["[{\"pg_name\": \"0\", \"ranks\": [0, 1]}]"],"shapes":[[]],"types":["String"]},"attrs":[{"name":"rf_id","value":1},{"name":"tid","value":1}]},
{"id":4,"name":"aten::mm","ctrl_deps":2,
 "inputs":{"values":[[100,1,0,4096,4,"cuda:0"]],"shapes":[[64,64],[64,64]],"types":["Tensor(float)","Tensor(float)"]},
 "outputs":{"values":[[101,2,0,4096,4,"cuda:0"]]},"attrs":[{"name":"rf_id","value":2},{"name":"tid","value":1}]},
{"id":5,"name":"record_param_comms","ctrl_deps":2,
 "inputs":{"values":[[101,2,0,4096,4,"cuda:0"],11,["0","world"],0,"_allgather_base",[],[],0,1,2],
 "shapes":[[4096]],"types":["Tensor(float)"]},"outputs":{"values":[[102,3,0,8192,4,"cuda:0"]]},"attrs":[{"name":"rf_id","value":3},{"name":"tid","value":1}]},
{"id":6,"name":"record_param_comms","ctrl_deps":2,
 "inputs":{"values":[[101,2,0,4096,4,"cuda:0"],12,["0","world"],0,"_allgather_base",[],[],0,1,2],
 "shapes":[[4096]],"types":["Tensor(float)"]},"outputs":{"values":[[103,4,0,8192,4,"cuda:0"]]},"attrs":[{"name":"rf_id","value":4},{"name":"tid","value":1}]},
{"id":7,"name":"record_param_comms","ctrl_deps":2,
 "inputs":{"values":[11,["",""],0,"wait",[],[],-1,-1,2]},"attrs":[{"name":"rf_id","value":5},{"name":"tid","value":1}]},
{"id":8,"name":"aten::mm","ctrl_deps":2,
 "inputs":{"values":[[102,3,0,8192,4,"cuda:0"]],"shapes":[[64,128],[128,64]],"types":["Tensor(float)","Tensor(float)"]},"attrs":[{"name":"rf_id","value":6},{"name":"tid","value":1}]}]})x";

std::string device_text() {
  std::string events;
  const auto event = [&](const char* category, const char* name, bool device, int thread, int start, int duration,
                         const std::string& args) {
    events += fmt::format(R"x({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})x",
                          events.empty() ? "" : ",\n", category, name, device ? 0 : 9, thread, start, duration, args);
  };
  const auto kernel = [&](const char* name, int stream, int start, int duration, int correlation) {
    event("kernel", name, true, stream, start, duration,
          fmt::format(R"x("device":0,"stream":{},"correlation":{})x", stream, correlation));
  };
  const auto operation = [&](const char* name, int id, int start, int duration) {
    event("cpu_op", name, false, 1, start, duration, fmt::format(R"x("Record function id":{})x", id));
  };
  const auto call = [&](const char* name, int start, int correlation) {
    event("cuda_runtime", name, false, 1, start, 4, fmt::format(R"x("correlation":{})x", correlation));
  };
  operation("aten::mm", 2, 1000, 10);
  call("cudaLaunchKernel", 1002, 1);
  kernel("gemm", 7, 1010, 20, 1);
  for (int i = 0; i < 2; ++i) {
    operation("record_param_comms", 3 + i, 1020 + 30 * i, 20);
    call("cudaStreamWaitEvent", 1021 + 30 * i, 2 + 2 * i);
    call("cudaLaunchKernel", 1030 + 30 * i, 3 + 2 * i);
  }
  kernel("ncclDevKernel_AllGather_RING_LL", 20, 1040, 100, 3);
  kernel("ncclDevKernel_AllGather_RING_LL", 20, 1141, 30, 5);
  operation("record_param_comms", 5, 1100, 10);
  call("cudaStreamWaitEvent", 1102, 6);
  operation("aten::mm", 6, 1190, 10);
  call("cudaLaunchKernel", 1191, 7);
  kernel("gemm", 7, 1200, 20, 7);
  return fmt::format(R"x({{"schemaVersion":1,"distributedInfo":{{"rank":0,"world_size":2}},"traceEvents":[{}]}})x",
                     events);
}

TEST(HostDetails, shapes_groups_collectives_and_waits_are_added_to_the_profile) {
  const auto host = read_host_trace_bytes(kHost, "host.json", {false, true, false, {}});
  ASSERT_TRUE(host) << host.error().text();
  auto profile = read_kineto_bytes(device_text(), "rank0.json");
  ASSERT_TRUE(profile) << profile.error().text();
  const auto linked = link(*host, *profile);
  ASSERT_TRUE(linked) << linked.error().text();
  const HostDetails added = add_host_details(*profile, *host, *linked);
  EXPECT_EQ(added.shapes, 2U);
  EXPECT_EQ(added.groups, 1U);
  EXPECT_EQ(added.collectives, 2U);
  EXPECT_EQ(added.waits, 1U);
  const auto job = job_plan({&*profile});
  ASSERT_TRUE(job) << job.error().text();
  ASSERT_EQ(job->collectives.size(), 2U);
  EXPECT_EQ(job->collectives[0].group_ranks, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(job->collectives[0].bytes, 8192U * 4);
  // The product waits for the first gather, which the entry names, not for the last one.
  const RankPlan& plan = job->ranks[0];
  EXPECT_EQ(plan.counts.named_waits, 1U);
  const PlannedNode& product = plan.nodes.back();
  ASSERT_EQ(product.event->start, 1'200'000);
  const auto named = std::find_if(product.deps.begin(), product.deps.end(),
                                  [](const Dependency& one) { return one.cause == Cause::named_wait; });
  ASSERT_NE(named, product.deps.end());
  EXPECT_EQ(plan.nodes[named->node].event->start, 1'040'000);
}

// By hand: the first product, two gathers beside the thread, a wait that follows the first, a product after the wait.
TEST(HostGraph, collectives_run_beside_their_thread_until_they_are_waited_for) {
  const auto host = read_host_trace_bytes(kHost, "host.json", {false, true, true, {}});
  ASSERT_TRUE(host) << host.error().text();
  const auto made = host_graph(*host);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->counts.collectives, 2U);
  EXPECT_EQ(made->counts.waits, 1U);
  EXPECT_EQ(made->rank, std::optional<std::uint64_t>(0));
  const graph::Graph& graph = made->graph;
  const auto deps = [&](std::uint64_t id) {
    for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
      if (graph.id(node) == id) { return graph.record(node).data_deps; }
    }
    return std::vector<std::uint64_t>{999};
  };
  EXPECT_THAT(deps(5), ::testing::ElementsAre(4));
  EXPECT_THAT(deps(6), ::testing::ElementsAre(4));
  EXPECT_THAT(deps(7), ::testing::ElementsAre(4, 5));
  EXPECT_THAT(deps(8), ::testing::ElementsAre(7, 5));
  const auto groups = graph::process_groups(graph.metadata());
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].ranks, (std::vector<std::uint64_t>{0, 1}));
}

}  // namespace orrery::profile::host_details_test
