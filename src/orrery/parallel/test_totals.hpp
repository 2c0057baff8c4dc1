// Totals of a lowered program, counted independently of classes and of lowering; and the same for a model on one rank.
// For tests.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/core/integers.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/recompute.hpp"
#include "orrery/parallel/test_items.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel::test {

inline double flops_of(const Program& program, const Segment& segment) {
  double sum = 0.0;
  for (const auto& use : segment) {
    for (const auto& item : program.block(use.work).items) { sum += real(use.repeat) * kernel_of(item).flops.value(); }
  }
  return sum;
}

// Micro-batches that pass one chunk.
inline double micro_batches_of_chunk(const Program& program) {
  const bool bidirectional = program.plan.schedule == ScheduleKind::dualpipe;
  return real(program.pipeline.micro_batches) * (bidirectional ? 0.5 : 1.0);
}

// Matrix FLOPs of all ranks in one step.
inline double flops_of(const Program& program) {
  const double m = micro_batches_of_chunk(program);
  double per_slice = 0.0;
  for (const auto& rank_class : program.classes) {
    double rank = flops_of(program, rank_class.finish_reduce) + flops_of(program, rank_class.finish);
    for (const auto& place : rank_class.chunks) {
      const auto& chunk = program.program_of(place);
      const bool splits = !chunk.weight.empty();
      const auto& completing = splits ? chunk.weight : chunk.backward;
      rank += flops_of(program, chunk.first_forward) + (m - 1.0) * flops_of(program, chunk.forward);
      rank += flops_of(program, chunk.last_backward) + (m - 1.0) * flops_of(program, completing);
      if (splits) { rank += m * flops_of(program, chunk.backward); }
    }
    per_slice += real(rank_class.stages) * rank;
  }
  return real(program.plan.stage_ranks()) * per_slice;
}

// One part of a model on one rank without parallelism.
struct Alone {
  double flops = 0;              // forward, backward and recompute
  double dense = 0, expert = 0;  // weights, trained and frozen
};

inline Alone alone(const std::vector<workload::Operator>& operators, workload::TagSet replayed) {
  Alone sum;
  for (const auto& op : operators) {
    const double forward = op.forward.flops.value();
    sum.flops += forward + op.backward_input.flops.value() + op.backward_weight.flops.value();
    if (replayed.contains(op.tag)) { sum.flops += forward; }
    (op.expert ? sum.expert : sum.dense) += op.parameters + op.frozen;
  }
  return sum;
}

// Whether recompute applies to layer `layer` of the model: it is one of the first recompute_layers of its chunk.
inline bool is_recomputed(const test::Case& c, std::int64_t layer) {
  if (c.plan.recompute_layers == 0) { return true; }
  std::int64_t first = 0;
  for (const std::int64_t share : layers_per_virtual_stage(c.model, c.plan)) {
    if (layer < first + share) { return layer - first < c.plan.recompute_layers; }
    first += share;
  }
  throw InternalError("no such layer");
}

// All parts of the model, for one sequence.
inline Alone whole_model(const test::Case& c, const workload::Slice& slice) {
  Alone sum;
  const auto add = [&](const std::vector<workload::Operator>& operators, workload::TagSet replayed) {
    const Alone part = alone(operators, replayed);
    sum.flops += part.flops;
    sum.dense += part.dense;
    sum.expert += part.expert;
  };
  if (slice.pass != workload::Pass::decode) {
    const workload::TagSet replayed = slice.adapter.rank > 0 ? workload::TagSet{} : replayed_tags(c.plan);
    for_each_tower_part(c.model, c.stack, slice, [&](const std::vector<workload::Operator>& part, bool is_layer) {
      add(part, is_layer ? replayed : workload::TagSet{});
    });
  }
  add(workload::embedding_operators(c.model, c.stack, slice), {});
  for (std::int64_t i = 0; i < c.model.depth(); ++i) {
    add(workload::layer_operators(c.model, c.stack, slice, workload::layer_kind(c.model, i)),
        is_recomputed(c, i) ? replayed_tags(c.plan) : workload::TagSet{});
  }
  add(workload::head_operators(c.model, c.stack, slice), {});
  for (std::int64_t i = 0; i < c.model.mtp_layers; ++i) { add(workload::mtp_operators(c.model, c.stack, slice), {}); }
  return sum;
}

// A slice without parallelism: one rank, one sequence.
inline workload::Slice undivided(const test::Case& c) {
  Plan plan;
  return slice_of(c.job, plan);
}

// The blocks of a chunk's pass, repeats unrolled; without the collectives of plans without overlap.
inline std::vector<BlockId> works_of(const Program& program, const Segment& segment) {
  std::vector<BlockId> list;
  for (const auto& use : segment) {
    const auto& items = program.block(use.work).items;
    if (!items.empty() && items.front().purpose == Purpose::optimizer) { continue; }
    list.insert(list.end(), static_cast<std::size_t>(use.repeat), use.work);
  }
  return list;
}

// Bytes that a rank of every stage puts into calls of one kind in a step.
inline double bytes_of(const Program& program, GroupKind group, Collective collective) {
  double sum = 0.0;
  const auto add = [&](OptionalBlockId block, double count) {
    if (!block) { return; }
    for (const auto& item : program.block(*block).items) {
      if (!is_collective(item)) { continue; }
      const CollectiveCall& call = call_of(item);
      if (call.group == group && call.collective == collective) { sum += count * call.bytes.value(); }
    }
  };
  const auto add_segment = [&](const Segment& segment, double count) {
    for (const auto& use : segment) {
      for (const OptionalBlockId block : {use.gather, OptionalBlockId(use.work), use.reduce}) {
        add(block, count * real(use.repeat));
      }
    }
  };
  const double m = micro_batches_of_chunk(program);
  for (const auto& rank_class : program.classes) {
    const double stages = real(rank_class.stages);
    for (const auto& place : rank_class.chunks) {
      const auto& chunk = program.program_of(place);
      const bool splits = !chunk.weight.empty();
      add_segment(chunk.first_forward, stages);
      add_segment(chunk.forward, stages * (m - 1.0));
      add_segment(splits ? chunk.weight : chunk.backward, stages * (m - 1.0));
      add_segment(chunk.last_backward, stages);
      if (splits) { add_segment(chunk.backward, stages * m); }
    }
    add_segment(rank_class.finish_reduce, stages);
    add_segment(rank_class.finish, stages);
  }
  return sum;
}

// Trained and all weights of all stages, one rank of each, before sharding.
struct PerRank {
  double dense = 0, expert = 0, all_dense = 0, all_expert = 0;
};

inline PerRank per_rank(const Program& program) {
  PerRank sum;
  for (const auto& rank_class : program.classes) {
    const double stages = real(rank_class.stages);
    sum.dense += stages * rank_class.parameters;
    sum.expert += stages * rank_class.expert_parameters;
    sum.all_dense += stages * (rank_class.parameters + rank_class.frozen);
    sum.all_expert += stages * (rank_class.expert_parameters + rank_class.frozen_expert);
  }
  return sum;
}

}  // namespace orrery::parallel::test
