#include "orrery/api/load_bisection.hpp"

#include <algorithm>
#include <cmath>

namespace orrery::api {

namespace {

constexpr double kResolution = 1.01, kHighest = 4096;  // kHighest: times the start

}  // namespace

LoadBisection::LoadBisection(double start, double lowest, bool counts, double highest)
    : start_(start),
      lowest_(lowest),
      highest_(std::min(highest, start * kHighest)),
      counts_(counts),
      load_(std::max(start, lowest)) {}

std::optional<double> LoadBisection::next() const {
  if (widens_) { return load_; }
  if (good_ == 0 || bad_ == 0) { return std::nullopt; }
  if (counts_ ? bad_ - good_ <= 1.0 : bad_ / good_ <= kResolution) { return std::nullopt; }
  return counts_ ? std::floor((good_ + bad_) / 2) : std::sqrt(good_ * bad_);
}

void LoadBisection::tell(bool is_good) {
  const double tried = next().value_or(load_);
  (is_good ? good_ : bad_) = tried;
  if (!widens_) { return; }
  load_ = is_good ? std::min(load_ * 2, highest_) : load_ / 2;
  if (counts_) { load_ = std::max(1.0, std::round(load_)); }
  const bool is_lowest = load_ < lowest_ || (counts_ && bad_ == 1.0);
  const bool is_highest = tried >= highest_;
  widens_ = (good_ == 0 || bad_ == 0) && !(good_ == 0 && is_lowest) && !(bad_ == 0 && is_highest);
}

}  // namespace orrery::api
