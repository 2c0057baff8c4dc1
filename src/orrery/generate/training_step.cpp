#include "orrery/generate/training_step.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::generate {

using parallel::ChunkProgram;
using parallel::PipelineTask;
using parallel::Program;
using Kind = parallel::PipelineTask::Kind;

TrainingSteps::TrainingSteps(const Program& program, const hardware::Stack& stack,
                             const std::vector<parallel::PairOrder>& pairs, Streams& streams)
    : program_(program),
      stack_(stack),
      pairs_(pairs),
      streams_(streams),
      messages_(program, streams.writer()),
      stage_(streams.writer().rank() / program.plan.stage_ranks()),
      rank_class_(program.class_of(stage_)),
      order_(parallel::stage_order(program.pipeline, stage_)) {}

const ChunkProgram& TrainingSteps::chunk_of(std::int64_t chunk) const {
  return program_.program_of(rank_class_.chunks[static_cast<std::size_t>(chunk)]);
}

void TrainingSteps::write(std::int64_t steps, std::vector<TaskNodes>* tasks) {
  for (step_ = 0; step_ < steps && !streams_.writer().failed(); ++step_) { write_step(tasks); }
}

void TrainingSteps::write_step(std::vector<TaskNodes>* tasks) {
  previous_start_ = work_.compute;
  gather_updated_weights();
  for (const PipelineTask& task : order_) {
    if (streams_.writer().failed()) { return; }
    NodeIds start = work_.compute;
    const NodeId first = streams_.writer().count() + 1;
    if (task.kind == Kind::pair) {
      run_pair(task);
    } else {
      run_task(task);
    }
    if (tasks != nullptr) { tasks->push_back({task, first, streams_.writer().count() + 1}); }
    if (task.kind != Kind::weight) { previous_start_ = std::move(start); }
  }
  while (!unreduced_.empty()) { reduce_next(); }
  run_finish();
}

// Weights that the last step has updated are gathered in the order of the chunks, all issued when the step starts.
// Weights that every forward gathers are not among them.
void TrainingSteps::gather_updated_weights() {
  arrivals_.assign(rank_class_.chunks.size(), {});
  for (std::size_t c = 0; c < arrivals_.size(); ++c) {
    const ChunkProgram& chunk = chunk_of(static_cast<std::int64_t>(c));
    const auto gathers = [](const auto& use) { return use.gather.has_value(); };
    if (std::any_of(chunk.forward.begin(), chunk.forward.end(), gathers)) { continue; }
    if (std::none_of(chunk.first_forward.begin(), chunk.first_forward.end(), gathers)) { continue; }
    arrivals_[c] = streams_.gather_all(chunk.first_forward, work_.compute);
  }
}

bool TrainingSteps::receive(bool forward, std::int64_t chunk, std::int64_t micro_batch) {
  const ChunkPlace here{stage_, chunk};
  const auto from = neighbour(program_, here, forward ? -1 : 1);
  if (!from) { return false; }
  const NodeIds arrived =
      messages_.receive({step_, forward, here, micro_batch}, from->stage, program_.transfer_bytes, previous_start_);
  join(work_.compute, arrived);
  return !arrived.empty();
}

void TrainingSteps::gather_input() {
  if (const auto call = parallel::input_gather(program_)) { work_.compute = messages_.gather(*call, work_.compute); }
}

void TrainingSteps::send(bool forward, std::int64_t chunk, std::int64_t micro_batch) {
  const auto to = neighbour(program_, {stage_, chunk}, forward ? 1 : -1);
  if (to) { messages_.send({step_, forward, *to, micro_batch}, program_.transfer_bytes, work_.compute); }
}

void TrainingSteps::run_task(const PipelineTask& task) {
  const std::int64_t chunk = task.chunk, micro_batch = task.micro_batch;
  switch (task.kind) {
    case Kind::forward:
      if (receive(true, chunk, micro_batch)) { gather_input(); }
      streams_.run(work_, forward_run(chunk, micro_batch));
      return send(true, chunk, micro_batch);
    case Kind::backward:
      if (receive(false, chunk, micro_batch)) { gather_input(); }
      for (const SegmentRun& run : backward_runs(chunk, micro_batch, task.splits)) { streams_.run(work_, run); }
      send(false, chunk, micro_batch);
      return align_reductions(chunk, micro_batch);
    case Kind::weight: return streams_.run(work_, weight_run(chunk_of(chunk), micro_batch));
    case Kind::pair: break;
  }
  throw_internal_error("task of one micro-batch", __FILE__, __LINE__);
}

