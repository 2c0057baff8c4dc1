#include "orrery/hardware/catalogue.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/hardware/records.hpp"

namespace orrery::hardware::catalogue_test {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Catalogue shipped() { return Catalogue(ORRERY_DATA_DIR); }

// A folder of the test's own, with what is written into it.
class Folder {
 public:
  Folder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) / (std::string(test->test_suite_name()) + test->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

  // Messages without the folder, whose name changes from machine to machine.
  std::string shortened(std::string text) const {
    const std::string prefix = path_.string() + "/";
    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

 private:
  std::filesystem::path path_;
};

// Policies have no keys of their own; those with two values are written true or false.
TEST(Catalogue, policies_of_a_stack_are_keys_of_its_file) {
  const Folder folder;
  const auto stack = shipped().stack(folder.write("own.yaml", R"(attention: plain
fused_loss: false
dispatch_per_node: true
single_port: true
host_overhead: 7 ms
)"));
  ASSERT_TRUE(stack) << stack.error().text();
  EXPECT_EQ(stack->attention.kernel, AttentionKernel::plain);
  EXPECT_FALSE(stack->fusion.loss);
  EXPECT_EQ(stack->dispatch.copies, TokenCopies::per_node);
  EXPECT_EQ(stack->transfers.ports, NodePorts::one);
  EXPECT_EQ(stack->transfers.stages, StageTransfer::whole);
  EXPECT_EQ(stack->host.step_overhead, Seconds(7e-3));
  const std::string printed = config::Described<Stack>::record().print_yaml(*stack);
  for (const char* line : {"\nattention: plain\n", "\nfused_loss: false\n", "\nfused_elementwise: true\n",
                           "\ndispatch_per_node: true\n", "\nsingle_port: true\n", "\nscatter_transfers: false\n"}) {
    EXPECT_THAT(printed, HasSubstr(line));
  }
  const auto wrong = shipped().stack(folder.write("wrong.yaml", "fused_lost: true\nsingle_port: one\n"));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("did you mean \"fused_loss\"?"));
  EXPECT_THAT(wrong.error().text(), HasSubstr("single_port"));
}

TEST(Catalogue, a_cluster_brings_its_accelerator_and_links) {
  const auto cluster = shipped().cluster("dgx-h100", 64);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->devices, 64);
  EXPECT_EQ(cluster->accelerator.name, "h100-sxm");
  EXPECT_EQ(cluster->accelerator.peak(Precision::bf16), FlopsPerSecond(989.4e12));
  ASSERT_EQ(cluster->dimensions.size(), 2U);
  EXPECT_EQ(cluster->dimensions[0].link.name, "nvlink4");
  EXPECT_EQ(cluster->dimensions[0].bandwidth, BytesPerSecond(450e9));
  EXPECT_EQ(cluster->dimensions[1].wiring, Wiring::rails);
  EXPECT_EQ(cluster->dimensions[1].size, 8);
  EXPECT_EQ(cluster->dimensions[1].bandwidth, BytesPerSecond(50e9));  // 400 Gb/s
}

TEST(Catalogue, a_template_without_a_count_is_one_node) {
  const auto cluster = shipped().cluster("dgx-a100", 0);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->devices, 8);
  EXPECT_EQ(cluster->dimensions[1].size, 1);
}

TEST(Catalogue, an_unknown_name_gets_the_nearest_one_and_the_command_that_lists_them) {
  EXPECT_EQ(shipped().cluster("dgx-h10", 8).error().text(),
            "unknown cluster \"dgx-h10\"; did you mean \"dgx-h100\"? (\"orrery list clusters\" shows all)");
  EXPECT_EQ(shipped().accelerator("h100").error().text(),
            "unknown accelerator \"h100\"; did you mean \"h100-nvl\", \"h100-pcie\" or \"h100-sxm\"? "
            "(\"orrery list accelerators\" shows all)");
  EXPECT_EQ(shipped().stack("qqqqqq").error().text(), "unknown stack \"qqqqqq\" (\"orrery list stacks\" shows all)");
  EXPECT_EQ(shipped().link("nvlink").error().text(),
            "unknown link class \"nvlink\"; did you mean \"nvlink2\"? (\"orrery list links\" shows all)");
}

