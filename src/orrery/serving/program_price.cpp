#include "orrery/serving/program_price.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/item_times.hpp"
#include "orrery/serving/engine_settings.hpp"

namespace orrery::serving {

namespace {

constexpr std::int64_t kFirstContext = 2;      // of the decode step of a prompt of one token
constexpr std::int64_t kLongPrompt = 1 << 17;  // to find windows of attention

// The part that a kernel belongs to.
Seconds& part_of(DecodeParts& parts, hardware::KernelKind kind) {
  if (kind == hardware::KernelKind::gemm) { return parts.gemms; }
  return kind == hardware::KernelKind::attention ? parts.attention : parts.others;
}

bool is_attention(const parallel::Item& item) {
  return item.kernel() != nullptr && item.kernel()->kernel.kind == hardware::KernelKind::attention;
}

// Items whose work depends on the tokens of all ranks: those of experts, but for the router, a rank's own copies of its
// tokens, and their way to the experts and back, for which the rank with most tokens counts.
bool is_of_all_ranks(std::string_view name) {
  if (!name.starts_with("experts.")) { return false; }
  name.remove_prefix(std::string_view("experts.").size());
  return name.starts_with("in") || name.starts_with("out") || name.starts_with("activation") ||
         name.starts_with("bias") || name.ends_with("sort");
}

// Products of experts: a rank that holds one of them runs the kernel that it would for several.
bool is_grouped(std::string_view name, const hardware::Kernel& kernel) {
  return kernel.kind == hardware::KernelKind::gemm &&
         (kernel.grouped || name.starts_with("experts.in") || name.starts_with("experts.out"));
}

// On a second stream in engines: shared experts with the routed ones, and latent attention's down-projection of keys
// and values with that of queries (one GEMM for both, or two streams). Rates of memory and arithmetic are shared.
bool is_second_branch(std::string_view name) {
  return name.starts_with("shared.") || name == "attention.kv_down" || name == "attention.kv_norm";
}

// Pairs of queries and keys of a causal prompt; windowed as operators count them (operators_core.cpp).
double causal_pairs(double length, double window) {
  const double reach = window > 0.0 ? std::min(window, length) : length;
  return length * reach - 0.5 * reach * reach;
}

// Attention of the token before the drafts and of the drafts, which read the cache together. Each is a query of its
// own, whose keys may be split over cores.
parallel::KernelLaunch verifying(parallel::KernelLaunch launch, std::int64_t drafts) {
  launch.kernel.batch *= 1 + drafts;
  launch.kernel.flops *= real(1 + drafts);
  launch.growth.flops *= real(1 + drafts);
  return launch;
}

// Numbers of tokens that are priced: 16 in each octave.
std::int64_t below(std::int64_t tokens) {
  if (tokens <= 32) { return tokens; }
  const int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tokens))) - 5;
  return tokens >> shift << shift;
}
std::int64_t above(std::int64_t tokens) {
  if (tokens <= 32) { return tokens; }
  const int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tokens))) - 5;
  return ((tokens - 1) >> shift << shift) + (std::int64_t{1} << shift);
}

}  // namespace

DecodeParts& DecodeParts::operator+=(const DecodeParts& other) {
  gemms += other.gemms;
  attention += other.attention;
  others += other.others;
  collectives += other.collectives;
  drafts += other.drafts;
  host += other.host;
  return *this;
}

DecodeParts DecodeParts::operator*(double factor) const {
  return {factor * gemms, factor * attention, factor * others, factor * collectives, factor * drafts, factor * host};
}

ProgramPrice::ProgramPrice(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack,
                           const parallel::Job& job, const parallel::Plan& plan, const PriceOptions& options)
    : model_(model),
      stack_(stack),
      job_(job),
      plan_(plan),
      options_(options),
      slowdown_(model.has_experts() ? options.slowdown : 1.0),
      fabric_(cluster, stack.transfers),
      collectives_(fabric_),
      lowerer_(model, cluster, stack) {
  find_prompt_cores();
  for (std::int64_t layer = 0; layer < model.depth(); ++layer) {
    const bool experts = workload::layer_kind(model, layer).experts;
    prompt_host_ += experts ? std::max(options.layer_host, options.expert_host) : options.layer_host;
    decode_host_ += options.layer_host;
  }
}

