#include "orrery/estimate/step.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pair_order.hpp"

namespace orrery::estimate {

using parallel::ChunkProgram;
using parallel::Program;
using parallel::Ticks;

namespace {

// A tick is a picosecond. If the serial time of all stages is more than 10^18 picoseconds (eleven days; 64 bits hold
// nine times as much), a tick is 10^3, 10^6, … picoseconds. Durations are rounded up, so that a step never ends before
// its work can: Estimator::step_time_bound relies on this.
class Clock {
 public:
  explicit Clock(Seconds longest) {
    constexpr double kMostTicks = 1e18;
    while (longest.value() * ticks_per_second_ > kMostTicks) { ticks_per_second_ /= 1e3; }
  }
  [[nodiscard]] Ticks ticks(Seconds time) const {
    ORRERY_ASSERT(time >= Seconds(0) && is_finite(time));
    return static_cast<Ticks>(std::ceil(time.value() * ticks_per_second_));
  }
  [[nodiscard]] Seconds seconds(Ticks ticks) const { return Seconds(static_cast<double>(ticks) / ticks_per_second_); }

 private:
  double ticks_per_second_ = 1e12;
};

}  // namespace

// Solves one program with the buffers of a solver.
class StepSolution {
 public:
  StepSolution(const Program& program, StepSolver& solver)
      : program_(program),
        solver_(solver),
        step_(solver.step_),
        chunks_(static_cast<std::size_t>(program.pipeline.chunks)) {}

  void run(WorkPrice* known, Explained explained, Ports ports) {
    known_ = known;
    price_blocks();
    find_first_gathers();
    solver_.ports_.clear();
    if (ports == Ports::shared) { solver_.ports_.find(program_, step_.blocks, solver_.first_gathers_, known_); }
    price_chunks();
    price_pairs();
    step_.input_gather = price_input_gather(program_, solver_.fabric_);
    set_times();
    pipeline_ = &solver_.pipeline_.solve(program_.pipeline, times());
    find_critical_stage();
    step_.finish = finish_time();
    step_.time = step_.ready + step_.finish + solver_.stack_.host.step_overhead;
    if (explained == Explained::yes) {
      find_busiest_stage();
      solve_variants();
    }
  }

 private:
  void price_blocks() {
    if (known_ != nullptr) {
      step_.blocks.assign(known_->blocks.begin(), known_->blocks.end());
    } else {
      step_.blocks.clear();
    }
    for (std::size_t i = step_.blocks.size(); i < program_.blocks.size(); ++i) {
      step_.blocks.push_back(
          price_block(program_.block(parallel::BlockId(i)), solver_.fabric_, program_.mesh, &solver_.prices_));
    }
  }

  void find_first_gathers() {
    solver_.first_gathers_.clear();
    for (const auto& chunk : program_.chunks) {
      solver_.first_gathers_.push_back(estimate::first_gathers(chunk, step_.blocks));
    }
  }

  [[nodiscard]] Concurrency concurrency() const {
    return {solver_.stack_.overlap.interference, solver_.ports_.ports()};
  }

  void price_chunks() {
    step_.chunks.clear();
    for (const auto& chunk : program_.chunks) {
      step_.chunks.push_back(price_chunk(chunk, step_.blocks, concurrency()));
    }
    price_last_backwards();
    step_.finishes.clear();
    for (const auto& rank_class : program_.classes) {
      step_.finishes.push_back(segment_work(rank_class.finish, step_.blocks));
    }
  }

  // Under DualPipe the loss of last backwards counts at the end of the pipeline: gradients_ready().
  void price_last_backwards() {
    const Concurrency effects = is_dualpipe() ? Concurrency{} : concurrency();
    for (std::size_t i = 0; i < program_.chunks.size(); ++i) {
      const parallel::ChunkProgramId id(i);
      const ChunkProgram& chunk = program_.chunks[id];
      if (chunk.waits_for_reduce) { continue; }
      step_.chunks[i].reductions = segment_reductions(chunk.last_backward, step_.blocks);
      const bool all_later = program_.aligned_reductions && (chunks_ > 1 || place(0, 0).program != id);
      if (!all_later) { price_last_backward(step_.chunks[i], chunk, step_.blocks, effects); }
    }
  }

