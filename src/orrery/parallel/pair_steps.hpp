// The steps of one half of a pair (pair_order.hpp) in a list, without those that take no time and wait for
// nothing, and with kernels in a row joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/parallel/item_times.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

// A segment of a half.
struct SegmentRun {
  const Segment* segment = nullptr;
  bool waits_for_overlapped = false;  // at the end, for gathers and reductions
};

// A collective of a gather or a reduction; transfers of the second tier (`on_host_link`) wait for no collective.
struct OverlappedCall {
  Seconds time;
  bool on_host_link = false;
};

// Positions in a list of overlapped calls.
struct OverlappedCalls {
  std::uint32_t begin = 0, end = 0;

  [[nodiscard]] bool empty() const { return begin == end; }
};

struct PairStep {
  enum class Kind : std::uint8_t {
    begin,  // of a segment or an execution
    kernel,
    call,
    wait,
    end,  // of an execution or a segment
  };
  Kind kind = Kind::wait;
  bool awaits_call = false;        // kernel, wait: for the asynchronous call `awaited`
  bool awaits_gather = false;      // begin: for the weights of the execution
  bool awaits_overlapped = false;  // begin, end: for all gathers and reductions
  bool blocks_overlapped = false;  // end: gathers and reductions wait for it
  bool awaits_block = false;       // end: for asynchronous calls and launches of the block
  bool on_host_link = false;       // call
  bool asynchronous = false;       // call
  bool occupies_compute = false;   // call: the other half does not compute meanwhile
  std::uint32_t number = 0;        // call: its place among the items of the block
  std::uint32_t awaited = 0;
  Seconds time = {};                         // kernel, call; begin: of the launches
  OverlappedCalls gather = {}, reduce = {};  // issued by this step, in this order

  [[nodiscard]] bool waits() const { return awaits_call || awaits_gather || awaits_overlapped; }
};

// Steps of a half up to the next one that may have to wait for a call, or to the end of an execution of a block.
struct PairStride {
  std::uint32_t end = 0;    // behind its last step in the list
  std::uint32_t steps = 0;  // of pair_order.hpp
};

struct HalfSteps {
  std::vector<PairStep> steps;
  std::vector<PairStride> strides;
  std::uint32_t most_items = 0;   // of a block
  Seconds kernels;                // time of all of them
  bool ends_with_kernel = false;  // of the last stride
};

// Makes the steps of halves, and keeps their overlapped calls.
class PairSteps {
 public:
  PairSteps(const Program& program, ItemTimes& times) : program_(program), times_(times) {}

  [[nodiscard]] HalfSteps of(std::span<const SegmentRun> runs);
  [[nodiscard]] std::span<const OverlappedCall> calls(OverlappedCalls range) const {
    return std::span(calls_).subspan(range.begin, range.end - range.begin);
  }

 private:
  void append_execution(const Segment& segment, std::size_t use, std::int64_t done, HalfSteps& half);
  bool append_items(BlockId id, HalfSteps& half);
  [[nodiscard]] OverlappedCalls calls_of(OptionalBlockId id);

  const Program& program_;
  ItemTimes& times_;
  std::vector<OverlappedCall> calls_;
  std::vector<OverlappedCalls> known_;  // [block]; empty: not looked up, or none
};

}  // namespace orrery::parallel
