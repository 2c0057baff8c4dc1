#include <algorithm>
#include <functional>

#include "orrery/core/error.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_shape.hpp"

namespace orrery::parallel {

void check_pipeline_shape(const PipelineShape& shape) {
  ORRERY_ASSERT(shape.stages >= 1);
  ORRERY_ASSERT(shape.chunks >= 1);
  ORRERY_ASSERT(shape.micro_batches >= 1);
  ORRERY_ASSERT(!shape.pairs || shape.schedule == ScheduleKind::interleaved ||
                shape.schedule == ScheduleKind::one_f_one_b);
  ORRERY_ASSERT(!shape.pairs || shape.stages == 1 || shape.chunks > 1);
  if (shape.schedule == ScheduleKind::dualpipe) {
    ORRERY_ASSERT(shape.chunks == 2);
    ORRERY_ASSERT(shape.stages % 2 == 0);
    // Fewer micro-batches do not fill its warm-up.
    ORRERY_ASSERT(shape.micro_batches % 2 == 0 && shape.micro_batches >= 2 * shape.stages);
    return;
  }
  ORRERY_ASSERT(shape.chunks == 1 || shape.schedule == ScheduleKind::interleaved);
  // Megatron's order distributes micro-batches in groups of p; an incomplete last group would deadlock.
  ORRERY_ASSERT(shape.chunks == 1 || shape.micro_batches % shape.stages == 0);
}

std::int64_t warm_up_forwards(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages;
  const std::int64_t v = shape.chunks;
  const std::int64_t all = shape.micro_batches * v;
  const std::int64_t after = p - stage - 1;
  if (shape.schedule == ScheduleKind::gpipe) { return all; }
  if (shape.pairs) { return std::min(all, 2 * after + (v - 1) * p + 1); }
  if (v == 1) { return std::min(all, after); }
  if (shape.micro_batches == p) { return all; }
  return std::min(all, 2 * after + (v - 1) * p);
}

namespace {

// ZB-H1: when forward p - i + k starts, weight tasks up to k - 1 - i are done, so at most p micro-batches are in
// flight. DualPipe: after its warm-up p - r - 1 micro-batches of the chunk of phase 0 and r + 1 of the other chunk are
// in flight; later forwards alternate with a backward of the same chunk or follow one, and the first of them adds one
// micro-batch.
double split_peak(const PipelineShape& shape, std::int64_t stage, std::span<const double> chunk_weight) {
  const std::int64_t p = shape.stages;
  if (shape.schedule == ScheduleKind::zero_bubble) {
    return static_cast<double>(std::min(shape.micro_batches, p)) * chunk_weight[0];
  }
  const std::int64_t r = std::min(stage, p - 1 - stage);
  const std::size_t near = stage < p / 2 ? 0 : 1;
  return static_cast<double>(p - r) * chunk_weight[near] + static_cast<double>(r + 1) * chunk_weight[1 - near];
}

// The k-th forward (with `forward` false: backward) of a stage; the order is the same on all stages. Interleaved:
// groups of p micro-batches pass the chunks one after another, in backward from the last chunk.
PipelineTask kth_task(const PipelineShape& shape, bool forward, std::int64_t k) {
  const std::int64_t p = shape.stages;
  const std::int64_t v = shape.chunks;
  PipelineTask task;
  task.kind = forward ? PipelineTask::Kind::forward : PipelineTask::Kind::backward;
  task.micro_batch = k;
  if (v == 1) {
    const bool reversed = shape.schedule == ScheduleKind::gpipe && !forward;
    if (reversed) { task.micro_batch = shape.micro_batches - 1 - k; }
    return task;
  }
  const std::int64_t slot = k % (p * v) / p;
  const std::int64_t chunk = forward ? slot : v - 1 - slot;
  task.chunk = static_cast<std::int32_t>(chunk);
  task.micro_batch = k / (p * v) * p + k % p;
  return task;
}

void pair_with(PipelineTask& forward, const PipelineTask& backward) {
  forward.kind = PipelineTask::Kind::pair;
  forward.paired_micro_batch = backward.micro_batch;
  forward.paired_chunk = backward.chunk;
}

}  // namespace

void append_stage_order(const PipelineShape& shape, std::int64_t stage, std::vector<PipelineTask>& order) {
  check_pipeline_shape(shape);
  ORRERY_ASSERT(stage >= 0 && stage < shape.stages);
  if (shape.schedule == ScheduleKind::zero_bubble) { return append_zero_bubble_order(shape, stage, order); }
  if (shape.schedule == ScheduleKind::dualpipe) { return append_dualpipe_order(shape, stage, order); }
  const std::int64_t all = shape.micro_batches * shape.chunks;
  const std::int64_t warm_up = warm_up_forwards(shape, stage);
  for (std::int64_t k = 0; k < warm_up; ++k) { order.push_back(kth_task(shape, true, k)); }
  for (std::int64_t k = 0; k < all; ++k) {
    const PipelineTask backward = kth_task(shape, false, k);
    if (warm_up + k < all) {
      order.push_back(kth_task(shape, true, warm_up + k));
      if (shape.pairs) {
        pair_with(order.back(), backward);
        continue;
      }
    }
    order.push_back(backward);
  }
}

std::vector<PipelineTask> stage_order(const PipelineShape& shape, std::int64_t stage) {
  std::vector<PipelineTask> order;
  append_stage_order(shape, stage, order);
  return order;
}

// The positions of both in the order repeat after p v tasks.
std::vector<std::pair<std::size_t, std::size_t>> paired_chunks(const PipelineShape& shape, std::int64_t stage) {
  if (shape.schedule == ScheduleKind::dualpipe) { return {{0, 1}, {1, 0}}; }
  std::vector<std::pair<std::size_t, std::size_t>> chunks;
  if (!shape.pairs) { return chunks; }
  const std::int64_t all = shape.micro_batches * shape.chunks;
  const std::int64_t warm_up = warm_up_forwards(shape, stage);
  for (std::int64_t k = 0; warm_up + k < all && k < shape.stages * shape.chunks; ++k) {
    const auto forward = static_cast<std::size_t>(kth_task(shape, true, warm_up + k).chunk);
    const std::pair combination{forward, static_cast<std::size_t>(kth_task(shape, false, k).chunk)};
    if (std::find(chunks.begin(), chunks.end(), combination) == chunks.end()) { chunks.push_back(combination); }
  }
  return chunks;
}

namespace {

// The load of an interleaved stage before its first backward: its first `first` forwards.
double warm_load(const PipelineShape& shape, std::int64_t first, std::span<const double> chunk_weight) {
  const std::int64_t p = shape.stages;
  const std::int64_t v = shape.chunks;
  double load = 0.0;
  for (std::int64_t c = 0; c < v; ++c) {
    const std::int64_t groups = first / (p * v);  // complete groups
    const std::int64_t part = std::clamp<std::int64_t>(first % (p * v) - c * p, 0, p);
    load += static_cast<double>(groups * p + part) * chunk_weight[static_cast<std::size_t>(c)];
  }
  return load;
}

}  // namespace

// With F(n), B(n) the weight of a stage's first n forwards and backwards, the load is highest when a forward starts,
// and backward k runs directly after forward w + k, so
//   peak = max over 0 <= k < max(1, N - w) of F(min(N, w + k + 1)) - B(k)          N = m v tasks per direction
// and while backward k of chunk c runs, replayed[c] more. In a pair the backward frees as much as the forward adds,
// layer by layer: F(min(N, w' + k)) - B(k), the same with w' = w + 1. Within a group of p micro-batches the chunk does
// not change, so the difference is linear in k between the positions where either side changes chunk, and it repeats
// after p v tasks: 2 v sections, of which only the ends are evaluated. After the last forward the load only falls, but
// a chunk may replay more than those before: v sections more.
double peak_in_flight(const PipelineShape& shape, std::int64_t stage, std::span<const double> chunk_weight,
                      std::span<const double> replayed) {
  check_pipeline_shape(shape);
  ORRERY_ASSERT(stage >= 0 && stage < shape.stages);
  ORRERY_ASSERT(static_cast<std::int64_t>(chunk_weight.size()) >= shape.chunks);
  ORRERY_ASSERT(replayed.empty() || static_cast<std::int64_t>(replayed.size()) >= shape.chunks);
  const auto chunks_end = replayed.begin() + (replayed.empty() ? 0 : shape.chunks);
  const double most_replayed = replayed.empty() ? 0.0 : *std::max_element(replayed.begin(), chunks_end);
  if (splits_backward(shape.schedule)) { return split_peak(shape, stage, chunk_weight) + most_replayed; }
  const std::int64_t p = shape.stages;
  const std::int64_t v = shape.chunks;
  const std::int64_t all = shape.micro_batches * v;
  const std::int64_t first = std::min(all, warm_up_forwards(shape, stage) + (shape.pairs ? 0 : 1));
  const auto all_equal = [v](std::span<const double> list) {
    const auto of_chunks = list.first(list.empty() ? 0 : static_cast<std::size_t>(v));
    return std::adjacent_find(of_chunks.begin(), of_chunks.end(), std::not_equal_to<>()) == of_chunks.end();
  };
  if (all_equal(chunk_weight) && all_equal(replayed)) {  // v = 1 included
    return static_cast<double>(first) * chunk_weight[0] + most_replayed;
  }

  const std::int64_t followed = all - first;  // backwards that a forward follows
  const std::int64_t alternating = (followed >= p * v ? p * v : 0) + followed % (p * v);
  const std::int64_t last = alternating + (replayed.empty() ? 0 : std::min(first, p * v));
  double load = warm_load(shape, first, chunk_weight);
  double peak = load;
  for (std::int64_t k = 0; k < last;) {
    const std::int64_t next = k + first;  // index of the forward that follows backward k
    const bool is_followed = k < alternating;
    const std::int64_t run =
        is_followed ? std::min({p - k % p, p - next % p, alternating - k}) : std::min(p - k % p, last - k);
    const auto leaving = static_cast<std::size_t>(v - 1 - k / p % v);
    const double in = is_followed ? chunk_weight[static_cast<std::size_t>(next / p % v)] : 0.0;
    const double change = in - chunk_weight[leaving];
    const double end = load + static_cast<double>(run) * change;
    if (!replayed.empty()) { peak = std::max(peak, std::max(load, end - change) + replayed[leaving]); }
    peak = std::max(peak, end);
    load = end;
    k += run;
  }
  return peak;
}

}  // namespace orrery::parallel
