// Branches of reasoning on an engine: a request forks when its prompt is computed, and joins when enough of its
// branches have ended; the rest is cut.
#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/serving/engine.hpp"

namespace orrery::serving {

// In front of requests that wait, in the order of their requests.
void Engine::queue_branches() {
  for (std::size_t i = forking_.size(); i-- > 0;) {
    const std::int64_t first = workload_.first_branch_of(forking_[i]);
    for (std::int64_t branch = workload_.branches - 1; branch-- > 0;) {
      outcomes_[static_cast<std::size_t>(first + branch)].ready = end_;
      queue({first + branch, 0, 0, false, 0, 0}, true);
    }
  }
  forking_.clear();
}

void Engine::end_branch(std::int64_t sequence) {
  const std::int64_t request = workload_.request_of(sequence);
  if (++branches_ended_[static_cast<std::size_t>(request)] != workload_.join) { return; }
  outcomes_[static_cast<std::size_t>(request)].joined_by = static_cast<std::int32_t>(sequence);
  ended_.push_back(request);
  if (workload_.join < workload_.branches) { joined_.push_back(request); }
}

// After the ends of an iteration, so that branches that end in the same one are not cut.
void Engine::cut_branches() {
  const auto is_cut = [&](std::int64_t sequence) {
    return std::find(joined_.begin(), joined_.end(), workload_.request_of(sequence)) != joined_.end();
  };
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].alive && is_cut(slots_[slot].request)) { cut_running(slot); }
  }
  waiting_.erase_if([&](Waiting& waiting) {
    if (!is_cut(waiting.request)) { return false; }
    holders_ -= waiting.held > 0 ? 1 : 0;
    waiting_tokens_ -= tokens_of(waiting);
    cut_waiting(waiting);
    return true;
  });
  std::erase_if(loading_, [&](Loading& loading) {
    if (!is_cut(loading.waiting.request)) { return false; }
    loading_tokens_ -= tokens_of(loading.waiting);
    cut_waiting(loading.waiting);
    return true;
  });
  joined_.clear();
}

void Engine::cut_waiting(Waiting& waiting) {
  Outcome& outcome = outcomes_[static_cast<std::size_t>(waiting.request)];
  outcome.cut = true;
  outcome.last = streamed_;
  ++totals_.cut_branches;
  outcome.cut_tokens = waiting.generated;
  totals_.cut_tokens += waiting.generated;
  if (waiting.held > 0) { release_hold(waiting); }
  settled_ = false;
}

void Engine::cut_running(std::uint32_t slot) {
  Sequence& s = slots_[slot];
  Outcome& outcome = outcomes_[static_cast<std::size_t>(s.request)];
  settled_ = false;
  outcome.cut = true;
  outcome.last = streamed_;
  ++totals_.cut_branches;
  outcome.cut_tokens = generated_by(s);
  totals_.cut_tokens += outcome.cut_tokens;
  if (s.decodes) {
    stop_decoding(s);
  } else {
    std::erase(prefilling_, slot);
  }
  left_.free(release(s));
}

}  // namespace orrery::serving
