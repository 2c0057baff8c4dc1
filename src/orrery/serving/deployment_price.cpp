// What a pool's iterations cost: from its settings to the options of ProgramPrice.
#include <algorithm>

#include "orrery/parallel/plan_checker.hpp"
#include "orrery/serving/deployment.hpp"

namespace orrery::serving {

namespace {

PriceOptions options_of(const EngineSettings& settings, Exact exact, bool shares_experts) {
  PriceOptions options{.largest_graph = settings.largest_graph,
                       .exact = exact,
                       .drafts = settings.speculative_tokens,
                       .tokens_per_step = tokens_per_step(settings),
                       .draft_layers = settings.draft_layers,
                       .layer_host = settings.layer_host,
                       .expert_host = settings.expert_layer_host,
                       .expert_rate = settings.expert_rate,
                       .expert_math_rate = settings.expert_math_rate,
                       .expert_math_rate_of = settings.expert_math_rate_of,
                       .expert_weight_only_math_rate = settings.expert_weight_only_math_rate,
                       .expert_latency = settings.expert_latency,
                       .expert_block_rows = settings.expert_block_rows,
                       .overlap_branches = settings.overlap_branches,
                       .draft_host = settings.draft_host,
                       .sequence_host = settings.sequence_host,
                       .most_tokens = settings.max_batched_tokens,
                       .routes_padding = settings.routes_padding,
                       .slowdown = slowdown_of_age(settings)};
  if (exact == Exact::no) {  // else priced as estimates are
    options.two_batch_decodes = settings.two_batch_decodes;
    options.two_batch_prompts = settings.two_batch_prompts;
  }
  if (shares_experts) {
    options.expert_host = std::max(options.expert_host, settings.expert_parallel_layer_host);
    options.expert_block_rows = std::max(options.expert_block_rows, settings.expert_parallel_block_rows);
  }
  return options;
}

}  // namespace

Result<void> BuiltPool::add_price() {
  const PoolInputs& in = inputs_;
  parallel::Job job = in.job;
  job.task = parallel::Task::inference;
  job.pads_heads = in.stack.pads_heads;
  job.replicates_tokens = in.stack.dispatch.replicated_tokens;
  job.expert_imbalance = in.settings.expert_imbalance;
  // Static batches are priced as estimates are.
  job.formats.wide_absorption = in.settings.wide_absorption && in.cluster.accelerator.maker == "NVIDIA" &&
                                in.settings.scheduler != Scheduler::static_batch;
  job.global_batch = in.degrees.attention_dp;
  job.prompt = 1;
  job.generate = 2;
  job.seq = 2;
  const auto wrong = parallel::problems(*in.model, job, plan(), in.cluster.devices);
  if (!wrong.empty()) { return tl::make_unexpected(Failure{{in_terms_of_pool(wrong.front())}}); }
  const Exact exact = in.settings.scheduler == Scheduler::static_batch ? Exact::yes : Exact::no;
  price_ = std::make_unique<ProgramPrice>(*in.model, in.cluster, in.stack, job, plan(),
                                          options_of(in.settings, exact, in.degrees.ep > 1));
  return {};
}

bool BuiltPool::overlaps(bool decodes) const {
  const EngineSettings& settings = inputs_.settings;
  const bool runs = decodes ? !inputs_.prefill_only : inputs_.name != "decode";
  const std::int64_t least = decodes ? settings.two_batch_decodes : settings.two_batch_prompts;
  const std::int64_t most = decodes ? settings.max_sequences : settings.max_batched_tokens;
  return runs && least > 0 && least <= most && settings.scheduler != Scheduler::static_batch && price_->dispatches();
}

}  // namespace orrery::serving
