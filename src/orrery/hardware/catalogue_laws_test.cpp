// Laws that every shipped entry keeps, and published figures that it must give back.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/hardware/citations.hpp"

namespace orrery::hardware::catalogue_laws_test {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::IsSupersetOf;
using ::testing::Le;

Catalogue shipped() { return Catalogue(ORRERY_DATA_DIR); }

std::vector<Cluster> clusters() {
  std::vector<Cluster> all;
  for (const auto& name : entry_names(ORRERY_DATA_DIR, kClusterEntries)) {
    all.push_back(shipped().cluster(name, 0).value());
  }
  return all;
}

std::vector<Accelerator> accelerators() {
  std::vector<Accelerator> all;
  for (const auto& name : entry_names(ORRERY_DATA_DIR, kAcceleratorEntries)) {
    all.push_back(shipped().accelerator(name).value());
  }
  return all;
}

struct Published {
  const char* name;
  double half;       // TFLOP/s of the matrix units, 16 bits, dense
  double gigabytes;  // label of the device memory, or what drivers report
  double bandwidth;  // GB/s
};

// Vendors' tables, as collected in stas00/ml-engineering compute/accelerator/README.md@744d01e18b and, for TPUs,
// cloud.google.com/tpu/docs.
TEST(CatalogueLaws, peaks_memory_and_bandwidth_are_the_published_ones) {
  const std::vector<Published> rows = {{"v100-sxm2-32gb", 125, 32, 900},
                                       {"a100-sxm-40gb", 312, 40, 1555},
                                       {"a100-sxm-80gb", 312, 80, 2039},
                                       {"a800-sxm", 312, 80, 2039},
                                       {"h100-sxm", 989.4, 80, 3350},
                                       {"h100-pcie", 756, 80, 2000},
                                       {"h800-sxm", 989.4, 80, 3350},
                                       {"h20-sxm", 148, 96, 4000},
                                       {"h200-sxm", 989.4, 141, 4800},
                                       {"gh200", 989.4, 96, 4000},
                                       {"b200-sxm", 2250, 180, 8000},
                                       {"b300-sxm", 2250, 270, 8000},
                                       {"gb200", 2500, 186, 8000},
                                       {"gb300", 2500, 277, 8000},
                                       {"mi250x", 383, 128, 3277},
                                       {"mi250x-gcd", 191.5, 64, 1638.5},
                                       {"mi300x", 1307.4, 192, 5300},
                                       {"mi325x", 1307.4, 256, 6000},
                                       {"mi355x", 2516.6, 288, 8000},
                                       {"gaudi2", 432, 96, 2460},
                                       {"gaudi3", 1835, 128, 3670},
                                       {"tpu-v3", 123, 32, 900},
                                       {"tpu-v4", 275, 32, 1200},
                                       {"tpu-v5e", 197, 16, 819},
                                       {"tpu-v5p", 459, 95, 2765},
                                       {"tpu-v6e", 918, 32, 1638},
                                       {"trainium1", 190, 32, 880},
                                       {"trainium2", 667, 96, 2900},
                                       {"l40s", 362, 48, 864},
                                       {"a10", 125, 24, 600},
                                       {"v100-sxm2-16gb", 125, 16, 900},
                                       {"mi210", 181, 64, 1638.5},
                                       {"mi350x", 2306.9, 288, 8000},
                                       {"h200-nvl", 835.5, 141, 4800},
                                       {"trainium1-core", 95, 16, 440},
                                       {"a40", 149.7, 48, 696},
                                       {"a100-pcie-80gb", 312, 80, 1935},
                                       {"a100-pcie-40gb", 312, 40, 1555},
                                       {"h100-nvl", 835.5, 94, 3900},
                                       {"mi250-gcd", 181, 64, 1638.5},
                                       {"rtx-4090", 165.2, 24, 1008},
                                       {"rtx-pro-6000", 503.8, 96, 1597}};
  std::map<std::string, Published> by_name;
  for (const auto& row : rows) { by_name.emplace(row.name, row); }
  for (const auto& a : accelerators()) {
    ASSERT_TRUE(by_name.contains(a.name)) << a.name << " has no published row";
    const Published& row = by_name.at(a.name);
    const FlopsPerSecond half = max(a.peak(Precision::bf16), a.peak(Precision::fp16));
    EXPECT_NEAR(half.value() / 1e12, row.half, 0.001 * row.half) << a.name;
    EXPECT_NEAR(a.memory_bandwidth.value() / 1e9, row.bandwidth, 0.001 * row.bandwidth) << a.name;
    // Between the label in powers of two and a tenth less than it in powers of ten.
    EXPECT_THAT(a.memory.value(), AllOf(Ge(0.95 * row.gigabytes * 1e9), Le(row.gigabytes * 1.0738e9))) << a.name;
  }
  EXPECT_EQ(accelerators().size(), rows.size());
}

TEST(CatalogueLaws, figures_are_within_what_physics_and_markets_allow) {
  for (const auto& a : accelerators()) {
    const double half = max(a.peak(Precision::bf16), a.peak(Precision::fp16)).value();
    EXPECT_THAT(half / a.memory_bandwidth.value(), AllOf(Ge(30.0), Le(600.0))) << a.name << ": FLOP per byte";
    EXPECT_LE(a.peak(Precision::fp8).value(), 2.03 * half) << a.name;
    EXPECT_LT(a.vector_peak.value(), half) << a.name;
    EXPECT_LT(a.attention_efficiency, a.matrix_efficiency) << a.name;
    // The DMA engines of Trainium's cores reach 62 % of its memory's bandwidth.
    EXPECT_THAT(a.memory_efficiency, AllOf(Ge(0.6), Le(0.95))) << a.name;
    EXPECT_THAT(a.kernel_latency.value(), AllOf(Ge(0.5e-6), Le(15e-6))) << a.name;
    if (a.tdp_watts > 0.0) { EXPECT_THAT(a.tdp_watts, AllOf(Ge(100.0), Le(1500.0))) << a.name; }
    if (a.price_usd > 0.0) { EXPECT_THAT(a.price_usd, AllOf(Ge(1000.0), Le(100e3))) << a.name; }
  }
}

// Also of gradients, whose partial sums are added in fp32.
TEST(CatalogueLaws, fp8_products_are_faster_than_bf16_products_where_the_units_are) {
  for (const auto& a : accelerators()) {
    if (!(a.peak(Precision::fp8) > 1.5 * a.peak(Precision::bf16))) { continue; }
    EXPECT_GT((a.peak(Precision::fp8) * a.efficiency(Precision::fp8) * a.split_accumulation).value(),
              (a.peak(Precision::bf16) * a.efficiency(Precision::bf16)).value())
        << a.name;
  }
}

TEST(CatalogueLaws, clusters_are_built_like_clusters) {
  for (const auto& c : clusters()) {
    for (const auto& d : c.dimensions) {
      EXPECT_LT(d.bandwidth, c.accelerator.memory_bandwidth) << c.name << " " << d.name;
      EXPECT_LE(d.bandwidth, c.dimensions.front().bandwidth) << c.name << " " << d.name << ": faster than inside";
    }
    if (c.second_tier.memory > Bytes()) {
      EXPECT_LT(c.second_tier.bandwidth, c.accelerator.memory_bandwidth) << c.name;
      EXPECT_GE(c.second_tier.memory, c.accelerator.memory * 0.5) << c.name;
    }
    const auto devices = static_cast<double>(c.node_size());
    if (c.node_power_watts > 0.0 && c.accelerator.tdp_watts > 0.0) {
      EXPECT_THAT(c.node_power_watts / devices / c.accelerator.tdp_watts, AllOf(Ge(1.0), Le(2.5))) << c.name;
    }
    if (c.node_price_usd > 0.0) { EXPECT_THAT(c.node_price_usd / devices, AllOf(Ge(10e3), Le(70e3))) << c.name; }
    if (c.usd_per_device_hour > 0.0) { EXPECT_THAT(c.usd_per_device_hour, AllOf(Ge(0.5), Le(20.0))) << c.name; }
  }
}

// What the best products reach, peak x efficiency.
TEST(CatalogueLaws, a_successor_is_faster_and_has_more_memory_bandwidth) {
  const std::vector<std::vector<const char*>> lines = {{"v100-sxm2-32gb", "a100-sxm-80gb", "h100-sxm", "b200-sxm"},
                                                       {"h100-sxm", "gh200", "gb200"},
                                                       {"h100-pcie", "h100-sxm"},
                                                       {"mi250x-gcd", "mi300x", "mi325x", "mi355x"},
                                                       {"tpu-v3", "tpu-v4", "tpu-v5p"},
                                                       {"tpu-v5e", "tpu-v6e"},
                                                       {"gaudi2", "gaudi3"},
                                                       {"trainium1", "trainium2"},
                                                       {"a10", "l40s"}};
  for (const auto& line : lines) {
    for (std::size_t i = 1; i < line.size(); ++i) {
      const auto older = shipped().accelerator(line[i - 1]).value();
      const auto newer = shipped().accelerator(line[i]).value();
      const auto rate = [](const Accelerator& a) {
        return max(a.peak(Precision::bf16) * a.efficiency(Precision::bf16),
                   a.peak(Precision::fp16) * a.efficiency(Precision::fp16));
      };
      EXPECT_GT(rate(newer), rate(older)) << newer.name << " after " << older.name;
      EXPECT_GT(newer.memory_bandwidth, older.memory_bandwidth) << newer.name << " after " << older.name;
    }
  }
}

// The basis says what the most important figure rests on: it is measured if and only if somebody has read it. A fit may
// rest on this product, or on another whose figure it shares.
TEST(CatalogueLaws, the_basis_agrees_with_the_citation_of_the_efficiency) {
  const auto citation = [](const Sources& sources, const std::string& figure) {
    for (const auto& [key, text] : sources) {
      for (const auto& cited : cited_figures(key)) {
        if (cited == figure) { return text; }
      }
    }
    return std::string();
  };
  const auto agrees = [&](Basis basis, const std::string& text) {
    return text.starts_with("fitted") || (basis == Basis::measured) == !is_unverified(text);
  };
  for (const auto& a : accelerators()) {
    EXPECT_TRUE(agrees(a.basis, citation(a.sources, "matrix_efficiency"))) << a.name;
  }
  for (const auto& name : entry_names(ORRERY_DATA_DIR, kLinkEntries)) {
    const auto link = shipped().link(name).value();
    if (citation(link.sources, "protocols").starts_with("fitted")) { continue; }  // the basis is then whose sweeps
    EXPECT_TRUE(agrees(link.basis, citation(link.sources, "efficiency"))) << name;
  }
}

TEST(CatalogueLaws, a_name_is_one_entry_s_only) {
  std::map<std::string, std::string_view> folder_of;
  for (const auto& kind : {kAcceleratorEntries, kLinkEntries, kClusterEntries, kStackEntries, kModelEntries}) {
    for (const auto& name : entry_names(ORRERY_DATA_DIR, kind)) {
      EXPECT_TRUE(folder_of.emplace(name, kind.folder).second)
          << name << " is in " << kind.folder << " and in " << folder_of.at(name);
    }
  }
}

// One device, one node, whole blocks of every dimension; twice what is filled only where something grows.
TEST(CatalogueLaws, every_cluster_scales_from_one_device_on) {
  for (const auto& c : clusters()) {
    EXPECT_TRUE(shipped().cluster(c.name, 1)) << c.name;
    std::int64_t block = 1;
    for (const auto& dimension : c.dimensions) {
      block *= dimension.size;
      const auto scaled = shipped().cluster(c.name, block);
      ASSERT_TRUE(scaled) << scaled.error().text();
      EXPECT_EQ(scaled->devices, block) << c.name;
    }
    const auto twice = shipped().cluster(c.name, 2 * block);
    EXPECT_TRUE(twice) << twice.error().text();
  }
}

TEST(CatalogueLaws, part_of_a_torus_has_lines_and_the_next_axis_opens_when_one_is_full) {
  const auto pod = shipped().cluster("tpu-v5e-pod", 256).value();
  EXPECT_EQ(pod.dimensions[0].bandwidth.value(), 90e9);
  const auto part = shipped().cluster("tpu-v5e-pod", 64).value();  // 16 x 4
  EXPECT_EQ(part.dimensions[0].size, 16);
  EXPECT_EQ(part.dimensions[1].size, 4);
  EXPECT_EQ(part.dimensions[1].bandwidth.value(), 45e9);
  EXPECT_EQ(shipped().cluster("tpu-v5e-pod", 40).error().text(),
            "40 devices are not a whole number of nodes of 16; nearest: 32 or 48");
  EXPECT_EQ(shipped().cluster("tpu-v4-pod", 36).error().text(),
            "36 devices are not a whole number of blocks of 16 below dimension \"z\"; nearest: 32 or 48");
}

TEST(CatalogueLaws, the_names_that_issues_and_scripts_rely_on_are_there) {
  EXPECT_THAT(entry_names(ORRERY_DATA_DIR, kClusterEntries),
              IsSupersetOf({"dgx-1v", "dgx-2", "dgx-b300", "gb200-nvl72", "gb300-nvl72", "hgx-h800", "hgx-h20",
                            "a100-80g-nvl8-ib", "hls-gaudi2", "hls-gaudi3", "aws-p5", "aws-p4d", "azure-nd-h100-v5",
                            "gcp-a3-mega", "oci-h100", "mi300x-node", "tpu-v4-pod", "aws-trn2"}));
  EXPECT_EQ(shipped().cluster("gb200-nvl72", 0)->node_size(), 72);
}

// A figure that is wrong by 10^5 does not pass without a word.
TEST(CatalogueLaws, cores_fit_the_peak_and_a_hundred_thousand_times_as_many_do_not) {
  const Catalogue catalogue(ORRERY_DATA_DIR);
  const auto accelerators = catalogue.accelerators();
  ASSERT_TRUE(accelerators) << accelerators.error().text();
  for (const auto& entry : *accelerators) {
    auto chip = catalogue.accelerator(entry.name).value();
    EXPECT_EQ(doubtful_cores(chip), "") << entry.name;
    chip.cores *= 100'000;
    EXPECT_NE(doubtful_cores(chip), "") << entry.name;
  }
}

}  // namespace
}  // namespace orrery::hardware::catalogue_laws_test
