// Texts that live until clear(); their memory is used again. Private to the room.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

namespace orrery::trace {

class TextStore {
 public:
  // An empty text to fill; it stays where it is.
  std::string& fresh() {
    if (used_ == texts_.size()) { texts_.emplace_back(); }
    std::string& text = texts_[used_++];
    text.clear();
    return text;
  }
  void clear() { used_ = 0; }

 private:
  std::deque<std::string> texts_;
  std::size_t used_ = 0;
};

}  // namespace orrery::trace
