#include "orrery/parallel/pair_order.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "orrery/parallel/pair_steps.hpp"

namespace orrery::parallel {

namespace {

using StepKind = PairStep::Kind;

// Which half is next after a stride.
enum class Turn : std::uint8_t {
  alternate,    // the other one
  even_shares,  // the other one, if it has run no larger share of its strides
  sequence,     // the same one, to its end
};

struct Rule {
  Turn turn = Turn::alternate;
  std::uint8_t first = 0;  // half
  std::size_t lead = 0;    // how many more strides the first half runs before the other one begins
};

// Each of them is the best one of some pairs of random jobs.
constexpr std::array kRules = {Rule{Turn::alternate, 1, 0}, Rule{Turn::even_shares, 1, 0}, Rule{Turn::alternate, 0, 0},
                               Rule{Turn::alternate, 1, 2}, Rule{Turn::alternate, 0, 2},   Rule{Turn::sequence, 1, 0}};

// What sums of the same times in another order may differ by.
constexpr double kRounding = 1.0 - 1e-12;

// How far a half is.
struct Half {
  const HalfSteps* list = nullptr;
  std::size_t strides = 0, steps = 0;   // that have run
  Seconds ready = {};                   // when its next item may start
  Seconds stream = {};                  // end of the last collective of its blocks
  Seconds arrived = {}, launched = {};  // weights of the next execution; launches of the block
  Seconds latest = {};                  // end of the latest asynchronous collective
  std::vector<Seconds> ends = {};       // of the asynchronous collectives of its block, by item

  [[nodiscard]] bool has_ended() const { return strides == list->strides.size(); }
};

// Plays the strides of two halves in the order of a rule, which does not depend on times.
class PairPlay {
 public:
  PairPlay(const PairSteps& all, const std::array<HalfSteps, 2>& lists) : all_(all) {
    for (std::size_t i = 0; i < 2; ++i) {
      halves_[i].list = &lists[i];
      halves_[i].ends.resize(lists[i].most_items);
    }
  }

  // The time of the pair. Nothing if it cannot end before `limit`. `order`, if given: the half of every step.
  std::optional<Seconds> run(const Rule& rule, Seconds limit, std::vector<std::uint8_t>* order = nullptr) {
    restart();
    std::uint8_t turn = rule.first;
    while (!halves_[0].has_ended() || !halves_[1].has_ended()) {
      if (halves_[turn].has_ended()) { turn = 1 - turn; }
      Half& half = halves_[turn];
      const PairStride& stride = half.list->strides[half.strides++];
      for (; half.steps < stride.end; ++half.steps) { run(half, half.list->steps[half.steps]); }
      if (kernel_ + left_ > limit * kRounding) { return std::nullopt; }
      if (order != nullptr) { order->insert(order->end(), stride.steps, turn); }
      if (changes(rule, turn)) { turn = 1 - turn; }
    }
    return max(halves_[0].ready, halves_[1].ready);
  }

 private:
  void restart() {
    for (Half& half : halves_) {
      half.strides = half.steps = 0;
      half.ready = half.stream = half.arrived = half.launched = half.latest = Seconds(0);
    }
    kernel_ = host_ = collective_ = overlapped_ = Seconds(0);
    left_ = halves_[0].list->kernels + halves_[1].list->kernels;
  }

  [[nodiscard]] bool changes(const Rule& rule, std::uint8_t turn) const {
    const Half &mine = halves_[turn], &other = halves_[1 - turn];
    if (turn == rule.first && mine.strides <= rule.lead) { return false; }
    switch (rule.turn) {
      case Turn::alternate: return true;
      case Turn::even_shares:
        return mine.strides * other.list->strides.size() >= other.strides * mine.list->strides.size();
      case Turn::sequence: return false;
    }
    return false;
  }

  void run(Half& half, const PairStep& step) {
    if (step.awaits_call) { half.ready = max(half.ready, half.ends[step.awaited]); }
    if (step.awaits_gather) { half.ready = max(half.ready, half.arrived); }
    if (step.awaits_overlapped) { half.ready = max(half.ready, overlapped_); }
    switch (step.kind) {
      case StepKind::begin: return begin(half, step);
      case StepKind::kernel:
        half.ready = kernel_ = max(half.ready, kernel_) + step.time;
        left_ -= step.time;
        return;
      case StepKind::call: return call(half, step);
      case StepKind::end: return end(half, step);
      case StepKind::wait: return;
    }
  }