parallel::Job ProgramPrice::job_of(std::int64_t per_rank, std::int64_t prompt) const {
  parallel::Job job = job_;
  job.task = parallel::Task::inference;
  job.global_batch = per_rank * plan_.dp;
  job.prompt = prompt;
  job.generate = 2;
  job.seq = prompt + 1;
  return job;
}

parallel::Plan ProgramPrice::plan_of(std::int64_t per_rank) const {
  parallel::Plan plan = plan_;
  plan.micro_batch = per_rank;
  return plan;
}

const parallel::Program& ProgramPrice::lower(std::int64_t per_rank, std::int64_t prompt) {
  lowerer_.forget();
  return lowerer_.lower(job_of(per_rank, prompt), plan_of(per_rank)).program;
}

// With pipeline stages, an iteration is as many micro-batches, all in flight.
std::int64_t ProgramPrice::per_rank(std::int64_t all) const { return ceil_div(all, plan_.dp * plan_.pp); }

// Part of grouped_rate that a grouped GEMM reaches. `is_new`: on an accelerator with 4-bit matrix units.
double ProgramPrice::grouped_part(const hardware::Kernel& kernel, bool is_new) const {
  const hardware::Accelerator& accelerator = fabric_.cluster().accelerator;
  if (kernel.weight_only && accelerator.maker == "NVIDIA") {
    const double rate = options_.expert_weight_only_math_rate.value_or(options_.expert_math_rate);
    return options_.exact == Exact::yes ? rate : rate * accelerator.portable_gemm;
  }
  if (kernel.weight_only) { return options_.expert_math_rate; }
  if (!is_new) { return options_.expert_math_rate; }
  const auto found = options_.expert_math_rate_of.find(std::string(hardware::name_of(kernel.precision)));
  return found == options_.expert_math_rate_of.end() ? 1.0 : found->second;
}

Seconds ProgramPrice::kernel_time(std::string_view name, parallel::KernelLaunch launch) const {
  const bool is_new = fabric_.cluster().accelerator.peak(hardware::Precision::fp4) > FlopsPerSecond(0);
  const bool branches = options_.overlap_branches && fabric_.cluster().accelerator.maker == "NVIDIA";
  if (branches && is_second_branch(name)) { launch.kernel.latency_hidden = 1.0; }
  // Static batches are priced as estimates are.
  if (options_.exact == Exact::yes ? launch.kernel.grouped : is_grouped(name, launch.kernel)) {
    launch.kernel.grouped = true;
    launch.kernel.gap += options_.expert_latency;
    launch.kernel.block_rows = options_.expert_block_rows;
    if (launch.kernel.weight_only || !is_new) { launch.kernel.bytes /= options_.expert_rate; }
    launch.kernel.rate *= grouped_part(launch.kernel, is_new);
  }
  return parallel::price_kernel(launch, fabric_);
}