TEST(Catalogue, a_path_that_does_not_exist_says_so) {
  EXPECT_THAT(shipped().cluster("no/such/cluster.yaml", 8).error().text(), HasSubstr("no/such/cluster.yaml"));
}

constexpr const char* kOwnCluster = R"(accelerator: a100-sxm-80gb
dimensions:
  - name: nvlink
    size: 4
    bandwidth: 300 GB/s
    link: nvlink3
  - name: ethernet
    wiring: rails
    bandwidth: 100 Gb/s
    link: roce
)";

TEST(Catalogue, a_users_file_works_like_an_entry) {
  const Folder folder;
  const auto path = folder.write("lab.yaml", kOwnCluster);
  const auto cluster = shipped().cluster(path, 12);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->name, "lab");
  EXPECT_EQ(cluster->dimensions[0].size, 4);
  EXPECT_EQ(cluster->dimensions[1].size, 3);
  EXPECT_EQ(cluster->accelerator.memory, 80_GiB);
}

TEST(Catalogue, a_reference_may_carry_changes_which_lose_the_citation) {
  const Folder folder;
  std::string text = kOwnCluster;
  text.replace(text.find("a100-sxm-80gb"), 13, "{use: h100-sxm, memory: 96 GiB, cores: 114}");
  const auto cluster = shipped().cluster(folder.write("lab.yaml", text), 4);
  ASSERT_TRUE(cluster) << cluster.error().text();
  const Accelerator& changed = cluster->accelerator;
  EXPECT_EQ(changed.memory, 96_GiB);
  EXPECT_EQ(changed.cores, 114);
  EXPECT_EQ(changed.memory_bandwidth, BytesPerSecond(3350e9));
  EXPECT_EQ(changed.sources.count("memory"), 0U);
  EXPECT_EQ(changed.sources.count("memory_bandwidth"), 1U);
  EXPECT_EQ(changed.sources.count("cache, tdp_watts"), 1U) << "\"cache, cores, tdp_watts\" without cores";
}

TEST(Catalogue, a_part_may_be_a_file_next_to_the_cluster) {
  const Folder folder;
  const auto link = config::Described<LinkClass>::record().print_yaml(shipped().link("nvlink3").value());
  folder.write("my_link.yaml", link.substr(link.find('\n') + 1));  // without its name
  std::string text = kOwnCluster;
  text.replace(text.find("nvlink3"), 7, "my_link.yaml");
  const auto cluster = shipped().cluster(folder.write("lab.yaml", text), 4);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->dimensions[0].link.name, "my_link");
}

TEST(Catalogue, all_mistakes_of_a_file_come_at_once_each_with_its_place) {
  const Folder folder;
  const auto path = folder.write("lab.yaml", R"(accelerator: a100-sxm-80g
dimensions:
  - name: nvlink
    sise: 4
    bandwidth: 300
    link: nvlink
node_powr_watts: 5
)");
  const auto cluster = shipped().cluster(path, 8);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(folder.shortened(cluster.error().text()),
            "lab.yaml:1:14 /accelerator: unknown accelerator \"a100-sxm-80g\"; did you mean \"a100-sxm-80gb\"? "
            "(\"orrery list accelerators\" shows all)\n"
            "lab.yaml:4:5 /dimensions/0/sise: unknown key; did you mean \"size\"?\n"
            "lab.yaml:5:16 /dimensions/0/bandwidth: \"300\" has no unit; did you mean \"300 Gb/s\"?\n"
            "lab.yaml:6:11 /dimensions/0/link: unknown link class \"nvlink\"; did you mean \"nvlink2\"? "
            "(\"orrery list links\" shows all)\n"
            "lab.yaml:7:1 /node_powr_watts: unknown key; did you mean \"node_power_watts\"?");
}

