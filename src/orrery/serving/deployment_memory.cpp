// What weights, activations, recurrent states and the cache take of the memory of an engine's accelerators.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/core/text.hpp"
#include "orrery/serving/deployment.hpp"

namespace orrery::serving {

namespace {

// Memory of a rank that is neither weights, activations nor cache: the runtime's context and captured graphs.
constexpr Bytes kContext{0.6 * 1073741824.0};

}  // namespace

// The part of memory that follows from other settings.
Result<void> BuiltPool::settle_memory_use() {
  EngineSettings& settings = inputs_.settings;
  constexpr double kLeast = 0.05;
  if (settings.memory_use >= kLeast) { return {}; }
  const bool follows = settings.memory_is_static && !settings.memory_of_free;
  if (settings.memory_use > 0.0 || !follows) {
    return fail({{}, 0, 0, "--memory-use"},
                fmt::format("{} is not a part of memory; at least {}{}", settings.memory_use, kLeast,
                            follows ? ", or 0 for the engine's default" : ""));
  }
  const Degrees& d = inputs_.degrees;
  derives_memory_use_ = true;
  settings.memory_use =
      static_part(settings, inputs_.cluster.accelerator.memory, d.tp * d.attention_dp, d.pp, d.attention_dp);
  return {};
}

// States of recurrent layers, of as many sequences as run at a time: those that fit in `room`, at least one. What they
// take.
Bytes BuiltPool::reserve_states(Bytes room) {
  const auto fitting = static_cast<std::int64_t>(std::max(0.0, room / memory_.state));
  asked_sequences_ = inputs_.settings.max_sequences;
  inputs_.settings.max_sequences = std::clamp<std::int64_t>(fitting, 1, inputs_.settings.max_sequences);
  return static_cast<double>(inputs_.settings.max_sequences) * memory_.state;
}

// Keys and values of a token for which blocks are counted. Where memory behind sliding windows is freed, those of the
// layers without windows. Layers with windows are in groups of as many layers, the last of which may be partly empty
// (vLLM), and a window touches one block more than it fills.
Bytes BuiltPool::token_in_blocks() {
  const bool has_tiers = std::any_of(inputs_.tiers.begin(), inputs_.tiers.end(),
                                     [](const PoolInputs::Tier& tier) { return tier.size > Bytes(0); });
  const bool frees = inputs_.settings.frees_windows && !inputs_.sends && !has_tiers;
  if (!frees || memory_.window == 0 || !(memory_.kv_without_windows > Bytes(0))) { return memory_.kv_per_token; }
  WindowShape& windows = shape_.windows;
  windows.most = ceil_div(memory_.window, inputs_.settings.block_tokens) + 1;
  constexpr double kRounding = 1e-9;
  windows.groups = static_cast<std::int64_t>(std::ceil(memory_.kv_in_windows / memory_.kv_without_windows - kRounding));
  return memory_.kv_without_windows;
}

double BuiltPool::whole_positions() const {
  return real(shape_.blocks * inputs_.settings.block_tokens) * (block_token_ / memory_.kv_per_token);
}

double BuiltPool::part_of_prompts() const {
  const EngineSettings& settings = inputs_.settings;
  const std::int64_t blocks = shape_.windows.groups * ceil_div(settings.max_batched_tokens, settings.block_tokens);
  return std::min(1.0, real(blocks * shape_.ranks) / real(shape_.blocks));
}

// vLLM starts only with room for a part of a prompt behind a window, for every group of layers with windows.
std::int64_t BuiltPool::accepted_tokens() const {
  if (shape_.windows.groups == 0) { return rank_tokens(inputs_.settings, shape_); }
  EngineShape at_start = shape_;
  const EngineSettings& settings = inputs_.settings;
  const std::int64_t positions = memory_.window - 1 + settings.max_batched_tokens;
  at_start.windows.most = ceil_div(positions, settings.block_tokens) + 1;
  return rank_tokens(settings, at_start);
}

// Blocks in the memory that weights and activations leave.
Result<void> BuiltPool::add_cache() {
  if (auto ok = settle_memory_use(); !ok) { return ok; }
  const PoolInputs& in = inputs_;
  const std::int64_t ranks = in.degrees.attention_dp;
  // A static batch has no limit on its tokens.
  constexpr std::int64_t kMostOfAStaticBatch = 16384;
  constexpr std::int64_t kMostHeads = 1024;  // rows of the head at a time
  const bool is_static_batch = in.settings.scheduler == Scheduler::static_batch;
  const std::int64_t tokens =
      is_static_batch ? std::min(in.settings.max_batched_tokens, kMostOfAStaticBatch) : in.settings.max_batched_tokens;
  shape_.micro_batches = in.degrees.pp;
  memory_ = price_->memory(tokens * ranks * in.degrees.pp,
                           std::min(in.settings.max_sequences, kMostHeads) * ranks * in.degrees.pp);
  const bool has_own_room = in.settings.memory_is_static && !in.settings.memory_of_free;  // activations
  const Bytes all = in.cluster.accelerator.memory, activations = has_own_room ? Bytes(0) : memory_.activations;
  const Bytes taken = memory_.weights + activations + kContext;
  const Bytes usable = in.settings.memory_of_free ? all : in.settings.memory_use * all;
  Bytes left = (in.settings.memory_of_free ? in.settings.memory_use : 1.0) * (usable - taken);
  block_token_ = token_in_blocks();
  const Bytes block = static_cast<double>(in.settings.block_tokens) * block_token_;
  if (memory_.state > Bytes(0) && left > Bytes(0)) {
    const Bytes blocks = real(in.settings.blocks) / real(ranks) * block;  // that are given
    left -= reserve_states(in.settings.blocks > 0 ? left - blocks : 0.5 * left);
  }
  shape_.ranks = ranks;
  shape_.blocks =
      in.settings.blocks > 0 ? in.settings.blocks : static_cast<std::int64_t>(std::max(0.0, left / block)) * ranks;
  if (shape_.blocks <= 0) {
    const bool weights_fit = memory_.weights + kContext < usable && activations > Bytes(0);
    const bool could_fit = has_own_room && memory_.weights + kContext < all;
    return fail(
        {{}, 0, 0, in.has_own_tp ? "--prefill-tp" : "--tp"},
        fmt::format("{} does not fit: weights take {}{} of the {} that the engine uses of {}; give more "
                    "accelerators to an engine (tp, pp), or a narrower --weight-format{}{}",
                    in.model->name, config::format_bytes(memory_.weights),
                    weights_fit ? fmt::format(" and activations of {} tokens {}", grouped(tokens * in.degrees.pp),
                                              config::format_bytes(activations))
                                : std::string(),
                    config::format_bytes(usable), in.cluster.accelerator.name,
                    weights_fit ? ", or a smaller --max-batched-tokens"
                    : could_fit && derives_memory_use_
                        ? fmt::format(", or a larger --memory-use (SGLang's default for these degrees is {:.3g})",
                                      in.settings.memory_use)
                    : could_fit ? ", or a larger --memory-use"
                                : "",
                    redundant_experts_ > 0 ? ", or fewer --redundant-experts" : ""));
  }
  return {};
}

std::string BuiltPool::slice_warning() const {
  constexpr std::int64_t kBlock = 128;  // DeepSeek-V3's format of fp8: a scale for 128 x 128 weights
  const workload::Model& model = *inputs_.model;
  const Degrees& d = inputs_.degrees;
  const std::int64_t ranks = d.tp * d.attention_dp;
  const auto slices = [&](std::int64_t ep) { return ranks / ep; };
  const auto is_whole = [&](std::int64_t ep) { return model.experts.ffn % (slices(ep) * kBlock) == 0; };
  const bool is_fp8 = inputs_.job.precision == hardware::Precision::fp8 && !inputs_.job.formats.weights;
  if (!is_fp8 || !model.has_experts() || is_whole(d.ep)) { return {}; }
  std::int64_t ep = d.ep;
  while (ep < ranks && (ranks % ep != 0 || !is_whole(ep))) { ++ep; }
  return fmt::format(
      "experts in {} slices have {:.4g} columns: fp8 checkpoints with a scale for 128 x 128 weights "
      "(DeepSeek-V3, Qwen3) do not load{}",
      slices(d.ep), real(model.experts.ffn) / real(slices(d.ep)),
      is_whole(ep) ? fmt::format("; ep {} has whole blocks", ep) : "");
}

// Activations that are no part of memory_use, where the rest is less than they take; fewer sequences than were asked
// for.
std::vector<std::string> BuiltPool::memory_warnings() const {
  std::vector<std::string> list;
  const EngineSettings& settings = inputs_.settings;
  if (settings.max_sequences < asked_sequences_) {
    list.push_back(fmt::format("the {} runs {} at a time, as many as have room for {} of state each; {} were asked for",
                               inputs_.name, counted(settings.max_sequences, "sequence"),
                               config::format_bytes(memory_.state), grouped(asked_sequences_)));
  }
  const bool could_free =
      settings.frees_windows && !inputs_.sends && memory_.window > 0 && memory_.kv_without_windows > Bytes(0);
  if (could_free && shape_.windows.groups == 0) {
    list.push_back(fmt::format(
        "with tiers of the cache, layers with sliding windows keep all positions, so that long sequences take {:.1f} "
        "times the memory: --host-cache 0 and --remote-cache 0 free the memory behind the windows",
        memory_.kv_per_token / memory_.kv_without_windows));
  }
  if (!settings.memory_is_static || settings.memory_of_free) { return list; }
  const Bytes rest = (1.0 - settings.memory_use) * inputs_.cluster.accelerator.memory;
  if (memory_.activations > rest) {
    list.push_back(fmt::format(
        "the {} needs {} for activations of {} tokens, and memory_use leaves {}: it may run out of memory; give a "
        "smaller --max-batched-tokens or --memory-use",
        inputs_.name, config::format_bytes(memory_.activations), grouped(settings.max_batched_tokens),
        config::format_bytes(rest)));
  }
  return list;
}

}  // namespace orrery::serving
