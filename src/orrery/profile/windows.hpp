// Parses a file in units (a field of the document, an event); a unit that the window cuts is parsed again with more of
// the file. Private to the room.
#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/profile/json_pull.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::profile {

inline constexpr std::size_t kWindow = std::size_t{1} << 18;

class Windows {
 public:
  explicit Windows(trace::Source& source) : source_(source), json_({}, false) { refill(kWindow); }

  template <class Parse>
  void unit(const Parse& parse) {
    for (std::size_t wanted = kWindow;; wanted *= 2) {
      try {
        parse(json_);
        done_ = json_.position();
        return;
      } catch (const NeedMore&) { refill(done_ > 0 ? kWindow : 2 * wanted); }
    }
  }

  [[nodiscard]] std::uint64_t offset() const { return consumed_ + done_; }
  [[nodiscard]] std::uint64_t offset_of(std::size_t position) const { return consumed_ + position; }
  [[nodiscard]] const JsonPull& json() const { return json_; }

 private:
  void refill(std::size_t wanted) {
    source_.consume(done_);
    consumed_ += done_;
    done_ = 0;
    const std::string_view window = source_.ahead(wanted);
    // A mapped file offers all of its rest; only what is consumed releases memory.
    json_ = JsonPull(window.substr(0, wanted), window.size() < wanted);
  }

  trace::Source& source_;
  JsonPull json_;
  std::size_t done_ = 0;
  std::uint64_t consumed_ = 0;
};

}  // namespace orrery::profile
