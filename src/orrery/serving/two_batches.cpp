#include "orrery/serving/two_batches.hpp"

#include <algorithm>

namespace orrery::serving {

namespace {

// Kernels of one half beside transfers of the other.
Seconds beside(Seconds kernels, Seconds transfers, double interference) {
  return max(transfers, kernels + interference * transfers);
}

}  // namespace

Phases& Phases::operator+=(const Phases& other) {
  attention += other.attention;
  dispatch += other.dispatch;
  experts += other.experts;
  combine += other.combine;
  others += other.others;
  return *this;
}

Phases Phases::operator-(const Phases& other) const {
  Phases result = *this;
  return result += other * -1.0;
}

Phases Phases::operator*(double factor) const {
  return {factor * attention, factor * dispatch, factor * experts, factor * combine, factor * others};
}

Seconds time_of_two(const Phases& half, double interference) {
  return beside(half.attention, half.dispatch, interference) + beside(half.experts, half.dispatch, interference) +
         beside(half.experts, half.combine, interference) + beside(half.attention, half.combine, interference) +
         2.0 * half.others;
}

DecodeLine at_least(DecodeLine line, std::int64_t contexts, Ticks least) {
  if (line.at >= least) { return line; }
  if (line.per_token > 0) { line.last = std::min(line.last, contexts + (least - line.at) / line.per_token); }
  line.at = least;
  line.per_token = 0;
  return line;
}

DecodeLine line_of_two(const DecodeLine& attention, const Phases& half, double interference, std::int64_t contexts) {
  const auto attention_beside = [&](Seconds transfers) {
    DecodeLine line = attention;
    line.at = saturated_sum(line.at, ticks_of(half.attention + interference * transfers));
    return at_least(line, contexts, ticks_of(transfers));
  };
  const DecodeLine first = attention_beside(half.dispatch), second = attention_beside(half.combine);
  const Seconds rest = beside(half.experts, half.dispatch, interference) +
                       beside(half.experts, half.combine, interference) + 2.0 * half.others;
  return {saturated_sum(saturated_sum(first.at, second.at), ticks_of(rest)), first.per_token + second.per_token,
          std::min(first.last, second.last)};
}

}  // namespace orrery::serving
