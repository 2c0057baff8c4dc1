#include "orrery/estimate/inference.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/estimate/terms.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::estimate {

using parallel::Program;
using parallel::Segment;

namespace {

constexpr double kTokenId = 8.0;  // bytes sent from the last stage to the first, per sequence

// One stage's decode of the first token after the prompt, and the kernels that take longer with every additional token.
struct DecodeWork {
  struct Growing {
    const parallel::KernelLaunch* launch;
    parallel::BlockId block;
    double repeat;
    Seconds first;  // time of the kernel, as part of `start`
  };
  Cost start;
  std::vector<Growing> growing;
  const Segment* fetching = nullptr;  // the segment, if it fetches weights on the side stream
};

// Work of a segment plus exposed waiting for weights that are fetched on the side stream.
Cost run(const Segment& segment, const std::vector<Cost>& blocks) {
  Cost cost = segment_work(segment, blocks);
  const Side side = segment_side(segment, blocks);
  if (side.total() == Seconds(0)) { return cost; }
  const Seconds stall = max(Seconds(0), run_segment(segment, blocks, {}).compute - cost.time);
  cost.time += stall;
  cost.of(TrafficKind::host).busy += side.host;
  cost.of(TrafficKind::host).exposed += stall;
  return cost;
}

bool grows(const parallel::KernelLaunch* launch) { return launch != nullptr && launch->growth != workload::Growth{}; }

bool fetches(const Segment& segment) {
  return std::any_of(segment.begin(), segment.end(), [](const auto& use) { return use.gather.has_value(); });
}

class BatchSolver {
 public:
  BatchSolver(const Program& program, const network::Fabric& fabric, const MachinesOf& machines)
      : program_(program), fabric_(fabric), machines_(machines), stages_(static_cast<std::size_t>(program.plan.pp)) {}

  Generation run(std::span<const Cost> known) {
    generation_.blocks.assign(known.begin(), known.end());
    for (std::size_t i = known.size(); i < program_.blocks.size(); ++i) {
      generation_.blocks.push_back(price_block(program_.block(parallel::BlockId(i)), fabric_, program_.mesh));
    }
    for (const auto& rank_class : program_.classes) {
      const auto& chunk = program_.program_of(rank_class.chunks.front());
      prefill_.push_back(estimate::run(chunk.forward, generation_.blocks));
      decode_.push_back(decode_work(chunk.decode));
    }
    busy_.resize(program_.classes.size());
    free_.assign(stages_, Seconds(0));
    ready_.assign(static_cast<std::size_t>(program_.pipeline.micro_batches), Seconds(0));
    run_prefill();
    run_decode();
    find_critical_stage();
    return std::move(generation_);
  }

 private:
  [[nodiscard]] Seconds kernel_time(const parallel::KernelLaunch& launch, parallel::BlockId block,
                                    std::int64_t grown) const {
    if (!machines_) { return price_kernel(launch, fabric_, grown); }
    Seconds longest;
    for (const network::Fabric* machine : machines_(block)) {
      longest = max(longest, price_kernel(launch, *machine, grown));
    }
    return longest;
  }

  DecodeWork decode_work(const Segment& segment) const {
    DecodeWork work;
    work.start = estimate::run(segment, generation_.blocks);
    if (fetches(segment)) { work.fetching = &segment; }
    for (const auto& use : segment) {
      for (const auto& item : program_.block(use.work).items) {
        const auto* collective = item.collective();
        ORRERY_ASSERT(collective == nullptr ||
                      !collective->asynchronous);  // a longer kernel would change what is hidden
        const auto* launch = item.kernel();
        if (!grows(launch)) { continue; }
        work.growing.push_back({launch, use.work, static_cast<double>(use.repeat), kernel_time(*launch, use.work, 0)});
      }
    }
    return work;
  }

  [[nodiscard]] Seconds hop(std::size_t stage, Bytes bytes) const {
    return stages_ == 1 ? Seconds(0) : fabric_.transfer(bytes, program_.mesh.transfer_dimension[stage]);
  }

