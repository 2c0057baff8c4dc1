// Command lines of inference servers.
#include "orrery/launch/serving.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::launch::serving_test {
namespace {

using testing::HasSubstr;
using testing::Not;

ServedFleet fleet_of(std::int64_t copies) {
  ServedFleet fleet;
  fleet.model = "deepseek-r1";
  fleet.engine = {"engine", 1, 1, 48, 48, 1, copies};
  fleet.max_batched_tokens = 8192;
  fleet.max_sequences = 1024;
  return fleet;
}

TEST(ServingScript, has_the_copies_of_experts_that_were_simulated) {
  EXPECT_THAT(serving_script(Server::sglang, fleet_of(32)), HasSubstr(" --ep-size 48 --ep-num-redundant-experts 32"));
  EXPECT_THAT(serving_script(Server::vllm, fleet_of(32)),
              HasSubstr(R"( --enable-eplb --eplb-config '{"num_redundant_experts":32}')"));
  for (const Server server : {Server::vllm, Server::sglang, Server::dynamo}) {
    EXPECT_THAT(serving_script(server, fleet_of(0)), Not(HasSubstr("redundant")));
  }
}

TEST(ServingScript, names_the_library_that_dispatches_tokens) {
  ServedFleet fleet = fleet_of(0);
  EXPECT_THAT(serving_script(Server::sglang, fleet), Not(HasSubstr("--moe-a2a-backend")));
  fleet.expert_backend = "deepep";
  EXPECT_THAT(serving_script(Server::sglang, fleet), HasSubstr(" --moe-a2a-backend deepep"));
  fleet.engine.ep = 1;
  EXPECT_THAT(serving_script(Server::sglang, fleet), Not(HasSubstr("--moe-a2a-backend")));
}

// vLLM's limits are those of a rank of attention dp, SGLang's those of all ranks.
TEST(ServingScript, states_the_limits_that_were_simulated) {
  ServedFleet fleet = fleet_of(0);
  fleet.memory_use = 0.88;
  EXPECT_THAT(serving_script(Server::vllm, fleet),
              HasSubstr(" --max-num-batched-tokens 8192 --max-num-seqs 1024 --gpu-memory-utilization 0.88"));
  EXPECT_THAT(serving_script(Server::sglang, fleet),
              HasSubstr(" --chunked-prefill-size 393216 --max-running-requests 49152 --mem-fraction-static 0.88"));
  EXPECT_THAT(serving_script(Server::sglang, fleet), Not(HasSubstr("--stream-interval")));
  fleet.stream_interval = 30;
  for (const Server server : {Server::vllm, Server::sglang, Server::dynamo}) {
    EXPECT_THAT(serving_script(server, fleet), HasSubstr(" --stream-interval 30"));
  }
}

TEST(ServingScript, names_settings_that_its_lines_do_not_have) {
  ServedFleet fleet = fleet_of(0);
  EXPECT_THAT(serving_script(Server::sglang, fleet), Not(HasSubstr("do not have")));
  fleet.missing = {"speculative_tokens 3", "prefix_cache false"};
  EXPECT_THAT(
      serving_script(Server::sglang, fleet),
      HasSubstr(
          "\n# Simulated with settings that these lines do not have: speculative_tokens 3, prefix_cache false\n"));
  fleet.memory_use = 0.0;
  EXPECT_THAT(serving_script(Server::sglang, fleet), Not(HasSubstr("--mem-fraction-static")));
  EXPECT_THAT(serving_script(Server::vllm, fleet), Not(HasSubstr("--gpu-memory-utilization")));
}

TEST(ServingScript, counts_accelerators) {
  EXPECT_THAT(serving_script(Server::vllm, fleet_of(0)), HasSubstr("each on 48 accelerators and a port"));
  ServedFleet small = fleet_of(0);
  small.engine.ep = small.engine.attention_dp = 1;
  EXPECT_THAT(serving_script(Server::vllm, small), HasSubstr("each on 1 accelerator and a port"));
}

}  // namespace
}  // namespace orrery::launch::serving_test
