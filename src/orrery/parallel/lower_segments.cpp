#include "orrery/parallel/lower_segments.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery::parallel {

SegmentLowering::SegmentLowering(const LoweringContext& context, const IdVector<PartId, Part>& parts,
                                 const IdVector<PartId, PartSizes>& sizes)
    : context_(context),
      parts_(parts),
      sizes_(sizes),
      reduces_(std::any_of(parts.begin(), parts.end(), [](const Part& p) { return p.reduce.has_value(); })) {}

void SegmentLowering::lower(ChunkProgram& chunk, std::span<const PartUse> uses) {
  const Plan& plan = context_.plan();
  chunk.forward = forward(uses, Pass::forward);
  chunk.first_forward = forward(uses, Pass::first_forward);
  if (context_.job().is_inference()) {
    if (context_.job().generate > 1) { chunk.decode = forward(uses, Pass::decode); }
    return;
  }
  const bool always = reduces_every_micro_batch(plan, context_.stack);
  const bool last = always || reduces_under_backward(plan, context_.stack);
  if (context_.splits()) {
    chunk.backward = backward(uses, &Part::backward, true, false);
    chunk.weight = backward(uses, &Part::weight, false, always);
    chunk.last_backward = always == last ? chunk.weight : backward(uses, &Part::weight, false, last);
  } else {
    chunk.backward = backward(uses, &Part::backward, true, always);
    chunk.last_backward = always == last ? chunk.backward : backward(uses, &Part::backward, true, last);
  }
  chunk.waits_for_reduce = always && reduces_;
  chunk.waits_for_store = plan.offload.activations;
}

// Without overlap, gathers and reductions are separate blocks on the compute stream; transfers to and from the second
// tier stay on the communication stream.
void SegmentLowering::append(Segment& segment, const BlockUse& use) const {
  if (use.repeat == 0) { return; }
  if (context_.plan().dp_overlap) {
    segment.push_back(use);
    return;
  }
  segment.push_back({use.work, use.repeat, use.gather, {}});
  if (use.reduce) { segment.push_back({*use.reduce, use.repeat}); }
}

BlockUse SegmentLowering::blocking_gather(const Part& part, std::int64_t repeat) const {
  return {*part.gather_work, repeat, {}, {}, context_.plan().dp_overlap};
}

Segment SegmentLowering::forward(std::span<const PartUse> uses, Pass pass) const {
  Segment segment;
  segment.reserve(uses.size());
  for (const PartUse& use : uses) {
    const Part& part = part_of(use);
    const OptionalBlockId work = pass == Pass::decode ? part.decode : part.forward;
    if (!work) { continue; }
    if (part.gather_work) { segment.push_back(blocking_gather(part, use.repeat)); }
    const OptionalBlockId gather = pass == Pass::first_forward ? part.first_gather : part.gather;
    segment.push_back({*work, use.repeat, gather, part.store});
  }
  return segment;
}

Segment SegmentLowering::backward(std::span<const PartUse> uses, OptionalBlockId Part::* block, bool gathers,
                                  bool reduces) {
  Segment segment;
  segment.reserve(uses.size());
  Pending pending;
  for (std::size_t i = uses.size(); i-- > 0;) {
    const Part& part = part_of(uses[i]);
    const OptionalBlockId gather = gathers ? part.backward_gather : OptionalBlockId();
    if (gathers && part.gather_work) { segment.push_back(blocking_gather(part, uses[i].repeat)); }
    if (reduces && part.reduce) {
      append_reducing(segment, uses[i], *(part.*block), gather, pending);
    } else {
      segment.push_back({*(part.*block), uses[i].repeat, gather});
    }
  }
  if (pending.total() > 0) { flush(segment, pending); }
  return segment;
}

// `repeat` executions whose gradients wait until a bucket is full. With bucket size 0 each is reduced alone.
void SegmentLowering::append_reducing(Segment& segment, const PartUse& use, BlockId work, OptionalBlockId gather,
                                      Pending& pending) {
  const PartSizes& sizes = sizes_[*use.part];
  const double each = sizes.dense + sizes.expert, bucket = context_.stack.gradients.bucket(context_.plan().replicas());
  const auto wait_for = [&](std::int64_t count) {
    pending.dense += static_cast<double>(count) * sizes.dense;
    pending.expert += static_cast<double>(count) * sizes.expert;
  };
  for (std::int64_t left = use.repeat; left > 0;) {
    if (pending.total() == 0 && each >= bucket) {
      append(segment, {work, left, gather, part_of(use).reduce});
      return;
    }
    const double room = std::ceil((bucket - pending.total()) / each);
    const auto count = static_cast<std::int64_t>(std::max(1.0, std::min(room, static_cast<double>(left))));
    wait_for(count);
    left -= count;
    if (pending.total() < bucket) {
      append(segment, {work, count, gather});
      return;
    }
    append(segment, {work, count - 1, gather});
    append(segment, {work, 1, gather, joined(pending)});
    pending = {};
  }
}

// The rest is reduced when the segment's last execution ends.
void SegmentLowering::flush(Segment& segment, const Pending& pending) {
  const BlockUse last = segment.back();
  segment.pop_back();
  append(segment, {last.work, last.repeat - 1, last.gather});
  append(segment, {last.work, 1, last.gather, joined(pending)});
}

BlockId SegmentLowering::joined(const Pending& pending) {
  for (const Joined& known : joined_) {
    if (known.weights.dense == pending.dense && known.weights.expert == pending.expert) { return known.block; }
  }
  Block block{"gradient.reduce_bucket", {}};
  append_reduction(block, context_, pending.dense, pending.expert);
  joined_.push_back({pending, context_.add_block(std::move(block))});
  return joined_.back().block;
}

}  // namespace orrery::parallel