void ProgramPrice::add_stage(Table& table, const parallel::Program& program, const parallel::ChunkProgram& chunk) {
  const auto time_of = [&](const parallel::Block& block, bool decodes, double repeat) {
    Seconds time;
    DecodeParts parts;
    for (const auto& item : block.items) {
      if (const auto* launch = item.kernel()) {
        if (decodes && launch->growth != workload::Growth{}) {
          table.cores.push_back({verifying(*launch, options_.drafts), repeat});
        } else if (decodes || !is_attention(item)) {
          const Seconds own = kernel_time(item.name, *launch);
          time += own;
          part_of(parts, launch->kernel.kind) += own;
        }
      } else if (const auto* call = item.collective()) {
        const Seconds own = parallel::price_call(call->call, fabric_, program.mesh, &collectives_);
        time += own;
        parts.collectives += own;
      }
    }
    if (decodes) { table.parts += parts * repeat; }
    // Prompts run kernel by kernel; decode steps mostly as one captured graph.
    const Seconds host = decodes ? block.launch : parallel::host_time(block, stack_);
    return repeat * max(time, host);
  };
  const auto experts_of = [&](const parallel::Block& block, double repeat) {
    Seconds time;
    for (const auto& item : block.items) {
      if (const auto* launch = item.kernel(); launch != nullptr && is_of_all_ranks(item.name)) {
        time += repeat * kernel_time(item.name, *launch);
      }
    }
    return time;
  };
  for (const auto& use : chunk.forward) {
    const parallel::Block& block = program.block(use.work);
    if (block.name.starts_with("head")) { continue; }
    const auto repeat = static_cast<double>(use.repeat);
    table.linear += time_of(block, false, repeat);
    table.experts += experts_of(block, repeat);
  }
  for (const auto& use : chunk.decode) {
    const parallel::Block& block = program.block(use.work);
    const auto repeat = static_cast<double>(use.repeat);
    const Seconds time = time_of(block, true, repeat);
    table.launches += repeat * parallel::host_time(block, stack_);
    (block.name.starts_with("head") ? table.head : table.decode) += time;
    table.decode_experts += experts_of(block, repeat);
  }
}

ProgramPrice::Table& ProgramPrice::table(std::int64_t per_rank) {
  const auto index = static_cast<std::size_t>(per_rank);
  if (index < found_.size() && found_[index] != nullptr) { return *found_[index]; }
  const auto [entry, is_new] = few_.try_emplace(per_rank);
  Table& table = entry->second;
  if (is_new) {
    const parallel::Program& program = lower(per_rank, 1);
    Seconds hops;
    for (std::int64_t stage = 0; stage < plan_.pp; ++stage) {
      const std::size_t first = table.cores.size();
      add_stage(table, program, program.program_of(program.class_of(stage).chunks.front()));
      Bytes whole, windowed;
      for (const Core& core : std::span(table.cores).subspan(first)) {
        const workload::Growth& growth = core.launch.growth;
        (growth.most > 0 ? windowed : whole) += core.repeat * growth.bytes;
      }
      table.kept += whole + windowed;
      table.most_kept = max(table.most_kept, whole + windowed);
      table.most_whole = max(table.most_whole, whole);
      table.most_windowed = max(table.most_windowed, windowed);
      if (plan_.pp > 1) {
        hops +=
            fabric_.transfer(program.transfer_bytes, program.mesh.transfer_dimension[static_cast<std::size_t>(stage)]);
      }
    }
    table.linear += hops;
    table.decode += hops;
    table.parts.collectives += hops;
  }
  if (index >= found_.size()) { found_.resize(index + 1); }
  found_[index] = &table;
  return table;
}

// ---- decode ----

Seconds ProgramPrice::core_time(const Table& table, std::int64_t context) const {
  Seconds time;
  const std::int64_t grown = std::max<std::int64_t>(0, context - kFirstContext);
  for (const Core& core : table.cores) { time += core.repeat * parallel::price_kernel(core.launch, fabric_, grown); }
  return time;
}

// Attention over 2^octave positions of each sequence.
Ticks ProgramPrice::core_at(Table& table, std::size_t octave) {
  while (table.at.size() <= octave) {
    table.at.push_back(ticks_of(core_time(table, std::int64_t{1} << table.at.size())));
  }
  return table.at[octave];
}

ProgramPrice::CoreLine ProgramPrice::core_line(std::int64_t sequences, std::int64_t contexts) {
  const std::int64_t mean = std::max<std::int64_t>(1, contexts / sequences);
  Table& t = table(per_rank(sequences));
  if (options_.exact == Exact::yes) { return {ticks_of(core_time(t, mean)), 0, contexts, contexts}; }
  const auto octave = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(mean)) - 1);
  const Ticks low = core_at(t, octave), high = core_at(t, octave + 1);
  const std::int64_t begin = sequences << octave;
  const double slope = static_cast<double>(high - low) / static_cast<double>(begin);
  return {low, std::llround(slope), begin, 2 * begin - 1};
}