  void price_pairs() {
    step_.pairs.clear();
    if (!has_pairs()) { return; }
    parallel::ItemTimes times(program_, solver_.fabric_, solver_.prices_);
    const auto pairs = parallel::pair_times(program_, times);
    for (std::size_t f = 0; f < program_.chunks.size(); ++f) {
      for (std::size_t b = 0; b < program_.chunks.size(); ++b) {
        const parallel::ChunkProgramId forward(f), backward(b);
        const Seconds time = pairs[parallel::pair_index(program_, forward, backward)];
        step_.pairs.push_back(time > Seconds(0) ? price_pair(time, forward, backward) : PairCost{});
      }
    }
  }

  // What slows a half that is alone (Concurrency) slows the pair as much.
  [[nodiscard]] PairCost price_pair(Seconds alone, parallel::ChunkProgramId forward,
                                    parallel::ChunkProgramId backward) const {
    const auto price = [&](parallel::ChunkProgramId id) { return price_chunk(program_.chunks[id], step_.blocks, {}); };
    const Seconds apart =
        step_.chunks[forward.index()].forward_time() + step_.chunks[backward.index()].whole_backward();
    Seconds lost;
    if (concurrency().interference > 0.0 || concurrency().ports != nullptr) {
      lost = max(Seconds(0), apart - (price(forward).forward_time() + price(backward).whole_backward()));
    }
    const Seconds time = lost + alone;
    return {time, apart - time};
  }

  // All ranks wait for each other in the all-reduce over all ranks (the gradient norm), and at the end.
  [[nodiscard]] Seconds finish_time() const {
    Seconds before, after;  // that all-reduce
    for (const auto& rank_class : program_.classes) {
      Seconds first, second;
      for (const auto& use : rank_class.finish) {
        second += static_cast<double>(use.repeat) * step_.blocks[use.work.index()].time;
        if (!has_world_collective(use)) { continue; }
        first += second;
        second = Seconds(0);
      }
      before = max(before, first);
      after = max(after, second);
    }
    return before + after;
  }

  [[nodiscard]] bool has_world_collective(const parallel::BlockUse& use) const {
    const auto& items = program_.block(use.work).items;
    return std::any_of(items.begin(), items.end(), [](const auto& item) {
      return item.collective() != nullptr && item.collective()->call.group == parallel::GroupKind::world;
    });
  }

  [[nodiscard]] Seconds transfer_time(std::size_t stage) const {
    if (program_.plan.pp == 1) { return Seconds(0); }
    return price_hop(program_, solver_.fabric_, program_.mesh.transfer_dimension[stage]);
  }

  // An upper limit of the step time: every task and transfer one after another.
  [[nodiscard]] Seconds serial_time() const {
    Seconds sum;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      for (std::size_t c = 0; c < chunks_; ++c) {
        const ChunkCost& chunk = chunk_cost(stage, c);
        sum += chunk.forward_time() + chunk.whole_backward() + chunk.last_extra +
               2.0 * (solver_.transfers_[stage] + step_.input_gather);
        sum += longest_pair(stage, c);
      }
    }
    return static_cast<double>(program_.pipeline.micro_batches) * sum;
  }

