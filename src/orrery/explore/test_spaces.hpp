// Random jobs of every kind for tests of searches: mixtures of experts, MTP modules, sliding windows, latent attention,
// encoder-decoders, long sequences, zero-bubble schedules. `range` is as in parallel/test_jobs.hpp.
#pragma once

#include <cstdint>

#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore::test {

using parallel::test::any_flag;
using parallel::test::any_of;

template <class Range>
workload::Experts any_experts(Range&& range) {
  workload::Experts experts;
  experts.count = any_of(range, {2, 4, 6, 8, 16});
  experts.active = range(1, 3);
  experts.ffn = 16 * range(1, 65);
  if (any_flag(range)) { experts.shared_ffn = 16 * range(1, 33); }
  experts.first_dense = range(0, 2);
  experts.every = range(1, 3);
  if (any_flag(range)) { experts.capacity_factor = 1.25; }
  return experts;
}

struct SearchCase {
  workload::Model model;
  parallel::Job job;
  hardware::Cluster cluster;
  hardware::Stack stack;
  parallel::PartialPlan
      fixed;  // restricts the space, so that schedules and degrees outside the default axes are tested too
};

template <class Range>
workload::Model any_kind_of_model(Range&& range) {
  const std::int64_t heads = 4 * range(1, 5);
  workload::Model model = parallel::test::llama(range(4, 13), heads * 64, heads, any_flag(range) ? 4 : heads,
                                                256 * range(1, 17), 1024 * range(1, 30));
  model.max_seq = 1 << 20;
  model.tied_embeddings = any_flag(range);
  if (range(0, 3) > 0) { model.experts = any_experts(range); }
  if (range(0, 3) == 0) { model.mtp_layers = range(1, 3); }
  if (range(0, 3) == 0) {
    model.sliding_window = 64 * range(1, 33);
    model.global_every = any_of(range, {0, 2, 3, 6});
  }
  if (range(0, 4) == 0) {
    model.latent = {.query_rank = 128, .kv_rank = 64, .nope_dim = 64, .rope_dim = 32, .value_dim = 64};
    model.kv_heads = model.heads;
    model.head_dim = 96;
  }
  if (range(0, 6) == 0) { model.encoder_layers = range(2, 7); }
  return model;
}

template <class Range>
parallel::PartialPlan any_fixed(Range&& range) {
  using parallel::ScheduleKind;
  parallel::PartialPlan fixed;
  switch (range(0, 6)) {
    case 0: fixed.schedule = ScheduleKind::zero_bubble; break;
    case 1: fixed.schedule = ScheduleKind::dualpipe; break;
    case 2: fixed.schedule = ScheduleKind::gpipe; break;
    default: break;
  }
  if (range(0, 3) == 0) { fixed.cp = any_of(range, {2, 4}); }
  if (range(0, 4) == 0) { fixed.tp_overlap = any_flag(range) ? parallel::TpOverlap::ring : parallel::TpOverlap::pipe; }
  return fixed;
}

// 8 or 16 devices, memory between enough and too little.
template <class Range>
SearchCase any_search(Range&& range) {
  SearchCase c;
  c.model = any_kind_of_model(range);
  c.job.global_batch = 16 * range(1, 4);
  c.job.seq = 64 * any_of(range, {2, 8, 32, 128});
  c.cluster = parallel::test::any_cluster(range, any_of(range, {8, 16}));
  c.cluster.accelerator.memory = Bytes(1e9 * static_cast<double>(range(1, 20)));
  c.stack = parallel::test::any_stack(range);
  c.fixed = any_fixed(range);
  if (c.model.encoder_layers > 0) { c.fixed.tp_overlap = parallel::TpOverlap::none; }
  return c;
}

}  // namespace orrery::explore::test
