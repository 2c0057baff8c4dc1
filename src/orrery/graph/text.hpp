// Texts of a graph: eight bytes each, pointing into immutable blocks that graphs share. A table of recent texts avoids
// storing a repeated name again; equal texts can still be stored twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace orrery::graph {

// Points to a length (base 128, low part first) that the bytes of the text follow. Empty by default; copies point to
// the same text.
class Text {
 public:
  Text() = default;
  explicit Text(const char* encoded) : at_(encoded) {}

  [[nodiscard]] std::string_view view() const {
    const char* at = at_;
    std::uint64_t size = static_cast<unsigned char>(*at++);
    if (size >= 0x80) {
      size &= 0x7f;
      for (int shift = 7;; shift += 7) {
        const auto byte = static_cast<unsigned char>(*at++);
        size |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) { break; }
      }
    }
    return {at, size};
  }

  [[nodiscard]] const char* encoded() const { return at_; }

 private:
  const char* at_ = "";  // a zero byte: no text
};

using TextBlocks = std::vector<std::shared_ptr<const char[]>>;

// Stores texts and returns Texts.
class TextPool {
 public:
  // Blocks grow from `first_block` bytes to a megabyte.
  explicit TextPool(std::size_t first_block = std::size_t{1} << 12);

  Text add(std::string_view text);

  // The blocks to keep so that the returned Texts stay valid. The pool can still be used.
  [[nodiscard]] const TextBlocks& blocks() const { return blocks_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }  // size of the blocks

 private:
  Text store(std::string_view text);

  TextBlocks blocks_;
  char* free_ = nullptr;
  std::size_t left_ = 0;
  std::size_t bytes_ = 0;
  std::size_t stored_ = 0;
  std::size_t next_block_;
  std::vector<const char*> recent_;  // by hash; nullptr = not used yet
};

}  // namespace orrery::graph
