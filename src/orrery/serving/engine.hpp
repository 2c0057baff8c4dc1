// One inference engine: a scheduler that forms iterations of running sequences and parts of prompts, and the blocks of
// its KV cache (docs/models/serving.md).
//
// An event is an iteration whose composition differs from the one before. Between them all running sequences advance in
// lock step, so a jump over many decode iterations has a closed form, exact because the clock is an integer.
//
// A request may have branches: when its prompt is computed, further sequences over it enter the queue in front. They
// are prompts like others, so what they share is what the prefix cache has: whole blocks of the prompt, held once.
//
// A request whose blocks are in a tier of the cache waits until they are on the device, while others run.
//
// Left out: beam search, grammar and adapter waits, block reuse of generated tokens by other requests.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/core/integers.hpp"
#include "orrery/serving/engine_settings.hpp"
#include "orrery/serving/headroom.hpp"
#include "orrery/serving/left_blocks.hpp"
#include "orrery/serving/paged.hpp"
#include "orrery/serving/prefix_cache.hpp"
#include "orrery/serving/remote_store.hpp"
#include "orrery/serving/request.hpp"
#include "orrery/serving/step_price.hpp"
#include "orrery/serving/waiting_queue.hpp"

namespace orrery::serving {

inline constexpr std::size_t kTiers = 2;  // below the device: host memory, a remote store

// A tier of the prefix cache: what evicted blocks go to.
struct CacheTier {
  std::int64_t tokens = 0;  // that fit, of one engine; 0 where engines share a store
  Ticks token = 0;          // to load the keys and values of a token, one load of a link after the other
  Ticks latency = 0;        // of a request's load; those of several requests overlap
};

// Iterations in which the same number of sequences decode, alone or with parts of prompts. A token-second is a second
// of one of these sequences.
struct DecodeUse {
  double steps = 0, mixed_steps = 0;  // mixed: with parts of prompts
  double contexts = 0;                // sum over iterations of the sum of contexts, new tokens included
  double token_seconds = 0, mixed_token_seconds = 0;
};

// Sums over a run of one engine. Integrals are over time, in seconds.
struct EngineTotals {
  std::int64_t iterations = 0, events = 0;
  std::int64_t generated = 0;  // tokens
  std::int64_t prefilled = 0;  // tokens of prompts that were computed, again ones included
  std::int64_t preemptions = 0;
  std::int64_t peak_blocks = 0;
  std::int64_t cut_branches = 0, cut_tokens = 0;  // branches that no answer waited for, and what they had generated
  double busy_s = 0, prefill_s = 0;               // prefill_s: of iterations with parts of prompts
  double running_integral = 0, block_integral = 0;
  std::array<std::int64_t, kTiers> tier_tokens{};  // loaded from each tier
  std::array<double, kTiers> tier_s{};             // that links were in use for them
  std::int64_t loads = 0;                          // of requests that waited for blocks
  double load_wait_s = 0;                          // sum of these waits
  Headroom headroom;
  std::vector<DecodeUse> decodes;   // [sequences that decode]
  double paused_token_seconds = 0;  // of sequences that decode, while an iteration has prompts only
};

enum class Jumps : std::uint8_t { aggregated, stepped };

// Memory behind sliding windows that is freed: `n` blocks of a sequence's positions take `n + groups * min(n, most)`
// blocks of the cache.
struct WindowShape {
  std::int64_t groups = 0;  // of layers with a window, each of as many layers as a block has; 0: none, or none is freed
  std::int64_t most = 0;    // blocks that a window touches