// Static batches are priced as estimates are: their decode steps are captured whatever their size.
bool ProgramPrice::is_captured(std::int64_t per_rank) const {
  return options_.exact == Exact::yes || per_rank <= options_.largest_graph;
}

// Of the host, for a decode step that is not captured.
Seconds ProgramPrice::launches(const Table& table) const { return std::max(table.launches, decode_host_); }

namespace {

// No shorter than `least`; affine up to the sum of contexts where it becomes longer.
DecodeLine at_least(DecodeLine line, std::int64_t contexts, Ticks least) {
  if (line.at >= least) { return line; }
  if (line.per_token > 0) { line.last = std::min(line.last, contexts + (least - line.at) / line.per_token); }
  line.at = least;
  line.per_token = 0;
  return line;
}

}  // namespace

// Time that grouped GEMMs of a captured step save because rows that pad it from `rows` to `size` sequences, of `width`
// positions each, use no experts: they are masked, or alike. Between captured sizes, time is taken as affine. Nothing
// where almost every expert is in use anyhow.
Seconds ProgramPrice::padding_of(std::int64_t rows, std::int64_t size, std::int64_t width) {
  constexpr double kFewUnused = 0.02;
  if (rows >= size || options_.routes_padding || !model_.has_experts()) { return {}; }
  const std::int64_t low = captured_below(rows);
  const double tokens = real(low * width * plan_.dp);
  const double chosen = real(model_.experts.active) / real(model_.experts.count);
  if (std::pow(1.0 - chosen, tokens) < kFewUnused) { return {}; }
  const Seconds below = table(width * low).decode_experts, above = table(width * size).decode_experts;
  return real(size - rows) / real(size - low) * std::max(Seconds(0), above - below);
}

// Time of the device, with older software.
Ticks ProgramPrice::slowed(Ticks device) const {
  return slowdown_ == 1.0 ? device : std::llround(slowdown_ * static_cast<double>(device));
}

// A pass over the layers and the head of the draft model, for one position of each sequence.
Seconds ProgramPrice::draft_time(std::int64_t rows, std::int64_t size) {
  const Table& t = table(size);
  const double part = options_.draft_layers / static_cast<double>(model_.layers);
  Seconds time = t.decode - padding_of(rows, size, 1);
  if (!is_captured(rows)) { time = std::max(time, launches(t)); }
  return part * time + t.head;
}

DecodeLine ProgramPrice::decode(std::int64_t sequences, std::int64_t contexts) {
  const CoreLine core = core_line(sequences, contexts);
  const std::int64_t rows = per_rank(sequences), width = 1 + options_.drafts;
  const std::int64_t size = captured_size(rows, options_.largest_graph);
  const Table& t = table(width * size);
  const auto of_token = [&](Ticks step) {
    return options_.drafts == 0 ? step : std::llround(static_cast<double>(step) / options_.tokens_per_step);
  };
  const auto of_device = [&](Ticks step) { return of_token(slowed(step)); };
  DecodeLine line;
  line.per_token = of_device(core.per_token);
  line.at = of_device(core.low + ticks_of(t.decode + t.head - padding_of(rows, size, width))) +
            line.per_token * (contexts - core.begin);
  line.last = core.last;
  if (!is_captured(rows)) { line = at_least(line, contexts, of_token(ticks_of(launches(t)))); }
  Ticks waits = ticks_of(real(rows) * options_.sequence_host);
  if (options_.drafts > 0) {
    waits = saturated_sum(waits, options_.drafts * slowed(ticks_of(draft_time(rows, size))));
    waits = saturated_sum(waits, ticks_of(real(rows) * options_.draft_host));
  }
  line.at = saturated_sum(line.at, of_token(waits));
  return line;
}

