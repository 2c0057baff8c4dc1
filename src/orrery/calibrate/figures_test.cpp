#include "orrery/calibrate/figures.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/hardware/catalogue.hpp"

namespace orrery::calibrate::figures_test {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

Target target() {
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  return {catalogue.cluster_template("dgx-h100").value(), catalogue.stack("megatron-core").value()};
}

std::string text_of(const Target& one) { return hardware::yaml_of(one.cluster) + hardware::yaml_of(one.stack); }

std::vector<Figure> all_figures() {
  return figures_of(target(), {hardware::Precision::bf16, hardware::Precision::fp8});
}

TEST(Figures, start_at_the_values_of_the_target_and_within_their_bounds) {
  for (const auto& figure : all_figures()) {
    EXPECT_THAT(figure.unknown.start, AllOf(Ge(figure.unknown.low), Le(figure.unknown.high))) << figure.name;
    EXPECT_GT(figure.unknown.low, 0.0) << figure.name;
    EXPECT_GT(figure.unknown.spread, 0.0) << figure.name;
    Target same = target();
    figure.set(same, figure.unknown.start);
    if (figure.name.starts_with("matrix_efficiency_of.")) { continue; }  // written where it was implied
    EXPECT_EQ(text_of(same), text_of(target())) << figure.name;
  }
}

TEST(Figures, each_changes_the_target_in_its_own_way) {
  std::set<std::string> texts = {text_of(target())};
  for (const auto& figure : all_figures()) {
    Target changed = target();
    figure.set(changed, 0.9 * figure.unknown.start);
    EXPECT_TRUE(texts.insert(text_of(changed)).second) << figure.name << " of " << figure.of;
  }
}

TEST(Figures, are_those_of_the_accelerator_every_link_once_and_the_stack) {
  std::set<std::string> owners;
  for (const auto& figure : all_figures()) { owners.insert(figure.of); }
  EXPECT_EQ(owners, (std::set<std::string>{"h100-sxm", "nvlink4", "infiniband-ndr", "megatron-core"}));
}

TEST(Figures, a_new_citation_replaces_the_old_one_of_this_figure_only) {
  Target cited = target();
  const auto figures = all_figures();
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [](const Figure& figure) { return figure.name == "kernel_latency"; });
  ASSERT_NE(found, figures.end());
  cite(cited, *found, "fitted: here");
  const auto& sources = cited.cluster.accelerator.sources;
  EXPECT_EQ(sources.at("kernel_latency"), "fitted: here");
  for (const auto& [key, text] : target().cluster.accelerator.sources) {
    if (key.find("kernel_latency") != std::string::npos) { continue; }
    EXPECT_EQ(sources.at(key), text);
  }
}

}  // namespace
}  // namespace orrery::calibrate::figures_test
