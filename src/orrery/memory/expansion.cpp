#include "orrery/memory/expansion.hpp"

namespace orrery::memory {

std::uint64_t Expansion::service_ns(std::uint64_t bytes) const {
  // In double precision, as ASTRA-sim divides.
  return latency_ns + static_cast<std::uint64_t>(static_cast<double>(bytes) / static_cast<double>(bytes_per_ns));
}

std::optional<std::uint32_t> Expansion::server(std::uint32_t rank) const {
  switch (arrangement) {
    case Arrangement::NO_MEMORY_EXPANSION:
    case Arrangement::PER_NPU_MEMORY_EXPANSION: return std::nullopt;
    case Arrangement::PER_NODE_MEMORY_EXPANSION: return rank / ranks_per_node;
    case Arrangement::MEMORY_POOL: return 0;
  }
  return std::nullopt;
}

std::uint32_t Expansion::servers(std::uint32_t ranks) const {
  return ranks == 0 ? 0 : server(ranks - 1).value_or(0) + 1;
}

std::optional<Request> Server::arrive(const Request& request) {
  if (busy_) {
    waiting_.push_back(request);
    return std::nullopt;
  }
  busy_ = true;
  return request;
}

std::optional<Request> Server::leave() {
  if (waiting_.empty()) {
    busy_ = false;
    return std::nullopt;
  }
  const Request next = waiting_.front();
  waiting_.pop_front();
  return next;
}

}  // namespace orrery::memory