// The host has what is left: launches that the device waits for, and its work for each sequence and its drafts.
DecodeParts ProgramPrice::decode_parts(std::int64_t sequences, std::int64_t contexts) {
  const std::int64_t rows = per_rank(sequences), width = 1 + options_.drafts;
  const std::int64_t size = captured_size(rows, options_.largest_graph);
  DecodeParts parts = table(width * size).parts;
  parts.gemms -= padding_of(rows, size, width);
  parts.attention += Seconds(seconds_of(core_line(sequences, contexts).at(contexts)));
  parts = parts * slowdown_;
  if (options_.drafts > 0) {
    parts.drafts = slowdown_ * real(options_.drafts) * draft_time(rows, size);
    parts = parts * (1.0 / options_.tokens_per_step);
  }
  parts.host = max(Seconds(0), Seconds(seconds_of(decode(sequences, contexts).at)) - parts.sum());
  return parts;
}

// ---- prompts ----

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

// A part of the table of `tokens`, affine between the grid's points.
Seconds ProgramPrice::interpolated(std::int64_t tokens, Seconds Table::* part) {
  const std::int64_t low = options_.exact == Exact::yes ? tokens : below(tokens);
  const std::int64_t high = options_.exact == Exact::yes ? tokens : above(tokens);
  Seconds time = table(low).*part;
  if (high > low) { time += real(tokens - low) / real(high - low) * (table(high).*part - time); }
  return time;
}

Seconds ProgramPrice::linear_time(std::int64_t tokens) {
  const auto index = static_cast<std::size_t>(tokens);
  if (index >= linear_.size()) { linear_.resize(index + 1, -1.0); }
  if (linear_[index] < 0.0) { linear_[index] = interpolated(tokens, &Table::linear).value(); }
  return Seconds(linear_[index]);
}

// Tokens of the fullest micro-batch of all ranks of attention dp: each part of a prompt goes whole to the one with
// fewest tokens. Admission counts the tokens of all together, so a part may have to be cut to what a rank may compute.
std::int64_t ProgramPrice::fullest_rank(const MixedStep& step) {
  const std::int64_t places = plan_.dp * plan_.pp;
  rank_tokens_.assign(static_cast<std::size_t>(places), ceil_div(step.decodes * (1 + options_.drafts), places));
  for (const Chunk& chunk : step.chunks) {
    *std::min_element(rank_tokens_.begin(), rank_tokens_.end()) += chunk.tokens;
  }
  return std::min(*std::max_element(rank_tokens_.begin(), rank_tokens_.end()), options_.most_tokens);
}

// With drafts, sequences that decode advance by one token, though the iteration generates several of each: so they add
// that part of what they take to the time of the prompts.
Ticks ProgramPrice::mixed(const MixedStep& step) {
  std::int64_t prompts = 0, longest = 0, contexts = step.contexts;
  for (const Chunk& chunk : step.chunks) {
    prompts += chunk.tokens;
    contexts += chunk.context + chunk.tokens;
    longest = std::max(longest, chunk.tokens);
  }
  // Prompts of which one token is left join a captured decode step.
  if (longest == 1 && options_.exact == Exact::no) { return decode(step.decodes + prompts, contexts).at; }
  const Ticks all = iteration(step, prompts, longest);
  if (step.decodes == 0) { return all; }
  // Interpolated work and that of a captured graph: with prompts, decoding does not take less.
  const Ticks decoding = decode(step.decodes, step.contexts).at;
  if (options_.drafts == 0) { return std::max(all, decoding); }
  const Ticks alone = iteration({step.chunks, 0, 0, step.sampling - step.decodes}, prompts, longest);
  return std::max<Ticks>(decoding, alone + std::llround(static_cast<double>(all - alone) / options_.tokens_per_step));
}

