// Which requests run in the next iteration, and which leave the cache.
#include <algorithm>
#include <array>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/serving/engine.hpp"

namespace orrery::serving {

void Engine::queue(const Waiting& waiting, bool front) {
  waiting_tokens_ += tokens_of(waiting);
  if (front || settings_.policy == Policy::priority) { settled_ = false; }
  if (settings_.policy == Policy::fcfs) {
    front ? waiting_.push_front(0, waiting) : waiting_.push_back(0, waiting);
    return;
  }
  const auto before = [&](const Waiting& a, const Waiting& b) {
    const Ticks p = arrival_of(a.request), q = arrival_of(b.request);
    return p != q ? p < q : a.request < b.request;
  };
  waiting_.insert(workload_.requests[static_cast<std::size_t>(waiting.request)].priority, waiting, before);
}

// What the request at the head of the queue would compute with `budget` tokens left, and the blocks that it needs.
Engine::Offer Engine::offer_of(const Waiting& waiting, std::int64_t budget) const {
  const Request& request = workload_.requests[static_cast<std::size_t>(waiting.request)];
  const std::int64_t target = request.input + waiting.generated;
  Offer offer;
  const auto blocks = workload_.blocks_of(request);
  const bool shares = waiting.comes ? shape_.keeps_sent : waiting.kept == 0;
  if (settings_.prefix_cache && !blocks.empty() && shares) {
    offer.units =
        std::min<std::int64_t>(static_cast<std::int64_t>(blocks.size()), request.input / workload_.block_tokens);
    const auto shareable = blocks.first(static_cast<std::size_t>(offer.units));
    offer.hits = hits_of(waiting, shareable);
    offer.hit_tokens = std::min(offer.hits * workload_.block_tokens, target - 1);
    // Blocks behind a miss may be held as well; they are not in memory twice. Idle ones count as free memory.
    offer.new_shared = offer.units - prefixes_.held_among(shareable);
  }
  if (offer.hits == offer.units) {
    offer.left = left_blocks(waiting, offer.units * workload_.block_tokens);
    const std::int64_t shared = offer.units * workload_.block_tokens;
    if (offer.left > 0) { offer.hit_tokens = shared + offer.left * settings_.block_tokens; }
  }
  offer.hit_tokens = std::max(offer.hit_tokens, waiting.retrieved);
  const std::int64_t known = std::max(offer.hit_tokens, waiting.kept);
  const std::int64_t left = target - known;
  offer.tokens = std::min(left, budget);
  if (settings_.chunked_prefill) {
    offer.tokens = std::min(offer.tokens, settings_.max_batched_tokens);
    if (settings_.long_prefill_threshold > 0) {
      offer.tokens = std::min(offer.tokens, settings_.long_prefill_threshold);
    }
  } else if (offer.tokens < left) {
    offer.tokens = planned_.empty() ? left : 0;  // a prompt longer than the budget runs alone
  }
  const std::int64_t end = settings_.reserve == Reserve::chunk ? known + offer.tokens : target;
  offer.own_blocks = blocks_of(end - offer.units * workload_.block_tokens, offer.new_shared * unit_blocks_);
  return offer;
}

// Leading blocks of its prompt that it need not compute. What comes from a prefill engine comes for all blocks that are
// not on the device.
std::int64_t Engine::hits_of(const Waiting& waiting, std::span<const std::uint32_t> blocks) const {
  if (waiting.held > 0 || waiting.comes) { return hits_of_holder(blocks, waiting.held); }
  return prefixes_.hits(blocks);
}

std::span<const std::uint32_t> Engine::shared_blocks(const Sequence& s, std::int64_t from, std::int64_t to) const {
  if (s.shared <= from) { return {}; }
  const std::int64_t size = workload_.block_tokens, first = from / size, last = std::min(to, s.shared) / size;
  const auto blocks = workload_.blocks_of(workload_.requests[static_cast<std::size_t>(s.request)]);
  return blocks.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
}

// At least one token is computed.
std::int64_t Engine::left_blocks(const Waiting& waiting, std::int64_t shared) const {
  if (left_.empty() || waiting.kept > 0) { return 0; }
  const Request& request = workload_.requests[static_cast<std::size_t>(waiting.request)];
  const std::int64_t most = (request.input + waiting.generated - 1 - shared) / settings_.block_tokens;
  return std::max<std::int64_t>(0, std::min(left_.of(waiting.request), most));
}

bool Engine::fits(const Waiting& waiting, const Offer& offer) {
  const std::int64_t free = free_after(waiting, offer);
  leaves_free(free);
  return free >= 0;
}

std::int64_t Engine::free_after(const Waiting& waiting, const Offer& offer) const {
  const std::int64_t need = offer.own_blocks + offer.new_shared * unit_blocks_, free = available() - need;
  if (free < 0) { return free; }
  const Request& request = workload_.requests[static_cast<std::size_t>(waiting.request)];
  if (settings_.reserve == Reserve::whole) {
    const std::int64_t whole = whole_blocks(request);
    const std::int64_t others = committed_ - (waiting.held > 0 ? whole : 0);
    return std::min(free, shape_.blocks - others - whole);
  }
  if (settings_.reserve != Reserve::estimate || (running() == 0 && coming_.empty())) { return free; }
  const auto rest =
      static_cast<double>(ungenerated_ - decodes_ * step_ + coming_outputs_ + outputs_of(request) - waiting.generated);
  const auto positions = static_cast<double>(need * settings_.block_tokens);
  const double wanted = positions + settings_.reserve_ratio * rest, left = static_cast<double>(free_positions());
  if (!(wanted <= left)) { return -1; }
  return std::min(free, static_cast<std::int64_t>((left - wanted) / real(settings_.block_tokens)));
}

// Positions that are not in use, those in partly filled blocks included. Unlike the number of free blocks it falls with
// every decode step, so that a request that does not fit cannot fit before another one ends.
std::int64_t Engine::free_positions() const {
  const WindowShape& windows = shape_.windows;
  std::int64_t own = contexts_ - shared_ + windows.groups * (window_positions_ + past_windows_ * window_tokens()) +
                     (sending_blocks_ + coming_blocks_) * settings_.block_tokens;
  for (const std::uint32_t slot : prefilling_) { own += slots_[slot].blocks * settings_.block_tokens; }
  return (shape_.blocks - prefixes_.held() * unit_blocks_) * settings_.block_tokens - own;
}

// As the authors of traces count: leading blocks whose ids were seen, of which the last may be partial. A partial block
// counts if a prompt that ended in it was computed here, and all before it are cached. Engines do not share it.
std::int64_t Engine::found_blocks(const Request& request, const Offer& offer) {
  if (!settings_.prefix_cache || request.blocks == 0) { return 0; }
  if (offer.units == request.blocks) { return offer.hits; }
  const std::uint32_t last = workload_.blocks_of(request).back();
  const bool found = offer.hits == offer.units && is_end_[last];
  is_end_[last] = true;
  return offer.hits + (found ? 1 : 0);
}

// A slot and blocks.
std::uint32_t Engine::take_place(const Waiting& waiting, const Offer& offer) {
  const Request& request = workload_.requests[static_cast<std::size_t>(waiting.request)];
  const std::uint32_t slot = new_slot();
  Sequence& s = slots_[slot];
  s.request = waiting.request;
  s.target = request.input + waiting.generated;
  s.generated = waiting.generated;
  s.computed = std::max(offer.hit_tokens, waiting.kept);
  s.shared = offer.units * workload_.block_tokens;
  s.windowed = offer.new_shared * unit_blocks_;
  s.admission = admissions_++;
  s.alive = true;
  s.decodes = false;
  if (offer.units > 0) {
    const std::int64_t held = prefixes_.held();
    const auto blocks = workload_.blocks_of(request).first(static_cast<std::size_t>(offer.units));
    prefixes_.acquire(blocks);
    if (!waiting.comes) {  // in the iteration that is formed
      prefixes_.set_computed(shared_blocks(s, 0, s.computed + offer.tokens));
    }
    take_blocks((prefixes_.held() - held) * unit_blocks_);
    if (waiting.held > 0) {  // the sequence holds them now
      prefixes_.release(blocks.first(static_cast<std::size_t>(waiting.held)));
      committed_ -= whole_blocks(request);
      --holders_;
    }
  }
  s.blocks = offer.own_blocks;
  if (offer.left > 0) {
    left_.take_back(waiting.request);
    outcomes_[static_cast<std::size_t>(waiting.request)].recomputed -= offer.left * settings_.block_tokens;
    used_ += offer.left;
  }
  take_blocks(offer.own_blocks - offer.left);
  committed_ += whole_blocks(request);
  waits_since_ = -1;
  return slot;
}

void Engine::admit(const Waiting& waiting, const Offer& offer, Ticks now) {
  const Request& request = workload_.requests[static_cast<std::size_t>(waiting.request)];
  Outcome& outcome = outcomes_[static_cast<std::size_t>(waiting.request)];
  const std::uint32_t slot = take_place(waiting, offer);
  if (outcome.scheduled < 0) {
    outcome.scheduled = now;
    starts_[started_++ % kStarts] = busy_;
    outcome.cached = offer.hit_tokens;
    outcome.cached_blocks = found_blocks(request, offer);
  }
  if (waiting.kept > 0 && shape_.swap_token > 0) {  // it was copied to the host
    swaps_ = saturated_sum(swaps_, swap_time(waiting.kept));
  }
  admitted_.push_back({slot, slots_[slot].admission});
  prefilling_.push_back(slot);
  totals_.headroom.most_sequences = std::max(totals_.headroom.most_sequences, running() + coming());
  planned_.push_back({slot, offer.tokens});
}

// ---- requests from prefill engines ----

void Engine::place(const Waiting& waiting, const Offer& offer, Ticks now) {
  const std::uint32_t slot = take_place(waiting, offer);
  Sequence& s = slots_[slot];
  coming_.emplace(s.request, slot);
  coming_blocks_ += s.blocks;
  s.coming_outputs = outputs_left(s);
  coming_outputs_ += s.coming_outputs;
  asked_ += now - asked_since_;
  asked_since_ = now;
  starts_[started_++ % kStarts] = asked_;
  totals_.headroom.most_sequences = std::max(totals_.headroom.most_sequences, running() + coming());
  placed_.push_back({s.request, offer.hits * workload_.block_tokens});
}

// As many as the budget has tokens for: each computes one position, that of its first token. The tokens of these.
std::int64_t Engine::join_received(std::int64_t budget, Ticks now) {
  const std::int64_t joining = std::min(std::ssize(received_), std::max<std::int64_t>(0, budget));
  if (joining < std::ssize(received_)) { note_tokens(1); }
  for (std::int64_t i = 0; i < joining; ++i) {
    const std::uint32_t slot = received_[static_cast<std::size_t>(i)];
    const Sequence& s = slots_[slot];
    Outcome& outcome = outcomes_[static_cast<std::size_t>(s.request)];
    outcome.first = std::max(now, streamed_);
    outcome.made = now;
    coming_.erase(s.request);
    coming_blocks_ -= s.blocks;
    admitted_.push_back({slot, s.admission});
    prefilling_.push_back(slot);
    planned_.push_back({slot, 1});
  }
  received_.erase(received_.begin(), received_.begin() + joining);
  return joining;
}

void Engine::forget_coming(Sequence& s) { coming_outputs_ -= std::exchange(s.coming_outputs, 0); }

Ticks Engine::predicted_wait(Ticks now) const {
  const std::size_t known = std::min(started_, kStarts);
  if (waiting() == 0 || known == 0) { return 0; }
  const Ticks oldest = starts_[started_ < kStarts ? 0 : started_ % kStarts];
  const Ticks running = busy_ + (work_ == Work::none ? 0 : std::max<Ticks>(0, now - start_));
  return saturated_product(waiting(), (running - oldest) / static_cast<std::int64_t>(known));
}

Ticks Engine::predicted_wait_for_place(Ticks now) const {
  const std::size_t known = std::min(started_, kStarts);
  if (waiting() == 0 || known == 0) { return 0; }
  const Ticks oldest = starts_[started_ < kStarts ? 0 : started_ % kStarts];
  return saturated_product(waiting(), (asked_ + now - asked_since_ - oldest) / static_cast<std::int64_t>(known));
}

// Prompts wait for others while sequences decode, so that fewer iterations have prompts: until every rank of attention
// dp has one, or until they fill their part of the budget.
std::int64_t Engine::steps_to_wait() {
  if (settings_.balance_wait == 0 && settings_.batch_wait == 0) { return 0; }
  if (waiting_.empty()) { waits_since_ = -1; }
  if (waiting_.empty() || running() >= most_running()) { return 0; }
  if (waits_since_ < 0) { waits_since_ = step_; }
  if (decodes_ == 0 || !prefilling_.empty() || waiting_.front().kept > 0 || waiting_.front().held > 0) { return 0; }
  std::int64_t tokens = waiting_tokens_;
  for (const Waiting& unseen : unseen_) { tokens -= tokens_of(unseen); }
  const bool fills = real(tokens) >= settings_.batch_wait_part * real(token_budget(settings_, shape_));
  std::int64_t most = fills ? 0 : settings_.batch_wait;
  if (std::ssize(waiting_) < shape_.ranks) { most = std::max(most, settings_.balance_wait); }
  return std::max<std::int64_t>(0, waits_since_ + token_steps(settings_, most) - step_);
}

void Engine::admit_waiting(std::int64_t budget, Ticks now) {
  wait_left_ = steps_to_wait();
  if (wait_left_ > 0) { return; }
  while (!waiting_.empty() && admit_head(budget, now)) {}
}

// The request at the head of the queue. False: it waits, and with it those behind.
bool Engine::admit_head(std::int64_t& budget, Ticks now) {
  const Waiting head = waiting_.front();
  if (budget <= 0 && !head.comes) { return false; }
  const bool has_place_now = has_place(head);
  const Offer offer = has_place_now ? offer_of(head, head.comes ? 1 : budget) : Offer{};
  if (has_place_now && offer.tokens == 0) { return false; }
  if (!has_place_now || !fits(head, offer)) {
    note_tokens(offer.tokens);
    return running() == 0 && sending_.empty() && coming_.empty() && drop_holder(1);  // else nothing would end
  }
  if (begin_load(head, offer, now)) { return true; }
  waiting_.pop_front();
  waiting_tokens_ -= tokens_of(head);
  if (head.comes) {
    place(head, offer, now);
  } else {
    admit(head, offer, now);
    budget -= offer.tokens;
  }
  return true;
}

// Requests that load, wait with loaded blocks, or come from prefill engines have places already.
bool Engine::has_place(const Waiting& waiting) const {
  const std::int64_t others = std::ssize(loading_) + coming() + holders_ - (waiting.held > 0 ? 1 : 0);
  return running() + others < most_running();
}

std::int64_t Engine::planned_tokens(std::uint32_t slot) const {
  for (const Planned& planned : planned_) {
    if (planned.slot == slot) { return planned.tokens; }
  }
  return 0;
}

// Prompts that have begun, in the order of admission. One that lacks blocks makes others leave, perhaps itself; the
// tokens that these would have computed in this iteration are free again.
Engine::Continued Engine::continue_prompts(std::int64_t budget) {
  Continued result{budget, false};
  for (std::size_t i = 0; i < prefilling_.size() && result.budget > 0;) {
    const std::uint32_t slot = prefilling_[i];
    Sequence& s = slots_[slot];
    std::int64_t tokens = std::min({s.target - s.computed, result.budget, settings_.max_batched_tokens});
    if (settings_.long_prefill_threshold > 0) { tokens = std::min(tokens, settings_.long_prefill_threshold); }
    const std::int64_t need = blocks_of(s.computed + tokens - s.shared, s.windowed) - s.blocks;
    leaves_free(available() - need);
    bool stays = true;
    while (need > available() && stays) {
      if (drop_holder(0)) { continue; }
      note_tokens(tokens);
      const std::uint32_t victim = last_admitted();
      const auto at = std::find(prefilling_.begin(), prefilling_.end(), victim) - prefilling_.begin();
      result.budget += planned_tokens(victim);
      preempt_last();
      result.preempted = true;
      stays = victim != slot;
      if (stays && at < static_cast<std::ptrdiff_t>(i)) { --i; }
    }
    if (!stays) { continue; }  // the next one has its place
    if (need > 0) {
      s.blocks += need;
      take_blocks(need);
    }
    prefixes_.set_computed(shared_blocks(s, s.computed, s.computed + tokens));
    planned_.push_back({slot, tokens});
    result.budget -= tokens;
    ++i;
  }
  return result;
}

// Blocks of the next token of every decoding sequence. True if others had to leave.
bool Engine::make_room_for_decodes() {
  bool preempted = false;
  leaves_free(available() - growing(step_));
  while (growing(step_) > available()) {
    if (!drop_holder(0)) { preempt_last(); }
    preempted = true;
  }
  return preempted;
}

std::uint32_t Engine::last_admitted() {
  while (!admitted_.empty() && !is_here(admitted_.back().slot, admitted_.back().admission)) { admitted_.pop_back(); }
  ORRERY_ASSERT(!admitted_.empty());
  if (settings_.policy == Policy::fcfs) { return admitted_.back().slot; }
  const auto later = [&](const Admitted& a, const Admitted& b) {
    const bool first = is_here(a.slot, a.admission), second = is_here(b.slot, b.admission);
    if (first != second) { return second; }
    const auto p = workload_.requests[static_cast<std::size_t>(slots_[a.slot].request)].priority;
    const auto q = workload_.requests[static_cast<std::size_t>(slots_[b.slot].request)].priority;
    return p != q ? p < q : a.admission < b.admission;
  };
  return std::max_element(admitted_.begin(), admitted_.end(), later)->slot;
}

void Engine::preempt_last() {
  const std::uint32_t slot = last_admitted();
  Sequence& s = slots_[slot];
  Outcome& outcome = outcomes_[static_cast<std::size_t>(s.request)];
  const std::int64_t context = s.decodes ? context_of(s) : s.computed;
  Waiting waiting{s.request, generated_by(s), 0, false, 0, 0};
  ++outcome.preemptions;
  ++totals_.preemptions;
  const bool swaps = settings_.preemption == Preemption::swap && s.decodes;
  if (swaps) {
    waiting.kept = context;
    swaps_ = saturated_sum(swaps_, swap_time(context));
  } else {
    outcome.recomputed += context;
  }
  if (s.decodes) {
    stop_decoding(s);
  } else {
    prefixes_.set_computed(shared_blocks(s, s.computed, s.computed + planned_tokens(slot)), false);
    forget_coming(s);
    std::erase(prefilling_, slot);
    std::erase_if(planned_, [&](const Planned& planned) { return planned.slot == slot; });
  }
  const std::int64_t free = available() - prefixes_.idle() * unit_blocks_;
  const std::int64_t own = release(s);
  const bool stays = settings_.prefix_cache && !swaps;
  const std::int64_t whole = stays ? std::max<std::int64_t>(0, context - s.shared) / settings_.block_tokens : 0;
  const std::int64_t rest = own - whole;  // not whole: freed before
  left_.free(rest);
  left_.preempt(waiting.request, whole, free + rest);
  queue(waiting, true);
}

}  // namespace orrery::serving