  void set_times() {
    set_first_forward_ends();
    solver_.transfers_.clear();
    for (std::size_t stage = 0; stage < stages(); ++stage) { solver_.transfers_.push_back(transfer_time(stage)); }
    Seconds latest;
    for (const Seconds end : solver_.first_ends_) { latest = max(latest, end); }
    clock_ = Clock(serial_time() + latest);
    for (auto* list : {&forward_, &backward_, &weight_, &pair_, &transfer_, &first_end_, &last_extra_}) {
      list->clear();
    }
    bool has_extra = false;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      for (std::size_t c = 0; c < chunks_; ++c) {
        const ChunkCost& chunk = chunk_cost(stage, c);
        forward_.push_back(clock_.ticks(activation_gather(stage, c) + chunk.forward_time()));
        backward_.push_back(clock_.ticks(gradient_gather(stage, c) + chunk.backward_time()));
        if (splits()) { weight_.push_back(clock_.ticks(chunk.weight_time())); }
        for (std::size_t other = 0; has_pairs() && other < chunks_; ++other) {
          const Seconds gathers = activation_gather(stage, c) + gradient_gather(stage, other);
          pair_.push_back(clock_.ticks(gathers + pair_of(stage, c, other).time));
        }
        last_extra_.push_back(clock_.ticks(last_extra(stage, c)));
        has_extra = has_extra || last_extra_.back() > 0;
      }
      transfer_.push_back(clock_.ticks(solver_.transfers_[stage]));
    }
    for (const Seconds end : solver_.first_ends_) { first_end_.push_back(clock_.ticks(end)); }
    if (!has_extra) { last_extra_.clear(); }
  }

  // The earliest end of every chunk's first forward when updated weights are gathered during it. All gathers of a stage
  // are issued when the step starts. Empty when there are none; chunks that gather weights in every forward are not
  // affected.
  void set_first_forward_ends() {
    auto& ends = solver_.first_ends_;
    ends.assign(stages() * chunks_, Seconds(0));
    bool any = false;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      Seconds stream;
      for (std::size_t c = 0; c < chunks_; ++c) {
        const ChunkProgram& chunk = chunk_program(stage, c);
        if (!first_gathers(stage, c).updated) { continue; }
        const Seconds end = earliest_end(chunk.first_forward, step_.blocks, stream);
        ends[stage * chunks_ + c] = max(Seconds(0), end);
        any = true;
      }
    }
    if (!any) { ends.clear(); }
  }

  // The end of the critical stage's pipeline if transfers, or the first gathers, were free.
  void solve_variants() {
    const auto stage = static_cast<std::size_t>(step_.critical_stage);
    const auto end = [&](const parallel::PipelineTimes& times) {
      return clock_.seconds(solver_.pipeline_.solve(program_.pipeline, times).stage_end[stage]);
    };
    const std::vector<Ticks> free(transfer_.size(), 0);
    parallel::PipelineTimes without_transfers = times(), without_first_gathers = times();
    without_transfers.transfer = free;
    without_first_gathers.first_forward_end = {};
    step_.without_transfers = end(without_transfers);
    step_.without_first_gathers = first_end_.empty() ? step_.pipeline_end : end(without_first_gathers);
  }

  // Chunks of a stage in the order in which their gradients are complete: the last chunk of the model first; under
  // DualPipe, whichever end finishes first.
  [[nodiscard]] const std::vector<std::size_t>& chunks_by_gradient_completion(std::size_t stage) const {
    std::vector<std::size_t>& order = completion_order_;
    order.resize(chunks_);
    for (std::size_t c = 0; c < chunks_; ++c) { order[c] = chunks_ - 1 - c; }
    const auto* starts = &pipeline_->last_backward_start[stage * chunks_];
    if (is_dualpipe() && starts[0] < starts[1]) { std::swap(order[0], order[1]); }
    return order;
  }

  // Time of gathers of updated weights that overlaps with the first forwards of a stage if these run without a pause.
  [[nodiscard]] Seconds overlapped_gathers(std::size_t stage) const {
    if (solver_.first_ends_.empty()) { return Seconds(0); }
    const double group = forwards_in_a_row();
    Seconds gathers, before, wait;
    for (std::size_t c = 0; c < chunks_; ++c) {
      const auto& first = first_gathers(stage, c);
      const Seconds forward = activation_gather(stage, c) + chunk_cost(stage, c).forward_time();
      if (!first.later) {
        gathers += first.time;
        wait = max(wait, solver_.first_ends_[stage * chunks_ + c] - (before + forward));
      }
      before += group * forward;
    }
    return max(Seconds(0), gathers - wait);
  }

  // Whether a stage issues reductions after its last backwards (ChunkProgram::last_backward).
  [[nodiscard]] bool reduces_later(std::size_t stage) const {
    return program_.aligned_reductions && (chunks_ > 1 || stage > 0);
  }

  [[nodiscard]] Seconds last_extra(std::size_t stage, std::size_t c) const {
    return reduces_later(stage) ? Seconds(0) : chunk_cost(stage, c).last_extra;
  }

  // What gathers or reductions that run concurrently with tasks of a stage do to them, and how much of the calls is
  // left when the tasks have ended.
  struct Contention {
    Seconds longer, left;
  };
  // The last answer: most stages of a class have the same.
  struct LastRates {
    const PortMeeting* meeting = nullptr;
    Seconds busy;
    Sharing rates;
  };
  [[nodiscard]] Sharing rates_of(const PortMeeting& meeting, LastRates& last, Seconds busy) const {
    if ((meeting.tasks.used & meeting.concurrent.used) == 0) { return {}; }
    if (last.meeting != &meeting || last.busy != busy) {
      PortUses tasks = meeting.tasks;
      const Seconds stalls = max(Seconds(0), busy - tasks.time);  // of tasks that wait for gathered weights
      add_pause(tasks, stalls, solver_.ports_.dimensions());
      last = {&meeting, busy, sharing(tasks, meeting.concurrent)};
    }
    return last.rates;
  }

  // `busy`: time of the tasks. `calls`: time of the gathers or reductions, of which `overlapped` beside the tasks if
  // ports are not shared.
  [[nodiscard]] Contention contention(const PortMeeting& meeting, LastRates& last, Seconds busy, Seconds calls,
                                      Seconds overlapped) const {
    const Sharing rates = rates_of(meeting, last, busy);
    const double progress = std::max(rates.progress, 1e-3);
    const Seconds together = min(busy, progress < 1.0 ? overlapped / progress : min(overlapped, calls / progress));
    return {rates.longer * together, max(Seconds(0), calls - progress * together)};
  }

  // `overlapped`: time of the reductions before the stage ends if ports are not shared; `window`: from their start
  // until then. An interleaved schedule ends with the last group of pp backwards of every chunk, and the first chunk's
  // reductions start at the last of its group. While the stage waits for others, reductions have the ports alone.
  [[nodiscard]] Contention reduction_contention(std::size_t stage, Seconds reductions, Seconds overlapped,
                                                Seconds window) const {
    if (!solver_.ports_.any() || !(overlapped > Seconds(0)) || !(window > Seconds(0))) { return {}; }
    const double in_a_row = is_dualpipe() ? 1.0 : static_cast<double>(program_.plan.pp);
    Seconds tasks;
    for (std::size_t c = 0; c < chunks_; ++c) {
      tasks += (c + 1 == chunks_ ? 1.0 : in_a_row) * chunk_cost(stage, c).whole_backward();
    }
    if (is_dualpipe()) { tasks = max(tasks, window); }
    const Seconds waiting = std::max(0.0, 1.0 - tasks / window) * overlapped;
    return contention(solver_.ports_.reductions(class_of(stage), in_a_row), reduction_rates_, min(window, tasks),
                      reductions - waiting, overlapped - waiting);
  }

  // `overlapped`: overlapped_gathers().
  [[nodiscard]] Contention gather_contention(std::size_t stage, Seconds overlapped) const {
    if (!solver_.ports_.any() || !(overlapped > Seconds(0))) { return {}; }
    const double in_a_row = forwards_in_a_row();
    Seconds tasks;
    for (std::size_t c = 0; c < chunks_; ++c) {
      tasks +=
          (c + 1 == chunks_ ? 1.0 : in_a_row) * (activation_gather(stage, c) + chunk_cost(stage, c).forward_time());
    }
    return contention(solver_.ports_.gathers(class_of(stage), in_a_row), gather_rates_, tasks, overlapped, overlapped);
  }

  // Interleaved schedules send micro-batches through a chunk in groups of pp.
  [[nodiscard]] double forwards_in_a_row() const {
    const bool in_groups = program_.pipeline.schedule == parallel::ScheduleKind::interleaved;
    return in_groups ? static_cast<double>(program_.plan.pp) : 1.0;
  }

  // When all gradients of a stage are synchronised, counted from the pipeline's start. Gathers of the first forwards
  // slow the compute that they overlap with, and reductions that run longer than their chunk's last backward slow later
  // tasks of the stage; these losses are added at the end of the pipeline.
  [[nodiscard]] Seconds gradients_ready(std::size_t stage) const {
    const auto& rank_class = program_.classes[class_of(stage)];
    const Seconds end = clock_.seconds(pipeline_->stage_end[stage]);
    Seconds stream, reduced;  // end and duration of data-parallel reductions
    Seconds slowed, shared;   // by them, in last backwards: by interference, and by shared ports
    Seconds first = end;      // start of the first reductions
    for (const std::size_t c : chunks_by_gradient_completion(stage)) {
      const auto& chunk = chunk_program(stage, c);
      if (chunk.waits_for_reduce) { continue; }
      const ChunkCost& cost = chunk_cost(stage, c);
      reduced += cost.reductions;
      if (reduces_later(stage)) {
        const Seconds start = chunks_ == 1 ? end : clock_.seconds(pipeline_->aligned_reduce_start[stage * chunks_ + c]);
        first = min(first, start);
        stream = max(stream, start) + cost.reductions;
        continue;
      }
      const Seconds start = clock_.seconds(pipeline_->last_backward_start[stage * chunks_ + c]) +
                            (splits() ? Seconds(0) : gradient_gather(stage, c));
      slowed += cost.last_slowed;
      shared += cost.last_extra - cost.last_slowed;
      first = min(first, start);
      if (stream <= start) {
        stream = start + cost.last_side;
      } else {
        const Concurrency effects = is_dualpipe() ? Concurrency{} : concurrency();
        stream = run_segment(chunk.last_backward, step_.blocks, {start, stream, {}}, effects).side;
      }
    }
    const Seconds overlapped = chunks_ == 1 ? Seconds(0) : max(Seconds(0), reduced - max(Seconds(0), stream - end));
    const double interference = solver_.stack_.overlap.interference;
    const Seconds gathers = overlapped_gathers(stage);
    const Contention at_start = gather_contention(stage, gathers);
    const Seconds later = at_start.longer + at_start.left;
    const Seconds lost = max(Seconds(0), interference * overlapped - slowed) + interference * gathers;
    const Contention ports = reduction_contention(stage, reduced, overlapped, end - first);
    const Seconds tasks_end = end + max(Seconds(0), ports.longer - shared);
    return later + max(stream, tasks_end + max(lost, ports.left)) +
           segment_time(rank_class.finish_reduce, step_.blocks);
  }

  void find_critical_stage() {
    step_.ready = Seconds(-1.0);
    std::size_t last = 0;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      const Seconds ready = gradients_ready(stage);
      if (ready > step_.ready) {
        step_.ready = ready;
        last = stage;
      }
    }
    set_critical_stage(last, step_.ready);
  }

  // `ready`: its gradients_ready().
  void set_critical_stage(std::size_t stage, Seconds ready) {
    step_.critical_stage = static_cast<std::int64_t>(stage);
    step_.pipeline_end = clock_.seconds(pipeline_->stage_end[stage]);
    step_.reduce_tail = ready - step_.pipeline_end;
    step_.last_extra = Seconds(0);
    for (std::size_t c = 0; c < chunks_; ++c) { step_.last_extra += last_extra(stage, c); }
  }

  // Gathers at the beginning of a chunk's forward and backward, of inputs that have arrived in parts.
  [[nodiscard]] Seconds activation_gather(std::size_t stage, std::size_t c) const {
    if (step_.input_gather == Seconds(0)) { return Seconds(0); }
    const bool receives =
        parallel::receives_activations(program_.plan, static_cast<std::int64_t>(stage), static_cast<std::int64_t>(c));
    return receives ? step_.input_gather : Seconds(0);
  }
  [[nodiscard]] Seconds gradient_gather(std::size_t stage, std::size_t c) const {
    if (step_.input_gather == Seconds(0)) { return Seconds(0); }
    const bool receives =
        parallel::receives_gradients(program_.plan, static_cast<std::int64_t>(stage), static_cast<std::int64_t>(c));
    return receives ? step_.input_gather : Seconds(0);
  }

  // Compute time of one micro-batch in all chunks of a stage.
  [[nodiscard]] Seconds work_of(std::size_t stage) const {
    Seconds work;
    for (std::size_t c = 0; c < chunks_; ++c) {
      work += activation_gather(stage, c) + gradient_gather(stage, c);
      work += chunk_cost(stage, c).forward_time() + chunk_cost(stage, c).whole_backward();
    }
    return work;
  }

  void find_busiest_stage() {
    auto busiest = static_cast<std::size_t>(step_.critical_stage);
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      const Seconds more = work_of(stage) - work_of(busiest);
      const bool later = more == Seconds(0) && gradients_ready(stage) > gradients_ready(busiest);
      if (more > Seconds(0) || later) { busiest = stage; }
    }
    set_critical_stage(busiest, gradients_ready(busiest));
  }

  [[nodiscard]] parallel::PipelineTimes times() const {
    return {forward_, backward_, transfer_, first_end_, weight_, pair_, last_extra_};
  }

  // Forward of chunk `c` paired with the backward of chunk `other`.
  [[nodiscard]] const PairCost& pair_of(std::size_t stage, std::size_t c, std::size_t other) const {
    return step_.pairs[parallel::pair_index(program_, place(stage, c).program, place(stage, other).program)];
  }
  [[nodiscard]] Seconds longest_pair(std::size_t stage, std::size_t c) const {
    Seconds longest;
    for (std::size_t other = 0; has_pairs() && other < chunks_; ++other) {
      longest = max(longest, pair_of(stage, c, other).time);
    }
    return longest;
  }

  [[nodiscard]] bool splits() const { return parallel::splits_backward(program_.pipeline.schedule); }
  [[nodiscard]] bool has_pairs() const { return parallel::has_pairs(program_.pipeline); }
  [[nodiscard]] bool is_dualpipe() const { return program_.pipeline.schedule == parallel::ScheduleKind::dualpipe; }
  [[nodiscard]] std::size_t stages() const { return static_cast<std::size_t>(program_.plan.pp); }
  [[nodiscard]] parallel::RankClassId class_of(std::size_t stage) const { return program_.class_of_stage[stage]; }
  [[nodiscard]] const parallel::Chunk& place(std::size_t stage, std::size_t chunk) const {
    return program_.classes[class_of(stage)].chunks[chunk];
  }
  [[nodiscard]] const ChunkCost& chunk_cost(std::size_t stage, std::size_t chunk) const {
    return step_.chunks[place(stage, chunk).program.index()];
  }
  [[nodiscard]] const FirstGathers& first_gathers(std::size_t stage, std::size_t chunk) const {
    return solver_.first_gathers_[place(stage, chunk).program.index()];
  }
  [[nodiscard]] const ChunkProgram& chunk_program(std::size_t stage, std::size_t chunk) const {
    return program_.program_of(place(stage, chunk));
  }

  const Program& program_;
  StepSolver& solver_;
  Step& step_;
  WorkPrice* known_ = nullptr;
  std::size_t chunks_;  // per rank
  Clock clock_{Seconds(0)};
  mutable LastRates gather_rates_, reduction_rates_;
  mutable std::vector<std::size_t> completion_order_;
  std::vector<Ticks>&forward_ = solver_.forward_, &backward_ = solver_.backward_, &weight_ = solver_.weight_;
  std::vector<Ticks>&pair_ = solver_.pair_, &transfer_ = solver_.transfer_, &first_end_ = solver_.first_end_;
  std::vector<Ticks>& last_extra_ = solver_.last_extra_;
  const parallel::PipelineSolution* pipeline_ = nullptr;
};

const Step& StepSolver::solve(const Program& program, WorkPrice* known, Explained explained, Ports ports) {
  StepSolution(program, *this).run(known, explained, ports);
  return step_;
}

}  // namespace orrery::estimate
