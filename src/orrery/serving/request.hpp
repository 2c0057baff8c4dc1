// A request to an engine, and what became of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/serving/ticks.hpp"

namespace orrery::serving {

struct Request {
  Ticks arrival = 0;
  std::int64_t input = 0, output = 0;  // tokens, at least one each
  std::int32_t priority = 0;           // smaller is served first
  std::int32_t session = -1;           // requests of one session share an engine under session affinity; -1: none
  std::uint32_t first_block = 0, blocks = 0;  // of Workload::block_ids: blocks of the prompt, by content
};

// A request that arrives when others have ended: a later turn of a session.
struct Following {
  std::int32_t waits_for = 0;  // requests that must end before it arrives; 0: it has an arrival of its own
  Ticks gap = 0;               // from the end of the last of them to its arrival
};

// Requests in the order of arrival; those that follow others anywhere after them; then further branches. Under a
// closed loop, and of requests that follow others, arrivals are set during the run.
struct Workload {
  std::vector<Request> requests;
  std::vector<std::uint32_t> block_ids;
  std::int64_t block_tokens = 0;  // tokens of a block; the last block of a prompt may be partial
  std::int64_t clients = 0;       // closed loop: requests in flight; 0: open loop
  Ticks think = 0;                // closed loop: from an answer to the next request (or session) of the client

  // Sessions; empty if no request follows another one. A session ends with one request that nothing follows.
  std::vector<Following> following;           // [request]
  std::vector<std::uint32_t> first_follower;  // [request + 1], of `followers`
  std::vector<std::uint32_t> followers;       // requests that wait for the end of a request

  Place place;  // where the lengths of requests are stated, for errors

  // Branches of reasoning: sequences over the prompt of a request, each with an output of its own. The request itself
  // is the first one; the others stand after all requests, those of the first request first.
  std::int64_t branches = 1;
  std::int64_t join = 1;  // branches that end before the request has its answer; the rest is cut then

  // Requests that arrive: without further branches.
  [[nodiscard]] std::int64_t arriving() const { return static_cast<std::int64_t>(requests.size()) / branches; }
  [[nodiscard]] std::int64_t first_branch_of(std::int64_t request) const {
    return arriving() + request * (branches - 1);
  }
  // The request that a sequence is of.
  [[nodiscard]] std::int64_t request_of(std::int64_t sequence) const {
    const std::int64_t own = arriving();
    return sequence < own ? sequence : (sequence - own) / (branches - 1);
  }

  [[nodiscard]] std::span<const std::uint32_t> followers_of(std::int64_t request) const {
    if (followers.empty()) { return {}; }
    const auto i = static_cast<std::size_t>(request);
    return std::span(followers).subspan(first_follower[i], first_follower[i + 1] - first_follower[i]);
  }
  [[nodiscard]] std::size_t number_of_ids() const {
    return block_ids.empty() ? 0 : std::size_t{*std::max_element(block_ids.begin(), block_ids.end())} + 1;
  }
  [[nodiscard]] std::span<const std::uint32_t> blocks_of(const Request& request) const {
    return std::span(block_ids).subspan(request.first_block, request.blocks);
  }
};

// Of a sequence: a request, or one of its branches.
struct Outcome {
  Ticks ready = -1;      // arrival at the engines, after the stages before them
  Ticks scheduled = -1;  // start of the first iteration that computes a part of the prompt
  Ticks first = -1;  // end of the iteration that generates the first token; with pools, start of the first decode step
  Ticks made = -1;   // the same without the wait for the server, which sends one token after the other
  Ticks last = -1;
  Ticks answered = -1;             // when the client has the answer: the stages after the last token have ended
  std::int64_t cached = 0;         // tokens of the prompt that need no computing when it is first scheduled
  std::int64_t cached_blocks = 0;  // blocks of the trace that were found then, a partial last one included
  std::int64_t cut_tokens = 0;     // of a branch that was cut: tokens that it generated
  std::int64_t recomputed = 0;     // tokens computed again after preemptions
  std::int32_t preemptions = 0;
  std::int32_t engine = -1;
  std::int32_t prefilled_by = -1;  // engine that computed the prompt, if `engine` is another one
  Ticks prefilled = -1;            // when it had
  Ticks asked = -1, placed = -1;   // for a place on a decode engine of another pool; it had one
  std::int32_t joined_by = -1;     // with branches: the sequence whose end is that of the request
  bool refused = false;            // by the admission limit: it never runs
  bool cut = false;                // a branch that the answer did not wait for

  [[nodiscard]] bool done() const { return last >= 0; }
};

// The sequence whose end is that of the request: with branches, the last one that the answer waited for.
[[nodiscard]] inline const Outcome& end_of(const std::vector<Outcome>& outcomes, std::int64_t request) {
  const Outcome& own = outcomes[static_cast<std::size_t>(request)];
  return own.joined_by < 0 ? own : outcomes[static_cast<std::size_t>(own.joined_by)];
}

}  // namespace orrery::serving
