// Settings of an engine that have no effect in a deployment.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/api/serve_run.hpp"

namespace orrery::api {

EngineUses uses_of(const serving::Scenario& scenario) {
  EngineUses uses;
  uses.pools = scenario.disaggregated();
  uses.single = !uses.pools;
  uses.traced = !scenario.trace.empty();
  for (const serving::Degrees& degrees : {scenario.degrees(), scenario.prefill_degrees()}) {
    uses.attention_dp = uses.attention_dp || degrees.attention_dp > 1;
    uses.ep = uses.ep || degrees.ep > 1;
  }
  return uses;
}

// Settings of the engine that are flags, and that others make useful. A file may have them for other runs.
Result<void> check_effects(const serving::EngineSettings& engine, const config::Node& given, const EngineUses& uses) {
  struct Setting {
    const char *key, *flag;
    bool has_effect;
    const char* with;
  };
  const bool drafts = engine.speculative_tokens > 0, estimates = engine.reserve == serving::Reserve::estimate;
  const bool is_static = engine.scheduler == serving::Scheduler::static_batch;
  const char* const not_static = "--scheduler mixed or prefill-first";
  const char* const one_pool = "engines that prefill and decode (no --prefill-replicas)";
  const bool tokenises = engine.prompt_host > Seconds(0), streams = engine.token_host > Seconds(0);
  std::vector<Diagnostic> found;
  for (const Setting& setting : {
           Setting{"acceptance", "--acceptance", drafts, "--speculative-tokens of at least 1"},
           Setting{"draft_layers", "--draft-layers", drafts, "--speculative-tokens of at least 1"},
           Setting{"draft_host", "--draft-host", drafts, "--speculative-tokens of at least 1"},
           Setting{"reserve_ratio", "--reserve-ratio", estimates, "--reserve estimate"},
           Setting{"batch_wait_part", "--batch-wait-part", engine.batch_wait > 0, "--batch-wait of at least 1"},
           Setting{"transfer_by_layer", engine.transfer_by_layer ? "--transfer-by-layer" : "--no-transfer-by-layer",
                   uses.pools, "--prefill-replicas"},
           Setting{"frees_windows", engine.frees_windows ? "--frees-windows" : "--no-frees-windows", uses.windows,
                   "one pool of engines without tiers of the cache, and a model with sliding windows in a part of its "
                   "layers"},
           Setting{"transfer_setup", "--transfer-setup", uses.pools, "--prefill-replicas"},
           Setting{"transfer_layer_host", "--transfer-layer-host", uses.pools, "--prefill-replicas"},
           Setting{"balance_wait", "--balance-wait", uses.attention_dp, "--attention-dp of at least 2"},
           Setting{"balance_wait", "--balance-wait", uses.single, one_pool},
           Setting{"batch_wait", "--batch-wait", uses.single, one_pool},
           Setting{"poll_interval", "--poll-interval", uses.single, one_pool},
           Setting{"batch_wait", "--batch-wait", !is_static, not_static},
           Setting{"balance_wait", "--balance-wait", !is_static, not_static},
           Setting{"reserve", "--reserve", !is_static, not_static},
           Setting{"preemption", "--preemption", !is_static, not_static},
           Setting{"chunked_prefill", engine.chunked_prefill ? "--chunked-prefill" : "--no-chunked-prefill", !is_static,
                   not_static},
           Setting{"memory_use", "--memory-use", engine.blocks == 0, "--blocks 0 (what memory leaves)"},
           Setting{"policy", "--policy", engine.policy == serving::Policy::fcfs || uses.traced,
                   "--trace, whose column has priorities"},
           Setting{"expert_parallel_layer_host", "--expert-parallel-layer-host", uses.ep, "--ep of at least 2"},
           Setting{"expert_block_rows", "--expert-block-rows", uses.experts, "a model with experts"},
           Setting{"expert_parallel_block_rows", "--expert-parallel-block-rows", uses.ep, "--ep of at least 2"},
           Setting{"expert_imbalance", "--expert-imbalance", uses.ep && uses.experts,
                   "a model with experts, and --ep of at least 2"},
           Setting{"tokenizer_batch", "--tokenizer-batch", tokenises, "--prompt-host above 0"},
           Setting{"stream_interval", "--stream-interval", streams, "--token-host above 0"},
           Setting{"long_prefill_threshold", "--long-prefill-threshold", engine.chunked_prefill, "--chunked-prefill"},
           Setting{"long_prefill_threshold", "--long-prefill-threshold", !is_static, not_static},
           Setting{"poll_interval", "--poll-interval", !is_static, not_static},
       }) {
    const config::Node* value = given.find(setting.key);
    if (value == nullptr || !value->place.file.empty() || setting.has_effect) { continue; }
    found.push_back({{{}, 0, 0, setting.flag}, fmt::format("has an effect only with {}", setting.with)});
  }
  if (!found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  return {};
}

}  // namespace orrery::api
