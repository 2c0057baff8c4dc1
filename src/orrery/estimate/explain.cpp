#include "orrery/estimate/explain.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/cost/names.hpp"
#include "orrery/network/names.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::estimate {

using parallel::Program;
using parallel::RankClass;

namespace {

results::PlanSummary summary(const Program& program) {
  const auto& plan = program.plan;
  results::PlanSummary summary;
  summary.tp = plan.tp;
  summary.pp = plan.pp;
  summary.dp = plan.dp;
  summary.vpp = plan.vpp;
  summary.micro_batch = plan.micro_batch;
  summary.micro_batches = program.pipeline.micro_batches;
  summary.sequence_parallel = plan.sequence_parallel;
  summary.zero = plan.zero;
  summary.recompute = config::enum_name(plan.recompute);
  summary.schedule = config::enum_name(plan.schedule);
  summary.tp_overlap = "none";
  summary.dp_overlap = plan.dp_overlap;
  return summary;
}

std::size_t class_of(const Program& program, std::int64_t stage) {
  return static_cast<std::size_t>(program.class_of_stage[static_cast<std::size_t>(stage)]);
}

// What a rank of one class does between the pipeline's start and end: work of all micro-batches, and stalls.
struct Busy {
  Cost work;
  Seconds stall;          // waiting for data-parallel collectives inside forwards and backwards
  Seconds data_parallel;  // data-parallel collectives beside the work, in the whole step

  [[nodiscard]] Seconds time() const { return work.time + stall; }
};

Busy busy_of(const Program& program, const Step& step, std::size_t class_index) {
  const auto m = static_cast<double>(program.pipeline.micro_batches);
  const RankClass& rank_class = program.classes[class_index];
  Busy busy;
  for (std::size_t c = 0; c < rank_class.chunks.size(); ++c) {
    const ChunkCost& cost = step.chunks[class_index * rank_class.chunks.size() + c];
    const auto& chunk = rank_class.chunks[c];
    busy.work += m * cost.forward;
    busy.work += m * cost.backward;
    busy.stall += m * (cost.forward_stall + cost.backward_stall);
    busy.data_parallel += segment_data_parallel(chunk.first_forward, step.blocks) +
                          (m - 1.0) * segment_data_parallel(chunk.forward, step.blocks) +
                          segment_data_parallel(chunk.last_backward, step.blocks) +
                          (m - 1.0) * segment_data_parallel(chunk.backward, step.blocks);
  }
  return busy;
}

Flops recompute_flops(const Program& program, const Step& step) {
  Flops per_replica;
  for (std::size_t c = 0; c < program.classes.size(); ++c) {
    per_replica += static_cast<double>(program.classes[c].stages) * busy_of(program, step, c).work.recompute_flops;
  }
  return static_cast<double>(program.plan.tp * program.plan.dp) * per_replica;
}

void set_rates(results::Estimate& result, const Context& context, const Program& program, const Step& step) {
  const auto& job = program.job;
  const auto devices = static_cast<double>(program.plan.devices());
  result.samples_per_s = static_cast<double>(job.global_batch) / step.time.value();
  result.tokens_per_s = result.samples_per_s * static_cast<double>(job.seq);
  result.model_flops = workload::model_flops(context.model, context.stack, job.global_batch, job.seq);
  result.hardware_flops = result.model_flops + recompute_flops(program, step);
  result.causal_half = context.stack.causal_skip;
  result.peak = context.cluster.accelerator.peak(job.precision);
  result.mfu = result.model_flops / (devices * result.peak * step.time);
  result.hfu = result.hardware_flops / (devices * result.peak * step.time);
}

// Transfers that a rank receives in one step: activations from the stage before and gradients from the one behind, but
// for the first and the last chunk of the model.
Seconds transfer_total(const Context& context, const Program& program, std::int64_t stage) {
  const std::int64_t p = program.plan.pp;
  if (p == 1) { return Seconds(0); }
  const auto hop = [&](std::int64_t sender) {  // the stage that sends activations over it
    return context.fabric.transfer(program.transfer_bytes,
                                   program.mesh.transfer_dimension[static_cast<std::size_t>(sender)]);
  };
  const auto forward = static_cast<double>(program.plan.vpp - (stage == 0 ? 1 : 0));
  const auto backward = static_cast<double>(program.plan.vpp - (stage == p - 1 ? 1 : 0));
  const auto m = static_cast<double>(program.pipeline.micro_batches);
  return m * (forward * hop((stage + p - 1) % p) + backward * hop(stage));
}

// What a rank of the critical stage waits for between its busy times.
struct Waiting {
  Seconds own_transfers;  // whether waited for or not
  Seconds transfers, first_gathers, bubble;
};

// Slow transfers make stages wait for each other, too, and so do weights that come late: of the waiting that would
// vanish with them, a rank's own transfers and gathers are charged to communication and the rest to the bubble.
Waiting waiting_of(const Context& context, const Program& program, const Step& step, const Busy& busy) {
  Waiting waiting;
  waiting.own_transfers = transfer_total(context, program, step.critical_stage);
  waiting.bubble = max(Seconds(0), step.pipeline_end - busy.time());
  const auto charge = [&](Seconds own, Seconds without) {
    const Seconds charged = max(Seconds(0), min(min(own, waiting.bubble), step.pipeline_end - without));
    waiting.bubble -= charged;
    return charged;
  };
  Seconds own_gathers;
  for (const auto& chunk : program.classes[class_of(program, step.critical_stage)].chunks) {
    own_gathers += segment_data_parallel(chunk.first_forward, step.blocks);
  }
  waiting.first_gathers = charge(own_gathers, step.without_first_gathers);
  waiting.transfers = charge(waiting.own_transfers, step.without_transfers);
  return waiting;
}

std::vector<std::string> not_modelled(const Context& context, const Program& program) {
  std::vector<std::string> list = {
      "compute slowed by communication that runs beside it",
      "groups that contend for the same link at the same time",
      "stragglers, jitter, failures",
      "allocator fragmentation beyond the stack's reserve",
  };
  if (!program.mesh.group(parallel::GroupKind::tp).regular || !program.mesh.group(parallel::GroupKind::dp).regular) {
    list.emplace_back("a group falls unevenly into nodes: all its traffic is charged to the outermost dimension");
  }
  const std::int64_t window = context.model.sliding_window;
  if (window > 0 && program.job.seq > window) {
    list.push_back(fmt::format("a sliding window of {} tokens: attention is counted over the whole sequence", window));
  }
  return list;
}

}  // namespace

