#include "orrery/estimate/explain.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "orrery/estimate/group_shapes.hpp"
#include "orrery/estimate/passes.hpp"
#include "orrery/estimate/terms.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/pair_order.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/workload/operators.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::estimate {

using parallel::Program;
using parallel::RankClass;

namespace {

results::PlanValue value_of(const parallel::PlanChoice& choice, const parallel::Plan& plan) {
  using parallel::ChoiceKind;
  results::PlanValue value{choice.name, {}, false, false};
  if (choice.kind == ChoiceKind::words || choice.kind == ChoiceKind::pins) {
    value.value = parallel::text_of(choice, plan);
    value.departs = parallel::text_of(choice, parallel::Plan{}) != parallel::text_of(choice, plan);
    return value;
  }
  const auto get = choice.reported != nullptr ? choice.reported : choice.parts.front().get;
  const std::int64_t number = get(plan);
  value.departs = number != choice.usual.value_or(choice.parts.front().get(parallel::Plan{}));
  switch (choice.kind) {
    case ChoiceKind::boolean: value.value = number != 0; break;
    case ChoiceKind::name: value.value = std::string(choice.names[static_cast<std::size_t>(number)]); break;
    case ChoiceKind::number:
    case ChoiceKind::words:
    case ChoiceKind::pins: value.value = number; break;
  }
  return value;
}

// In the order of the JSON documents; choices that are not listed here come last.
results::PlanSummary summary(const Program& program) {
  static const auto choices = parallel::choices_from(results::kMainChoices);
  const bool has_tables = program.plan.tables.sharding != workload::TableSharding::none;
  parallel::Plan plan = program.plan;
  plan.dp_overlap = program.reduces_under_backward;
  results::PlanSummary summary;
  const auto add = [&](bool of_recommenders) {
    for (const auto* choice : choices) {
      if (choice->of_recommenders == of_recommenders) { summary.values.push_back(value_of(*choice, plan)); }
    }
  };
  add(false);
  summary.values.push_back({"micro_batches", program.pipeline.micro_batches, false, true});
  if (has_tables) { add(true); }
  return summary;
}

parallel::RankClassId class_of(const Program& program, std::int64_t stage) {
  return program.class_of_stage[static_cast<std::size_t>(stage)];
}

// Work and stalls of a rank of one stage between the start and the end of the pipeline, all micro-batches, without
// waits that pairs hide.
struct Busy {
  Cost work;
  Side stall;             // waiting for gathers and reductions inside forwards and backwards
  Side side;              // time of gathers and reductions on the side stream, whole step
  Seconds input_gathers;  // of inputs that have arrived in parts

