// The shipped entries: complete, cited, and consistent with what was measured.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/hardware/citations.hpp"

namespace orrery::hardware::catalogue_data_test {
namespace {

using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

constexpr std::array kKinds = {kAcceleratorEntries, kLinkEntries, kClusterEntries, kStackEntries};

Catalogue shipped() { return Catalogue(ORRERY_DATA_DIR); }

TEST(CatalogueData, every_figure_of_every_entry_is_cited_and_every_citation_has_a_figure) {
  for (const auto& kind : kKinds) {
    for (const auto& name : entry_names(ORRERY_DATA_DIR, kind)) {
      const auto node = entry_node(ORRERY_DATA_DIR, kind, name);
      ASSERT_TRUE(node) << node.error().text();
      EXPECT_THAT(uncited_figures(*node), IsEmpty()) << kind.folder << "/" << name;
      EXPECT_THAT(citations_of_nothing(*node), IsEmpty()) << kind.folder << "/" << name;
    }
  }
}

// A citation either says when it was read or that nobody has read it, or that the figure is a definition or fitted.
TEST(CatalogueData, every_citation_is_dated_or_marked) {
  for (const auto& kind : kKinds) {
    for (const auto& name : entry_names(ORRERY_DATA_DIR, kind)) {
      const auto node = entry_node(ORRERY_DATA_DIR, kind, name);
      ASSERT_TRUE(node) << node.error().text();
      for (const auto& cited : node->find("sources")->members) {
        const std::string& citation = cited.value.scalar;
        const bool by_definition = citation.starts_with("by definition") || citation.starts_with("structure of") ||
                                   citation.starts_with("included in") || citation.starts_with("fitted: ");
        EXPECT_TRUE(is_unverified(citation) || by_definition || citation.find("read 20") != std::string::npos)
            << kind.folder << "/" << name << ": " << cited.key << ": " << citation;
      }
    }
  }
}

TEST(CatalogueData, an_entry_is_called_like_its_file) {
  for (const auto& kind : kKinds) {
    for (const auto& name : entry_names(ORRERY_DATA_DIR, kind)) {
      EXPECT_EQ(entry_node(ORRERY_DATA_DIR, kind, name)->find("name")->scalar, name);
    }
  }
}

TEST(CatalogueData, every_entry_loads) {
  const auto catalogue = shipped();
  EXPECT_TRUE(catalogue.accelerators()) << catalogue.accelerators().error().text();
  EXPECT_TRUE(catalogue.stacks()) << catalogue.stacks().error().text();
  EXPECT_TRUE(catalogue.clusters()) << catalogue.clusters().error().text();
  for (const auto& name : entry_names(ORRERY_DATA_DIR, kLinkEntries)) {
    EXPECT_TRUE(catalogue.link(name)) << catalogue.link(name).error().text();
  }
}

TEST(CatalogueData, the_names_that_scripts_rely_on_are_there) {
  EXPECT_THAT(entry_names(ORRERY_DATA_DIR, kClusterEntries),
              IsSupersetOf({"dgx-a100", "dgx-a100-40gb", "dgx-h100", "dgx-h200", "dgx-b200"}));
  EXPECT_THAT(entry_names(ORRERY_DATA_DIR, kAcceleratorEntries),
              IsSupersetOf({"a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm"}));
  EXPECT_THAT(entry_names(ORRERY_DATA_DIR, kStackEntries),
              IsSupersetOf({"fsdp", "ideal", "megatron-2021", "megatron-core", "megatron-deepspeed"}));
}

TEST(CatalogueData, an_entry_is_there_if_it_is_listed) {
  for (const auto& kind : kKinds) {
    for (const auto& name : entry_names(ORRERY_DATA_DIR, kind)) { EXPECT_TRUE(has_entry(ORRERY_DATA_DIR, kind, name)); }
    for (const char* name : {"", ".", "..", "no-such-entry", "../stacks/ideal", "/etc/hostname"}) {
      EXPECT_FALSE(has_entry(ORRERY_DATA_DIR, kind, name)) << name;
    }
  }
}

TEST(CatalogueData, listings_count_figures_and_those_without_a_source) {
  const auto clusters = shipped().clusters();
  ASSERT_TRUE(clusters);
  for (const auto& cluster : *clusters) {
    EXPECT_GT(cluster.figures, cluster.unverified) << cluster.name;
    EXPECT_GT(cluster.unverified, 0) << cluster.name << ": attention_efficiency is a prior";
    EXPECT_FALSE(cluster.description.empty()) << cluster.name;
  }
}

// The dense peak is units x clock x operations per clock: 108 x 1.41 GHz x 2048 = 311.9 TFLOP/s on A100,
// 132 x 1.83 GHz x 4096 = 989.4 TFLOP/s on H100.
TEST(CatalogueData, peaks_follow_from_cores_and_clock) {
  const auto a100 = shipped().accelerator("a100-sxm-80gb").value();
  EXPECT_NEAR(a100.peak(Precision::bf16).value(), static_cast<double>(a100.cores) * 1.41e9 * 2048.0, 0.003 * 312e12);
  const auto h100 = shipped().accelerator("h100-sxm").value();
  EXPECT_NEAR(h100.peak(Precision::bf16).value(), static_cast<double>(h100.cores) * 1.83e9 * 4096.0, 0.003 * 989e12);
}

TEST(CatalogueData, halving_the_element_does_not_lower_the_peak) {
  for (const auto& name : entry_names(ORRERY_DATA_DIR, kAcceleratorEntries)) {
    const auto accelerator = shipped().accelerator(name).value();
    FlopsPerSecond wider;
    for (const Precision precision : kAllPrecisions) {
      if (is_integer(precision)) { continue; }  // Blackwell Ultra has few int8 units
      const FlopsPerSecond peak = accelerator.peak(precision);
      if (!(peak > FlopsPerSecond())) { continue; }
      EXPECT_GE(peak, wider) << name << " " << name_of(precision);
      wider = peak;
    }
  }
}

struct Measured {
  const char* link;
  double bandwidth;  // GB/s per direction
  double members;
  double bus_bandwidth;  // GB/s, all-reduce of 8 GiB with in-switch reduction
};

// stas00/ml-engineering network/README.md@744d01e18b. Bus bandwidth = S / t x 2 (n - 1) / n, and the model's
// t = S (1 + 1/n) / (bandwidth x efficiency), so bus bandwidth = bandwidth x efficiency x 2 (n - 1) / (n + 1).
TEST(CatalogueData, in_switch_efficiency_gives_back_the_measured_all_reduce) {
  const std::vector<Measured> rows = {{"nvlink4", 450, 5, 414.2}, {"nvlink4", 450, 6, 435.6},
                                      {"nvlink4", 450, 7, 460.0}, {"nvlink4", 450, 8, 473.1},
                                      {"nvlink5", 900, 6, 778.2}, {"nvlink5", 900, 8, 838.0}};
  for (const auto& row : rows) {
    const double efficiency = shipped().link(row.link).value().in_switch_efficiency;
    const double modelled = row.bandwidth * efficiency * 2.0 * (row.members - 1.0) / (row.members + 1.0);
    EXPECT_NEAR(modelled / row.bus_bandwidth, 1.0, 0.02) << row.link << ", " << row.members << " devices";
  }
}

// With four members both move as much over a link and the library stays with rings, as it was seen to do.
TEST(CatalogueData, in_switch_reduction_gains_nothing_among_four) {
  const auto link = shipped().link("nvlink4").value();
  const double in_switch = link.in_switch_efficiency * 2.0 * 3.0 / 5.0;
  EXPECT_NEAR(in_switch / link.efficiency, 1.0, 0.05);
}

TEST(CatalogueData, the_switches_of_a100_do_not_reduce) {
  EXPECT_EQ(shipped().link("nvlink3").value().in_switch_efficiency, 0.0);
}

// Less latency costs bandwidth: otherwise nobody would have several protocols. Sweeps of few nodes, to which the steps
// of networks are fitted, do not tell LL128's from Simple's; LL's are the shortest everywhere.
TEST(CatalogueData, a_protocol_with_shorter_steps_has_less_payload) {
  for (const auto& name : entry_names(ORRERY_DATA_DIR, kLinkEntries)) {
    const auto link = shipped().link(name).value();
    for (std::size_t i = 1; i < link.protocols.size(); ++i) {
      EXPECT_LT(link.protocols.front().ring_step, link.protocols[i].ring_step) << name;
      EXPECT_LE(link.protocols[i - 1].ring_step, link.protocols[i].ring_step) << name;
      EXPECT_LT(link.protocols[i - 1].bandwidth_fraction, link.protocols[i].bandwidth_fraction) << name;
    }
    EXPECT_EQ(link.protocols.back().bandwidth_fraction, 1.0) << name;
  }
}

TEST(CatalogueData, the_ideal_stack_has_no_overhead) {
  const auto ideal = shipped().stack("ideal").value();
  EXPECT_EQ(ideal.host.step_overhead, Seconds(0.0));
  EXPECT_EQ(ideal.memory_reserve, 0.0);
  EXPECT_TRUE(ideal.overlap.gradient_reduce && ideal.overlap.parameter_gather && ideal.fusion.elementwise);
}

}  // namespace
}  // namespace orrery::hardware::catalogue_data_test
