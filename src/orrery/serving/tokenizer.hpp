// The tokenizer of an engine's server: it encodes up to `limit` prompts at the same time, each on a core of its own,
// and takes what has come in the meantime when all of them are done. With a limit of 1: one prompt after the other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "orrery/serving/ticks.hpp"

namespace orrery::serving {

class Tokenizer {
 public:
  explicit Tokenizer(std::int64_t limit = 1) : limit_(limit) {}

  // When a prompt that comes now, no earlier than the one before it, and takes `duration` is encoded.
  Ticks encode(Ticks now, Ticks duration) {
    if (now > begin_ || count_ == limit_) {
      busy_ = busy();
      begin_ = end_ = std::max(now, end_);
      count_ = 0;
    }
    ++count_;
    const Ticks ready = saturated_sum(begin_, duration);
    end_ = std::max(end_, ready);
    return ready;
  }

  // Time in which it encodes something, up to the end of its last batch.
  [[nodiscard]] Ticks busy() const { return busy_ + (end_ - begin_); }

 private:
  std::int64_t limit_;
  Ticks begin_ = 0, end_ = 0;  // of the batch that a prompt of now would join
  std::int64_t count_ = 0;     // its prompts
  Ticks busy_ = 0;             // of the batches before
};

}  // namespace orrery::serving
