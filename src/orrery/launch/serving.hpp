// A deployment as the command lines of inference servers: `orrery plan --task serve --emit vllm|sglang|dynamo`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/record.hpp"

namespace orrery::launch {

enum class Server : std::uint8_t {
  vllm,    // vllm serve
  sglang,  // python3 -m sglang.launch_server
  dynamo,  // python3 -m dynamo.vllm or dynamo.sglang, one worker for each engine, behind dynamo.frontend
};

// Engines of one kind.
struct ServedPool {
  std::string role;  // "engine", "prefill", "decode"
  std::int64_t tp = 1, pp = 1, ep = 1, attention_dp = 1, replicas = 1;
  std::int64_t redundant_experts = 0;  // extra copies of experts of a layer
  bool overlaps_batches = false;       // two-batch overlap
  double memory_use = 0.0;             // part of memory; 0: the server's default
};

struct ServedFleet {
  std::string model;  // as it was given
  std::optional<ServedPool> prefill;
  ServedPool engine;
  std::int64_t max_batched_tokens = 0, max_sequences = 0;     // of a rank of attention dp
  std::int64_t stream_interval = 1;                           // tokens of a sequence that are sent together
  std::int64_t longest = 0;                                   // most tokens of a request; 0: those of the checkpoint
  std::int64_t two_batch_decodes = 0, two_batch_prompts = 0;  // of pools that overlap batches; see EngineSettings
  std::int64_t drafts = 0;                                    // tokens that MTP modules draft in a decode step
  std::string quantization, kv_format;                        // "fp8"; empty: as the checkpoint is
  std::string weights;                                        // of the checkpoint: "fp4 (routed experts)"; empty: any
  std::string expert_backend;                                 // SGLang: "deepep"; empty: its default
  bool workers_are_sglang = false;                            // Dynamo's; else vLLM's
  std::int64_t node_accelerators = 0;                         // of a node; 0: all are in one
  bool is_amd = false;                        // accelerators, which have another variable for their numbers
  std::string routing = "least-outstanding";  // of requests to engines
  std::string note;                           // a comment of the first lines
  std::vector<std::string> missing;           // settings that were simulated and that the lines do not have
};

// A shell script that starts the engines of a node, each on accelerators and a port of its own, and on the first node
// what distributes requests to them. Ends with a line end.
[[nodiscard]] std::string serving_script(Server server, const ServedFleet& fleet);

}  // namespace orrery::launch

namespace orrery::config {

template <>
struct EnumNames<launch::Server> {
  using S = launch::Server;
  static constexpr std::array<std::pair<S, std::string_view>, 3> value{
      {{S::vllm, "vllm"}, {S::sglang, "sglang"}, {S::dynamo, "dynamo"}}};
};

}  // namespace orrery::config