  // `shared`: blocks of the prefix cache before these `n`, of which the windows count.
  [[nodiscard]] std::int64_t blocks(std::int64_t n, std::int64_t shared = 0) const {
    return n + groups * std::min(n + shared, most);
  }
  // The largest n for which `blocks` suffice.
  [[nodiscard]] std::int64_t largest(std::int64_t blocks) const {
    const std::int64_t inside = blocks / (1 + groups);
    return inside <= most || groups == 0 ? inside : blocks - groups * most;
  }
};

// What an engine consists of, besides its settings.
struct EngineShape {
  std::int64_t blocks = 0;  // of the cache, all ranks together
  WindowShape windows;
  std::int64_t ranks = 1;            // of data-parallel attention: each has a token budget and sequences of its own
  std::int64_t micro_batches = 1;    // in flight, one for each pipeline stage: each has a token budget of its own
  Ticks step_host = 0;               // of an iteration with parts of prompts
  Ticks decode_host = 0;             // of one with single tokens alone, for each that it generates of a sequence
  Ticks prompt_host = 0;             // to tokenise a token of a prompt, before the queue
  std::int64_t tokenizer_batch = 1;  // prompts that are tokenised at the same time
  Ticks token_host = 0;              // of the server for a token, one after the other, while the engine runs on
  std::vector<CacheTier> tiers;      // at most kTiers
  Ticks swap_token = 0;              // to copy the keys and values of a token to the host, or back
  Ticks swap_window_token = 0;       // the same of layers whose windows are freed, besides; swap_token has the others
  Jumps jumps = Jumps::aggregated;
  bool prefill_only = false;  // of a disaggregated pool: a request leaves with its first token
  Ticks transfer_host = 0;    // for each prompt that a rank sends to another engine, before the next iteration
  bool keeps_sent = false;    // the prefix cache has prompts that prefill engines have sent, too
};

// Tokens of the micro-batches that are in flight at a time.
[[nodiscard]] inline std::int64_t token_budget(const EngineSettings& settings, const EngineShape& shape) {
  return settings.max_batched_tokens * shape.ranks * shape.micro_batches;
}

// Of the longest request for which a rank has room.
[[nodiscard]] std::int64_t rank_tokens(const EngineSettings& settings, const EngineShape& shape);

// None: runs with other limits differ, however far away they are.
[[nodiscard]] std::optional<EngineLimits> engine_limits(const EngineSettings& settings, const EngineShape& shape);

// A request from a prefill engine that has a place.
struct Placed {
  std::int64_t request = 0;
  std::int64_t cached = 0;  // leading positions of its prompt that need not be sent
};

class Engine {
 public:
  Engine(const EngineSettings& settings, const EngineShape& shape, StepPrice& price, const Workload& workload,
         std::vector<Outcome>& outcomes);

  // The last tier is a store that engines share. Before the first request.
  void share(RemoteStore& store);

  // Puts a request in the queue. `retrieved`: leading tokens of its prompt whose keys and values come with it from a
  // store; lost if it is preempted. Call wake() when all requests of a moment have arrived.
  void arrive(std::int64_t request, Ticks now, std::int64_t retrieved = 0);
  // Puts a request in the queue whose prompt a prefill engine computes: it waits for a place and blocks, without
  // occupying the engine. When it has both, take_placed() has it.
  void arrive_for_place(std::int64_t request, Ticks now);
  // All of its keys and values have come to its place, and its first token is generated: it joins the next iteration
  // that has a token for it.
  void receive(std::int64_t request);
  void wake(Ticks now);
  // The keys and values of a request that left with its first token are on another engine: its blocks are free. Call
  // wake() then.
  void sent(std::int64_t request, Ticks now);

  // When the iterations in progress end, or where none runs, the first load; kNever if there is neither.
  [[nodiscard]] Ticks next() const { return end_; }
  // Ends them and starts the next ones. The requests that ended are in ended() until the next call.
  void advance();
  [[nodiscard]] const std::vector<std::int64_t>& ended() const { return ended_; }
  // The requests that got a place since the last call.
  [[nodiscard]] std::vector<Placed> take_placed() { return std::exchange(placed_, {}); }

  // Empties the prefix cache and its tiers: the engine was switched off. Requires that no request waits or runs.
  void forget();

  // Blocks of a request at its end; a rank of which the cache has fewer can never run it.
  [[nodiscard]] std::int64_t needed_blocks(const Request& request) const;
  [[nodiscard]] std::int64_t rank_blocks() const { return shape_.blocks / shape_.ranks; }
  [[nodiscard]] std::int64_t rank_tokens() const { return serving::rank_tokens(settings_, shape_); }

