// Settings that the launch files of a benchmark give to an engine, whatever a row measured.
#pragma once

#include <optional>
#include <string_view>

#include "orrery/serving/deployment.hpp"
#include "orrery/validate/serving_rows.hpp"

namespace orrery::validate {

// Of InferenceX: its own rows, and those that AIConfigurator took from its sweeps.
[[nodiscard]] bool is_of_inferencex(const ServingRow& row);

// LMSYS's report on wide expert parallelism.
inline constexpr std::string_view kWideExperts = "lmsys_pd_ep";

// dstack's comparison of ratios of prefill and decode engines.
inline constexpr std::string_view kPoolRatios = "dstack_pd_ratio";

// A run of AIConfigurator's own evaluation: engines started by its generator, loaded by its benchmark.
[[nodiscard]] bool is_of_aiconfigurator(const ServingRow& row);

// Different prompts that are sent in turn, and requests of all clients before those that are measured; 0: no prompt is
// sent twice.
struct RepeatedPrompts {
  std::int64_t prompts = 0, before = 0;
};
[[nodiscard]] RepeatedPrompts repeated_prompts(const ServingRow& row);

// DeepGEMM's part of the rate of grouped GEMMs in fp8, from the tables that `expert_math_rate_of` is from.
inline constexpr double kDeepGemmRate = 0.45;
// The same behind DeepEP, whose sort and copies are priced by themselves: wideep_context_moe_perf of
// github:ai-dynamo/aiconfigurator@095f58a51 (SGLang 0.5.10, DeepSeek-V3 on 32 ranks, 16,384 tokens of each): 14.3 ms a
// layer on H100, 8.1 on GB200, 8.4 on B200, where 0.78, 0.77 and 0.9 fit.
inline constexpr double kDeepEpRate = 0.78;

// `pool` is "engine", "prefill" or "decode". `narrow_cache` is set where a file states the format of keys and values.
void set_launch(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                serving::EngineSettings& settings, std::optional<bool>& narrow_cache);

// Of one pool of engines behind Dynamo: the part of set_launch in serving_pools.cpp.
void set_dynamo_pool(const ServingRow& row, std::string_view pool, const serving::Degrees& degrees,
                     serving::EngineSettings& settings);

// How requests are distributed over the engines of a pool.
[[nodiscard]] serving::Routing routing_of(const ServingRow& row);

}  // namespace orrery::validate