  [[nodiscard]] Seconds time() const { return work.time + stall.total() + input_gathers; }
};

// Micro-batches per chunk of a rank.
double micro_batches_of_chunk(const Program& program) {
  const auto m = static_cast<double>(program.pipeline.micro_batches);
  return program.pipeline.schedule == parallel::ScheduleKind::dualpipe ? m / 2.0 : m;
}

// Splits a stall in proportion to the dp and host traffic on the side stream.
Side split_by_traffic(Seconds stall, const Side& side) {
  const Seconds all = side.total();
  return all > Seconds(0) ? (stall / all) * side : Side{stall, Seconds(0)};
}

Seconds hidden_by_pairs(const Program& program, const Step& step, std::int64_t stage) {
  if (!parallel::has_pairs(program.pipeline)) { return Seconds(0); }
  const auto& chunks = program.class_of(stage).chunks;
  Seconds hidden;
  for (const auto& task : parallel::stage_order(program.pipeline, stage)) {
    if (task.kind != parallel::PipelineTask::Kind::pair) { continue; }
    const auto forward = chunks[static_cast<std::size_t>(task.chunk)].program;
    const auto backward = chunks[static_cast<std::size_t>(task.paired_chunk)].program;
    hidden += step.pairs[parallel::pair_index(program, forward, backward)].hidden;
  }
  return hidden;
}

// Takes what pairs hide from the waits of their halves: those for experts first, those inside recomputation last. A
// pair that takes longer than its halves waits for experts.
void hide_waits(Busy& busy, Seconds all) {
  Seconds left = all;
  const Seconds before = busy.stall.total();
  const auto hide = [&](Seconds& waiting) {
    const Seconds hidden = max(Seconds(0), min(left, waiting));
    waiting -= hidden;
    left -= hidden;
  };
  using enum TrafficKind;
  for (const TrafficKind kind : {ep, tp, cp, emb, dp, host}) { hide(busy.work.of(kind).exposed); }
  hide(busy.stall.dp);
  hide(busy.stall.host);
  const Seconds of_stalls = before - busy.stall.total();
  hide(busy.work.launch);
  hide(busy.work.recompute);
  if (left < Seconds(0)) { busy.work.of(ep).exposed -= left; }
  busy.work.time -= all - of_stalls;
}

Busy busy_of(const Program& program, const Step& step, std::int64_t stage) {
  const double m = micro_batches_of_chunk(program);
  Busy busy;
  std::int64_t number = 0;  // of the chunk
  for (const auto& place : program.class_of(stage).chunks) {
    if (parallel::receives_activations(program.plan, stage, number)) { busy.input_gathers += m * step.input_gather; }
    if (parallel::receives_gradients(program.plan, stage, number)) { busy.input_gathers += m * step.input_gather; }
    ++number;
    const ChunkCost& cost = step.chunks[place.program.index()];
    const auto& chunk = program.program_of(place);
    const auto side = [&](const parallel::Segment& segment) { return segment_side(segment, step.blocks); };
    for (const Cost* work : {&cost.forward, &cost.backward, &cost.weight}) { busy.work += m * *work; }
    busy.stall += m * split_by_traffic(cost.forward_stall, side(chunk.forward));
    busy.stall += m * split_by_traffic(cost.backward_stall, side(chunk.backward));
    busy.stall += m * split_by_traffic(cost.weight_stall, side(chunk.weight));
    const bool splits = !chunk.weight.empty();
    busy.side += side(chunk.first_forward);
    busy.side += (m - 1.0) * side(chunk.forward);
    busy.side += (splits ? m : m - 1.0) * side(chunk.backward);
    busy.side += (m - 1.0) * side(chunk.weight);
    busy.side += side(chunk.last_backward);
  }
  hide_waits(busy, hidden_by_pairs(program, step, stage));
  return busy;
}

Flops recompute_flops(const Program& program, const Step& step) {
  Flops per_replica;
  for (const auto& rank_class : program.classes) {
    per_replica +=
        static_cast<double>(rank_class.stages) * busy_of(program, step, rank_class.first_stage).work.recompute_flops;
  }
  return static_cast<double>(program.plan.stage_ranks()) * per_replica;
}

void set_rates(results::Estimate& result, const Context& context, const Program& program, const Step& step) {
  const auto& job = program.job;
  const auto devices = static_cast<double>(program.plan.devices());
  result.samples_per_s = static_cast<double>(job.global_batch) / step.time.value();
  result.tokens_per_s = result.samples_per_s * static_cast<double>(job.seq);
  result.model_flops = workload::model_flops(context.model, context.stack, job.global_batch, job.seq, job.adapter);
  result.hardware_flops = result.model_flops + recompute_flops(program, step);
  result.peak = context.cluster.accelerator.peak(job.precision);
  result.mfu = result.model_flops / (devices * result.peak * step.time);
  result.hfu = result.hardware_flops / (devices * result.peak * step.time);
}

// Time of all transfers that a rank receives in one step: activations from the previous stage and gradients from the
// next one. The first and the last chunk of the model each receive only one of the two. Under DualPipe half of the
// micro-batches come from either end.
struct Transfers {
  Seconds forward, backward, total;
};

Transfers transfers_of(const Context& context, const Program& program, std::int64_t stage) {
  const std::int64_t p = program.plan.pp;
  if (p == 1) { return {}; }
  const auto hop = [&](std::int64_t sender) {  // sender: the stage that sends activations over this hop
    return price_hop(program, context.fabric, program.mesh.transfer_dimension[static_cast<std::size_t>(sender)]);
  };
  const auto m = static_cast<double>(program.pipeline.micro_batches);
  const bool bidirectional = program.pipeline.schedule == parallel::ScheduleKind::dualpipe;
  const auto chunks = static_cast<double>(bidirectional ? 1 : program.plan.vpp);
  const double forward = chunks - (stage == 0 ? 1.0 : 0.0);
  const double backward = chunks - (stage == p - 1 ? 1.0 : 0.0);
  const Seconds activations = forward * hop((stage + p - 1) % p), gradients = backward * hop(stage);
  return {m * activations, m * gradients, m * (activations + gradients)};
}

// Time for which a rank of the critical stage has no work.
struct Waiting {
  Transfers own_transfers;                           // all transfers, exposed or not
  Seconds transfers, first_gathers, slowed, bubble;  // slowed: by its reductions, in its last backwards
};

// Slow transfers and late weights also make stages wait for each other. Of the waiting time that would vanish if they
// were free, at most the rank's own transfers and gathers count as communication; the rest counts as bubble.
Waiting waiting_of(const Context& context, const Program& program, const Step& step, const Busy& busy) {
  Waiting waiting;
  waiting.own_transfers = transfers_of(context, program, step.critical_stage);
  waiting.bubble = max(Seconds(0), step.pipeline_end - busy.time());
  waiting.slowed = min(step.last_extra, waiting.bubble);
  waiting.bubble -= waiting.slowed;
  const auto charge = [&](Seconds own, Seconds without) {
    const Seconds charged = max(Seconds(0), min(min(own, waiting.bubble), step.pipeline_end - without));
    waiting.bubble -= charged;
    return charged;
  };
  Seconds own_gathers;
  for (const auto& place : program.class_of(step.critical_stage).chunks) {
    own_gathers += segment_side(program.program_of(place).first_forward, step.blocks).total();
  }
  waiting.first_gathers = charge(own_gathers, step.without_first_gathers);
  waiting.transfers = charge(waiting.own_transfers.total, step.without_transfers);
  return waiting;
}

std::vector<std::string> not_modelled(const Context& context, const Program& program) {
  std::vector<std::string> list = {
      context.stack.overlap.interference > 0.0 ? "slowdown of compute by concurrent collectives of the same layer"
                                               : "slowdown of compute by concurrent communication",
      "link contention other than that of data-parallel collectives with those inside layers",
      context.cluster.speed_spread > 0.0 ? "jitter from step to step, failures" : "stragglers, jitter, failures",
      "allocator fragmentation beyond the stack's reserve",
  };
  const auto& groups = program.mesh.groups;
  if (!std::all_of(groups.begin(), groups.end(), [](const auto& group) { return group.regular; })) {
    list.emplace_back("a group fills its nodes unevenly: all its traffic is charged to the outermost dimension");
  }
  if (context.model.has_experts()) { list.emplace_back("skewed routing: every expert gets the same number of tokens"); }
  if (context.model.has_tower() && context.model.tower.images == 0) {
    list.emplace_back("the vision tower: the job is text only (--images gives images per sequence)");
  }
  if (context.model.is_recommender()) {
    list.emplace_back("skewed lookups: rows of a table are accessed uniformly");
    list.emplace_back("ranks with fewer tables: all ranks are priced as the one with the most work");
  }
  if (program.plan.offload.any()) {
    list.emplace_back(
        "concurrent transfers to and from the second tier: they are serialized with each other and with gathers "
        "and reductions");
  }
  return list;
}

constexpr std::size_t kTp = 0, kDp = 3;  // indices in kReportedGroups

}  // namespace