results::Estimate describe(const Context& context, const Program& program, const Step& step) {
  results::Estimate result;
  result.model = context.model.name;
  result.cluster = context.cluster.name;
  result.stack = context.stack.name;
  result.precision = hardware::name_of(program.job.precision);
  result.global_batch = program.job.global_batch;
  result.seq = program.job.seq;
  result.devices = program.plan.devices();
  result.step_time = step.time;
  result.plan = summary(program);
  set_rates(result, context, program, step);

  const std::size_t critical = class_of(program, step.critical_stage);
  const Busy busy = busy_of(program, step, critical);
  const Cost& finish = step.finishes[critical];
  const Waiting waiting = waiting_of(context, program, step, busy);
  const Seconds finish_wait = step.finish - finish.time;  // for a stage with a longer optimizer step

  const Seconds tp_exposed = busy.work.tensor_parallel.exposed;
  const Seconds dp_exposed = busy.work.data_parallel.exposed + busy.stall + waiting.first_gathers + step.reduce_tail +
                             finish.data_parallel.exposed;
  const Cost reduce_left = segment_work(program.classes[critical].finish_reduce, step.blocks);
  result.comm_by_group = {
      {"tp", busy.work.tensor_parallel.busy, tp_exposed},
      {"dp",
       busy.data_parallel + busy.work.data_parallel.busy + finish.data_parallel.busy + reduce_left.data_parallel.busy,
       dp_exposed},
      {"pp", waiting.own_transfers, waiting.transfers},
  };
  for (auto& group : result.comm_by_group) {
    group.exposed = min(group.exposed, group.total);  // the two are sums in different orders; last bits differ
    result.comm_total += group.total;
    result.comm_exposed += group.exposed;
  }
  result.breakdown.compute = busy.work.compute;
  result.breakdown.recompute = busy.work.recompute;
  result.breakdown.exposed_comm = result.comm_exposed;
  result.breakdown.optimizer = finish.optimizer + finish_wait;
  result.breakdown.bubble = waiting.bubble;
  result.breakdown.host = context.stack.host_overhead;
  result.not_modelled = not_modelled(context, program);
  return result;
}

