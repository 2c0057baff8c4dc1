#include "orrery/hardware/citations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::hardware::citations_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

config::Node parsed(std::string_view yaml) { return config::parse_yaml(yaml, "entry.yaml").value(); }

TEST(Citations, one_key_may_name_several_figures) {
  EXPECT_THAT(cited_figures("layers"), ElementsAre("layers"));
  EXPECT_THAT(cited_figures("layers, hidden,heads"), ElementsAre("layers", "hidden", "heads"));
  EXPECT_THAT(cited_figures(""), IsEmpty());
}

TEST(Citations, figures_without_a_citation_are_found_by_their_path) {
  const auto entry = parsed(R"(
name: x
memory: 80 GiB
protocols:
  - {name: LL, ring_base: 1 us, ring_step: 2 us}
sources:
  protocols.LL.ring_base: a paper
)");
  EXPECT_THAT(uncited_figures(entry), ElementsAre("memory", "protocols.LL.ring_step"));
}

TEST(Citations, a_citation_of_the_whole_covers_its_parts) {
  EXPECT_THAT(uncited_figures(parsed("{peak: {bf16: 1, fp8: 2}, sources: {peak: a paper}}")), IsEmpty());
}

TEST(Citations, a_citation_of_a_longer_name_does_not_cover_a_shorter_one) {
  EXPECT_THAT(uncited_figures(parsed("{memory: 1, sources: {memory_bandwidth: a paper}}")), ElementsAre("memory"));
  EXPECT_THAT(uncited_figures(parsed("{memory_bandwidth: 1, sources: {memory: a paper}}")),
              ElementsAre("memory_bandwidth"));
}

TEST(Citations, what_names_no_figure_is_found) {
  EXPECT_THAT(citations_of_nothing(parsed("{memory: 1, sources: {memory: a paper, memroy: a paper}}")),
              ElementsAre("memroy"));
}

TEST(Citations, unverified_is_said_first) {
  EXPECT_TRUE(is_unverified("unverified: prior"));
  EXPECT_TRUE(is_unverified("unverified"));
  EXPECT_FALSE(is_unverified("a paper that is unverified"));
}

}  // namespace
}  // namespace orrery::hardware::citations_test
