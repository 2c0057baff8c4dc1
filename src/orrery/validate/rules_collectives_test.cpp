// Each rule from a row to a call on a cluster.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/validate/outcome.hpp"
#include "orrery/validate/rules.hpp"

namespace orrery::validate::rules_collectives_test {
namespace {

using testing::HasSubstr;

CollectiveRow two_nodes() {
  CollectiveRow row;
  row.family = "aws_efa";
  row.collective = "all_reduce";
  row.gpu_type = "H100-SXM";
  row.network = "EFA v2 3200Gb/s per node (p5)";
  row.nic_bw_GBps_per_gpu = "50";
  row.size_bytes = 17179869184.0;
  row.gpus = 16;
  row.nodes = 2;
  row.gpus_per_node = 8;
  row.intra_bw_GBps = 450;
  return row;
}

Skippable<CollectiveScenario> scenario(const CollectiveRow& row) {
  const auto parts = parts_for(ORRERY_SOURCE_DATA_DIR, {row});
  EXPECT_TRUE(parts.has_value());
  return scenario_of(row, *parts);
}

TEST(RulesOfCollectives, a_row_says_call_size_and_devices) {
  const auto s = scenario(two_nodes());
  ASSERT_TRUE(s.has_value()) << s.error();
  EXPECT_EQ(s->collective, Collective::all_reduce);
  EXPECT_EQ(s->bytes, Bytes(17179869184.0));
  EXPECT_EQ(s->algorithm, CollectiveAlgorithm::automatic);
  ASSERT_EQ(s->cluster.dimensions.size(), 2U);
  EXPECT_EQ(s->cluster.dimensions[0].size, 8);
  EXPECT_EQ(s->cluster.dimensions[1].size, 2);
  EXPECT_EQ(s->cluster.dimensions[0].bandwidth, BytesPerSecond(450e9));
  EXPECT_EQ(s->cluster.dimensions[1].bandwidth, BytesPerSecond(50e9));
  EXPECT_EQ(s->cluster.dimensions[1].link.name, "aws-efa-v2");
}

TEST(RulesOfCollectives, the_network_s_words_and_the_rate_of_a_port_choose_the_link) {
  const auto link = [](const char* network, const char* rate) {
    CollectiveRow row = two_nodes();
    row.network = network;
    row.nic_bw_GBps_per_gpu = rate;
    return scenario(row)->cluster.dimensions.back().link.name;
  };
  EXPECT_EQ(link("EFA 400Gb/s per node (p4d)", "6.25"), "aws-efa-v1");
  EXPECT_EQ(link("EFA p5en", "50"), "aws-efa-v3");
  EXPECT_EQ(link("GPUDirect-TCPX 4x200Gb/s per node", "12.5"), "gcp-tcpx");
  EXPECT_EQ(link("RoCE CX-7 8x400Gb/s", "50"), "roce-400");
  EXPECT_EQ(link("RoCE (BM.GPU.B4.8, VF)", "25"), "roce-200");
  EXPECT_EQ(link("HDR IB 8x200Gb/s", "25"), "infiniband-hdr");
  EXPECT_EQ(link("Quantum IB 400Gb/s/GPU", "50"), "infiniband-ndr");
  EXPECT_EQ(link("TCP over 8x400Gb/s ConnectX-7 (RoCE off)", "50"), "ethernet");  // through the host's kernel
  EXPECT_EQ(link("Ethernet, NCCL sockets", "12.5"), "ethernet");
  EXPECT_EQ(link("GPUDirect-TCPX 4x200Gb/s", "25"), "gcp-tcpx");
  EXPECT_EQ(link("", "50"), "infiniband-ndr");  // the catalogue's
}

TEST(RulesOfCollectives, hosts_of_which_no_network_is_stated_have_a_port_of_100_Gbps) {
  CollectiveRow row = two_nodes();
  row.network = "multi-node, NIC rate not stated";
  row.nic_bw_GBps_per_gpu = "";
  const auto s = scenario(row);
  EXPECT_EQ(s->cluster.dimensions.back().link.name, "ethernet");
  EXPECT_EQ(s->cluster.dimensions.back().bandwidth, BytesPerSecond(12.5e9 / 8));
}

TEST(RulesOfCollectives, the_algorithm_is_the_stated_one_unless_the_table_guesses_or_names_several) {
  const auto algorithm = [](const char* text) {
    CollectiveRow row = two_nodes();
    row.algo = text;
    return scenario(row)->algorithm;
  };
  EXPECT_EQ(algorithm(""), CollectiveAlgorithm::automatic);
  EXPECT_EQ(algorithm("default (NVLSTree likely)"), CollectiveAlgorithm::automatic);
  EXPECT_EQ(algorithm("Ring/LL <=1MiB, NVLS >=2MiB"), CollectiveAlgorithm::automatic);
  EXPECT_EQ(algorithm("Ring (NVLS off)"), CollectiveAlgorithm::flat_ring);
  EXPECT_EQ(algorithm("NVLSTree forced"), CollectiveAlgorithm::in_switch);
  EXPECT_EQ(algorithm("Tree"), CollectiveAlgorithm::tree);
}

TEST(RulesOfCollectives, a_rack_is_one_domain_unless_only_its_nics_are_in_use) {
  CollectiveRow row = two_nodes();
  row.gpu_type = "GB300";
  row.gpus = 144;
  row.nodes = 36;
  row.gpus_per_node = 4;
  row.intra_bw_GBps = 900;
  EXPECT_EQ(scenario(row)->cluster.dimensions[0].size, 72);
  row.intra_bw_GBps = {};
  EXPECT_EQ(scenario(row)->cluster.dimensions[0].size, 4);
}

TEST(RulesOfCollectives, a_mesh_keeps_its_links_when_few_take_part) {
  CollectiveRow row = two_nodes();
  row.gpu_type = "MI300X";
  row.network = "xGMI fully connected 64 GB/s per link";
  row.nic_bw_GBps_per_gpu = "";
  row.gpus = row.gpus_per_node = 2;
  row.nodes = 1;
  row.intra_bw_GBps = 448;
  EXPECT_NEAR(scenario(row)->cluster.dimensions[0].bandwidth.value(), 64e9, 1.0);  // one of seven links
}

TEST(RulesOfCollectives, boards_in_pairs_have_nvlink_to_one_other) {
  CollectiveRow row = two_nodes();
  row.gpu_type = "A100-80GB-pairwise-NVLink";
  row.network = "intra-node";
  row.nic_bw_GBps_per_gpu = "";
  row.gpus = row.gpus_per_node = 4;
  row.nodes = 1;
  row.intra_bw_GBps = 300;
  const auto s = scenario(row);
  EXPECT_EQ(s->cluster.dimensions[0].size, 2);
  EXPECT_EQ(s->cluster.dimensions[1].size, 2);
  EXPECT_EQ(s->cluster.dimensions[1].name, "pcie");
}

TEST(RulesOfCollectives, a_library_from_before_in_switch_reduction_has_none) {
  CollectiveRow row = two_nodes();
  row.nccl_version = "2.9.9";
  EXPECT_EQ(scenario(row)->cluster.dimensions[0].link.in_switch_efficiency, 0.0);
  row.nccl_version = "2.27.7";
  EXPECT_GT(scenario(row)->cluster.dimensions[0].link.in_switch_efficiency, 0.0);
}

TEST(RulesOfCollectives, what_cannot_be_predicted_is_skipped_with_its_reason) {
  CollectiveRow row = two_nodes();
  row.collective = "barrier";
  EXPECT_THAT(scenario(row).error(), HasSubstr("unknown operation \"barrier\""));
  row = two_nodes();
  row.size_bytes = {};
  EXPECT_EQ(scenario(row).error(), "not stated: size_bytes");
  row = two_nodes();
  row.gpu_type = "Z9";
  EXPECT_EQ(scenario(row).error(), "no accelerator \"Z9\" in the catalogue");
  row = two_nodes();
  row.gpus = 1;
  EXPECT_THAT(scenario(row).error(), HasSubstr("needs at least 2"));
}

TEST(RulesOfCollectives, operations_are_known_however_they_are_spelled) {
  const std::pair<const char*, std::optional<Collective>> names[] = {{"AllReduce", Collective::all_reduce},
                                                                     {"all-reduce", Collective::all_reduce},
                                                                     {"all_reduce_perf", Collective::all_reduce},
                                                                     {"all_gather_into_tensor", Collective::all_gather},
                                                                     {"ReduceScatter", Collective::reduce_scatter},
                                                                     {"alltoallv", Collective::all_to_all},
                                                                     {"Bcast", Collective::broadcast},
                                                                     {"reduce", Collective::broadcast},
                                                                     {"gather", Collective::all_gather},
                                                                     {"scatter", Collective::all_gather},
                                                                     {"SendRecv", std::nullopt},
                                                                     {"p2p", std::nullopt}};
  CollectiveRow row = two_nodes();
  for (const auto& [name, collective] : names) {
    row.collective = name;
    EXPECT_EQ(scenario(row)->collective, collective) << name;
  }
}

// A tree of an all-to-all, the switch of a network that has none: the call takes what it would take by itself.
TEST(RulesOfCollectives, an_unavailable_algorithm_is_replaced) {
  CollectiveRow row = two_nodes();
  const auto time = [&](const char* algo) {
    row.algo = algo;
    return outcome_of(row, *parts_for(ORRERY_SOURCE_DATA_DIR, {row}))->time;
  };
  row.collective = "alltoall";
  EXPECT_EQ(time("Tree"), time(""));
  row.collective = "all_reduce";
  row.gpu_type = "MI300X";
  EXPECT_EQ(time("NVLS"), time(""));
  EXPECT_NE(time("Tree"), time(""));
}

TEST(RulesOfCollectives, nodes_that_the_call_does_not_fill_have_as_many_each) {
  CollectiveRow row = two_nodes();
  row.gpus = 12;
  const auto s = scenario(row);
  EXPECT_EQ(s->cluster.dimensions[0].size, 6);
  EXPECT_EQ(s->cluster.dimensions[1].size, 2);
}

TEST(RulesOfCollectives, a_message_is_sent_between_nodes_if_there_are_several) {
  CollectiveRow row = two_nodes();
  row.collective = "send_recv";
  row.size_bytes = 50e9;
  const auto far = outcome_of(row, *parts_for(ORRERY_SOURCE_DATA_DIR, {row}));
  row.nodes = 1;
  row.gpus = 8;
  const auto near = outcome_of(row, *parts_for(ORRERY_SOURCE_DATA_DIR, {row}));
  EXPECT_GT(far->time.value(), 1.0);   // 50 GB at 50 GB/s at best
  EXPECT_LT(near->time.value(), 0.2);  // at 450 GB/s
}

}  // namespace
}  // namespace orrery::validate::rules_collectives_test
