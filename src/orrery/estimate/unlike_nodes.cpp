#include "orrery/estimate/unlike_nodes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/parallel/layout.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/rank_nodes.hpp"

namespace orrery::estimate {

using parallel::BlockId;
using parallel::ChunkProgramId;
using parallel::Program;
using parallel::RankClassId;

namespace {

// Consecutive ranks of a stage that wait for each other in every layer.
std::int64_t ranks_in_lockstep(const workload::Model& model, const parallel::Plan& plan, const hardware::Stack& stack) {
  const bool is_of_replicas = plan.zero == 3 || parallel::reduces_every_micro_batch(plan, stack);
  if (is_of_replicas || model.is_recommender()) { return plan.stage_ranks(); }
  return std::lcm(plan.tp * plan.cp, model.has_experts() ? plan.ep * plan.etp : 1);
}

template <class See>
void for_each_rank(const hardware::Cluster& cluster, const parallel::Plan& plan, See&& see) {
  const parallel::Layout layout = parallel::layout_of(cluster, plan);
  for (std::int64_t rank = 0; rank < plan.devices(); ++rank) {
    see(rank, parallel::nodes_entry(cluster, layout, rank));
  }
}

}  // namespace

std::vector<StageNodes> stage_nodes(const hardware::Cluster& cluster, const workload::Model& model,
                                    const parallel::Plan& plan, const hardware::Stack& stack) {
  const std::int64_t together = std::min(ranks_in_lockstep(model, plan, stack), plan.stage_ranks());
  const auto sets = static_cast<std::size_t>((plan.stage_ranks() + together - 1) / together);
  std::vector<StageNodes> all(sets, StageNodes(static_cast<std::size_t>(plan.pp), 0));
  for_each_rank(cluster, plan, [&](std::int64_t rank, std::size_t entry) {
    const auto stage = static_cast<std::size_t>(rank / plan.stage_ranks());
    all[static_cast<std::size_t>(rank % plan.stage_ranks() / together)][stage] |= NodeSet{1} << entry;
  });
  const std::set<StageNodes> different(all.begin(), all.end());
  return {different.begin(), different.end()};
}

// ---- a program with blocks for each set of nodes -------------------------------------------------------------------

namespace {

class NodeProgramBuilder {
 public:
  NodeProgramBuilder(const Program& program, const StageNodes& nodes) : program_(program), nodes_(nodes) {
    for (const NodeSet set : nodes) {
      const auto next = static_cast<std::size_t>(number_.size());
      number_.try_emplace(set, next);
    }
  }

  NodeProgram run() {
    NodeProgram made{program_, {}};
    made.program.blocks.clear();
    made.program.chunks.clear();
    made.program.classes.clear();
    std::vector<NodeSet> sets(number_.size());
    for (const auto& [set, number] : number_) { sets[number] = set; }
    for (const NodeSet set : sets) {
      for (const auto& block : program_.blocks) {
        made.program.blocks.push_back(block);
        made.nodes.push_back(set);
      }
      for (const auto& chunk : program_.chunks) { made.program.chunks.push_back(moved(chunk, number_.at(set))); }
    }
    add_classes(made.program);
    return made;
  }

 private:
  [[nodiscard]] BlockId moved(BlockId block, std::size_t number) const {
    return BlockId(block.index() + number * program_.blocks.size());
  }

  [[nodiscard]] parallel::Segment moved(parallel::Segment segment, std::size_t number) const {
    for (parallel::BlockUse& use : segment) {
      use.work = moved(use.work, number);
      if (use.gather) { use.gather = moved(*use.gather, number); }
      if (use.reduce) { use.reduce = moved(*use.reduce, number); }
    }
    return segment;
  }

  [[nodiscard]] parallel::ChunkProgram moved(parallel::ChunkProgram chunk, std::size_t number) const {
    for (parallel::Segment* segment :
         {&chunk.forward, &chunk.backward, &chunk.weight, &chunk.last_backward, &chunk.first_forward, &chunk.decode}) {
      *segment = moved(std::move(*segment), number);
    }
    return chunk;
  }

