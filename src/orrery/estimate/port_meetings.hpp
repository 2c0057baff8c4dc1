// Which tasks and calls of a program meet on ports: what both need of these, by block, chunk program and rank class.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "orrery/estimate/chunk_cost.hpp"
#include "orrery/estimate/port_sharing.hpp"
#include "orrery/estimate/priced.hpp"
#include "orrery/estimate/work_prices.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

struct PortMeeting {
  PortUses tasks;       // of a chunk program: one micro-batch; of a class: all that run beside the calls
  PortUses concurrent;  // the calls, once a step
  bool known = false;   // of a class
};

// Buffers are reused.
class PortMeetings {
 public:
  explicit PortMeetings(network::PriceCache& prices) : prices_(prices) {}

  // For a program whose blocks have these prices. `known`: of its first blocks; keeps what they need of ports.
  // `gathers`: [chunk program]. All must live as long as the answers are used.
  void find(const parallel::Program& program, const std::vector<Cost>& blocks, std::span<const FirstGathers> gathers,
            WorkPrice* known);
  void clear();  // as if no ports were shared

  [[nodiscard]] bool any() const { return dimensions_ != 0; }
  // Dimensions whose ports gathers and reductions of weights use, and collectives inside blocks, too: a bit each.
  [[nodiscard]] unsigned dimensions() const { return dimensions_; }
  // [block]; null: it meets none. Of blocks that run concurrently with a gather or reduction, and of these.
  [[nodiscard]] const std::vector<const PortUses*>* ports() const { return any() ? &ports_ : nullptr; }

  // Forwards of a stage and gathers of updated weights; backwards and reductions of other chunks. `in_a_row`: tasks of
  // each chunk but the last, which has one; the same for all stages of a class.
  [[nodiscard]] const PortMeeting& gathers(parallel::RankClassId of, double in_a_row) {
    return of_class(of, &Meetings::gathers, gathered_on_, in_a_row);
  }
  [[nodiscard]] const PortMeeting& reductions(parallel::RankClassId of, double in_a_row) {
    return of_class(of, &Meetings::reductions, reduced_on_, in_a_row);
  }

 private:
  struct Meetings {
    PortMeeting gathers, reductions;
  };

  [[nodiscard]] unsigned dimensions_of(std::initializer_list<parallel::GroupKind> groups) const;
  [[nodiscard]] unsigned shared_dimensions() const;
  void find_blocks();
  void find_chunks(std::span<const FirstGathers> gathers);
  [[nodiscard]] bool reduces_beside_others(const parallel::ChunkProgram& chunk) const;
  void add_tasks(PortUses& sum, const parallel::Segment& segment, unsigned dimensions);
  void add_call(PortUses& sum, const parallel::BlockUse& use, parallel::OptionalBlockId call);
  void find_block(parallel::BlockId id, bool is_work);
  [[nodiscard]] PortUses computed_uses(parallel::BlockId id, bool is_work);
  const PortMeeting& of_class(parallel::RankClassId of, PortMeeting Meetings::* kind, unsigned dimensions,
                              double in_a_row);

  network::PriceCache& prices_;
  const parallel::Program* program_ = nullptr;
  const std::vector<Cost>* blocks_ = nullptr;
  WorkPrice* known_ = nullptr;
  unsigned dimensions_ = 0;                    // 0 if ports are not shared
  unsigned gathered_on_ = 0, reduced_on_ = 0;  // dimensions of the calls of chunks_
  std::vector<const PortUses*> ports_;         // [block]
  std::vector<PortUses> own_;                  // [block], of those without a kept price
  std::vector<Meetings> chunks_;               // [chunk program]
  std::vector<Meetings> classes_;              // [rank class], as far as stages have needed them
};

}  // namespace orrery::estimate
