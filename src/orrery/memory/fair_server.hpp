// Processor sharing: a memory serves all requests concurrently, each with an equal share of its bandwidth. Identical
// requests end at the same time, whatever their order of arrival.
//
// The virtual clock counts the service that each request has received: with k requests it advances at 1/k of real time.
// A request ends when the virtual clock has advanced by the time that it would take alone. The clock is an integer of
// 2^-20 ticks, rounded down: no request ends early.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace orrery::memory {

class FairServer {
 public:
  // `alone`: ticks that the request takes if no other request is served. `id` identifies it in leave().
  void arrive(std::uint64_t now, std::uint32_t id, std::uint64_t alone);

  // Requests that have ended by `now`, in ascending order of `id`.
  [[nodiscard]] std::vector<std::uint32_t> leave(std::uint64_t now);

  // When the next request ends if no other arrives.
  [[nodiscard]] std::optional<std::uint64_t> next() const;

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr int kFraction = 20;

  struct Request {
    Wide ends_at = 0;  // on the virtual clock
    std::uint32_t id = 0;
  };

  void advance(std::uint64_t now);

  Wide clock_ = 0;
  std::uint64_t read_at_ = 0;
  std::vector<Request> requests_;  // a heap, the request that ends first at the front
};

}  // namespace orrery::memory