  void begin(Half& half, const PairStep& step) {
    issue_gather(half, step);
    if (step.time > Seconds(0)) { host_ = half.launched = max(host_, half.ready) + step.time; }
  }

  void end(Half& half, const PairStep& step) {
    if (step.awaits_block) { half.ready = max(max(half.ready, half.latest), half.launched); }
    if (step.blocks_overlapped) { overlapped_ = half.ready; }
    issue_gather(half, step);
    if (!step.reduce.empty()) { overlap(step.reduce, half.ready); }
  }

  void call(Half& half, const PairStep& step) {
    const Seconds start = max(max(half.ready, half.stream), step.occupies_compute ? kernel_ : Seconds(0));
    const Seconds end = exchange(step.on_host_link, start, step.time);
    if (step.occupies_compute) { kernel_ = end; }
    half.stream = end;
    if (!step.asynchronous) {
      half.ready = end;
      return;
    }
    half.ends[step.number] = end;
    half.latest = max(half.latest, end);
  }

  void issue_gather(Half& half, const PairStep& step) {
    if (step.gather.empty()) { return; }
    overlap(step.gather, half.ready);
    half.arrived = overlapped_;
  }

  // Calls of a gather or a reduction, which start behind `start`.
  void overlap(OverlappedCalls range, Seconds start) {
    Seconds end = max(overlapped_, start);
    for (const auto& [time, on_host_link] : all_.calls(range)) {
      end = overlapped_ = exchange(on_host_link, end, time);
    }
  }

  // The end of a call that could start at `start`.
  Seconds exchange(bool on_host_link, Seconds start, Seconds time) {
    if (on_host_link) { return start + time; }
    return collective_ = max(collective_, start) + time;
  }

  const PairSteps& all_;
  std::array<Half, 2> halves_;
  // When each shared stream is free: compute, launches, collectives; gathers, reductions and transfers of the second
  // tier.
  Seconds kernel_, host_, collective_, overlapped_;
  Seconds left_;  // time of the kernels that have not run
};

// The fastest order; its halves only if they are asked for.
PairOrder fastest(const Program& program, ItemTimes& times, const ChunkProgram& forward, const ChunkProgram& backward,
                  bool with_halves) {
  PairSteps all(program, times);
  const std::array first{SegmentRun{&forward.forward, forward.waits_for_store}};
  std::vector<SegmentRun> second{{&backward.backward, backward.weight.empty() && backward.waits_for_reduce}};
  if (!backward.weight.empty()) { second.push_back({&backward.weight, backward.waits_for_reduce}); }
  const std::array lists{all.of(first), all.of(second)};
  PairPlay play(all, lists);
  PairOrder best;
  best.time = infinite<Seconds>();
  const Rule* found = kRules.data();
  for (const Rule& rule : kRules) {
    const auto time = play.run(rule, best.time);
    if (!time || *time >= best.time) { continue; }
    best.time = *time;
    found = &rule;
  }
  if (with_halves) { (void)play.run(*found, infinite<Seconds>(), &best.halves); }
  return best;
}

// Of every pair that a stage runs: [pair_index()].
std::vector<PairOrder> all_pairs(const Program& program, ItemTimes& times, bool with_halves) {
  std::vector<PairOrder> orders;
  if (!has_pairs(program.pipeline)) { return orders; }
  orders.resize(program.chunks.size() * program.chunks.size());
  for (std::int64_t stage = 0; stage < program.plan.pp; ++stage) {
    const auto& chunks = program.class_of(stage).chunks;
    for (const auto& [chunk, paired_chunk] : paired_chunks(program.pipeline, stage)) {
      const ChunkProgramId forward = chunks[chunk].program, backward = chunks[paired_chunk].program;
      PairOrder& order = orders[pair_index(program, forward, backward)];
      if (order.time > Seconds(0)) { continue; }
      order = fastest(program, times, program.chunks[forward], program.chunks[backward], with_halves);
    }
  }
  return orders;
}

}  // namespace

PairOrder pair_order(const Program& program, ItemTimes& times, const ChunkProgram& forward,
                     const ChunkProgram& backward) {
  return fastest(program, times, forward, backward, true);
}

std::vector<PairOrder> pair_orders(const Program& program, ItemTimes& times) { return all_pairs(program, times, true); }

std::vector<Seconds> pair_times(const Program& program, ItemTimes& times) {
  std::vector<Seconds> found;
  for (const PairOrder& order : all_pairs(program, times, false)) { found.push_back(order.time); }
  return found;
}

}  // namespace orrery::parallel