// After a backward: issues the reductions of chunks whose last backward was so many backwards before.
void TrainingSteps::align_reductions(std::int64_t chunk, std::int64_t micro_batch) {
  if (reduces_later(chunk) && is_last(micro_batch)) { unreduced_.push_back({&chunk_of(chunk).last_backward, stage_}); }
  while (!unreduced_.empty() && unreduced_.front().backwards == 0) { reduce_next(); }
  for (Unreduced& next : unreduced_) { --next.backwards; }
}

void TrainingSteps::reduce_next() {
  streams_.reduce_all(*unreduced_.front().segment, work_.compute);
  unreduced_.erase(unreduced_.begin());
}

bool TrainingSteps::reduces_later(std::int64_t chunk) const {
  if (!program_.aligned_reductions || chunk_of(chunk).waits_for_reduce) { return false; }
  return stage_ > 0 || rank_class_.chunks.size() > 1;
}

void TrainingSteps::run_pair(const PipelineTask& task) {
  const std::int64_t other = task.paired_chunk;
  const bool receives_activations = receive(true, task.chunk, task.micro_batch);
  const bool receives_gradients = receive(false, other, task.paired_micro_batch);
  if (receives_activations) { gather_input(); }
  if (receives_gradients) { gather_input(); }
  Execution paired{Lane::paired, work_.compute, work_.collectives, {}};
  const auto& chunks = rank_class_.chunks;
  const auto forward = chunks[static_cast<std::size_t>(task.chunk)].program;
  const auto backward = chunks[static_cast<std::size_t>(other)].program;
  // The first forward and the last backward of a chunk, which have segments of their own, are in no pair.
  ORRERY_ASSERT(task.micro_batch > 0 && !is_last(task.paired_micro_batch));
  streams_.run_pair(work_, {forward_run(task.chunk, task.micro_batch)}, paired,
                    backward_runs(other, task.paired_micro_batch, false),
                    pairs_[parallel::pair_index(program_, forward, backward)]);
  join(work_.compute, paired.compute);
  join(work_.collectives, paired.collectives);
  send(true, task.chunk, task.micro_batch);
  send(false, other, task.paired_micro_batch);
}

SegmentRun TrainingSteps::forward_run(std::int64_t index, std::int64_t micro_batch) const {
  const ChunkProgram& chunk = chunk_of(index);
  const auto& arrivals = arrivals_[static_cast<std::size_t>(index)];
  const bool first = micro_batch == 0;
  return {.segment = first ? &chunk.first_forward : &chunk.forward,
          .arrivals = first && !arrivals.empty() ? &arrivals : nullptr,
          .prefix = "forward.",
          .waits_for_overlapped = chunk.waits_for_store};
}

std::vector<SegmentRun> TrainingSteps::backward_runs(std::int64_t index, std::int64_t micro_batch, bool splits) const {
  const ChunkProgram& chunk = chunk_of(index);
  if (chunk.weight.empty()) {
    SegmentRun run = weight_run(chunk, micro_batch);
    run.leaves_reductions = is_last(micro_batch) && reduces_later(index);
    return {run};
  }
  const SegmentRun inputs{.segment = &chunk.backward, .prefix = "backward."};
  if (splits) { return {inputs}; }
  return {inputs, weight_run(chunk, micro_batch)};
}

// What completes the gradients of a micro-batch: its weight gradients, or its backward pass where these are not a task
// of their own.
SegmentRun TrainingSteps::weight_run(const ChunkProgram& chunk, std::int64_t micro_batch) const {
  const bool apart = !chunk.weight.empty();
  const auto& usual = apart ? chunk.weight : chunk.backward;
  return {.segment = is_last(micro_batch) ? &chunk.last_backward : &usual,
          .prefix = apart ? "weight." : "backward.",
          .waits_for_overlapped = chunk.waits_for_reduce};
}

bool TrainingSteps::is_last(std::int64_t micro_batch) const {
  const std::int64_t count = program_.pipeline.micro_batches;
  switch (program_.pipeline.schedule) {
    case parallel::ScheduleKind::gpipe: return micro_batch == 0;  // runs backward passes in reverse
    case parallel::ScheduleKind::dualpipe: return micro_batch == count / 2 - 1;
    case parallel::ScheduleKind::one_f_one_b:
    case parallel::ScheduleKind::interleaved:
    case parallel::ScheduleKind::zero_bubble: return micro_batch == count - 1;
  }
  throw_internal_error("known schedule", __FILE__, __LINE__);
}

void TrainingSteps::run_finish() {
  streams_.wait_for_overlapped(work_);
  streams_.run(work_, {.segment = &rank_class_.finish_reduce});
  streams_.run(work_, {.segment = &rank_class_.finish});
  streams_.wait_for_overlapped(work_);
  if (stack_.host.step_overhead > Seconds(0)) {
    work_.compute = {streams_.writer().host("host.step", stack_.host.step_overhead, work_.compute)};
  }
}

}  // namespace orrery::generate
