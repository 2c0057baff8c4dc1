#include "orrery/serving/left_blocks.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::serving {

void LeftBlocks::erase_if_done() {
  if (requests_ == 0) { queue_.clear(); }
}

void LeftBlocks::preempt(std::int64_t request, std::int64_t blocks, std::int64_t free) {
  if (blocks <= 0) { return; }
  if (empty() && free > 0) { queue_.push_back({kNobody, free}); }
  queue_.push_back({request, blocks});
  ++requests_;
}

void LeftBlocks::free(std::int64_t blocks) {
  if (empty() || blocks <= 0) { return; }
  if (queue_.back().request == kNobody) {
    queue_.back().blocks += blocks;
  } else {
    queue_.push_back({kNobody, blocks});
  }
}

void LeftBlocks::take(std::int64_t blocks) {
  while (blocks > 0 && !empty()) {
    ORRERY_ASSERT(!queue_.empty());
    Run& first = queue_.front();
    const std::int64_t taken = std::min(blocks, first.blocks);
    first.blocks -= taken;
    blocks -= taken;
    if (first.blocks > 0) { return; }
    requests_ -= first.request == kNobody ? 0 : 1;
    queue_.pop_front();
    erase_if_done();
  }
}

std::int64_t LeftBlocks::of(std::int64_t request) const {
  if (empty()) { return 0; }
  const auto found = std::find_if(queue_.begin(), queue_.end(), [&](const Run& run) { return run.request == request; });
  return found == queue_.end() ? 0 : found->blocks;
}

void LeftBlocks::take_back(std::int64_t request) {
  const auto found = std::find_if(queue_.begin(), queue_.end(), [&](const Run& run) { return run.request == request; });
  if (found == queue_.end()) { return; }
  queue_.erase(found);
  --requests_;
  erase_if_done();
}

}  // namespace orrery::serving
