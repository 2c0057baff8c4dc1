// A list of a known length of which most parts are never written: memory only for pages that are. Private to the room.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace orrery::serving {

template <class T>
class Paged {
 public:
  explicit Paged(std::size_t size = 0) : pages_((size + kPage - 1) / kPage) {}

  // The value at `i`; a default one if its page was never written.
  [[nodiscard]] const T& operator[](std::size_t i) const {
    static const T kUntouched{};
    const auto& page = pages_[i / kPage];
    return page ? (*page)[i % kPage] : kUntouched;
  }
  [[nodiscard]] T& at(std::size_t i) {
    auto& page = pages_[i / kPage];
    if (!page) { page = std::make_unique<Page>(); }
    return (*page)[i % kPage];
  }

 private:
  static constexpr std::size_t kPage = 256;
  using Page = std::array<T, kPage>;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace orrery::serving