  // Sends every micro-batch through the stages. `back`: time to send a token from the last stage to the first.
  void round(const std::vector<Seconds>& durations, Bytes transfer, Seconds back) {
    for (Seconds& ready : ready_) {
      Seconds at = ready;
      for (std::size_t stage = 0; stage < stages_; ++stage) {
        at = max(at, free_[stage]) + durations[class_of(stage)];
        free_[stage] = at;
        if (stage + 1 < stages_) { at += hop(stage, transfer); }
      }
      ready = at + back;
    }
  }

  void charge(const std::vector<Cost>& costs) {
    const auto m = static_cast<double>(ready_.size());
    for (std::size_t c = 0; c < costs.size(); ++c) { busy_[c] += m * costs[c]; }
  }

  static std::vector<Seconds> times_of(const std::vector<Cost>& costs) {
    std::vector<Seconds> times;
    for (const Cost& cost : costs) { times.push_back(cost.time); }
    return times;
  }

  // The time to send a token of each sequence of a micro-batch from the last stage to the first.
  [[nodiscard]] Seconds return_time() const {
    return hop(stages_ - 1, Bytes(kTokenId * static_cast<double>(program_.plan.micro_batch)));
  }

  void run_prefill() {
    round(times_of(prefill_), program_.transfer_bytes, return_time());
    charge(prefill_);
    generation_.prefill = free_.back();
  }

  // A micro-batch decodes as soon as its own prefill has ended, and a stage when it has done all prefill. Without
  // stages all sequences decode in one pass.
  void run_decode() {
    const auto& job = program_.job;
    const Bytes transfer = program_.transfer_bytes / static_cast<double>(job.prompt);  // one token of each sequence
    const Seconds back = return_time();
    ready_.resize(static_cast<std::size_t>(decode_passes(job, program_.plan)));
    Seconds end = generation_.prefill;
    std::vector<Cost> costs(decode_.size());
    for (std::int64_t token = 1; token < job.generate; ++token) {
      for (std::size_t c = 0; c < decode_.size(); ++c) { costs[c] = token_cost(decode_[c], token - 1); }
      round(times_of(costs), transfer, back);
      charge(costs);
      generation_.last_token = free_.back() - end;
      end = free_.back();
    }
    generation_.decode = end - generation_.prefill;
  }

  [[nodiscard]] Cost token_cost(const DecodeWork& work, std::int64_t grown) const {
    if (work.fetching != nullptr) { return fetched_token_cost(work, grown); }
    Cost cost = work.start;
    for (const auto& growing : work.growing) {
      const Seconds more = growing.repeat * (kernel_time(*growing.launch, growing.block, grown) - growing.first);
      cost.time += more;
      cost.compute += more;
    }
    return cost;
  }

  // Longer kernels hide more of the fetching: run the segment again with the current times.
  [[nodiscard]] Cost fetched_token_cost(const DecodeWork& work, std::int64_t grown) const {
    std::vector<Cost> blocks = generation_.blocks;
    std::vector<bool> done(blocks.size());
    for (const auto& growing : work.growing) {
      const std::size_t index = growing.block.index();
      if (done[index]) { continue; }  // the segment uses the block more than once
      for (const auto& item : program_.block(growing.block).items) {
        const auto* launch = item.kernel();
        if (!grows(launch)) { continue; }
        const Seconds more = kernel_time(*launch, growing.block, grown) - kernel_time(*launch, growing.block, 0);
        blocks[index].time += more;
        blocks[index].compute += more;
      }
      done[index] = true;
    }
    return estimate::run(*work.fetching, blocks);
  }

  void find_critical_stage() {
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      const Cost& cost = busy_[class_of(stage)];
      if (stage == 0 || cost.time > generation_.busy.time) {
        generation_.busy = cost;
        generation_.critical_stage = static_cast<std::int64_t>(stage);
      }
    }
  }

  [[nodiscard]] std::size_t class_of(std::size_t stage) const { return program_.class_of_stage[stage].index(); }

  const Program& program_;
  const network::Fabric& fabric_;
  const MachinesOf& machines_;
  std::size_t stages_;
  Generation generation_;
  std::vector<Cost> prefill_, busy_;  // [class]
  std::vector<DecodeWork> decode_;    // [class]
  std::vector<Seconds> free_;         // [stage]: when the stage is free
  std::vector<Seconds> ready_;        // [micro-batch]: when it can enter stage 0
};