void describe_job(results::Estimate& result, const Context& context, const Program& program) {
  result.model = context.model.name;
  result.samples_only = context.model.is_recommender();
  result.cluster = context.cluster.name;
  result.stack = context.stack.name;
  result.precision = hardware::name_of(program.job.precision);
  const workload::Formats& formats = program.job.formats;
  if (formats.weights) { result.weight_format = hardware::name_of(*formats.weights); }
  if (formats.cache) { result.kv_format = hardware::name_of(*formats.cache); }
  if (program.job.is_inference() && workload::names_quantized(context.model, program.job.precision, formats)) {
    result.quantized = config::enum_name(formats.quantized);
  }
  if (formats.attention) { result.attention_precision = hardware::name_of(*formats.attention); }
  if (program.job.precision == hardware::Precision::fp8) {
    result.fp8_recipe = hardware::name_of(context.stack.fp8_recipe);
  }
  if (const auto kind = context.stack.optimizer.kind;
      kind != hardware::OptimizerKind::adam && !program.job.is_inference()) {
    result.optimizer = hardware::name_of(kind);
  }
  result.padding = parallel::padding_text(context.model, program.job, program.plan.tp);
  result.global_batch = program.job.global_batch;
  result.seq = program.job.seq;
  result.devices = program.plan.devices();
  result.straggler_slowdown = context.cluster.accelerator.slowdown;
  result.task = config::enum_name(program.job.task);
  result.images = context.model.tower.images;
  result.image_size = result.images > 0 ? context.model.tower.image : 0;
  result.lora = program.job.adapter.rank;
  result.plan = summary(program);
  result.groups = group_shapes(program, context.cluster);
  result.not_modelled = not_modelled(context, program);
  result.warnings = context.model.warnings;
  for (std::string& warning : hardware::warnings_of(context.cluster)) { result.warnings.push_back(std::move(warning)); }
  if (program.job.is_inference()) {
    auto warning = workload::checkpoint_warning(context.model, program.job.precision, program.job.formats);
    if (!warning.empty()) { result.warnings.push_back(std::move(warning)); }
  }
  if (program.job.seq > context.model.max_seq) {
    result.warnings.push_back(fmt::format("a sequence has {} tokens; the model is made for at most {}", program.job.seq,
                                          context.model.max_seq));
  }
  const hardware::Ground ground = hardware::weakest_ground(context.cluster);
  result.validity = config::enum_name(ground.basis);
  result.validity_note = std::string(ground.of);
  const bool skips =
      context.stack.attention.kernel == hardware::AttentionKernel::flash && context.stack.attention.causal_skip;
  result.causal_half = skips && context.model.causal;  // as model_flops counts
}

