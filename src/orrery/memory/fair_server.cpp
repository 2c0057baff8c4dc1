#include "orrery/memory/fair_server.hpp"

#include <algorithm>

namespace orrery::memory {

namespace {

constexpr auto kLater = [](const auto& a, const auto& b) { return a.over_at > b.over_at; };

}  // namespace

void FairServer::advance(std::uint64_t now) {
  if (!requests_.empty()) { clock_ += (Wide{now - read_at_} << kFraction) / requests_.size(); }
  read_at_ = now;
}

void FairServer::arrive(std::uint64_t now, std::uint32_t who, std::uint64_t alone) {
  advance(now);
  requests_.push_back({clock_ + (Wide{alone} << kFraction), who});
  std::push_heap(requests_.begin(), requests_.end(), kLater);
}

std::vector<std::uint32_t> FairServer::leave(std::uint64_t now) {
  advance(now);
  std::vector<std::uint32_t> over;
  while (!requests_.empty() && requests_.front().over_at <= clock_) {
    over.push_back(requests_.front().who);
    std::pop_heap(requests_.begin(), requests_.end(), kLater);
    requests_.pop_back();
  }
  std::sort(over.begin(), over.end());
  return over;
}

std::optional<std::uint64_t> FairServer::next() const {
  if (requests_.empty()) { return std::nullopt; }
  const Wide left = requests_.front().over_at > clock_ ? requests_.front().over_at - clock_ : 0;
  constexpr Wide kOne = Wide{1} << kFraction;
  return read_at_ + static_cast<std::uint64_t>((left * requests_.size() + kOne - 1) >> kFraction);
}

}  // namespace orrery::memory
