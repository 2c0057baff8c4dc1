// The order in which free blocks of a cache are overwritten, as far as blocks of preempted requests are among them.
// Engines that find blocks by content keep a queue of free blocks: the one that was freed first is overwritten first,
// and of one request the tail before the head. A request that was preempted finds those of its blocks that are left.
#pragma once

#include <cstdint>
#include <deque>

namespace orrery::serving {

class LeftBlocks {
 public:
  // `free`: blocks that are free already, which are overwritten before. `blocks`: whole blocks of the request.
  void preempt(std::int64_t request, std::int64_t blocks, std::int64_t free);
  // Blocks were freed, of nobody who could find them.
  void free(std::int64_t blocks);
  // Blocks were taken, those that were freed first.
  void take(std::int64_t blocks);
  // Of the request: those that are left.
  [[nodiscard]] std::int64_t of(std::int64_t request) const;
  // The request takes its blocks back.
  void take_back(std::int64_t request);

  [[nodiscard]] bool empty() const { return requests_ == 0; }

 private:
  static constexpr std::int64_t kNobody = -1;
  struct Run {
    std::int64_t request = kNobody;
    std::int64_t blocks = 0;
  };
  void erase_if_done();

  std::deque<Run> queue_;      // the first is overwritten first; empty while no request has blocks in it
  std::int64_t requests_ = 0;  // that have blocks in it
};

}  // namespace orrery::serving
