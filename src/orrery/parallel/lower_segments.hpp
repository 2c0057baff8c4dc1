// Segments of a chunk: its parts in order, with what goes on beside them, gradient reductions joined to buckets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/parallel/lower_parts.hpp"

namespace orrery::parallel {

class SegmentLowering {
 public:
  SegmentLowering(const LoweringContext& context, const std::vector<Part>& parts, const std::vector<PartSizes>& sizes);

  // To be called when the parts have what goes on beside them.
  void start();

  // Writes all segments of a chunk whose forward pass runs through `uses`.
  void lower(ChunkProgram& chunk, std::span<const PartUse> uses);

 private:
  enum class Pass : std::uint8_t { forward, first_forward, decode };
  [[nodiscard]] Segment forward(std::span<const PartUse> uses, Pass pass) const;
  // Runs block `block` of every part in reverse.
  [[nodiscard]] Segment backward(std::span<const PartUse> uses, std::int32_t Part::* block, bool gathers, bool reduces);

  struct Pending {
    double dense = 0, expert = 0;
    [[nodiscard]] double total() const { return dense + expert; }
  };
  void append_reducing(Segment& segment, const PartUse& use, std::int32_t work, std::int32_t gather, Pending& pending);
  void append(Segment& segment, std::int32_t work, std::int64_t repeat, std::int32_t gather, std::int32_t reduce) const;
  void flush(Segment& segment, const Pending& pending);
  [[nodiscard]] std::int32_t joined(const Pending& pending);
  [[nodiscard]] const Part& part_of(const PartUse& use) const { return parts_[static_cast<std::size_t>(use.part)]; }

  const LoweringContext& context_;
  const std::vector<Part>& parts_;
  const std::vector<PartSizes>& sizes_;  // [part]
  bool reduces_ = false;                 // whether any gradients are
  struct Joined {
    Pending weights;
    std::int32_t block = -1;
  };
  std::vector<Joined> joined_;  // reductions of several executions that have been needed so far
};

}  // namespace orrery::parallel