  [[nodiscard]] std::int64_t outstanding() const { return running() + waiting() + coming(); }
  // Requests that have a place, and whose keys and values have not come yet.
  [[nodiscard]] std::int64_t coming() const { return std::ssize(coming_); }
  // Requests that have left and whose blocks it holds until they are sent.
  [[nodiscard]] std::int64_t sending() const { return static_cast<std::int64_t>(sending_.size()); }
  // Requests that wait, also for blocks.
  [[nodiscard]] std::int64_t waiting() const {
    return static_cast<std::int64_t>(waiting_.size() + unseen_.size() + loading_.size());
  }
  // How long a request that comes now will wait: requests that wait x the mean time between the latest starts.
  [[nodiscard]] Ticks predicted_wait(Ticks now) const;
  // The same of a request that asks for a place now: of a pool that decodes only.
  [[nodiscard]] Ticks predicted_wait_for_place(Ticks now) const;
  [[nodiscard]] std::int64_t waiting_tokens() const { return waiting_tokens_ + loading_tokens_; }
  [[nodiscard]] std::int64_t used_blocks() const { return used_; }
  // The same at a moment within the iterations in progress: those that end before it have taken their blocks.
  [[nodiscard]] std::int64_t used_blocks_at(Ticks now) const;
  [[nodiscard]] std::int64_t blocks() const { return shape_.blocks; }
  [[nodiscard]] std::int64_t ranks() const { return shape_.ranks; }
  [[nodiscard]] const PrefixCache& prefixes() const { return prefixes_; }
  [[nodiscard]] const EngineTotals& totals() const { return totals_; }

 private:
  struct Waiting {
    std::int64_t request = 0;
    std::int64_t generated = 0;  // tokens before it was preempted
    std::int64_t kept = 0;       // positions whose keys and values are on the host, or come from a prefill engine
    bool comes = false;          // from a prefill engine: its first token counts when it runs
    std::int64_t retrieved = 0;  // leading positions that a store has found
    std::int64_t held = 0;       // leading blocks of the prompt that it holds since they were loaded
  };
  struct Loading {
    Waiting waiting;
    Ticks at = 0;  // when its blocks are on the device
  };
  struct Sequence {
    std::int64_t request = 0;
    std::int64_t target = 0, computed = 0;  // positions to compute before the next token; computed: while in prefill
    std::int64_t generated = 0;
    std::int64_t joined = 0, joined_context = 0;  // decoding: step and positions in the cache when it began
    std::int64_t blocks = 0;                      // of its own
    std::int64_t shared = 0;                      // positions in blocks of the prefix cache
    std::int64_t windowed = 0;  // of these, blocks that no other sequence held: their windows count as its own
    std::uint64_t admission = 0;
    bool alive = false, decodes = false;
    bool is_windowed = false;         // decodes, and its windows still grow
    std::int64_t coming_outputs = 0;  // what it counts in coming_outputs_
  };
  struct Finish {
    std::int64_t step;
    std::uint64_t admission;
    std::uint32_t slot;
    friend bool operator>(const Finish& a, const Finish& b) {
      return a.step != b.step ? a.step > b.step : a.admission > b.admission;
    }
  };
  struct Planned {
    std::uint32_t slot;
    std::int64_t tokens;
  };