TEST(Catalogue, a_mistake_inside_a_part_points_into_the_parts_file) {
  const Folder folder;
  folder.write("my_link.yaml", "efficiency: 1.5\nlatency: 1 us\nprotocols: []\n");
  std::string text = kOwnCluster;
  text.replace(text.find("nvlink3"), 7, "my_link.yaml");
  const auto cluster = shipped().cluster(folder.write("lab.yaml", text), 4);
  ASSERT_FALSE(cluster);
  const std::string message = folder.shortened(cluster.error().text());
  EXPECT_THAT(message, HasSubstr("my_link.yaml:1:13 /efficiency: "));
  EXPECT_THAT(message, HasSubstr("my_link.yaml:3:12 /protocols: "));
}

TEST(Catalogue, sizes_and_devices_must_agree) {
  const Folder folder;
  std::string text = kOwnCluster;
  text += "devices: 10\n";
  EXPECT_EQ(folder.shortened(shipped().cluster(folder.write("lab.yaml", text), 0).error().text()),
            "lab.yaml:11:10 /devices: 10 devices are not a whole number of nodes of 4; nearest: 8 or 12");
  text.replace(text.find("wiring: rails"), 13, "size: 2\n    wiring: rails");
  EXPECT_EQ(folder.shortened(shipped().cluster(folder.write("lab.yaml", text), 0).error().text()),
            "lab.yaml:12:10 /devices: 10 devices, but the product of the dimensions' sizes is 8");
}

// Who does not say that it models them is refused, but for devices that are all of the first kind.
TEST(Catalogue, several_kinds_of_nodes_are_for_those_who_ask_for_them) {
  const Folder folder;
  const std::string file = folder.write(
      "lab.yaml", std::string(kOwnCluster) + "nodes: [{count: 1}, {count: 1, accelerator: a100-sxm-80gb}]\n");
  EXPECT_EQ(folder.shortened(shipped().cluster(file, 0).error().text()),
            "lab.yaml:11:8 /nodes: this command does not model several kinds of nodes; give a cluster of one kind");
  EXPECT_THAT(shipped().cluster(file, 8, {"serving"}).error().text(), HasSubstr("serving does not model"));
  EXPECT_FALSE(shipped().cluster_of_tree(shipped().cluster_tree(file).value(), 8));
  EXPECT_FALSE(shipped().cluster_template(file));
  EXPECT_EQ(shipped().cluster(file, 8, UnlikeNodes::modelled).value().nodes.size(), 2U);
  EXPECT_TRUE(shipped().cluster(file, 4).value().nodes.empty());
  EXPECT_TRUE(shipped().description(file).has_value());
}

TEST(Catalogue, only_the_last_dimension_may_be_open) {
  const Folder folder;
  std::string text = kOwnCluster;
  text.replace(text.find("    size: 4\n"), 12, "");
  EXPECT_THAT(shipped().cluster(folder.write("lab.yaml", text), 8).error().text(),
              EndsWith("dimension \"nvlink\" needs a size: only the last one may follow from the number of devices"));
}

TEST(Catalogue, sizes_beyond_reason_are_refused_not_multiplied) {
  const Folder folder;
  std::string text = kOwnCluster;
  text.replace(text.find("size: 4"), 7, "size: 60000000");
  text.replace(text.find("wiring: rails"), 13, "size: 60000000\n    wiring: rails");
  EXPECT_THAT(shipped().cluster(folder.write("lab.yaml", text), 0).error().text(),
              HasSubstr("is above 67108864 devices"));
}

TEST(Catalogue, an_unknown_precision_gets_the_nearest_one) {
  const Folder folder;
  auto text = config::Described<Accelerator>::record().print_yaml(shipped().accelerator("h100-sxm").value());
  text.replace(text.find("bf16"), 4, "bf61");
  EXPECT_THAT(shipped().accelerator(folder.write("gpu.yaml", text)).error().text(),
              HasSubstr("matrix_peak: unknown precision \"bf61\"; did you mean \"bf16\"?"));
}

TEST(Catalogue, a_file_that_is_no_mapping_is_refused) {
  const Folder folder;
  EXPECT_THAT(shipped().cluster(folder.write("list.yaml", "- 1\n- 2\n"), 8).error().text(),
              HasSubstr("a description of a cluster must be a mapping"));
}

