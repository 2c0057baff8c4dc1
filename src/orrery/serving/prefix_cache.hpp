// Cached blocks of prompts, by content. A block that no running request holds stays until its memory is needed; the
// block that was released first is evicted first, and of one request the tail before the head.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace orrery::serving {

class PrefixCache {
 public:
  // Block ids are below `ids`.
  explicit PrefixCache(std::size_t ids = 0) : entries_(ids) {}

  // Number of leading blocks that are cached.
  [[nodiscard]] std::int64_t hits(std::span<const std::uint32_t> blocks) const;
  // Of these cached blocks, those that no request holds: their memory counts as free.
  [[nodiscard]] std::int64_t idle_among(std::span<const std::uint32_t> blocks) const;

  // Of these, those that requests hold.
  [[nodiscard]] std::int64_t held_among(std::span<const std::uint32_t> blocks) const;

  // Holds blocks; those that are not cached are added.
  void acquire(std::span<const std::uint32_t> blocks);
  // Releases held blocks; they stay cached.
  void release(std::span<const std::uint32_t> blocks);
  // Evicts the block that was released first. Requires idle() > 0.
  void evict();

  [[nodiscard]] std::int64_t idle() const { return idle_; }  // cached and not held
  [[nodiscard]] std::int64_t held() const { return held_; }  // different blocks that requests hold

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  struct Entry {
    std::uint32_t previous = kNone, next = kNone;  // in the order of release
    std::int32_t holders = 0;
    bool cached = false;
  };
  void unlink(std::uint32_t id);
  void append(std::uint32_t id);

  std::vector<Entry> entries_;
  std::uint32_t first_ = kNone, last_ = kNone;
  std::int64_t idle_ = 0, held_ = 0;
};

}  // namespace orrery::serving
