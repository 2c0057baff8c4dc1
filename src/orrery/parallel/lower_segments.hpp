// Segments of a chunk: its parts in order, with their overlapped blocks; gradient reductions joined to buckets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/parallel/lower_parts.hpp"

namespace orrery::parallel {

class SegmentLowering {
 public:
  // `parts`: with their overlapped blocks.
  SegmentLowering(const LoweringContext& context, const IdVector<PartId, Part>& parts,
                  const IdVector<PartId, PartSizes>& sizes);

  // Writes all segments of a chunk whose forward pass runs through `uses`.
  void lower(ChunkProgram& chunk, std::span<const PartUse> uses);

 private:
  enum class Pass : std::uint8_t { forward, first_forward, decode };
  [[nodiscard]] Segment forward(std::span<const PartUse> uses, Pass pass) const;
  // Weights gathered on the compute stream. Where reductions overlap, it waits for them: they are of the same replicas.
  [[nodiscard]] BlockUse blocking_gather(const Part& part, std::int64_t repeat) const;
  // Runs block `block` of every part in reverse.
  [[nodiscard]] Segment backward(std::span<const PartUse> uses, OptionalBlockId Part::* block, bool gathers,
                                 bool reduces);

  struct Pending {
    double dense = 0, expert = 0;
    [[nodiscard]] double total() const { return dense + expert; }
  };
  void append_reducing(Segment& segment, const PartUse& use, BlockId work, OptionalBlockId gather, Pending& pending);
  void append(Segment& segment, const BlockUse& use) const;
  void flush(Segment& segment, const Pending& pending);
  [[nodiscard]] BlockId joined(const Pending& pending);
  [[nodiscard]] const Part& part_of(const PartUse& use) const { return parts_[*use.part]; }

  const LoweringContext& context_;
  const IdVector<PartId, Part>& parts_;
  const IdVector<PartId, PartSizes>& sizes_;
  bool reduces_;  // some gradients are reduced
  struct Joined {
    Pending weights;
    BlockId block;
  };
  std::vector<Joined> joined_;  // blocks that reduce gradients of several executions, shared by repeated requests
};

}  // namespace orrery::parallel
