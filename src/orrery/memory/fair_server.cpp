#include "orrery/memory/fair_server.hpp"

#include <algorithm>

namespace orrery::memory {

namespace {

constexpr auto kLater = [](const auto& a, const auto& b) { return a.ends_at > b.ends_at; };

}  // namespace

void FairServer::advance(std::uint64_t now) {
  if (!requests_.empty()) { clock_ += (Wide{now - read_at_} << kFraction) / requests_.size(); }
  read_at_ = now;
}

void FairServer::arrive(std::uint64_t now, std::uint32_t id, std::uint64_t alone) {
  advance(now);
  requests_.push_back({clock_ + (Wide{alone} << kFraction), id});
  std::push_heap(requests_.begin(), requests_.end(), kLater);
}

std::vector<std::uint32_t> FairServer::leave(std::uint64_t now) {
  advance(now);
  std::vector<std::uint32_t> ended;
  while (!requests_.empty() && requests_.front().ends_at <= clock_) {
    ended.push_back(requests_.front().id);
    std::pop_heap(requests_.begin(), requests_.end(), kLater);
    requests_.pop_back();
  }
  std::sort(ended.begin(), ended.end());
  return ended;
}

std::optional<std::uint64_t> FairServer::next() const {
  if (requests_.empty()) { return std::nullopt; }
  const Wide remaining = requests_.front().ends_at > clock_ ? requests_.front().ends_at - clock_ : 0;
  constexpr Wide kOne = Wide{1} << kFraction;
  return read_at_ + static_cast<std::uint64_t>((remaining * requests_.size() + kOne - 1) >> kFraction);
}

}  // namespace orrery::memory
