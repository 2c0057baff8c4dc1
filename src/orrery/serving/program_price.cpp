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

constexpr std::int64_t kFirstContext = 2;  // of the decode step of a prompt of one token

// The part that a kernel belongs to.
Seconds& part_of(DecodeParts& parts, hardware::KernelKind kind) {
  if (kind == hardware::KernelKind::gemm) { return parts.gemms; }
  return kind == hardware::KernelKind::attention ? parts.attention : parts.others;
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
  dispatches_ = table(1).decode_phases.dispatch > Seconds(0);
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

// Without the part of attention that becomes longer with contexts, which `table.cores` gets, and prompts' attention.
ProgramPrice::BlockTime ProgramPrice::block_time(Table& table, const parallel::Program& program,
                                                 const parallel::Block& block, bool decodes, double repeat) {
  BlockTime result;
  Seconds Phases::* phase = &Phases::attention;
  const std::size_t cores_before = table.cores.size();
  for (const auto& item : block.items) {
    Seconds own;
    if (const auto* launch = item.kernel()) {
      if (decodes && launch->growth != workload::Growth{}) {
        table.cores.push_back({verifying(*launch, options_.drafts), repeat});
      } else if (decodes || !is_attention(item)) {
        own = kernel_time(item.name, *launch);
        part_of(result.parts, launch->kernel.kind) += own;
      }
      result.phases.*phase += own;
      result.device += own;
    } else if (const auto* call = item.collective()) {
      own = parallel::price_call(call->call, fabric_, program.mesh, &collectives_);
      result.parts.collectives += own;
      result.device += own;
      const bool goes = item.name == "experts.dispatch", returns = item.name == "experts.combine";
      result.phases.*(goes ? &Phases::dispatch : returns ? &Phases::combine : phase) += own;
      if (goes) { phase = &Phases::experts; }
      if (returns) { phase = &Phases::attention; }
    }
  }
  const bool stays = result.phases.dispatch == Seconds(0);
  if (stays) { std::swap(result.phases.others, result.phases.attention); }
  const double cores = repeat * static_cast<double>(table.cores.size() - cores_before);
  table.cores_all += cores;
  if (stays) { table.cores_apart += cores; }
  return result;
}

void ProgramPrice::add_stage(Table& table, const parallel::Program& program, const parallel::ChunkProgram& chunk) {
  const auto experts_of = [&](const parallel::Block& block, double repeat) {
    Seconds time;
    for (const auto& item : block.items) {
      if (const auto* launch = item.kernel(); launch != nullptr && is_of_all_ranks(item.name)) {
        time += repeat * kernel_time(item.name, *launch);
      }
    }
    return time;
  };
  // Prompts run kernel by kernel; decode steps mostly as one captured graph.
  for (const auto& use : chunk.forward) {
    const parallel::Block& block = program.block(use.work);
    if (block.name.starts_with("head")) { continue; }
    const auto repeat = static_cast<double>(use.repeat);
    const BlockTime time = block_time(table, program, block, false, repeat);
    const Seconds host = parallel::host_time(block, stack_);
    table.linear += repeat * max(time.device, host);
    table.prompt_launches += repeat * host;
    table.phases += time.phases * repeat;
    table.experts += experts_of(block, repeat);
  }
  for (const auto& use : chunk.decode) {
    const parallel::Block& block = program.block(use.work);
    const auto repeat = static_cast<double>(use.repeat);
    const BlockTime time = block_time(table, program, block, true, repeat);
    const bool is_head = block.name.starts_with("head");
    table.launches += repeat * parallel::host_time(block, stack_);
    (is_head ? table.head : table.decode) += repeat * max(time.device, block.launch);
    (is_head ? table.head_parts : table.parts) += time.parts * repeat;
    if (!is_head) { table.decode_phases += time.phases * repeat; }
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
    table.phases.others += hops;
    table.decode += hops;
    table.decode_phases.others += hops;
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

// Of `rows` sequences of a rank, which all `sequences` are like.
ProgramPrice::CoreLine ProgramPrice::core_line(std::int64_t rows, std::int64_t sequences, std::int64_t contexts) {
  const std::int64_t mean = std::max<std::int64_t>(1, contexts / sequences);
  Table& t = table(rows);
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

// Time that grouped GEMMs of a captured step save because rows that pad it from `rows` to `size` sequences, of `width`
// positions each, use no experts: they are masked, or alike. Between captured sizes, time is taken as affine. Nothing
// where almost every expert is in use anyhow. Of one of `batches` that the step is divided into.
Seconds ProgramPrice::padding_of(std::int64_t rows, std::int64_t size, std::int64_t width, std::int64_t batches) {
  constexpr double kFewUnused = 0.02;
  if (rows >= size || options_.routes_padding || !model_.has_experts()) { return {}; }
  const std::int64_t low = captured_below(rows);
  const double tokens = real(ceil_div(low, batches) * width * plan_.dp);
  const double chosen = real(model_.experts.active) / real(model_.experts.count);
  if (std::pow(1.0 - chosen, tokens) < kFewUnused) { return {}; }
  const auto experts = [&](std::int64_t all) { return table(width * ceil_div(all, batches)).decode_experts; };
  const Seconds below = experts(low), above = experts(size);
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

bool ProgramPrice::is_two_batches(std::int64_t rows, std::int64_t least) const {
  return dispatches_ && least > 0 && rows >= std::max<std::int64_t>(2, least);
}

// Of attention: layers whose tokens stay on their rank, as if attention were the same in all.
double ProgramPrice::part_apart() {
  const Table& one = table(1);
  return one.cores_all > 0.0 ? one.cores_apart / one.cores_all : 0.0;
}

// Low-latency transfers take no cores while they are on their way.
double ProgramPrice::interference(bool decodes) const {
  return decodes && stack_.dispatch.low_latency ? 0.0 : stack_.overlap.interference;
}

// Of a step whose drafts make it generate several.
Ticks ProgramPrice::of_token(Ticks step) const {
  return options_.drafts == 0 ? step : std::llround(static_cast<double>(step) / options_.tokens_per_step);
}

DecodeLine ProgramPrice::device_line(std::int64_t sequences, std::int64_t contexts) {
  const std::int64_t rows = per_rank(sequences), width = 1 + options_.drafts;
  const std::int64_t size = captured_size(rows, options_.largest_graph);
  const CoreLine core = core_line(rows, sequences, contexts);
  const Table& t = table(width * size);
  DecodeLine line;
  line.per_token = of_token(slowed(core.per_token));
  line.at = of_token(slowed(core.low + ticks_of(t.decode + t.head - padding_of(rows, size, width)))) +
            line.per_token * (contexts - core.begin);
  line.last = core.last;
  return is_captured(rows) ? line : at_least(line, contexts, of_token(ticks_of(launches(t))));
}

// Two halves, and the head of both together.
DecodeLine ProgramPrice::device_line_of_two(std::int64_t sequences, std::int64_t contexts) {
  const std::int64_t rows = per_rank(sequences), width = 1 + options_.drafts;
  const std::int64_t size = captured_size(rows, options_.largest_graph);
  const CoreLine core = core_line(ceil_div(rows, std::int64_t{2}), sequences, contexts);
  const Table& t = table(width * ceil_div(size, std::int64_t{2}));
  const double each = slowdown_ / (options_.drafts == 0 ? 1.0 : options_.tokens_per_step);
  Phases half = t.decode_phases;
  half.experts -= padding_of(rows, size, width, 2);
  const auto part_of_core = [&](double part) {
    DecodeLine line;
    line.per_token = std::llround(part * static_cast<double>(of_token(slowed(core.per_token))));
    line.at =
        std::llround(part * static_cast<double>(of_token(slowed(core.low)))) + line.per_token * (contexts - core.begin);
    line.last = core.last;
    return line;
  };
  const double apart = part_apart();
  const DecodeLine alone = part_of_core(apart);
  DecodeLine line = line_of_two(part_of_core(1.0 - apart), half * each, interference(true), contexts);
  line.per_token += 2 * alone.per_token;
  line.at = saturated_sum(line.at, saturated_product(2, alone.at));
  line.at = saturated_sum(line.at, ticks_of(each * table(width * size).head));
  return is_captured(rows) ? line : at_least(line, contexts, of_token(ticks_of(2.0 * launches(t))));
}

DecodeLine ProgramPrice::decode(std::int64_t sequences, std::int64_t contexts) {
  return decode_line(sequences, contexts, is_two_batches(per_rank(sequences), options_.two_batch_decodes));
}

DecodeLine ProgramPrice::decode_line(std::int64_t sequences, std::int64_t contexts, bool is_two) {
  const std::int64_t rows = per_rank(sequences), size = captured_size(rows, options_.largest_graph);
  DecodeLine line = is_two ? device_line_of_two(sequences, contexts) : device_line(sequences, contexts);
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
  const std::int64_t batches = is_two_batches(rows, options_.two_batch_decodes) ? 2 : 1;
  DecodeParts parts = table(width * ceil_div(size, batches)).parts;
  parts.gemms -= padding_of(rows, size, width, batches);
  const CoreLine core = core_line(ceil_div(rows, batches), sequences, contexts);
  parts.attention += Seconds(seconds_of(core.at(contexts)));
  parts = parts * real(batches);
  parts += table(width * size).head_parts;
  parts = parts * slowdown_;
  if (options_.drafts > 0) {
    parts.drafts = slowdown_ * real(options_.drafts) * draft_time(rows, size);
    parts = parts * (1.0 / options_.tokens_per_step);
  }
  if (batches > 1) {
    const Seconds device(seconds_of(device_line_of_two(sequences, contexts).at));
    parts.collectives = {};
    parts.collectives = max(Seconds(0), device - (parts.sum() - parts.drafts));
  }
  parts.host = max(Seconds(0), Seconds(seconds_of(decode(sequences, contexts).at)) - parts.sum());
  return parts;
}

// ---- prompts ----

// A part of the table of `tokens`, affine between the grid's points.
template <class Part>
Part ProgramPrice::interpolated(std::int64_t tokens, Part Table::* part) {
  const std::int64_t low = options_.exact == Exact::yes ? tokens : below(tokens);
  const std::int64_t high = options_.exact == Exact::yes ? tokens : above(tokens);
  Part result = table(low).*part;
  if (high > low) { result += (table(high).*part - result) * (real(tokens - low) / real(high - low)); }
  return result;
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

ProgramPrice::StepTokens ProgramPrice::tokens_of(const MixedStep& step) {
  StepTokens tokens;
  for (const Chunk& chunk : step.chunks) {
    tokens.prompts += chunk.tokens;
    tokens.longest = std::max(tokens.longest, chunk.tokens);
  }
  const std::int64_t verified = step.decodes * options_.drafts;
  tokens.mean = std::max(per_rank(tokens.prompts + step.decodes + verified), ceil_div(tokens.longest, plan_.dp));
  const std::int64_t fullest = plan_.dp * plan_.pp > 1 ? fullest_rank(step) : 0;
  tokens.of_rank = std::max({tokens.mean, tokens.longest, fullest});
  return tokens;
}

// With drafts, sequences that decode advance by one token, though the iteration generates several of each: so they add
// that part of what they take to the time of the prompts.
Ticks ProgramPrice::mixed(const MixedStep& step) {
  const StepTokens tokens = tokens_of(step);
  // Prompts of which one token is left join a captured decode step.
  if (tokens.longest == 1 && options_.exact == Exact::no) {
    std::int64_t contexts = step.contexts;
    for (const Chunk& chunk : step.chunks) { contexts += chunk.context + chunk.tokens; }
    return decode(step.decodes + tokens.prompts, contexts).at;
  }
  const bool is_two = is_two_batches(tokens.of_rank, options_.two_batch_prompts);
  const Ticks all = iteration(step, tokens, is_two);
  if (step.decodes == 0) { return all; }
  // Interpolated work and that of a captured graph: with prompts, decoding does not take less.
  const Ticks decoding = decode_line(step.decodes, step.contexts, is_two).at;
  if (options_.drafts == 0) { return std::max(all, decoding); }
  const MixedStep prompts{step.chunks, 0, 0, step.sampling - step.decodes};
  const Ticks alone = iteration(prompts, tokens_of(prompts), is_two);
  return std::max<Ticks>(decoding, alone + std::llround(static_cast<double>(all - alone) / options_.tokens_per_step));
}

// Work of the rank with most tokens, whose experts have the mean of all ranks.
Seconds ProgramPrice::linear_of_ranks(std::int64_t mean, std::int64_t of_rank) {
  const Seconds time = linear_time(of_rank);
  if (of_rank <= mean) { return time; }
  const Seconds others = interpolated(mean, &Table::experts) - interpolated(of_rank, &Table::experts);
  return max(linear_time(mean), time + others);  // launches of a rank's mean may be limited by the host
}

// The same as two batches, each with half of the tokens and of `attention`.
Seconds ProgramPrice::two_batches_of_prompts(std::int64_t mean, std::int64_t of_rank, Seconds attention) {
  const std::int64_t tokens = (of_rank + 1) / 2, of_all = (mean + 1) / 2;
  const double apart = part_apart();
  Phases half = interpolated(tokens, &Table::phases);
  half.experts += interpolated(of_all, &Table::experts) - interpolated(tokens, &Table::experts);
  half.attention += 0.5 * (1.0 - apart) * attention;
  half.others += 0.5 * apart * attention;
  return max(time_of_two(half, interference(false)), 2.0 * interpolated(tokens, &Table::prompt_launches));
}

// The whole iteration.
Ticks ProgramPrice::iteration(const MixedStep& step, const StepTokens& tokens, bool is_two) {
  const std::int64_t verified = step.decodes * options_.drafts, sampled = step.sampling + verified;
  Seconds head;
  if (sampled > 0) { head = table(captured_size(per_rank(sampled), options_.largest_graph)).head; }
  const Seconds prompt = prompt_time(step.chunks);
  const Ticks decoding =
      step.decodes > 0 ? core_line(per_rank(step.decodes), step.decodes, step.contexts).at(step.contexts) : 0;
  Ticks ticks = 0;
  if (is_two) {
    const Seconds attention = prompt + Seconds(seconds_of(decoding));
    ticks = ticks_of(two_batches_of_prompts(tokens.mean, tokens.of_rank, attention) + head);
  } else {
    Seconds time = linear_of_ranks(tokens.mean, tokens.of_rank) + head;
    time += prompt;
    ticks = ticks_of(time) + decoding;
  }
  ticks = slowed(ticks);
  if (tokens.longest > 1) { ticks = std::max(ticks, ticks_of((is_two ? 2.0 : 1.0) * prompt_host_)); }
  if (verified > 0) {
    const std::int64_t rows = per_rank(step.decodes);
    ticks += options_.drafts * slowed(ticks_of(draft_time(rows, captured_size(rows, options_.largest_graph))));
    ticks = saturated_sum(ticks, ticks_of(real(rows) * options_.draft_host));
  }
  return saturated_sum(ticks, ticks_of(real(per_rank(step.sampling)) * options_.sequence_host));
}

}  // namespace orrery::serving
