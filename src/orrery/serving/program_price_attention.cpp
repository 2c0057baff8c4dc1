// Fused attention over prompts.
#include <algorithm>
#include <cmath>

#include "orrery/core/integers.hpp"
#include "orrery/serving/program_price.hpp"

namespace orrery::serving {

namespace {

constexpr std::int64_t kLongPrompt = 1 << 17;  // to find windows of attention

// Pairs of queries and keys of a causal prompt; windowed as operators count them (operators_core.cpp).
double causal_pairs(double length, double window) {
  const double reach = window > 0.0 ? std::min(window, length) : length;
  return length * reach - 0.5 * reach * reach;
}

}  // namespace

bool ProgramPrice::is_attention(const parallel::Item& item) {
  return item.kernel() != nullptr && item.kernel()->kernel.kind == hardware::KernelKind::attention;
}

// The attention of prompts in every stage, in order.
void ProgramPrice::each_prompt_core(const parallel::Program& program,
                                    const std::function<void(const parallel::Item&, double repeat)>& visit) const {
  for (std::int64_t stage = 0; stage < plan_.pp; ++stage) {
    const auto& chunk = program.program_of(program.class_of(stage).chunks.front());
    for (const auto& use : chunk.forward) {
      for (const auto& item : program.block(use.work).items) {
        if (is_attention(item)) { visit(item, static_cast<double>(use.repeat)); }
      }
    }
  }
}

void ProgramPrice::find_prompt_cores() {
  each_prompt_core(lower(1, 1), [&](const parallel::Item& item, double repeat) {
    const hardware::Kernel& kernel = item.kernel()->kernel;
    PromptCore core;
    core.kernel = kernel;
    core.scans = item.name == "mixer.scan";
    core.repeat = repeat;
    core.flops_per_pair = kernel.flops.value() / causal_pairs(1.0, 0.0);
    core.peaks = cost::matrix_peaks(kernel, fabric_.cluster().accelerator);
    prompt_cores_.push_back(core);
  });
  const Table& one = table(1);
  std::vector<PromptCore*> attention;
  for (PromptCore& core : prompt_cores_) {
    if (!core.scans) { attention.push_back(&core); }
  }
  for (std::size_t i = 0; i < attention.size() && attention.size() == one.cores.size(); ++i) {
    attention[i]->kept = one.cores[i].launch.growth.bytes;
  }
  if (model_.sliding_window != 0) { find_windows(); }
  if (model_.has_mixers()) { find_scans(); }
  for (std::size_t i = 1; i < prompt_cores_.size(); ++i) {
    const PromptCore &before = prompt_cores_[i - 1], &core = prompt_cores_[i];
    prompt_cores_[i].is_like_before =
        core.kernel == before.kernel && core.window == before.window && core.kept == before.kept;
  }
}

void ProgramPrice::find_windows() {
  std::size_t i = 0;
  each_prompt_core(lower(1, kLongPrompt), [&](const parallel::Item& item, double) {
    const hardware::Kernel& kernel = item.kernel()->kernel;
    PromptCore& core = prompt_cores_[i++];
    if (core.scans) { return; }
    const double length = static_cast<double>(kLongPrompt), pairs = kernel.flops.value() / core.flops_per_pair;
    const double root = std::sqrt(std::max(0.0, length * length - 2.0 * pairs));
    if (root > 1.0) { core.window = std::round(length - root); }
  });
}

// Of whole chunks, a token's share.
void ProgramPrice::find_scans() {
  std::size_t i = 0;
  each_prompt_core(lower(1, kLongPrompt), [&](const parallel::Item& item, double) {
    PromptCore& core = prompt_cores_[i++];
    if (!core.scans) { return; }
    core.kernel = item.kernel()->kernel;
    core.kernel.flops = core.kernel.flops / static_cast<double>(kLongPrompt);
    core.kernel.bytes /= static_cast<double>(kLongPrompt);
  });
}

Seconds ProgramPrice::core_of_prompts(PromptCore& core, std::span<const Chunk> chunks) const {
  const auto count = static_cast<std::int64_t>(chunks.size());
  const std::int64_t most = per_rank(count);  // of a rank, in a micro-batch
  const double share = real(most) / real(count);
  double pairs = 0.0, tokens = 0.0, seen = 0.0;
  for (const Chunk& chunk : chunks) {
    const auto own = static_cast<double>(chunk.tokens), context = static_cast<double>(chunk.context);
    pairs += causal_pairs(context + own, core.window) - causal_pairs(context, core.window);
    tokens += own;
    seen += core.window > 0.0 ? std::min(context, core.window) : context;
  }
  if (count == core.prompts && pairs == core.pairs && tokens == core.tokens && seen == core.seen) { return core.time; }
  core.prompts = count, core.pairs = pairs, core.tokens = tokens, core.seen = seen;
  hardware::Kernel kernel = core.kernel;
  const auto mean = [&](double sum) { return std::max<std::int64_t>(1, std::llround(sum / real(count))); };
  kernel.batch *= most;
  kernel.m = mean(tokens);
  kernel.n = core.scans ? std::min(core.kernel.n, mean(tokens)) : mean(tokens + seen);
  kernel.flops = core.scans ? share * tokens * core.kernel.flops : Flops(share * core.flops_per_pair * pairs);
  kernel.bytes = share * (tokens * core.kernel.bytes + seen * core.kept);
  core.time = cost::kernel_cost(kernel, fabric_.cluster().accelerator, core.peaks).time;
  return core.time;
}

// Attention of parts of prompts: one kernel for each kind of layer, with as many queries and keys as the mean part has.
Seconds ProgramPrice::prompt_time(std::span<const Chunk> chunks) {
  if (chunks.empty()) { return {}; }
  Seconds time, of_core;
  for (PromptCore& core : prompt_cores_) {
    if (!core.is_like_before) { of_core = core_of_prompts(core, chunks); }
    time += core.repeat * of_core;
  }
  return time;
}

}  // namespace orrery::serving
