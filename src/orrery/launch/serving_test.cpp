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

TEST(ServingScript, overlaps_two_batches_where_they_were_simulated) {
  ServedFleet fleet = fleet_of(0);
  fleet.two_batch_decodes = 64;
  EXPECT_THAT(serving_script(Server::sglang, fleet), Not(HasSubstr("overlap")));
  EXPECT_THAT(serving_script(Server::vllm, fleet), Not(HasSubstr("--enable-dbo")));
  fleet.engine.overlaps_batches = true;
  EXPECT_THAT(serving_script(Server::sglang, fleet), HasSubstr(" --enable-two-batch-overlap"));
  EXPECT_THAT(serving_script(Server::vllm, fleet),
              HasSubstr(" --enable-dbo --dbo-decode-token-threshold 64 --dbo-prefill-token-threshold 1000000 "
                        "--all2all-backend deepep_low_latency"));
  fleet.drafts = 3;
  EXPECT_THAT(serving_script(Server::vllm, fleet), HasSubstr(" --dbo-decode-token-threshold 256 "));
}

// vLLM's limits are those of a rank of attention dp, SGLang's those of all ranks.
TEST(ServingScript, states_the_limits_that_were_simulated) {
  ServedFleet fleet = fleet_of(0);
  fleet.engine.memory_use = 0.88;
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

TEST(ServingScript, states_the_memory_of_each_pool) {
  ServedFleet fleet = fleet_of(0);
  fleet.prefill = ServedPool{"prefill", 1, 1, 1, 1, 1};
  fleet.prefill->memory_use = 0.76;
  fleet.engine.memory_use = 0.63;
  const std::string script = serving_script(Server::sglang, fleet);
  EXPECT_LT(script.find("--mem-fraction-static 0.76"), script.find("--mem-fraction-static 0.63"));
  EXPECT_THAT(script, HasSubstr("--mem-fraction-static 0.63"));
}

TEST(ServingScript, names_settings_that_its_lines_do_not_have) {
  ServedFleet fleet = fleet_of(0);
  EXPECT_THAT(serving_script(Server::sglang, fleet), Not(HasSubstr("do not have")));
  fleet.missing = {"speculative_tokens 3", "prefix_cache false"};
  EXPECT_THAT(
      serving_script(Server::sglang, fleet),
      HasSubstr(
          "\n# Simulated with settings that these lines do not have: speculative_tokens 3, prefix_cache false\n"));
  fleet.engine.memory_use = 0.0;
  EXPECT_THAT(serving_script(Server::sglang, fleet), Not(HasSubstr("--mem-fraction-static")));
  EXPECT_THAT(serving_script(Server::vllm, fleet), Not(HasSubstr("--gpu-memory-utilization")));
}

TEST(ServingScript, counts_accelerators) {
  EXPECT_THAT(serving_script(Server::vllm, fleet_of(0)), HasSubstr("each on 48 accelerators."));
  ServedFleet small = fleet_of(0);
  small.engine.ep = small.engine.attention_dp = 1;
  EXPECT_THAT(serving_script(Server::vllm, small), HasSubstr("each on 1 accelerator."));
}

// Of nodes with 8: the engine of 4 first, then 4 of 1 next to it, and the rest on the second node.
TEST(ServingScript, fills_nodes_with_the_largest_engines_first) {
  ServedFleet fleet;
  fleet.prefill = ServedPool{"prefill", 1, 1, 1, 1, 6};
  fleet.engine = {"decode", 4, 1, 1, 1, 1};
  fleet.node_accelerators = 8;
  const std::string script = serving_script(Server::vllm, fleet);
  EXPECT_THAT(script, HasSubstr("0)\n  decode 0,1,2,3 30000\n  prefill 4 30001\n  prefill 5 30002\n  prefill 6 30003\n"
                                "  prefill 7 30004\n"));
  EXPECT_THAT(script, HasSubstr("1)\n  prefill 0 30000\n  prefill 1 30001\n  ;;\nesac\nwait\n"));
  EXPECT_THAT(script, HasSubstr("each of the 2 nodes, with the number of the node (0 to 1)"));
}

// The first node of an engine answers requests, the others are headless.
TEST(ServingScript, starts_engines_on_several_nodes) {
  ServedFleet fleet;
  fleet.engine = {"engine", 16, 1, 1, 1, 1};
  fleet.node_accelerators = 8;
  for (const Server server : {Server::vllm, Server::sglang, Server::dynamo}) {
    EXPECT_THAT(serving_script(server, fleet), HasSubstr("  engine 0,1,2,3,4,5,6,7 30000 1 0\n"));
    EXPECT_THAT(serving_script(server, fleet), HasSubstr("--nnodes 2 --node-rank \"$3\""));
  }
  EXPECT_THAT(serving_script(Server::vllm, fleet), HasSubstr("$(test \"$3\" = 0 || echo --headless)"));
  fleet.engine = {"engine", 1, 1, 16, 16, 1};
  EXPECT_THAT(serving_script(Server::vllm, fleet),
              HasSubstr("--data-parallel-size-local 8 --data-parallel-start-rank \"$(($3 * 8))\""));
  // Copies that do not divide over the nodes: nothing starts, and the script fails.
  fleet.engine = {"engine", 4, 1, 1, 3, 1};
  EXPECT_THAT(serving_script(Server::vllm, fleet), HasSubstr("do not divide over them' >&2\n  exit 1\n"));
}

TEST(ServingScript, has_what_a_prediction_rests_on) {
  ServedFleet fleet = fleet_of(0);
  fleet.engine.attention_dp = fleet.engine.ep = 1;
  for (const Server server : {Server::vllm, Server::sglang, Server::dynamo}) {
    EXPECT_THAT(serving_script(server, fleet), Not(HasSubstr("speculative")));
    EXPECT_THAT(serving_script(server, fleet), Not(HasSubstr("QUANTIZATION")));
  }
  fleet.drafts = 2;
  fleet.longest = 7168;
  fleet.quantization = fleet.weights = "fp8";
  EXPECT_THAT(serving_script(Server::vllm, fleet),
              HasSubstr(R"(--speculative-config '{"method":"mtp","num_speculative_tokens":2}')"));
  EXPECT_THAT(serving_script(Server::vllm, fleet), HasSubstr(" --max-model-len 7168"));
  EXPECT_THAT(serving_script(Server::sglang, fleet),
              HasSubstr("--speculative-num-steps 2 --speculative-eagle-topk 1 --speculative-num-draft-tokens 3"));
  EXPECT_THAT(serving_script(Server::sglang, fleet), HasSubstr(" --context-length 7168"));
  for (const Server server : {Server::vllm, Server::sglang, Server::dynamo}) {
    EXPECT_THAT(serving_script(server, fleet), HasSubstr("${QUANTIZATION:+--quantization \"$QUANTIZATION\"}"));
    EXPECT_THAT(serving_script(server, fleet), HasSubstr("deepseek-r1 with weights in fp8."));
  }
}

TEST(ServingScript, starts_dynamos_workers_of_sglang) {
  ServedFleet fleet = fleet_of(0);
  fleet.workers_are_sglang = true;
  EXPECT_THAT(serving_script(Server::dynamo, fleet),
              HasSubstr("python3 -m dynamo.sglang --model-path \"$MODEL\" --tp-size 48 --dp-size 48 "));
  EXPECT_THAT(serving_script(Server::dynamo, fleet), Not(HasSubstr("dynamo.vllm")));
  EXPECT_THAT(serving_script(Server::dynamo, fleet), Not(HasSubstr("--port")));
  fleet.prefill = ServedPool{"prefill", 1, 1, 1, 1, 1};
  fleet.engine = {"decode", 3, 1, 1, 3, 1};  // on nodes of 8: copies that vLLM cannot divide
  fleet.node_accelerators = 8;
  const std::string script = serving_script(Server::dynamo, fleet);
  EXPECT_THAT(script, HasSubstr("--disaggregation-mode prefill --disaggregation-bootstrap-port \"$(($2 + 1000))\" "));
  EXPECT_THAT(script, HasSubstr("--disaggregation-mode decode "));
  EXPECT_THAT(script, HasSubstr("--disaggregation-transfer-backend nixl"));
  EXPECT_THAT(script, HasSubstr("  decode 0,1,2,3,4,5,6,7 30000 1 0\n"));
}

TEST(ServingScript, tells_dynamo_the_role_of_a_worker) {
  ServedFleet fleet;
  fleet.prefill = ServedPool{"prefill", 1, 1, 1, 1, 1};
  fleet.engine = {"decode", 1, 1, 1, 1, 1};
  fleet.routing = "prefix-aware";
  const std::string script = serving_script(Server::dynamo, fleet);
  EXPECT_THAT(script, HasSubstr("--disaggregation-mode prefill --kv-transfer-config"));
  EXPECT_THAT(script, HasSubstr("--disaggregation-mode decode --kv-transfer-config"));
  EXPECT_THAT(script, HasSubstr("dynamo.frontend --router-mode kv"));
}

}  // namespace
}  // namespace orrery::launch::serving_test
