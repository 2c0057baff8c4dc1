#include "orrery/estimate/passes.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace orrery::estimate {

using parallel::Program;
using parallel::Segment;

namespace {

constexpr std::size_t kOptimizer = kPasses;  // index of the last pass
constexpr std::array<std::string_view, kPasses + 1> kNames{"forward", "input_gradient", "weight_gradient", "optimizer"};

// Sums over the segments of one rank.
class PassSums {
 public:
  PassSums(const Context& context, const Program& program, const Step& step)
      : context_(context), program_(program), step_(step), blocks_(kPasses * program.blocks.size()) {}

  // A segment that runs `executions` times, and waits `stall` for gathers and reductions in each.
  void add(const Segment& segment, Pass own, double executions, Seconds stall) {
    Seconds gathers, reductions;  // data-parallel, and of the second tier
    Seconds host;
    for (const auto& use : segment) {
      const double count = executions * static_cast<double>(use.repeat);
      add_work(passes_of(use.work, own), count);
      add_side(use.gather, count, gathers, host);
      add_side(use.reduce, count, reductions, host);
    }
    const Seconds all = gathers + reductions + host;
    const Seconds waiting = executions * stall;
    if (!(waiting > Seconds(0))) { return; }
    if (!(all > Seconds(0))) {
      exposed(own, TrafficKind::dp) += waiting;
      return;
    }
    exposed(own, TrafficKind::dp) += waiting * (gathers / all);
    exposed(own == Pass::forward ? own : Pass::weight_gradient, TrafficKind::dp) += waiting * (reductions / all);
  }

  [[nodiscard]] Seconds& exposed(Pass pass, TrafficKind kind) {
    return sums_.passes[static_cast<std::size_t>(pass)].exposed[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] Seconds exposed(std::size_t pass, TrafficKind kind) const {
    return sums_.passes[pass].exposed[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] Seconds compute(std::size_t pass) const { return sums_.passes[pass].compute; }

 private:
  void add_work(const BlockPasses& block, double count) {
    for (std::size_t p = 0; p < kPasses; ++p) {
      sums_.passes[p].compute += count * block.passes[p].compute;
      for (std::size_t k = 0; k < kTrafficKinds; ++k) {
        sums_.passes[p].exposed[k] += count * block.passes[p].exposed[k];
      }
    }
  }

  void add_side(parallel::OptionalBlockId id, double count, Seconds& network, Seconds& host) const {
    if (!id) { return; }
    const Cost& cost = step_.blocks[(*id).index()];
    const Seconds of_host = cost.of(TrafficKind::host).busy;
    network += count * (cost.time - of_host);
    host += count * of_host;
  }

  const BlockPasses& passes_of(parallel::BlockId id, Pass own) {
    auto& kept = blocks_[kPasses * id.index() + static_cast<std::size_t>(own)];
    if (!kept) {
      kept = block_passes(program_.block(id), step_.blocks[id.index()], own, context_.fabric, program_.mesh);
    }
    return *kept;
  }

  const Context& context_;
  const Program& program_;
  const Step& step_;
  std::vector<std::optional<BlockPasses>> blocks_;  // [block][pass of the segment]
  BlockPasses sums_;
};

// Work, stalls and gathers of inputs of all micro-batches.
void add_micro_batches(PassSums& sums, const Program& program, const Step& step) {
  const auto m = static_cast<double>(program.pipeline.micro_batches);
  const double executions = program.pipeline.schedule == parallel::ScheduleKind::dualpipe ? m / 2.0 : m;
  std::int64_t number = 0;
  for (const auto& place : program.class_of(step.critical_stage).chunks) {
    const auto& chunk = program.program_of(place);
    const ChunkCost& cost = step.chunks[place.program.index()];
    sums.add(chunk.forward, Pass::forward, executions, cost.forward_stall);
    sums.add(chunk.backward, Pass::input_gradient, executions, cost.backward_stall);
    sums.add(chunk.weight, Pass::weight_gradient, executions, cost.weight_stall);
    const Seconds gathers = executions * step.input_gather;
    if (parallel::receives_activations(program.plan, step.critical_stage, number)) {
      sums.exposed(Pass::forward, TrafficKind::tp) += gathers;
    }
    if (parallel::receives_gradients(program.plan, step.critical_stage, number)) {
      sums.exposed(Pass::input_gradient, TrafficKind::tp) += gathers;
    }
    ++number;
  }
}

// Parts of `whole` in the ratio of `weights`; of input gradients if all weights are 0.
std::array<Seconds, kPasses + 1> shares(Seconds whole, const std::array<Seconds, kPasses + 1>& weights) {
  std::array<Seconds, kPasses + 1> parts{};
  Seconds sum;
  for (const Seconds weight : weights) { sum += weight; }
  if (!(sum > Seconds(0))) {
    parts[static_cast<std::size_t>(Pass::input_gradient)] = whole;
    return parts;
  }
  for (std::size_t p = 0; p < parts.size(); ++p) { parts[p] = whole * (weights[p] / sum); }
  return parts;
}

std::optional<TrafficKind> kind_named(std::string_view group) {
  for (const auto& [name, kind] : kReportedGroups) {
    if (name == group) { return kind; }
  }
  if (group == "emb") { return TrafficKind::emb; }
  return std::nullopt;  // "pp"
}

}  // namespace

std::vector<results::PassTime> passes(const Context& context, const Program& program, const Step& step,
                                      const ExposedOutside& outside, std::span<const results::GroupTime> groups,
                                      Seconds optimizer) {
  PassSums sums(context, program, step);
  add_micro_batches(sums, program, step);
  sums.exposed(Pass::forward, TrafficKind::dp) += outside.first_gathers;
  sums.exposed(Pass::weight_gradient, TrafficKind::dp) += outside.reductions;
  const Cost& finish = step.finishes[program.class_of_stage[static_cast<std::size_t>(step.critical_stage)].index()];
  std::vector<results::PassTime> list;
  for (std::size_t p = 0; p <= kPasses; ++p) {
    list.push_back({kNames[p], p == kOptimizer ? optimizer : sums.compute(p), {}});
  }
  for (const auto& group : groups) {
    std::array<Seconds, kPasses + 1> weights{outside.forward_transfers, outside.backward_transfers, {}, {}};
    if (const auto kind = kind_named(group.group)) {
      for (std::size_t p = 0; p < kPasses; ++p) { weights[p] = sums.exposed(p, *kind); }
      weights[kOptimizer] = finish.of(*kind).exposed;
    }
    const auto parts = shares(group.exposed, weights);
    for (std::size_t p = 0; p <= kPasses; ++p) { list[p].exposed.push_back(parts[p]); }
  }
  return list;
}

}  // namespace orrery::estimate
