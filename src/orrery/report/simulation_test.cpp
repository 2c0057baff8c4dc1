// A simulation as text: many classes of ranks, the critical path.
#include "orrery/report/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orrery::report::simulation_test {
namespace {

// Rank r finishes at r + 1 ns.
results::Simulation staggered(std::uint64_t ranks) {
  results::Simulation simulation;
  simulation.semantics = "physical";
  simulation.backend = "flow";
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    results::SimulatedRank result;
    result.finish_ns = rank + 1;
    result.compute_ns = 7;
    simulation.ranks.add(1, result);
  }
  simulation.simulated_ranks = ranks;
  return simulation;
}

std::ptrdiff_t lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(SimulationText, many_classes_of_ranks_are_summarised) {
  EXPECT_GT(lines_of(simulation_text(staggered(64))), 64);
  const std::string text = simulation_text(staggered(4096));
  EXPECT_LT(lines_of(text), 20) << text;
  EXPECT_NE(text.find("least"), std::string::npos);
  EXPECT_NE(text.find("median             2048"), std::string::npos) << text;
  EXPECT_NE(text.find("\n4095               4096"), std::string::npos) << text;
  EXPECT_NE(text.find("4096 classes of ranks"), std::string::npos) << text;
}

TEST(SimulationText, the_critical_path_has_shares_and_savings) {
  results::Simulation simulation = staggered(1);
  results::CriticalPath& path = simulation.path.emplace();
  path.activities = {{"compute", 1, 750, 750, 0, 0, 0}, {"all_reduce of tp", 1, 250, 300, 1, 50, 50}};
  path.parts = {{"compute", 750}, {"latency", 250}};
  path.steps = {{0, 4, 0, "gemm", 0, 750}, {0, 5, 1, "", 750, 1000}};
  path.savings = {{"compute", 1.1, 0}};
  const std::string text = simulation_text(simulation);
  EXPECT_NE(text.find("critical path: 1.00000 ns, 2 steps on 1 ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("75.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("compute +10 %"), std::string::npos) << text;
  const std::string json = simulation_json(simulation);
  EXPECT_NE(json.find("\"critical_path\""), std::string::npos);
  EXPECT_NE(json.find("\"saved\""), std::string::npos);
}

}  // namespace
}  // namespace orrery::report::simulation_test