  [[nodiscard]] std::int64_t running() const { return decodes_ + static_cast<std::int64_t>(prefilling_.size()); }
  [[nodiscard]] std::int64_t available() const { return shape_.blocks - used_; }
  [[nodiscard]] std::int64_t most_running() const { return settings_.max_sequences * shape_.ranks; }
  // For `tokens` positions of a sequence's own, behind `windowed` blocks of the prefix cache whose windows it holds.
  [[nodiscard]] std::int64_t blocks_of(std::int64_t tokens, std::int64_t windowed = 0) const {
    const std::int64_t own = tokens <= 0 ? 0 : ceil_div(tokens, settings_.block_tokens);
    return shape_.windows.blocks(own, windowed);
  }
  [[nodiscard]] Ticks swap_time(std::int64_t positions) const;
  [[nodiscard]] std::int64_t context_of(const Sequence& s) const { return s.joined_context + step_ - s.joined; }
  [[nodiscard]] std::int64_t phase_of(const Sequence& s) const;
  [[nodiscard]] std::int64_t generated_by(const Sequence& s) const {
    return s.decodes ? s.generated + step_ - s.joined : s.generated;
  }
  // Tokens that a request generates here.
  [[nodiscard]] std::int64_t outputs_of(const Request& request) const {
    return shape_.prefill_only ? 1 : request.output;
  }
  // Blocks of its whole prompt and of these.
  [[nodiscard]] std::int64_t whole_blocks(const Request& request) const;
  // Decode steps from when it began to its last token.
  [[nodiscard]] std::int64_t outputs_left(const Sequence& s) const {
    return workload_.requests[static_cast<std::size_t>(s.request)].output - s.generated;
  }
  // Blocks that decoding sequences need in the decode step `step`.
  [[nodiscard]] std::int64_t growing(std::int64_t step) const;
  // Of as many decode steps as a block has tokens.
  [[nodiscard]] std::int64_t cycle_blocks() const { return decodes_ + shape_.windows.groups * windowed_; }
  [[nodiscard]] std::int64_t window_tokens() const { return shape_.windows.most * settings_.block_tokens; }
  // Positions of its own and of `windowed` blocks before them.
  [[nodiscard]] std::int64_t window_positions_of(const Sequence& s) const {
    return context_of(s) - s.shared + s.windowed * settings_.block_tokens;
  }
  void begin_window(std::uint32_t slot);
  void end_windows();
  [[nodiscard]] bool is_here(std::uint32_t slot, std::uint64_t admission) const {
    return slots_[slot].alive && slots_[slot].admission == admission;
  }

  [[nodiscard]] std::int64_t tokens_of(const Waiting& waiting) const {
    const std::int64_t prompt = workload_.requests[static_cast<std::size_t>(waiting.request)].input;
    return prompt + waiting.generated - std::max(waiting.kept, waiting.retrieved);
  }
  void enter(const Waiting& waiting);
  [[nodiscard]] Ticks arrival_of(std::int64_t sequence) const {
    return workload_.requests[static_cast<std::size_t>(workload_.request_of(sequence))].arrival;
  }
  void take_blocks(std::int64_t count);
  void note_blocks(Ticks now);
  // Whole blocks of the prefix cache that end between two positions of its prompt.
  [[nodiscard]] std::span<const std::uint32_t> shared_blocks(const Sequence& sequence, std::int64_t from,
                                                             std::int64_t to) const;
  void note_tokens(std::int64_t without_memory = 0);
  // Idle blocks of the request's own that it finds again after a preemption: not overwritten since, and whole.
  [[nodiscard]] std::int64_t left_blocks(const Waiting& waiting, std::int64_t shared) const;
  // engine_admission.cpp
  struct Offer {
    std::int64_t units = 0, hit_tokens = 0;  // shareable blocks of the prompt; positions that are cached
    std::int64_t hits = 0;                   // of `units`: leading blocks that are cached
    std::int64_t tokens = 0;                 // to compute in this iteration
    std::int64_t own_blocks = 0, new_shared = 0;
    std::int64_t left = 0;  // of own_blocks: those of before a preemption
  };
  [[nodiscard]] Offer offer_of(const Waiting& waiting, std::int64_t budget) const;
  [[nodiscard]] std::int64_t hits_of(const Waiting& waiting, std::span<const std::uint32_t> blocks) const;
  [[nodiscard]] std::int64_t found_blocks(const Request& request, const Offer& offer);
  [[nodiscard]] bool fits(const Waiting& waiting, const Offer& offer);
  // Blocks that stay free if the request is admitted; negative: it does not fit.
  [[nodiscard]] std::int64_t free_after(const Waiting& waiting, const Offer& offer) const;
  void leaves_free(std::int64_t blocks) { totals_.headroom.least_free = std::min(totals_.headroom.least_free, blocks); }
  [[nodiscard]] std::int64_t free_positions() const;
  void place(const Waiting& waiting, const Offer& offer, Ticks now);
  std::uint32_t take_place(const Waiting& waiting, const Offer& offer);
  void admit(const Waiting& waiting, const Offer& offer, Ticks now);
  void admit_waiting(std::int64_t budget, Ticks now);
  [[nodiscard]] bool admit_head(std::int64_t& budget, Ticks now);
  [[nodiscard]] std::int64_t join_received(std::int64_t budget, Ticks now);
  void forget_coming(Sequence& sequence);
  [[nodiscard]] bool has_place(const Waiting& waiting) const;
  // Decode steps that prompts still wait for others, by balance_wait and batch_wait.
  [[nodiscard]] std::int64_t steps_to_wait();
  struct Continued {
    std::int64_t budget = 0;  // that is left
    bool preempted = false;   // some had to leave
  };
  [[nodiscard]] Continued continue_prompts(std::int64_t budget);
  [[nodiscard]] std::int64_t planned_tokens(std::uint32_t slot) const;
  bool make_room_for_decodes();
  void preempt_last();
  void queue(const Waiting& waiting, bool front);
  // Takes the requests that have arrived since the last look into the queue, where it is time to look.
  void look(bool at_once);
  // Decode steps from now to the next look.
  [[nodiscard]] std::int64_t to_next_look(std::int64_t steps) const;

