#include "orrery/launch/serving.hpp"

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::launch {

namespace {

constexpr std::string_view kTransfer = R"('{"kv_connector":"NixlConnector","kv_role":"kv_both"}')";

std::string accelerators_of(const ServedPool& pool) {
  const std::int64_t count = pool.tp * pool.pp * pool.attention_dp;
  return fmt::format("{} accelerator{}", count, count == 1 ? "" : "s");
}

// Arguments of vLLM's engine, which Dynamo's worker takes, too.
std::string vllm_arguments(const ServedFleet& fleet, const ServedPool& pool) {
  std::string text = fmt::format(" --tensor-parallel-size {}", pool.tp);
  if (pool.pp > 1) { text += fmt::format(" --pipeline-parallel-size {}", pool.pp); }
  if (pool.attention_dp > 1) { text += fmt::format(" --data-parallel-size {}", pool.attention_dp); }
  if (pool.ep > 1) { text += " --enable-expert-parallel"; }
  if (pool.redundant_experts > 0) {
    text += fmt::format(R"( --enable-eplb --eplb-config '{{"num_redundant_experts":{}}}')", pool.redundant_experts);
  }
  text += fmt::format(" \\\n  --max-num-batched-tokens {} --max-num-seqs {}", fleet.max_batched_tokens,
                      fleet.max_sequences);
  if (fleet.memory_use > 0.0) { text += fmt::format(" --gpu-memory-utilization {}", fleet.memory_use); }
  if (fleet.stream_interval > 1) { text += fmt::format(" --stream-interval {}", fleet.stream_interval); }
  if (!fleet.quantization.empty()) { text += " --quantization " + fleet.quantization; }
  if (!fleet.kv_format.empty()) { text += " --kv-cache-dtype " + fleet.kv_format; }
  return text;
}

std::string vllm_lines(const ServedFleet& fleet, const ServedPool& pool) {
  std::string text = fmt::format("# {}: {} of these, each on {} and a port of its own\n", pool.role, pool.replicas,
                                 accelerators_of(pool));
  text += fmt::format("vllm serve \"$MODEL\"{}", vllm_arguments(fleet, pool));
  if (fleet.prefill) { text += fmt::format(" \\\n  --kv-transfer-config {}", kTransfer); }
  return text + "\n";
}

std::string sglang_lines(const ServedFleet& fleet, const ServedPool& pool) {
  std::string text = fmt::format("# {}: {} of these, each on {} and a port of its own\n", pool.role, pool.replicas,
                                 accelerators_of(pool));
  // SGLang's tp counts all ranks of a stage; data-parallel attention divides them.
  text +=
      fmt::format("python3 -m sglang.launch_server --model-path \"$MODEL\" --tp-size {}", pool.tp * pool.attention_dp);
  if (pool.pp > 1) { text += fmt::format(" --pp-size {}", pool.pp); }
  if (pool.attention_dp > 1) { text += fmt::format(" --dp-size {} --enable-dp-attention", pool.attention_dp); }
  if (pool.ep > 1) { text += fmt::format(" --ep-size {}", pool.ep); }
  if (pool.redundant_experts > 0) { text += fmt::format(" --ep-num-redundant-experts {}", pool.redundant_experts); }
  if (pool.ep > 1 && !fleet.expert_backend.empty()) { text += " --moe-a2a-backend " + fleet.expert_backend; }
  // Its limits are those of all ranks of attention dp together.
  text += fmt::format(" \\\n  --chunked-prefill-size {} --max-running-requests {}",
                      fleet.max_batched_tokens * pool.attention_dp, fleet.max_sequences * pool.attention_dp);
  if (fleet.memory_use > 0.0) { text += fmt::format(" --mem-fraction-static {}", fleet.memory_use); }
  if (fleet.stream_interval > 1) { text += fmt::format(" --stream-interval {}", fleet.stream_interval); }
  if (!fleet.quantization.empty()) { text += " --quantization " + fleet.quantization; }
  if (!fleet.kv_format.empty()) {
    text += " --kv-cache-dtype " + (fleet.kv_format == "fp8" ? "fp8_e4m3" : fleet.kv_format);
  }
  if (fleet.prefill) { text += " --disaggregation-mode " + pool.role; }
  return text + "\n";
}

std::string dynamo_lines(const ServedFleet& fleet, const ServedPool& pool) {
  std::string text = fmt::format("# {}: {} of these, each on {}\n", pool.role, pool.replicas, accelerators_of(pool));
  text += fmt::format("python3 -m dynamo.vllm --model \"$MODEL\"{}", vllm_arguments(fleet, pool));
  if (pool.role == "prefill") { text += " --is-prefill-worker"; }
  return text + "\n";
}

}  // namespace

std::string serving_script(Server server, const ServedFleet& fleet) {
  std::string text = "#!/bin/sh\n";
  if (!fleet.note.empty()) { text += "# " + fleet.note + "\n"; }
  if (!fleet.missing.empty()) {
    text += fmt::format("# Simulated with settings that these lines do not have: {}\n", join(fleet.missing, ", "));
  }
  text += fmt::format("# The checkpoint's name or folder; written for the model {}.\nMODEL=\"${{MODEL:?}}\"\n\n",
                      fleet.model);
  if (server == Server::dynamo) { text += "python3 -m dynamo.frontend &\n"; }
  const auto lines = [&](const ServedPool& pool) {
    switch (server) {
      case Server::vllm: return vllm_lines(fleet, pool);
      case Server::sglang: return sglang_lines(fleet, pool);
      case Server::dynamo: return dynamo_lines(fleet, pool);
    }
    return std::string();
  };
  if (fleet.prefill) { text += lines(*fleet.prefill) + "\n"; }
  return text + lines(fleet.engine);
}

}  // namespace orrery::launch