namespace {

class TermWriter {
 public:
  TermWriter(const Context& context, const Program& program) : context_(context), program_(program) {}

  void add(const parallel::Segment& segment, std::string_view name, double executions) {
    for (const auto& use : segment) {
      const double count = executions * static_cast<double>(use.repeat);
      if (use.gather >= 0) { add_block(use.gather, name, count); }
      add_block(use.work, name, count);
      if (use.reduce >= 0) { add_block(use.reduce, name, count); }
    }
  }

  [[nodiscard]] std::vector<results::Term> take() { return std::move(terms_); }

 private:
  void add_block(std::int32_t index, std::string_view segment, double count) {
    for (const auto& item : program_.blocks[static_cast<std::size_t>(index)].items) {
      const bool nothing = !item.is_collective && item.kernel.kind == hardware::KernelKind::none;
      if (count == 0 || nothing) { continue; }
      const bool again = item.purpose == parallel::Purpose::recompute;
      terms_.push_back(term(item, again ? "recompute" : segment, count));
    }
  }

  [[nodiscard]] results::Term term(const parallel::Item& item, std::string_view segment, double count) const {
    results::Term term;
    term.name = item.name;
    term.segment = segment;
    term.count = count;
    if (item.is_collective) {
      const auto& group = program_.mesh.group(item.call.group);
      const network::Price price = context_.fabric.price(item.call.collective, item.call.bytes, group);
      term.bytes = item.call.bytes;
      term.time = price.time;
      term.bound = fmt::format("{} {}/{}", config::enum_name(item.call.collective), config::enum_name(price.algorithm),
                               price.protocol);
    } else {
      const cost::KernelCost cost = cost::kernel_cost(item.kernel, context_.cluster.accelerator);
      term.flops = item.kernel.flops;
      term.bytes = item.kernel.bytes;
      term.time = cost.time;
      term.bound = config::enum_name(cost.bound);
    }
    return term;
  }

  const Context& context_;
  const Program& program_;
  std::vector<results::Term> terms_;
};

// The same item in several segments becomes one line with its count added up.
std::vector<results::Term> merged(const std::vector<results::Term>& all) {
  std::vector<results::Term> lines;
  for (const auto& term : all) {
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const results::Term& line) {
      return line.name == term.name && line.segment == term.segment && line.bound == term.bound &&
             line.time == term.time && line.flops == term.flops;
    });
    if (same == lines.end()) {
      lines.push_back(term);
    } else {
      same->count += term.count;
    }
  }
  return lines;
}

}  // namespace

std::vector<results::Term> terms(const Context& context, const Program& program, const Step& step) {
  const RankClass& critical = program.classes[class_of(program, step.critical_stage)];
  const auto m = static_cast<double>(program.pipeline.micro_batches);
  TermWriter writer(context, program);
  for (const auto& chunk : critical.chunks) {
    writer.add(chunk.first_forward, "forward", 1.0);
    writer.add(chunk.forward, "forward", m - 1.0);
    writer.add(chunk.backward, "backward", m - 1.0);
    writer.add(chunk.last_backward, "backward", 1.0);
  }
  writer.add(critical.finish_reduce, "finish", 1.0);
  writer.add(critical.finish, "finish", 1.0);
  return merged(writer.take());
}

std::vector<results::RankClassTime> classes(const Program& program, const Step& step) {
  std::vector<results::RankClassTime> list;
  for (std::size_t i = 0; i < program.classes.size(); ++i) {
    const RankClass& rank_class = program.classes[i];
    std::vector<std::string> layers;
    for (const auto& chunk : rank_class.chunks) { layers.push_back(std::to_string(chunk.layers)); }
    Bytes memory;
    for (std::int64_t stage = 0; stage < program.plan.pp; ++stage) {
      if (class_of(program, stage) == i) {
        memory = max(memory, program.memory[static_cast<std::size_t>(stage)].total());
      }
    }
    list.push_back({rank_class.first_stage, rank_class.stages, fmt::format("{}", fmt::join(layers, "+")),
                    busy_of(program, step, i).time(), memory});
  }
  return list;
}

}  // namespace orrery::estimate