  // engine_loads.cpp
  [[nodiscard]] bool begin_load(const Waiting& head, const Offer& offer, Ticks now);
  [[nodiscard]] Ticks loaded_at(std::span<const std::uint32_t> blocks, Ticks now);
  void finish_loads(Ticks now);
  [[nodiscard]] std::int64_t hits_of_holder(std::span<const std::uint32_t> blocks, std::int64_t held) const;
  void release_hold(Waiting& waiting);
  bool drop_holder(std::size_t kept);

  void plan(Ticks now);
  void plan_static(Ticks now);
  void start_mixed(Ticks now, bool with_decodes);
  void start_decodes(Ticks now, bool once);
  [[nodiscard]] std::int64_t steps_on_clock(std::int64_t most) const;
  [[nodiscard]] std::int64_t steps_without_shortage(std::int64_t most) const;
  // Decode steps of the jump in progress to the first end of an iteration that is not before `now`.
  [[nodiscard]] std::int64_t steps_until(Ticks now) const;
  void shorten(Ticks now);
  // Blocks that the next `steps` decode steps take.
  [[nodiscard]] std::int64_t grown_blocks(std::int64_t steps) const;
  void commit_decodes(std::int64_t steps);
  void note_decodes(double time);
  // Whether the iterations in progress compute parts of prompts, and not only tokens of requests that join.
  [[nodiscard]] bool has_prompts() const { return work_ == Work::mixed && joining_ < std::ssize(planned_); }
  void stream(std::int64_t steps, std::int64_t tokens);
  void finish_chunks();
  void join(std::uint32_t slot);
  void leave(std::uint32_t slot);
  void stop_decoding(Sequence& sequence);
  // engine_branches.cpp
  void queue_branches();
  void end_branch(std::int64_t sequence);
  void cut_branches();
  void cut_running(std::uint32_t slot);
  void cut_waiting(Waiting& waiting);
  // Its own blocks, which are free then.
  std::int64_t release(Sequence& sequence);
  std::uint32_t new_slot();
  std::uint32_t last_admitted();

  const EngineSettings& settings_;
  EngineShape shape_;
  StepPrice& price_;
  const Workload& workload_;
  std::vector<Outcome>& outcomes_;