results::Estimate describe(const Context& context, const Program& program, const Step& step) {
  results::Estimate result;
  describe_job(result, context, program);
  result.step_time = step.time;
  set_rates(result, context, program, step);

  const parallel::RankClassId critical = class_of(program, step.critical_stage);
  const Busy busy = busy_of(program, step, step.critical_stage);
  const Cost& finish = step.finishes[critical.index()];
  const Cost reduce_left = segment_work(program.classes[critical].finish_reduce, step.blocks);
  const Waiting waiting = waiting_of(context, program, step, busy);
  // If another stage is ready later, only the part of this stage's synchronisation that ends after it delays the step;
  // the rest is waiting for the pipeline.
  const Seconds idle = max(Seconds(0), step.ready - (step.pipeline_end + step.reduce_tail));
  const Seconds reduce_tail = max(Seconds(0), step.reduce_tail - idle);
  const Seconds finish_wait = step.finish - finish.time;  // another stage may have a longer optimizer step

  for (const auto& [name, kind] : kReportedGroups) {
    const CommunicationTime &work = busy.work.of(kind), &end = finish.of(kind), &left = reduce_left.of(kind);
    result.comm_by_group.push_back({std::string(name), work.busy + end.busy + left.busy, work.exposed + end.exposed});
  }
  if (context.model.is_recommender()) {
    const CommunicationTime &work = busy.work.of(TrafficKind::emb), &end = finish.of(TrafficKind::emb);
    result.comm_by_group.push_back({"emb", work.busy + end.busy, work.exposed + end.exposed});
  }
  result.comm_by_group[kTp].total += busy.input_gathers;
  result.comm_by_group[kTp].exposed += busy.input_gathers;
  result.comm_by_group[kDp].total += busy.side.dp;
  result.comm_by_group[kDp].exposed += busy.stall.dp + waiting.first_gathers + waiting.slowed + reduce_tail;
  result.comm_by_group.push_back({"pp", waiting.own_transfers.total, waiting.transfers});
  Seconds beyond;  // waiting for gathers of other stages, and rounding of sums
  for (auto& group : result.comm_by_group) {
    beyond += max(Seconds(0), group.exposed - group.total);
    group.exposed = min(group.exposed, group.total);
    result.comm_total += group.total;
    result.comm_exposed += group.exposed;
  }
  result.breakdown.compute = busy.work.compute;
  result.breakdown.recompute = busy.work.recompute;
  result.breakdown.exposed_comm = result.comm_exposed;
  result.breakdown.optimizer = finish.optimizer + finish_wait;
  result.breakdown.offload =
      busy.work.of(TrafficKind::host).exposed + busy.stall.host + finish.of(TrafficKind::host).exposed;
  result.breakdown.bubble = waiting.bubble + idle + (step.reduce_tail - reduce_tail) + beyond;
  result.breakdown.host = context.stack.host.step_overhead + busy.work.launch;
  const ExposedOutside outside{waiting.first_gathers, waiting.slowed + reduce_tail, waiting.own_transfers.forward,
                               waiting.own_transfers.backward};
  result.passes = passes(context, program, step, outside, result.comm_by_group, result.breakdown.optimizer);
  return result;
}

