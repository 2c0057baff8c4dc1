// Cached blocks of prompts, by content. A block that no running request holds stays until its memory is needed; the
// block that was released first is evicted first, and of one request the tail before the head. An evicted block goes to
// the first tier below the device; what a full tier evicts goes to the next one. A block is in one place at a time, and
// perhaps in a store that engines share besides, which then is the last tier.
//
// A block that is held need not be computed yet. Others find it when it is, and one that nobody computes is not kept.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "orrery/serving/paged.hpp"
#include "orrery/serving/remote_store.hpp"

namespace orrery::serving {

class PrefixCache {
 public:
  // Block ids are below `ids`. `tiers`: blocks that fit in each tier below the device.
  explicit PrefixCache(std::size_t ids = 0, std::vector<std::int64_t> tiers = {})
      : entries_(ids), sizes_(std::move(tiers)), places_(1 + sizes_.size()) {}

  // Requires a tier.
  void share(const RemoteStore& store) { store_ = &store; }

  // Number of leading blocks that are computed, on the device or in a tier; local: without the shared store.
  [[nodiscard]] std::int64_t hits(std::span<const std::uint32_t> blocks) const;
  [[nodiscard]] std::int64_t local_hits(std::span<const std::uint32_t> blocks) const;
  [[nodiscard]] bool on_device(std::uint32_t id) const { return entries_[id].place == 0; }
  [[nodiscard]] bool is_ready(std::uint32_t id) const { return on_device(id) && entries_[id].is_computed; }
  // Of these, those in a tier.
  [[nodiscard]] std::int64_t in_tier(std::span<const std::uint32_t> blocks, std::size_t tier) const;

  // Of these, those that requests hold.
  [[nodiscard]] std::int64_t held_among(std::span<const std::uint32_t> blocks) const;

  // Holds blocks on the device. Those that are not there yet, also if they are in a tier, which they leave, are to be
  // computed or loaded.
  void acquire(std::span<const std::uint32_t> blocks);
  // That held blocks have their keys and values, or do not get them.
  void set_computed(std::span<const std::uint32_t> blocks, bool is_computed = true);
  // Releases held blocks; those that are computed stay cached.
  void release(std::span<const std::uint32_t> blocks);
  // Evicts the block that was released first. Requires idle() > 0.
  void evict();
  // Empties the device and the tiers. Requires held() == 0.
  void clear();

  [[nodiscard]] std::int64_t idle() const { return places_.front().count; }  // on the device and not held
  [[nodiscard]] std::int64_t held() const { return held_; }                  // different blocks that requests hold

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  static constexpr std::int16_t kNowhere = -1;
  struct Entry {
    std::uint32_t previous = kNone, next = kNone;  // in the order of release
    std::int32_t holders = 0;
    std::int16_t place = kNowhere;  // 0: on the device; then tiers
    bool is_computed = false;
  };
  struct Place {
    std::uint32_t first = kNone, last = kNone;
    std::int64_t count = 0;
  };
  void unlink(std::uint32_t id);
  void append(std::uint32_t id, std::size_t place);

  [[nodiscard]] bool is_local(std::uint32_t id) const { return entries_[id].place != kNowhere; }
  [[nodiscard]] bool is_pending(std::uint32_t id) const { return on_device(id) && !entries_[id].is_computed; }
  [[nodiscard]] bool is_stored(std::uint32_t id) const { return store_ != nullptr && store_->has(id); }

  Paged<Entry> entries_;
  const RemoteStore* store_ = nullptr;
  std::vector<std::int64_t> sizes_;  // [tier]
  std::vector<Place> places_;        // idle blocks on the device, then tiers: in the order of release
  std::int64_t held_ = 0;
};

}  // namespace orrery::serving