double per_second(double count, Seconds time) { return time > Seconds(0) ? count / time.value() : 0.0; }

Flops flops_of(const Context& context, const parallel::Job& job) {
  Flops flops = workload::prefill_flops(context.model, context.stack, job.global_batch, job.prompt);
  for (std::int64_t token = 1; token < job.generate; ++token) {
    flops += workload::decode_flops(context.model, job.global_batch, job.prompt + token);
  }
  return flops;
}

}  // namespace

Generation solve_inference(const Program& program, const network::Fabric& fabric, std::span<const Cost> known,
                           const MachinesOf& machines) {
  ORRERY_ASSERT(program.job.is_inference() && program.job.prompt >= 1 && program.job.generate >= 1);
  return BatchSolver(program, fabric, machines).run(known);
}

results::Estimate describe(const Context& context, const Program& program, const Generation& generation) {
  results::Estimate result;
  describe_job(result, context, program);
  const auto& job = program.job;
  const auto devices = static_cast<double>(program.plan.devices());
  const auto batch = static_cast<double>(job.global_batch);
  const auto generated = static_cast<double>(job.generate);
  result.step_time = generation.total();
  result.samples_per_s = per_second(batch, generation.total());
  result.tokens_per_s = per_second(batch * generated, generation.total());
  result.model_flops = result.hardware_flops = flops_of(context, job);
  result.peak = context.cluster.accelerator.peak(job.precision);
  result.mfu = result.hfu = result.model_flops / (devices * result.peak * generation.total());

  result.breakdown.compute = generation.busy.compute;
  for (const auto& [name, kind] : kReportedGroups) {
    const CommunicationTime& traffic = generation.busy.of(kind);
    result.comm_by_group.push_back({std::string(name), traffic.busy, traffic.exposed});
    result.comm_total += traffic.busy;
    result.comm_exposed += traffic.exposed;
  }
  if (context.model.is_recommender()) {
    const CommunicationTime& traffic = generation.busy.of(TrafficKind::emb);
    result.comm_by_group.push_back({"emb", traffic.busy, traffic.exposed});
    result.comm_total += traffic.busy;
    result.comm_exposed += traffic.exposed;
  }
  result.comm_by_group.push_back({"pp", Seconds(0), Seconds(0)});
  result.breakdown.exposed_comm = result.comm_exposed;
  result.breakdown.offload = generation.busy.of(TrafficKind::host).exposed;
  result.breakdown.bubble = max(Seconds(0), generation.total() - generation.busy.time);

  results::Inference inference;
  inference.prompt = job.prompt;
  inference.generate = job.generate;
  inference.time_to_first_token = generation.prefill;
  if (job.generate > 1) { inference.time_per_output_token = generation.decode / (generated - 1.0); }
  inference.last_token = generation.last_token;
  inference.output_tokens_per_s = result.tokens_per_s;
  inference.decode_tokens_per_s = per_second(batch * (generated - 1.0), generation.decode);
  const double element = workload::cache_element(job.precision, job.formats, context.stack.storage.narrow_cache);
  inference.kv_bytes_per_token = Bytes(workload::kv_bytes_per_token(context.model, element));
  inference.state_bytes = workload::state_bytes(context.model, job.precision);
  result.inference = inference;
  result.not_modelled.emplace_back("sampling, tokenisation, scheduling of requests");
  return result;
}

std::vector<results::Term> terms(const Context& context, const Program& program, const Generation& generation) {
  const auto& chunk = program.program_of(program.class_of(generation.critical_stage).chunks.front());
  const auto m = static_cast<double>(program.pipeline.micro_batches);
  TermWriter writer(context, program);
  writer.add(chunk.forward, "prefill", m);
  const auto passes = static_cast<double>(decode_passes(program.job, program.plan));
  writer.add(chunk.decode, "decode", passes * static_cast<double>(program.job.generate - 1));
  return writer.take();
}

}  // namespace orrery::estimate