  WaitingQueue<Waiting> waiting_;
  std::vector<Waiting> unseen_;    // arrived since the last look
  std::int64_t poll_ = 1;          // steps between looks
  std::int64_t looked_ = 0;        // step of a look
  bool joins_ = false;             // requests have come that need no look
  std::int64_t waits_since_ = -1;  // step since which the queue could be admitted; -1: it is empty, or none fit
  std::int64_t wait_left_ = 0;     // steps_to_wait() when the iterations in progress were formed
  std::vector<Sequence> slots_;
  struct Admitted {
    std::uint32_t slot;
    std::uint64_t admission;
  };
  std::vector<std::uint32_t> free_slots_;
  std::vector<Admitted> admitted_;                          // in order, with ones that have left between
  std::vector<std::uint32_t> prefilling_;                   // in the order of admission
  std::unordered_map<std::int64_t, std::uint32_t> coming_;  // request: its slot
  std::vector<std::uint32_t> received_;                     // slots that join the next iteration
  std::vector<Placed> placed_;
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> finishes_;
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> window_ends_;  // from which windows do not grow
  std::vector<std::int64_t> phases_;  // [block_tokens]: blocks that decode steps need, by the step, modulo
  PrefixCache prefixes_;
  LeftBlocks left_;
  RemoteStore* store_ = nullptr;
  std::vector<Loading> loading_;           // in the order of their ends
  std::int64_t loading_tokens_ = 0;        // of these prompts
  std::int64_t holders_ = 0;               // requests in the queue that hold loaded blocks
  std::vector<std::vector<Ticks>> links_;  // [tier][rank]: when it is free
  Paged<Ticks> arrives_;                   // [block id]: when a load brings it; with tiers only
  std::vector<bool> is_end_;               // [block id]: a prompt that was computed ends in this partial block
  std::int64_t unit_blocks_ = 1;           // engine blocks of a block of the prefix cache

  std::int64_t step_ = 0;      // decode steps so far
  std::int64_t decodes_ = 0;   // sequences that decode (in a static batch: that began)
  std::int64_t contexts_ = 0;  // sum of their positions in the cache
  std::int64_t shared_ = 0;    // of these, in blocks of the prefix cache
  // Decoding sequences whose windows still grow, and their positions; those whose windows do not.
  std::int64_t windowed_ = 0, window_positions_ = 0, past_windows_ = 0;
  std::int64_t used_ = 0;            // blocks that running sequences hold, and requests that load
  std::int64_t committed_ = 0;       // blocks of prompts and outputs of these
  std::int64_t coming_blocks_ = 0;   // of sequences that come
  std::int64_t coming_outputs_ = 0;  // tokens that these will generate, and those that have just come
  std::int64_t ungenerated_ = 0;     // sum of the finishing steps of decoding sequences
  std::int64_t waiting_tokens_ = 0;
  std::int64_t static_alive_ = 0;
  std::uint64_t admissions_ = 0, forgotten_ = 0;  // forgotten_: of these, before the last forget()
  Ticks swaps_ = 0;                               // copies before the next iteration

  static constexpr std::size_t kStarts = 16;
  // Of requests, the latest ones in turn: starts in time of iterations, or places in time in which some asked for one.
  std::array<Ticks, kStarts> starts_{};
  Ticks asked_ = 0, asked_since_ = 0;
  Ticks busy_ = 0;   // iterations that have ended
  Ticks noted_ = 0;  // up to which block_integral counts
  std::size_t started_ = 0;

  // Iterations in progress.
  enum class Work : std::uint8_t { none, decode, mixed };
  Work work_ = Work::none;
  bool with_decodes_ = false;
  bool blocked_ = false;  // no request can be admitted before one ends
  bool settled_ = false;  // the same, and nothing has changed since
  Ticks start_ = 0, end_ = kNever;
  std::int64_t steps_ = 0, sampling_ = 0;           // sampling_: tokens of a mixed iteration
  std::int64_t joining_ = 0, joined_contexts_ = 0;  // of requests that join it; their positions, new tokens included
  Ticks streamed_ = 0;                              // when the server has sent all tokens so far
  DecodeLine line_;
  std::vector<Planned> planned_;
  std::vector<Chunk> chunks_;
  std::unordered_map<std::int64_t, std::uint32_t> sending_;  // [request]: slot, which runs no more
  std::int64_t sending_blocks_ = 0;                          // of their own
  std::vector<std::int64_t> ended_;
  std::vector<std::int64_t> forking_;         // requests with branches whose prompt was computed in this iteration
  std::vector<std::int64_t> joined_;          // requests of which branches are to be cut
  std::vector<std::int32_t> branches_ended_;  // [request]; empty: no branches
  EngineTotals totals_;
};

}  // namespace orrery::serving
