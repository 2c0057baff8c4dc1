#include "orrery/jobs/operators.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "orrery/core/random.hpp"
#include "orrery/jobs/servers.hpp"
#include "orrery/jobs/simulate.hpp"

namespace orrery::jobs::operators_test {
namespace {

Operator op(double forward, double backward, double bytes, std::vector<std::int64_t> inputs) {
  return {"op", Seconds(forward), Seconds(backward), Bytes(bytes), std::move(inputs)};
}

File ramp(std::vector<std::int64_t> shape) {
  File file;
  file.fabric = Fabric::ramp;
  file.shape = std::move(shape);
  file.servers = file.shape[0] * file.shape[1] * file.shape[2];
  return file;
}

ServerNetwork free_network() {
  ServerNetwork network;
  network.bandwidth = BytesPerSecond(1e30);
  network.latency = network.io_latency = Seconds(0);
  return network;
}

// min(degree, even ceiling of time / quantum), at least 1: 0 s -> 1; 5 ms -> 1 quantum -> 2; 25 ms -> 3 -> 4; 1 s ->
// degree.
TEST(pieces_of, is_the_even_ceiling_up_to_the_degree) {
  const Operators step{{op(0, 0, 1, {}), op(0.005, 0, 1, {1}), op(0.025, 0, 1, {2}), op(1.0, 0, 1, {3})}};
  EXPECT_EQ(pieces_of(step, 8, Seconds(0.01)), (std::vector<std::int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(pieces_of(step, 1, Seconds(0.01)), (std::vector<std::int64_t>{1, 1, 1, 1}));
}

// RAMP of 4 x 4 x 2: blocks of 16 and 8 are square in groups and racks; 10, 12 and 14 have none; odd numbers never.
TEST(servers, pieces_take_symmetric_blocks) {
  const Servers servers(ramp({4, 4, 2}));
  std::vector<std::int64_t> valid;
  for (std::int64_t count = 1; count <= 16; ++count) {
    if (servers.has_piece_block(count)) { valid.push_back(count); }
  }
  EXPECT_EQ(valid, (std::vector<std::int64_t>{1, 2, 4, 6, 8, 16}));
  // 16: all groups and racks, server 0 of each, which are the even numbers.
  const auto sixteen = servers.piece_block(16, {});
  ASSERT_TRUE(sixteen);
  for (const auto server : *sixteen) { EXPECT_EQ(server % 2, 0); }
  // 8 = 2 groups x 2 racks x 2 servers: group 0 has servers 0 to 7, group 1 has 8 to 15.
  EXPECT_EQ(servers.piece_block(8, {}), (std::vector<std::int32_t>{0, 1, 2, 3, 8, 9, 10, 11}));
}

TEST(servers, pieces_avoid_servers_of_other_jobs_but_not_their_own) {
  Servers servers(ramp({2, 2, 1}));
  ASSERT_TRUE(servers.take({0}));
  EXPECT_EQ(servers.piece_block(2, {}), (std::vector<std::int32_t>{1, 3}));  // rack 1 of both groups
  const std::vector<std::int32_t> own = {0};
  EXPECT_EQ(servers.piece_block(2, own), (std::vector<std::int32_t>{0, 2}));
  ASSERT_TRUE(servers.take({1, 2, 3}));
  EXPECT_FALSE(servers.piece_block(1, {}));
}

TEST(place_pieces, puts_an_operator_where_its_input_is) {
  const Operators step{{op(1, 1, 1, {}), op(1, 1, 1, {1}), op(0, 0, 1, {2})}};
  const auto places = place_pieces(step, {4, 4, 1}, Servers(ramp({4, 4, 2})));
  ASSERT_TRUE(places);
  EXPECT_EQ(places->at(0), places->at(1));
  EXPECT_EQ(places->at(2).size(), 1U);
}

// On one server nothing travels: the step is the sum of all times, whatever the graph.
TEST(step_time, on_one_server_is_the_sum) {
  const Operators step{{op(1, 2, 1e9, {}), op(3, 4, 1e9, {1}), op(5, 6, 1e9, {1}), op(7, 8, 1e9, {2, 3})}};
  EXPECT_DOUBLE_EQ(sequential_time(step).value(), 36.0);
  const PiecePlaces places = {{0}, {0}, {0}, {0}};
  EXPECT_DOUBLE_EQ(step_time(step, places, {}).value(), 36.0);
}

// A chain divided by 4 on a network without cost: a quarter.
TEST(step_time, of_a_divided_chain_is_its_share) {
  const Operators step{{op(4, 8, 1, {}), op(12, 16, 1, {1})}};
  const PiecePlaces places = {{0, 1, 2, 3}, {0, 1, 2, 3}};
  EXPECT_NEAR(step_time(step, places, free_network()).value(), 10.0, 1e-9);
}

// A switch of 1 GB/s without latency; a -> b on another server, 2 GB: forward 1 + 2 + 3, backward of b 4, b's 1 GB
// back, backward of a 5: 16 s.
TEST(step_time, counts_messages_between_servers) {
  const Operators step{{op(1, 5, 2e9, {}), op(3, 4, 1e9, {1})}};
  ServerNetwork network = free_network();
  network.ramp = false;
  network.bandwidth = BytesPerSecond(1e9);
  EXPECT_NEAR(step_time(step, {{0}, {1}}, network).value(), 16.0, 1e-12);
}

// After a (1 s) on server 0, b (5 s) and c (2 s) are ready on server 1: c is shorter and runs first, so that d, which
// needs c, runs on server 0 from 3 s to 9 s while b runs from 3 s to 8 s. Longest first would give 1 + 5 + 2 + 6 = 14
// s.
TEST(step_time, runs_the_shortest_ready_piece_first) {
  const Operators step{{op(1, 0, 1, {}), op(5, 0, 1, {1}), op(2, 0, 1, {1}), op(6, 0, 1, {3})}};
  EXPECT_NEAR(step_time(step, {{0}, {1}, {1}, {0}}, free_network()).value(), 9.0, 1e-12);
}

// b runs on server 1 from 0 s for 10 s; c becomes ready there at 4 s with 3 s, less than the 6 s that b has left: it
// runs at once, until 7 s. d needs c: 7 s to 15 s on server 0. b ends at 13 s.
TEST(step_time, interrupts_a_piece_with_more_time_left) {
  const Operators step{{op(4, 0, 1, {}), op(10, 0, 1, {}), op(3, 0, 1, {1}), op(8, 0, 1, {3})}};
  EXPECT_NEAR(step_time(step, {{0}, {1}, {1}, {0}}, free_network()).value(), 15.0, 1e-12);
}

// Never below the busiest server, never above everything in a row.
TEST(step_time, is_between_its_bounds) {
  RandomStream draws(7);
  for (int trial = 0; trial < 200; ++trial) {
    Operators step;
    const std::int64_t count = 2 + draws.below(12);
    for (std::int64_t i = 0; i < count; ++i) {
      Operator one = op(uniform(draws), uniform(draws), 1e6, {});
      for (std::int64_t input = 1; input <= i; ++input) {
        if (uniform(draws) < 0.3) { one.inputs.push_back(input); }
      }
      step.operators.push_back(one);
    }
    PiecePlaces places;
    std::vector<double> busy(32, 0.0);
    for (const auto& one : step.operators) {
      std::vector<std::int32_t> on;
      const auto first = static_cast<std::int32_t>(draws.below(8));
      const std::int64_t pieces = 1 + draws.below(4);
      for (std::int32_t p = 0; p < pieces; ++p) { on.push_back((first + p) % 8); }
      for (const auto server : on) {
        busy[static_cast<std::size_t>(server)] += (one.forward + one.backward).value() / static_cast<double>(on.size());
      }
      places.push_back(std::move(on));
    }
    const double time = step_time(step, places, free_network()).value();
    EXPECT_GE(time, *std::max_element(busy.begin(), busy.end()) - 1e-9);
    EXPECT_LE(time, sequential_time(step).value() + 1e-9);
  }
}

// PAC-ML's table (cwfparsonson/ddls@9e0b5ba, notebooks): blocking rates of Para_max and Para_min under acceptable times
// that are uniform (A) or skew-normal of shape 5, 0, -5 (B, C, D). Para_min blocks more jobs than Para_max but for D.
TEST(simulate_jobs, blocks_pac_ml_jobs_as_published) {
  auto file = read_file(std::string(ORRERY_SOURCE_DATA_DIR) + "/../examples/jobs/pac-ml.yaml");
  ASSERT_TRUE(file) << file.error().text();
  struct Case {
    std::optional<double> skew;
    double widest, least;
  };
  for (const Case& one :
       {Case{{}, 0.262, 0.309}, Case{5.0, 0.263, 0.396}, Case{0.0, 0.267, 0.307}, Case{-5.0, 0.263, 0.142}}) {
    file->limit_skew = one.skew;
    std::vector<double> mean;
    for (const auto policy : {PolicyKind::max_parallelism, PolicyKind::acceptable_jct}) {
      file->policy = policy;
      double sum = 0.0;
      for (file->seed = 0; file->seed < 5; ++file->seed) { sum += simulate_jobs(*file).blocking_rate; }
      mean.push_back(sum / 5.0);
    }
    EXPECT_NEAR(mean[0], one.widest, 0.01);
    EXPECT_NEAR(mean[1], one.least, 0.02);
    EXPECT_EQ(mean[1] > mean[0], one.least > one.widest);
  }
}

TEST(read_operators, names_an_input_that_is_not_before) {
  const auto bad = read_operators(std::string(ORRERY_SOURCE_DATA_DIR) + "/../tests/golden/jobs/operators-bad.yaml");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().text().find("2 is not before operator 2; valid: 1 to 1"), std::string::npos)
      << bad.error().text();
}

}  // namespace
}  // namespace orrery::jobs::operators_test