  void add_classes(Program& made) const {
    std::map<std::pair<std::size_t, std::size_t>, RankClassId> known;
    for (std::size_t stage = 0; stage < nodes_.size(); ++stage) {
      const RankClassId old = program_.class_of_stage[stage];
      const std::size_t number = number_.at(nodes_[stage]);
      const auto [found, is_new] = known.try_emplace({old.index(), number}, RankClassId(made.classes.size()));
      if (is_new) {
        parallel::RankClass rank_class = program_.classes[old];
        rank_class.first_stage = static_cast<std::int64_t>(stage);
        rank_class.stages = 0;
        for (parallel::Chunk& chunk : rank_class.chunks) {
          chunk.program = ChunkProgramId(chunk.program.index() + number * program_.chunks.size());
        }
        rank_class.finish_reduce = moved(std::move(rank_class.finish_reduce), number);
        rank_class.finish = moved(std::move(rank_class.finish), number);
        made.classes.push_back(std::move(rank_class));
      }
      made.class_of_stage[stage] = found->second;
      ++made.classes[found->second].stages;
    }
  }

  const Program& program_;
  const StageNodes& nodes_;
  std::map<NodeSet, std::size_t> number_;
};

}  // namespace

NodeProgram by_nodes(const Program& program, const StageNodes& nodes) {
  return NodeProgramBuilder(program, nodes).run();
}

// ---- prices --------------------------------------------------------------------------------------------------------

UnlikeNodes::Kind::Kind(const hardware::Cluster& whole, const hardware::Accelerator& accelerator,
                        const hardware::Stack& stack)
    : cluster([&] {
        hardware::Cluster of = whole;
        of.accelerator = accelerator;
        return of;
      }()),
      fabric(cluster, stack.transfers),
      prices(fabric) {}

UnlikeNodes::UnlikeNodes(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack)
    : model_(model), cluster_(cluster), stack_(stack) {
  for (const hardware::Nodes& nodes : cluster.nodes) {
    kinds_.push_back(std::make_unique<Kind>(cluster, nodes.accelerator, stack));
  }
}

// Of a block, the longest of its nodes, and what it needs of ports there.
WorkPrice UnlikeNodes::prices_of(const NodeProgram& made, Ports ports) {
  const parallel::Mesh& mesh = made.program.mesh;
  const unsigned all_dimensions = (1U << cluster_.dimensions.size()) - 1U;
  WorkPrice prices;
  for (std::size_t i = 0; i < made.program.blocks.size(); ++i) {
    const parallel::Block& block = made.program.block(BlockId(i));
    Kind* slowest = nullptr;
    Cost longest;
    for (std::size_t entry = 0; entry < kinds_.size(); ++entry) {
      if ((made.nodes[i] >> entry & 1U) == 0) { continue; }
      Kind& kind = *kinds_[entry];
      const Cost cost = price_block(block, kind.fabric, mesh, &kind.prices);
      if (slowest != nullptr && cost.time <= longest.time) { continue; }
      slowest = &kind;
      longest = cost;
    }
    ORRERY_ASSERT(slowest != nullptr);
    prices.blocks.push_back(longest);
    if (ports == Ports::separate) { continue; }
    PortUses uses = port_uses(block, longest.time, mesh, slowest->prices);
    find_contended_times(uses, all_dimensions, block, mesh, slowest->prices);
    prices.port_uses.emplace_back(std::move(uses));
  }
  return prices;
}

UnlikeNodes::Solved UnlikeNodes::solve(const Program& program, StepSolver& solver, Explained explained, Ports ports) {
  Seconds ready(-1.0), finish;
  for (const StageNodes& nodes : stage_nodes(cluster_, model_, program.plan, stack_)) {
    NodeProgram made = by_nodes(program, nodes);
    WorkPrice prices = prices_of(made, ports);
    const Step& step = solver.solve(made.program, &prices, explained, ports);
    finish = max(finish, step.finish);
    if (step.ready <= ready) { continue; }
    ready = step.ready;
    step_ = step;
    program_ = std::move(made);
  }
  // The optimizer waits for the gradients of all replicas, the step for the optimizers of all ranks.
  step_.time += finish - step_.finish;
  step_.finish = finish;
  const Kind& kind = slowest(program_, step_.critical_stage);
  return {program_.program, step_, kind.cluster, kind.fabric};
}

UnlikeNodes::SolvedBatch UnlikeNodes::solve_batch(const Program& program) {
  Seconds longest(-1.0);
  for (const StageNodes& nodes : stage_nodes(cluster_, model_, program.plan, stack_)) {
    NodeProgram made = by_nodes(program, nodes);
    const WorkPrice prices = prices_of(made, Ports::separate);
    std::map<NodeSet, std::vector<const network::Fabric*>> machines;
    for (const NodeSet set : nodes) {
      auto& of_set = machines[set];
      if (!of_set.empty()) { continue; }
      for (std::size_t entry = 0; entry < kinds_.size(); ++entry) {
        if ((set >> entry & 1U) != 0) { of_set.push_back(&kinds_[entry]->fabric); }
      }
    }
    const MachinesOf machines_of = [&](BlockId block) -> std::span<const network::Fabric* const> {
      return machines.at(made.nodes[block.index()]);
    };
    Generation generation = solve_inference(made.program, kinds_.front()->fabric, prices.blocks, machines_of);
    if (generation.total() <= longest) { continue; }
    longest = generation.total();
    generation_ = std::move(generation);
    program_ = std::move(made);
  }
  const Kind& kind = slowest(program_, generation_.critical_stage);
  return {program_.program, generation_, kind.cluster, kind.fabric};
}

// By the time of the blocks of a stage, each once.
const UnlikeNodes::Kind& UnlikeNodes::slowest(const NodeProgram& made, std::int64_t stage) {
  const Program& program = made.program;
  const Kind* found = nullptr;
  Seconds longest(-1.0);
  for (std::size_t entry = 0; entry < kinds_.size(); ++entry) {
    Kind& kind = *kinds_[entry];
    Seconds sum;
    bool is_there = false;
    for (const parallel::Chunk& chunk : program.class_of(stage).chunks) {
      for (const parallel::BlockUse& use : program.program_of(chunk).forward) {
        is_there = is_there || (made.nodes[use.work.index()] >> entry & 1U) != 0;
        const Cost cost = price_block(program.block(use.work), kind.fabric, program.mesh, &kind.prices);
        sum += static_cast<double>(use.repeat) * cost.time;
      }
    }
    if (!is_there || sum <= longest) { continue; }
    longest = sum;
    found = &kind;
  }
  return found != nullptr ? *found : *kinds_.front();
}

std::vector<Bytes> UnlikeNodes::memory(const parallel::Plan& plan) const {
  std::vector<Bytes> least(static_cast<std::size_t>(plan.pp), infinite<Bytes>());
  for_each_rank(cluster_, plan, [&](std::int64_t rank, std::size_t entry) {
    Bytes& of = least[static_cast<std::size_t>(rank / plan.stage_ranks())];
    of = min(of, cluster_.nodes[entry].accelerator.memory);
  });
  return least;
}

std::vector<results::StageNodes> UnlikeNodes::accelerators(const parallel::Plan& plan) const {
  std::vector<NodeSet> sets(static_cast<std::size_t>(plan.pp), 0);
  for_each_rank(cluster_, plan, [&](std::int64_t rank, std::size_t entry) {
    sets[static_cast<std::size_t>(rank / plan.stage_ranks())] |= NodeSet{1} << entry;
  });
  std::vector<results::StageNodes> stages;
  for (std::size_t stage = 0; stage < sets.size(); ++stage) {
    std::vector<std::string> names;
    for (std::size_t entry = 0; entry < cluster_.nodes.size(); ++entry) {
      const std::string& name = cluster_.nodes[entry].accelerator.name;
      const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
      if ((sets[stage] >> entry & 1U) != 0 && !is_known) { names.push_back(name); }
    }
    if (!stages.empty() && stages.back().accelerators == names) {
      ++stages.back().stages;
    } else {
      stages.push_back({static_cast<std::int64_t>(stage), 1, std::move(names)});
    }
  }
  return stages;
}

}  // namespace orrery::estimate