namespace {

void add_input_gathers(TermWriter& writer, const Program& program, const Step& step, std::int64_t chunk) {
  const auto call = parallel::input_gather(program);
  if (!call) { return; }
  using parallel::Purpose;
  const double m = micro_batches_of_chunk(program);
  const auto add = [&](std::string_view segment, Purpose purpose) {
    writer.add({parallel::kInputGather, purpose, parallel::CollectiveLaunch{*call}}, segment, m);
  };
  if (parallel::receives_activations(program.plan, step.critical_stage, chunk)) { add("forward", Purpose::forward); }
  if (parallel::receives_gradients(program.plan, step.critical_stage, chunk)) { add("backward", Purpose::backward); }
}

}  // namespace

std::vector<results::Term> terms(const Context& context, const Program& program, const Step& step) {
  const RankClass& critical = program.classes[class_of(program, step.critical_stage)];
  const double m = micro_batches_of_chunk(program);
  TermWriter writer(context, program);
  for (std::int64_t c = 0; c < program.pipeline.chunks; ++c) { add_input_gathers(writer, program, step, c); }
  for (const auto& place : critical.chunks) {
    const auto& chunk = program.program_of(place);
    const bool splits = !chunk.weight.empty();
    writer.add(chunk.first_forward, "forward", 1.0);
    writer.add(chunk.forward, "forward", m - 1.0);
    writer.add(chunk.backward, "backward", splits ? m : m - 1.0);
    writer.add(chunk.weight, "backward", m - 1.0);
    writer.add(chunk.last_backward, "backward", 1.0);
  }
  writer.add(critical.finish_reduce, "finish", 1.0);
  writer.add(critical.finish, "finish", 1.0);
  return writer.take();
}

std::vector<results::RankClassTime> classes(const Program& program, const Step& step) {
  std::vector<results::RankClassTime> list;
  for (std::size_t i = 0; i < program.classes.size(); ++i) {
    const parallel::RankClassId id(i);
    const RankClass& rank_class = program.classes[id];
    std::vector<std::string> layers;
    for (const auto& chunk : rank_class.chunks) { layers.push_back(std::to_string(chunk.layers)); }
    Bytes memory;
    for (std::int64_t stage = 0; stage < program.plan.pp; ++stage) {
      if (class_of(program, stage) == id) {
        memory = max(memory, program.memory[static_cast<std::size_t>(stage)].total());
      }
    }
    list.push_back({rank_class.first_stage, rank_class.stages, fmt::format("{}", fmt::join(layers, "+")),
                    busy_of(program, step, rank_class.first_stage).time(), memory});
  }
  return list;
}

}  // namespace orrery::estimate
