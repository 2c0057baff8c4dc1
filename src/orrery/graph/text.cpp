#include "orrery/graph/text.hpp"

#include <algorithm>
#include <cstring>

namespace orrery::graph {

namespace {

// Entries of the table of recent texts: few for a small graph, at most as many as fit a near cache.
constexpr std::size_t kFirstSlots = std::size_t{1} << 6;
constexpr std::size_t kMostSlotsOfTexts = std::size_t{1} << 13;
constexpr std::size_t kLargestBlock = std::size_t{1} << 20;
constexpr std::size_t kLongestLength = 10;  // bytes of a length

std::uint64_t word(const char* at, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

// The slot of a text in the table; a hit is compared in full.
std::size_t hash_of(std::string_view text) {
  constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15;
  std::uint64_t hash = text.size() * kMix;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left > 8; left -= 8, at += 8) { hash = (hash ^ word(at, 8)) * kMix, hash ^= hash >> 29; }
  hash = (hash ^ word(at, left)) * kMix;
  return static_cast<std::size_t>(hash >> 40);
}

}  // namespace

TextPool::TextPool(std::size_t first_block) : next_block_(first_block), recent_(kFirstSlots, nullptr) {}

Text TextPool::add(std::string_view text) {
  if (text.empty()) { return {}; }
  if (stored_ > recent_.size() && recent_.size() < kMostSlotsOfTexts) { recent_.resize(recent_.size() * 4, nullptr); }
  const char*& recent = recent_[hash_of(text) % recent_.size()];
  if (recent != nullptr && Text(recent).view() == text) { return Text(recent); }
  ++stored_;
  const Text stored = store(text);
  recent = stored.encoded();
  return stored;
}

Text TextPool::store(std::string_view text) {
  if (text.size() + kLongestLength > left_) {
    left_ = std::max(next_block_, text.size() + kLongestLength);
    next_block_ = std::min(next_block_ * 2, kLargestBlock);
    auto block = std::shared_ptr<char[]>(new char[left_]);
    bytes_ += left_;
    free_ = block.get();
    blocks_.push_back(std::move(block));
  }
  char* const start = free_;
  std::uint64_t size = text.size();
  for (; size >= 0x80; size >>= 7) { *free_++ = static_cast<char>(static_cast<unsigned char>(size) | 0x80U); }
  *free_++ = static_cast<char>(size);
  std::memcpy(free_, text.data(), text.size());
  free_ += text.size();
  left_ -= static_cast<std::size_t>(free_ - start);
  return Text(start);
}

}  // namespace orrery::graph
