// A memory that serves all requests at once, each with an equal share of its bandwidth: requests that are alike end
// alike, whoever made them. (One after the other, somebody would have to be first.)
//
// The clock of a request counts what it has been given: with k requests it goes at 1/k of the pace. All of them read
// the same clock, so that a request is over when the clock has gone on by the time that it would take alone. The clock
// is an integer of 2^-20 ticks, cut downwards: nothing ends before its share has been served.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace orrery::memory {

class FairServer {
 public:
  // `alone`: ticks that the request takes by itself. `who` comes back when it is over.
  void arrive(std::uint64_t now, std::uint32_t who, std::uint64_t alone);

  // Requests that are over by now, in ascending order of `who`.
  [[nodiscard]] std::vector<std::uint32_t> leave(std::uint64_t now);

  // When the next request is over, if nobody else comes.
  [[nodiscard]] std::optional<std::uint64_t> next() const;

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr int kFraction = 20;

  struct Request {
    Wide over_at = 0;  // by the clock
    std::uint32_t who = 0;
  };

  void advance(std::uint64_t now);

  Wide clock_ = 0;
  std::uint64_t read_at_ = 0;
  std::vector<Request> requests_;  // a heap, the one that is over first in front
};

}  // namespace orrery::memory
