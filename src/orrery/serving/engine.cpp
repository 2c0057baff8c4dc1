#include "orrery/serving/engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"

namespace orrery::serving {

namespace {

// Whole blocks of the prefix cache that fit in each tier.
std::vector<std::int64_t> tier_blocks(const EngineShape& shape, const Workload& workload) {
  std::vector<std::int64_t> blocks;
  for (const CacheTier& tier : shape.tiers) {
    blocks.push_back(workload.block_tokens > 0 ? tier.tokens / workload.block_tokens : 0);
  }
  return blocks;
}

}  // namespace

std::int64_t rank_tokens(const EngineSettings& settings, const EngineShape& shape) {
  return shape.windows.largest(shape.blocks / shape.ranks) * settings.block_tokens;
}

std::optional<EngineLimits> engine_limits(const EngineSettings& settings, const EngineShape& shape) {
  if (settings.scheduler == Scheduler::static_batch || !shape.tiers.empty()) { return std::nullopt; }
  EngineLimits limits;
  limits.sequences = settings.max_sequences * shape.ranks;
  limits.tokens = token_budget(settings, shape);
  limits.chunk = settings.max_batched_tokens;
  limits.blocks = shape.blocks;
  limits.ranks = shape.ranks;
  limits.is_shared_out = shape.ranks * shape.micro_batches > 1;
  limits.cuts_prompts = settings.chunked_prefill && settings.batch_wait == 0;
  return limits;
}

Engine::Engine(const EngineSettings& settings, const EngineShape& shape, StepPrice& price, const Workload& workload,
               std::vector<Outcome>& outcomes)
    : settings_(settings),
      shape_(shape),
      price_(price),
      workload_(workload),
      outcomes_(outcomes),
      poll_(settings.scheduler == Scheduler::static_batch ? 1 : poll_steps(settings)),
      phases_(static_cast<std::size_t>(settings.block_tokens)),
      prefixes_(settings.prefix_cache ? workload.number_of_ids() : 0, tier_blocks(shape, workload)),
      is_end_(settings.prefix_cache ? workload.number_of_ids() : 0),
      unit_blocks_(ceil_div(workload.block_tokens, settings.block_tokens)) {
  ORRERY_ASSERT(shape.tiers.size() <= kTiers);
  links_.assign(shape.tiers.size(), std::vector<Ticks>(static_cast<std::size_t>(shape.ranks), 0));
  if (!shape.tiers.empty()) { arrives_ = Paged<Ticks>(is_end_.size()); }
  if (workload.branches > 1) {
    ORRERY_ASSERT(settings.scheduler != Scheduler::static_batch && !shape.prefill_only);
    branches_ended_.resize(static_cast<std::size_t>(workload.arriving()));
  }
  ORRERY_ASSERT(shape.blocks > 0 && settings.max_batched_tokens > 0 && settings.max_sequences > 0);
}

void Engine::share(RemoteStore& store) {
  ORRERY_ASSERT(shape_.tiers.size() == kTiers && settings_.prefix_cache);
  store_ = &store;
  prefixes_.share(store);
}

std::int64_t Engine::needed_blocks(const Request& request) const {
  return whole_blocks(request) + (request.blocks > 0 ? 1 : 0);
}

// Whole blocks of the prefix cache take whole blocks of the engine.
std::int64_t Engine::whole_blocks(const Request& request) const {
  const std::int64_t tokens = request.input + outputs_of(request), size = workload_.block_tokens;
  if (!settings_.prefix_cache || request.blocks == 0 || size == 0) { return blocks_of(tokens); }
  const std::int64_t units = std::min<std::int64_t>(request.blocks, request.input / size);
  return units * unit_blocks_ + blocks_of(tokens - units * size, units * unit_blocks_);
}

Ticks Engine::swap_time(std::int64_t positions) const {
  return saturated_sum(saturated_product(positions, shape_.swap_token),
                       saturated_product(std::min(positions, window_tokens()), shape_.swap_window_token));
}

void Engine::note_blocks(Ticks now) {
  totals_.block_integral += seconds_of(now - noted_) * static_cast<double>(used_);
  noted_ = now;
}

std::int64_t Engine::phase_of(const Sequence& s) const {
  const std::int64_t phase = (s.joined - s.joined_context + s.shared) % settings_.block_tokens;
  return phase < 0 ? phase + settings_.block_tokens : phase;
}

std::int64_t Engine::growing(std::int64_t step) const {
  return phases_[static_cast<std::size_t>(step % settings_.block_tokens)];
}

void Engine::take_blocks(std::int64_t count) {
  used_ += count;
  if (count > 0) { left_.take(count); }
  ORRERY_ASSERT(used_ <= shape_.blocks && used_ >= 0);
  leaves_free(shape_.blocks - used_ - prefixes_.idle() * unit_blocks_);
  while (used_ + prefixes_.idle() * unit_blocks_ > shape_.blocks) { prefixes_.evict(); }
  totals_.peak_blocks = std::max(totals_.peak_blocks, used_);
}

std::uint32_t Engine::new_slot() {
  if (free_slots_.empty()) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Engine::arrive(std::int64_t request, Ticks now, std::int64_t retrieved) {
  ORRERY_ASSERT(request >= 0 && now >= 0);
  enter({request, 0, 0, false, retrieved, 0});
}

void Engine::arrive_for_place(std::int64_t request, Ticks now) {
  if (waiting_.empty()) { asked_since_ = now; }
  enter({request, 1, workload_.requests[static_cast<std::size_t>(request)].input, true, 0, 0});
}

void Engine::receive(std::int64_t request) {
  const std::uint32_t slot = coming_.at(request);
  prefixes_.set_computed(shared_blocks(slots_[slot], 0, slots_[slot].computed));
  received_.push_back(slot);
  joins_ = true;
}

void Engine::enter(const Waiting& waiting) {
  if (poll_ == 1 || waiting.comes) {
    joins_ = true;
    queue(waiting, false);
    return;
  }
  unseen_.push_back(waiting);
  waiting_tokens_ += tokens_of(waiting);
}

void Engine::forget() {
  ORRERY_ASSERT(outstanding() == 0 && sending_.empty());
  if (forgotten_ == admissions_) { return; }
  forgotten_ = admissions_;
  prefixes_.clear();
  std::fill(is_end_.begin(), is_end_.end(), false);
  if (!shape_.tiers.empty()) { arrives_ = Paged<Ticks>(is_end_.size()); }
}

void Engine::look(bool at_once) {
  if (!at_once && to_next_look(0) > 0) { return; }
  looked_ = step_;
  if (!unseen_.empty()) { settled_ = false; }
  for (const Waiting& waiting : unseen_) {
    waiting_tokens_ -= tokens_of(waiting);
    queue(waiting, false);
  }
  unseen_.clear();
}

std::int64_t Engine::to_next_look(std::int64_t steps) const {
  const std::int64_t since = (step_ - looked_ + steps) % poll_;
  return since == 0 ? 0 : poll_ - since;
}

void Engine::wake(Ticks now) {
  if (work_ == Work::none) {
    note_blocks(now);
    look(true);
    plan(now);
  } else if (work_ == Work::decode &&
             (!blocked_ || settings_.policy == Policy::priority || !unseen_.empty() || !received_.empty())) {
    shorten(now);
  }
}

// ---- forming iterations ----

void Engine::plan(Ticks now) {
  start_ = now;
  planned_.clear();
  chunks_.clear();
  work_ = Work::none;
  end_ = kNever;
  if (settings_.scheduler == Scheduler::static_batch) {
    plan_static(now);
    return;
  }
  if (!loading_.empty()) { finish_loads(now); }
  const bool mixes = settings_.scheduler == Scheduler::mixed;
  const bool settled = std::exchange(settled_, false);
  joins_ = false;
  bool preempted = false;
  wait_left_ = 0;
  if (mixes) { preempted = make_room_for_decodes(); }
  const std::int64_t budget = token_budget(settings_, shape_) - (mixes ? decodes_ : 0);
  // Taken by decoding sequences when the iteration ends; prompts must leave them.
  const std::int64_t grown = mixes && decodes_ > 0 ? growing(step_) : 0;
  used_ += grown;
  Continued prompts = continue_prompts(budget);
  prompts.budget -= join_received(prompts.budget, now);
  preempted = preempted || prompts.preempted || prompts.budget < 0;
  if (!preempted && !settled) { admit_waiting(prompts.budget, now); }
  used_ -= grown;
  note_tokens();
  if (!planned_.empty()) {
    start_mixed(now, mixes && decodes_ > 0);
    return;
  }
  if (!mixes) { preempted = make_room_for_decodes() || preempted; }
  // After a preemption nothing was admitted, and blocks are free: the next iteration tries.
  blocked_ = !preempted && wait_left_ == 0 && (!waiting_.empty() || running() >= most_running());
  settled_ = blocked_;
  if (decodes_ > 0) {
    start_decodes(now, preempted);
    return;
  }
  ORRERY_ASSERT(prefilling_.empty() &&
                (waiting_.empty() || !loading_.empty() || !sending_.empty() || !coming_.empty()));
  if (!loading_.empty()) { end_ = loading_.front().at; }
}

// Tokens of the iteration that is formed, with those of running sequences, and with a part of a prompt for which there
// was no memory: with other limits it may have been shorter.
void Engine::note_tokens(std::int64_t without_memory) {
  std::int64_t tokens = settings_.scheduler == Scheduler::mixed ? decodes_ : 0;
  Headroom& headroom = totals_.headroom;
  tokens += without_memory;
  headroom.largest_chunk = std::max(headroom.largest_chunk, without_memory);
  for (const Planned& planned : planned_) {
    tokens += planned.tokens;
    headroom.largest_chunk = std::max(headroom.largest_chunk, planned.tokens);
  }
  headroom.most_tokens = std::max(headroom.most_tokens, tokens);
}

// A batch starts when all of the one before have ended. Whole prompts, in one iteration.
void Engine::plan_static(Ticks now) {
  if (static_alive_ == 0) {
    decodes_ = contexts_ = ungenerated_ = 0;
    std::fill(phases_.begin(), phases_.end(), 0);
    while (!waiting_.empty() && running() < most_running()) {
      const Waiting head = waiting_.front();
      const Request& request = workload_.requests[static_cast<std::size_t>(head.request)];
      Offer offer;
      offer.hit_tokens = head.retrieved;
      offer.tokens = request.input - head.retrieved;
      offer.own_blocks = blocks_of(request.input + request.output - 1);
      if (offer.own_blocks > available()) { break; }
      waiting_.pop_front();
      waiting_tokens_ -= tokens_of(head);
      admit(head, offer, now);
      ++static_alive_;
    }
    if (!planned_.empty()) { start_mixed(now, false); }
  } else {
    start_decodes(now, false);
  }
  blocked_ = true;
}

void Engine::start_mixed(Ticks now, bool with_decodes) {
  std::int64_t sampling = with_decodes ? decodes_ : 0, sent = 0;
  for (const Planned& planned : planned_) {
    const Sequence& s = slots_[planned.slot];
    chunks_.push_back({planned.tokens, s.computed});
    if (s.computed + planned.tokens < s.target) { continue; }
    ++sampling;
    sent += outputs_left(s) > 1 ? 1 : 0;
  }
  joining_ = joined_contexts_ = 0;
  for (const Planned& planned : planned_) {
    const Sequence& s = slots_[planned.slot];
    if (s.coming_outputs == 0) { continue; }
    ++joining_;
    joined_contexts_ += s.computed + 1;
  }
  const std::int64_t decodes = with_decodes ? decodes_ : 0;
  const Ticks time = price_.mixed({chunks_, decodes, with_decodes ? contexts_ + decodes_ : 0, sampling});
  work_ = Work::mixed;
  const bool is_step =
      std::all_of(chunks_.begin(), chunks_.end(), [](const Chunk& chunk) { return chunk.tokens == 1; });
  const Ticks host = is_step ? shape_.decode_host : shape_.step_host;
  sampling_ = sampling;
  with_decodes_ = with_decodes;
  steps_ = 1;
  const Ticks sends = saturated_product(ceil_div(sent, shape_.ranks * shape_.micro_batches), shape_.transfer_host);
  start_ = saturated_sum(now, swaps_);
  end_ = saturated_sum(saturated_sum(start_, host), saturated_sum(time, sends));
  swaps_ = 0;
}

void Engine::start_decodes(Ticks now, bool once) {
  const std::int64_t contexts = contexts_ + decodes_;
  line_ = price_.decode(decodes_, contexts);
  line_.at += shape_.decode_host;
  while (!is_here(finishes_.top().slot, finishes_.top().admission)) { finishes_.pop(); }
  std::int64_t most = finishes_.top().step - step_;
  most = std::min(most, (line_.last - contexts) / decodes_ + 1);
  if (!window_ends_.empty()) { most = std::min(most, window_ends_.top().step - step_); }
  if (settings_.scheduler != Scheduler::static_batch) { most = steps_without_shortage(most); }
  if (wait_left_ > 0) { most = std::min(most, wait_left_); }
  if (!unseen_.empty()) { most = std::min(most, std::max<std::int64_t>(1, to_next_look(0))); }
  if (once || shape_.jumps == Jumps::stepped) { most = 1; }
  ORRERY_ASSERT(most >= 1);
  work_ = Work::decode;
  start_ = saturated_sum(now, swaps_);
  swaps_ = 0;
  steps_ = steps_on_clock(most);
  end_ = saturated_sum(start_, line_.of_steps(steps_, decodes_));
  if (loading_.empty() || loading_.front().at >= end_) { return; }
  steps_ = steps_until(loading_.front().at);
  end_ = start_ + line_.of_steps(steps_, decodes_);
}

// Decode steps, at most `most`, that end while the clock can tell: longer runs are refused.
std::int64_t Engine::steps_on_clock(std::int64_t most) const {
  const double last = real(line_.at) + real(line_.per_token) * real(most) * real(decodes_);
  const double left = real(std::max<Ticks>(0, kLongestTicks - start_));
  return last * real(most) < left ? most : std::max<std::int64_t>(1, static_cast<std::int64_t>(left / last));
}

// Decode steps, at most `most`, for which free blocks suffice. The next one always has its blocks.
std::int64_t Engine::steps_without_shortage(std::int64_t most) const {
  const std::int64_t size = settings_.block_tokens, free = available();
  const std::int64_t of_cycle = cycle_blocks();
  const std::int64_t cycles = decodes_ > 0 ? std::max<std::int64_t>(0, free / of_cycle - 1) : 0;
  std::int64_t steps = std::min(most, cycles * size), left = free - cycles * of_cycle;
  if (steps == most) { return most; }
  while (steps < most && growing(step_ + steps) <= left) {
    left -= growing(step_ + steps);
    ++steps;
  }
  return steps;
}

std::int64_t Engine::steps_until(Ticks now) const {
  std::int64_t low = 1, high = steps_;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (start_ + line_.of_steps(middle, decodes_) >= now) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Ends a jump at the first end of an iteration that is not before `now`.
void Engine::shorten(Ticks now) {
  const std::int64_t low = steps_until(now);
  steps_ = std::min(steps_, joins_ ? low : low + to_next_look(low));
  end_ = start_ + line_.of_steps(steps_, decodes_);
}

// ---- ending iterations ----

std::int64_t Engine::grown_blocks(std::int64_t steps) const {
  if (settings_.scheduler == Scheduler::static_batch) { return 0; }
  const std::int64_t size = settings_.block_tokens;
  std::int64_t grown = steps / size * cycle_blocks();
  for (std::int64_t i = steps / size * size; i < steps; ++i) { grown += growing(step_ + i); }
  return grown;
}

std::int64_t Engine::used_blocks_at(Ticks now) const {
  return work_ == Work::decode ? used_ + grown_blocks(steps_until(now) - 1) : used_;
}

void Engine::commit_decodes(std::int64_t steps) {
  take_blocks(grown_blocks(steps));
  step_ += steps;
  contexts_ += steps * decodes_;
  window_positions_ += steps * windowed_;
  end_windows();
  totals_.generated += steps * (settings_.scheduler == Scheduler::static_batch ? static_alive_ : decodes_);
}

// Of the iterations in progress, which take `time`, before they are counted. Requests from prefill engines that join
// one decode like the others.
void Engine::note_decodes(double time) {
  const double steps = real(steps_);
  const bool pauses = work_ == Work::mixed && !with_decodes_;
  if (pauses) { totals_.paused_token_seconds += real(decodes_) * time; }
  const std::int64_t decoding = pauses ? joining_ : decodes_ + joining_;
  if (decoding == 0) { return; }
  const auto sequences = static_cast<std::size_t>(decoding);
  if (sequences >= totals_.decodes.size()) { totals_.decodes.resize(sequences + 1); }
  DecodeUse& use = totals_.decodes[sequences];
  const double alive = real(settings_.scheduler == Scheduler::static_batch ? static_alive_ : decoding);
  (has_prompts() ? use.mixed_steps : use.steps) += steps;
  (has_prompts() ? use.mixed_token_seconds : use.token_seconds) += alive * time;
  use.contexts += real(joined_contexts_);
  if (!pauses) { use.contexts += steps * (real(contexts_) + 0.5 * (steps + 1.0) * real(decodes_)); }
}

// The server sends the tokens of an iteration when it has sent all before: after each, its end is max(end, end of the
// iteration) + its tokens' time. Iterations of a jump become longer, so that the first or the last one decides.
void Engine::stream(std::int64_t steps, std::int64_t tokens) {
  const Ticks time = saturated_product(tokens, shape_.token_host), all = saturated_product(steps, time);
  const Ticks first = work_ == Work::decode ? saturated_sum(start_, line_.of_steps(1, decodes_)) : end_;
  streamed_ = std::max({saturated_sum(streamed_, all), saturated_sum(first, all), saturated_sum(end_, time)});
}

void Engine::advance() {
  ended_.clear();
  const Ticks now = end_;
  if (work_ == Work::none) {
    ORRERY_ASSERT(!loading_.empty());
    note_blocks(now);
    plan(now);
    return;
  }
  const double time = seconds_of(now - start_);
  busy_ += now - start_;
  ++totals_.events;
  totals_.iterations += steps_;
  totals_.busy_s += time;
  totals_.running_integral += time * static_cast<double>(running());
  note_blocks(now);
  note_decodes(time);
  if (has_prompts()) { totals_.prefill_s += time; }
  joining_ = joined_contexts_ = 0;
  const bool mixed = work_ == Work::mixed;
  const bool is_static = settings_.scheduler == Scheduler::static_batch;
  stream(steps_, mixed ? sampling_ : is_static ? static_alive_ : decodes_);
  if (!mixed || with_decodes_) { commit_decodes(steps_); }
  while (!finishes_.empty() && finishes_.top().step <= step_) {
    const Finish finish = finishes_.top();
    finishes_.pop();
    if (is_here(finish.slot, finish.admission)) { leave(finish.slot); }
  }
  if (mixed) {
    finish_chunks();
    if (!forking_.empty()) { queue_branches(); }
  }
  if (!joined_.empty()) { cut_branches(); }
  with_decodes_ = false;
  look(mixed || running() == 0);
  plan(now);
}

void Engine::finish_chunks() {
  for (const Planned& planned : planned_) {
    Sequence& s = slots_[planned.slot];
    s.computed += planned.tokens;
    totals_.prefilled += planned.tokens;
    if (s.computed < s.target) { continue; }
    if (store_ != nullptr && s.shared > 0 && s.coming_outputs == 0) {
      const auto units = static_cast<std::size_t>(s.shared / workload_.block_tokens);
      store_->write(workload_.blocks_of(workload_.requests[static_cast<std::size_t>(s.request)]).first(units), end_);
    }
    Outcome& outcome = outcomes_[static_cast<std::size_t>(s.request)];
    ++s.generated;
    ++totals_.generated;
    if (s.generated == 1) {
      outcome.first = streamed_;
      outcome.made = end_;
      if (!branches_ended_.empty() && s.request < workload_.arriving()) { forking_.push_back(s.request); }
    }
    std::erase(prefilling_, planned.slot);
    s.decodes = true;
    join(planned.slot);
    const Request& request = workload_.requests[static_cast<std::size_t>(s.request)];
    if (s.generated == request.output || shape_.prefill_only) { leave(planned.slot); }
  }
}

void Engine::join(std::uint32_t slot) {
  Sequence& s = slots_[slot];
  forget_coming(s);
  s.joined = step_;
  s.joined_context = s.computed;
  ++decodes_;
  contexts_ += s.computed;
  shared_ += s.shared;
  ungenerated_ += s.joined + outputs_left(s);
  ++phases_[static_cast<std::size_t>(phase_of(s))];
  if (shape_.windows.groups > 0 && settings_.scheduler != Scheduler::static_batch) { begin_window(slot); }
  finishes_.push({s.joined + outputs_left(s), s.admission, slot});
}

void Engine::leave(std::uint32_t slot) {
  Sequence& s = slots_[slot];
  settled_ = false;
  outcomes_[static_cast<std::size_t>(s.request)].last = streamed_;
  if (branches_ended_.empty()) {
    ended_.push_back(s.request);
  } else {
    end_branch(s.request);
  }
  if (settings_.scheduler == Scheduler::static_batch) {  // its place computes on until the batch has ended
    --static_alive_;
  } else {
    stop_decoding(s);
  }
  if (shape_.prefill_only && s.generated < workload_.requests[static_cast<std::size_t>(s.request)].output) {
    s.alive = false;
    s.blocks = blocks_of(context_of(s) - s.shared, s.windowed);
    sending_blocks_ += s.blocks;
    sending_.emplace(s.request, slot);
  } else {
    left_.free(release(s));
  }
}

void Engine::sent(std::int64_t request, Ticks now) {
  note_blocks(now);
  const auto found = sending_.find(request);
  ORRERY_ASSERT(found != sending_.end());
  Sequence& s = slots_[found->second];
  sending_blocks_ -= s.blocks;
  left_.free(release(s));
  sending_.erase(found);
  settled_ = false;
}

// Its windows take blocks with every `block_tokens` positions, until they are as long as they can be.
void Engine::begin_window(std::uint32_t slot) {
  Sequence& s = slots_[slot];
  const std::int64_t positions = window_positions_of(s);
  s.is_windowed = positions < window_tokens();
  if (!s.is_windowed) {
    ++past_windows_;
    return;
  }
  ++windowed_;
  window_positions_ += positions;
  phases_[static_cast<std::size_t>(phase_of(s))] += shape_.windows.groups;
  window_ends_.push({s.joined + window_tokens() - positions, s.admission, slot});
}

void Engine::end_windows() {
  const auto is_current = [&](const Finish& end) {
    return is_here(end.slot, end.admission) && slots_[end.slot].is_windowed;
  };
  while (!window_ends_.empty() && (window_ends_.top().step <= step_ || !is_current(window_ends_.top()))) {
    const Finish end = window_ends_.top();
    window_ends_.pop();
    if (!is_current(end)) { continue; }
    Sequence& s = slots_[end.slot];
    s.is_windowed = false;
    --windowed_;
    ++past_windows_;
    window_positions_ -= window_tokens();
    phases_[static_cast<std::size_t>(phase_of(s))] -= shape_.windows.groups;
  }
}

void Engine::stop_decoding(Sequence& s) {
  --phases_[static_cast<std::size_t>(phase_of(s))];
  if (s.is_windowed) {
    s.is_windowed = false;
    --windowed_;
    window_positions_ -= window_positions_of(s);
    phases_[static_cast<std::size_t>(phase_of(s))] -= shape_.windows.groups;
  } else if (shape_.windows.groups > 0) {
    --past_windows_;
  }
  contexts_ -= context_of(s);
  shared_ -= s.shared;
  ungenerated_ -= s.joined + outputs_left(s);
  --decodes_;
}

std::int64_t Engine::release(Sequence& s) {
  const Request& request = workload_.requests[static_cast<std::size_t>(s.request)];
  if (settings_.scheduler != Scheduler::static_batch && s.decodes) {
    s.blocks = blocks_of(context_of(s) - s.shared, s.windowed);  // grown while decoding
  }
  used_ -= s.blocks;
  committed_ -= whole_blocks(request);
  if (s.shared > 0) {
    const auto units = static_cast<std::size_t>(s.shared / workload_.block_tokens);
    const std::int64_t held = prefixes_.held();
    prefixes_.release(workload_.blocks_of(request).first(units));
    used_ -= (held - prefixes_.held()) * unit_blocks_;
  }
  s.alive = false;
  free_slots_.push_back(static_cast<std::uint32_t>(&s - slots_.data()));
  if (admitted_.size() > 2 * static_cast<std::size_t>(running()) + 64) {
    std::erase_if(admitted_, [&](const Admitted& a) { return !is_here(a.slot, a.admission); });
  }
  return s.blocks;
}

}  // namespace orrery::serving