// The whole iteration; `prompts`, `longest`: tokens of all parts of prompts, and of the longest.
Ticks ProgramPrice::iteration(const MixedStep& step, std::int64_t prompts, std::int64_t longest) {
  const std::int64_t verified = step.decodes * options_.drafts;
  // Of the largest micro-batch, which has at least the longest part of a prompt: all ranks' mean, and the fullest rank.
  const std::int64_t mean = std::max(per_rank(prompts + step.decodes + verified), ceil_div(longest, plan_.dp));
  const std::int64_t fullest = plan_.dp * plan_.pp > 1 ? fullest_rank(step) : 0;
  const std::int64_t of_rank = std::max({mean, longest, fullest});
  Seconds time = linear_time(of_rank);
  if (of_rank > mean) {  // never less than a rank's mean, whose launches the host may limit
    const Seconds others = interpolated(mean, &Table::experts) - interpolated(of_rank, &Table::experts);
    time = max(linear_time(mean), time + others);
  }
  const std::int64_t sampled = step.sampling + verified;
  if (sampled > 0) { time += table(captured_size(per_rank(sampled), options_.largest_graph)).head; }
  time += prompt_time(step.chunks);
  Ticks ticks = ticks_of(time);
  if (step.decodes > 0) { ticks += core_line(step.decodes, step.contexts).at(step.contexts); }
  ticks = slowed(ticks);
  if (longest > 1) { ticks = std::max(ticks, ticks_of(prompt_host_)); }
  if (verified > 0) {
    const std::int64_t rows = per_rank(step.decodes);
    ticks += options_.drafts * slowed(ticks_of(draft_time(rows, captured_size(rows, options_.largest_graph))));
    ticks = saturated_sum(ticks, ticks_of(real(rows) * options_.draft_host));
  }
  return saturated_sum(ticks, ticks_of(real(per_rank(step.sampling)) * options_.sequence_host));
}

EngineMemory ProgramPrice::memory(std::int64_t most_tokens, std::int64_t most_sequences) {
  EngineMemory memory;
  const Table& one = table(1);
  memory.kv_per_token = one.most_kept;
  memory.kv_of_stages = one.kept;
  memory.kv_without_windows = one.most_whole;
  memory.kv_in_windows = one.most_windowed;
  memory.window = one.most_windowed > Bytes(0) ? model_.sliding_window : 0;
  // Activations of prompts grow with their tokens; the head has one row for each sequence.
  constexpr std::int64_t kPrompt = 1024;
  const std::int64_t rows = per_rank(most_tokens), prompt = std::min(rows, kPrompt);
  const double prompts = real(rows) / real(prompt);
  for (const auto& need : lower(1, prompt).memory) {
    memory.weights = max(memory.weights, need.weights);
    memory.activations = max(memory.activations, prompts * need.activations + need.buffers);
  }
  if (job_.formats.wide_absorption && model_.is_latent()) { memory.weights += absorbed_copies(); }
  if (model_.has_mixers()) {  // their steps of decode work in the states
    memory.state = state_of_a_sequence();
  } else {
    for (const auto& need : lower(std::min(rows, per_rank(most_sequences)), 1).memory) {
      memory.activations = max(memory.activations, need.activations + need.buffers);
    }
  }
  if (options_.drafts > 0) {
    // Layers of the draft model, each like one of the model's.
    const double part = 1.0 + options_.draft_layers / static_cast<double>(model_.layers);
    memory.weights *= part;
    const Bytes drafts = (part - 1.0) * memory.kv_of_stages;  // all on one stage
    memory.kv_per_token += drafts;
    memory.kv_without_windows += drafts;
    memory.kv_of_stages *= part;
  }
  return memory;
}

// Copies in 16 bits of the weights that decode steps of latent attention absorb, besides those that prompts multiply.
Bytes ProgramPrice::absorbed_copies() const {
  const auto& latent = model_.latent;
  const std::int64_t layers = ceil_div(model_.layers, plan_.pp), heads = ceil_div(model_.heads, plan_.tp);
  return hardware::element_size(hardware::Precision::bf16) *
         real(layers * heads * latent.kv_rank * (latent.nope_dim + latent.value_dim));
}

// What recurrent layers keep of a sequence, whatever its length.
Bytes ProgramPrice::state_of_a_sequence() {
  const auto cache = [&](std::int64_t prompt) {
    Bytes most;
    for (const auto& need : lower(1, prompt).memory) { most = max(most, need.kv_cache); }
    return most;
  };
  constexpr std::int64_t kShort = 64;
  const Bytes shorter = cache(kShort), longer = cache(2 * kShort);
  return max(Bytes(0), shorter - (longer - shorter));
}

}  // namespace orrery::serving
