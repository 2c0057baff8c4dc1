// Number of points of published search problems: the expected figures are those of the tool that the problems come
// from, which enumerates every point (for two of them, of an independent count by its rules).
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "orrery/explore/space_walk.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::explore::space_count_test {
namespace {

struct Problem {
  std::string file, model, cluster;
  std::int64_t devices = 0;
  std::int64_t max_batch = 0;
  std::int64_t points = 0, network = 0;  // network 0: not published
};

Space space_of(const Problem& problem) {
  auto file = read_space_file(std::string(ORRERY_DATA_DIR) + "/../examples/spaces/" + problem.file);
  EXPECT_TRUE(file) << file.error().text();
  if (problem.max_batch > 0) { file->max_batch = problem.max_batch; }
  const auto model = workload::load_model(ORRERY_DATA_DIR, problem.model).value();
  const auto cluster = hardware::Catalogue(ORRERY_DATA_DIR).cluster(problem.cluster, problem.devices).value();
  auto space = Space::make(*file, model, {}, cluster, {}, true);
  EXPECT_TRUE(space) << space.error().text();
  return *space;
}

struct Counts {
  std::int64_t families = 0, of_families = 0, points = 0, network = 0, invalid = 0, possible = 0, plans = 0;
};

Counts walked(const Space& space) {
  Counts counts;
  SpaceWalk walk(space);
  walk.families([&](const Family& family) {
    ++counts.families;
    counts.of_families += family.points;
    walk.members(family, [&](const Member& member) {
      counts.points += member.points;
      counts.network += member.verdict == Verdict::network ? member.points : 0;
      counts.invalid += member.verdict == Verdict::invalid ? member.points : 0;
      counts.possible += member.verdict == Verdict::possible ? member.points : 0;
      counts.plans += member.verdict == Verdict::possible ? 1 : 0;
    });
    return true;
  });
  return counts;
}

class PublishedProblem : public testing::TestWithParam<Problem> {};

TEST_P(PublishedProblem, has_as_many_points_as_its_tool_enumerates) {
  const Space space = space_of(GetParam());
  EXPECT_EQ(space.points(), GetParam().points);
  const Counts counts = walked(space);
  EXPECT_EQ(counts.of_families, GetParam().points);
  EXPECT_EQ(counts.points, GetParam().points);
  EXPECT_EQ(counts.network + counts.invalid + counts.possible, counts.points);
  if (GetParam().network > 0) { EXPECT_EQ(counts.network, GetParam().network); }
}

const std::string kA100 = "a100-80g-nvl8-ib", kH100 = "h100-80g-nvl8-ib";

INSTANTIATE_TEST_SUITE_P(Published, PublishedProblem,
                         testing::Values(Problem{"p-a.yaml", "mt-nlg-530b", kA100, 5128, 0, 10'944, 5'472},
                                         Problem{"p-b.yaml", "gpt3-175b", kH100, 4096, 0, 10'956'160, 7'555'616},
                                         Problem{"p-c.yaml", "megatron-1t", kA100, 4096, 0, 20'590'528, 14'698'704},
                                         Problem{"p-a.yaml", "gpt3-175b", kA100, 64, 64, 3'232'128, 0},
                                         Problem{"p-a.yaml", "gpt3-175b", kA100, 1024, 1024, 6'985'920, 0},
                                         Problem{"p-a.yaml", "gpt3-175b", kA100, 1024, 1536, 11'698'528, 0},
                                         Problem{"p-a.yaml", "gpt3-175b", kA100, 4096, 1536, 7'474'752, 0},
                                         Problem{"p-a.yaml", "megatron-1t", kA100, 1024, 1024, 6'580'992, 0},
                                         Problem{"p-a.yaml", "megatron-1t", kA100, 4096, 4096, 7'276'848, 0},
                                         Problem{"p-a.yaml", "megatron-22b", kA100, 8, 4, 193'496, 0},
                                         Problem{"p-a.yaml", "mt-nlg-530b", kA100, 2240, 1920, 4'215'872, 0}));

}  // namespace
}  // namespace orrery::explore::space_count_test