// Two routers of a row have one cable of 10 GB/s for two devices each; three have two, and a job of two rows keeps
// that.
TEST(Catalogue, groups_on_a_topology_have_the_bandwidth_of_their_routes) {
  const Folder folder;
  const std::string path = folder.write("hyperx.yaml", R"(accelerator: h100-sxm
topology: {kind: hyperx, sizes: [4, 4], hosts: 2, bandwidth: 10 GB/s, link: infiniband-ndr}
)");
  const auto whole = shipped().cluster(path, 0);
  ASSERT_TRUE(whole) << whole.error().text();
  ASSERT_EQ(whole->dimensions.size(), 3U);
  EXPECT_DOUBLE_EQ(whole->dimensions[1].bandwidth_among(2).value(), 5e9);
  EXPECT_DOUBLE_EQ(whole->dimensions[1].bandwidth_among(4).value(), 10e9);
  const auto part = shipped().cluster(path, 16);
  ASSERT_TRUE(part) << part.error().text();
  EXPECT_EQ(part->dimensions[2].size, 2);
  EXPECT_DOUBLE_EQ(part->dimensions[2].bandwidth_among(2).value(), 5e9);
}

TEST(Catalogue, what_describe_prints_reads_back) {
  const Folder folder;
  for (const std::string name : {"dgx-h100", "h100-sxm", "nvlink4", "megatron-core"}) {
    const auto text = shipped().description(name);
    ASSERT_TRUE(text) << text.error().text();
    const auto path = folder.write(name + ".yaml", *text);
    EXPECT_EQ(shipped().description(path).value(), *text);
    EXPECT_THAT(*text, HasSubstr("sources:"));
  }
}

TEST(Catalogue, describe_of_an_unknown_name_proposes_any_kind) {
  EXPECT_EQ(shipped().description("megatron-cor").error().text(),
            "no catalogue entry \"megatron-cor\"; did you mean \"megatron-core\" or \"megatron-core-deepep\"?");
  EXPECT_EQ(shipped().description("qqqqqqqq").error().text(), "no catalogue entry \"qqqqqqqq\"");
}

TEST(Catalogue, a_missing_data_directory_has_no_entries) {
  const Catalogue nowhere("/nonexistent");
  EXPECT_TRUE(nowhere.accelerators().value().empty());
  EXPECT_THAT(nowhere.cluster("dgx-h100", 8).error().text(), Not(HasSubstr("did you mean")));
}

TEST(Catalogue, proposes_names_that_continue_the_text_before_similar_names) {
  const std::vector<std::string> known = {"gpt2", "gpt3-175b", "llama-3.1-8b"};
  EXPECT_THAT(proposed_entries("gpt3", known), ElementsAre("gpt3-175b"));
  EXPECT_THAT(proposed_entries("gpt", known), ElementsAre("gpt2", "gpt3-175b"));
  EXPECT_THAT(proposed_entries("lama-3.1-8b", known), ElementsAre("llama-3.1-8b"));
  EXPECT_THAT(proposed_entries(".", known), IsEmpty());
  EXPECT_THAT(proposed_entries("", known), IsEmpty());
  EXPECT_EQ(did_you_mean("gpt", known), "; did you mean \"gpt2\" or \"gpt3-175b\"?");
}

TEST(Catalogue, proposes_the_shortest_of_many_names_that_continue_the_text) {
  EXPECT_THAT(proposed_entries("a", {"a-100", "a-2", "a-300", "a-400", "a-500"}), ElementsAre("a-2"));
}

TEST(Catalogue, systems_of_mad_max_are_not_clusters_and_name_the_semantics_that_reads_them) {
  const auto names = entry_names(ORRERY_DATA_DIR, kMadMaxSystems);
  ASSERT_FALSE(names.empty());
  EXPECT_TRUE(names.front().starts_with("madmax/"));
  const auto refused = Catalogue(ORRERY_DATA_DIR).cluster(names.front(), 0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), ::testing::HasSubstr("valid with --semantics mad-max"));
  EXPECT_TRUE(unknown_entry(kMadMaxSystems, names.front() + "x", names).starts_with("unknown cluster \"madmax/"));
}

}  // namespace
}  // namespace orrery::hardware::catalogue_test
