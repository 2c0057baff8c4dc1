// A queue of entries by integer time, first in first out within a time. Private to the room; kernel.hpp and rounds.hpp
// are what models use.
//
// The earliest entries are in a short sorted array, the others in the slots of a wheel (wheel_clock.hpp). A slot is a
// list of blocks: entries are appended to memory that was used recently, and read sequentially. When the array is
// empty, or nearly empty and 32,768 wait, the earliest slot in use is emptied, depending on its entries:
//
//   up to 64                  they are sorted into the array; so are those of the next slots until it has 24 entries
//   up to 480, far fewer than wait in all slots    they are sorted into the array by the byte below the slot's
//   more, of several times    they are distributed to the wheel of the highest byte in which their times differ
//   many, of one time         they are due, and are handled in their blocks when the array is empty
//
// Entries before `limit_` belong to the array. When the array is full, its later half moves to the wheel. So a few
// pending entries are a sorted array; ranks in lockstep are lists that are written and read once; entries at random
// times are copied two or three times and sorted among some dozen, for any number of pending entries. Where many wait,
// the next entries are known some dozen events ahead, so that what they access can be prefetched.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/large_pages.hpp"
#include "orrery/engine/prefetch.hpp"
#include "orrery/engine/wheel_clock.hpp"

namespace orrery::engine {

// `Entry`: has a member `time`; is copied.
template <class Entry>
class Calendar {
 public:
  static constexpr Time kNever = std::numeric_limits<Time>::max();  // later than any entry

  // The time of the entries that are due, and the earliest that can be pushed.
  [[nodiscard]] Time now() const { return now_; }
  // Entries that there is storage for.
  [[nodiscard]] std::size_t capacity() const { return kCapacity + made_ * kEntries; }

  // Adds an entry: returns its place, which has its time already; the caller sets the rest before the next call.
  [[gnu::noinline]] Entry& add(Time time) {
    Entry& entry = time < limit_ ? insert(time) : append(time);
    entry.time = time;
    return entry;
  }

  // Advances to the next time that has entries, which are due then; false when there are no entries. Requires that
  // nothing is due. `filled` is called when peek() has other entries than before.
  template <class Filled>
  bool advance(Filled&& filled) {
    if (head_ == end_) {
      if (!refill()) { return false; }
      filled();
      if (due_.first != nullptr) { return true; }
    } else if (end_ - head_ < low_) {
      top_up();
    }
    now_ = array_[head_].time;
    due_end_ = head_ + 1;
    while (due_end_ < end_ && array_[due_end_].time == now_) { ++due_end_; }
    return true;
  }

  // The next entry that is due, in order; nullptr when there is none left. Valid until the next call of a member.
  // Entries that were pushed since advance() are not due before the next advance(), even if they have its time.
  const Entry* pop() {
    if (head_ != due_end_) { return &array_[head_++]; }
    return due_.first != nullptr ? pop_due() : nullptr;
  }

  // Calls `use` with the entry that is `distance` behind the one that pop() gives next, if it is known already.
  template <class Use>
  void peek(std::uint32_t distance, Use&& use) const {
    if (due_.first != nullptr) {
      const Block* block = due_.first;
      std::uint32_t at = read_ + distance;
      if (at >= kEntries && block != due_.last) {
        block = block->next;
        at -= kEntries;
      }
      if (at < (block == due_.last ? due_.count : kEntries)) { use(block->entries[at]); }
    } else if (distance < end_ - head_) {
      use(array_[head_ + distance]);
    }
  }

 private:
  static constexpr std::uint32_t kEntries = 2016 / sizeof(Entry);  // of a block
  static constexpr std::uint32_t kCapacity = 640;                  // of the array
  static constexpr std::uint32_t kFew = 160;                       // entries of the array that are added singly
  static constexpr std::uint32_t kMost = 64;                       // entries of a slot that are sorted singly
  static constexpr std::uint32_t kMostByByte = 480;                // entries of a slot that are sorted by a byte
  static constexpr std::uint32_t kWaiting = 64;                    // so many times those are in the wheel
  static constexpr std::uint32_t kEqual = 16;                      // entries with the same byte, at most
  static constexpr std::uint32_t kEnough = 24;                     // entries that the array is filled with when empty
  static constexpr std::uint32_t kAhead = 48;                      // the same, when looking ahead
  static constexpr std::uint32_t kLow = 40;                        // with fewer entries, looking ahead, it is filled
  static constexpr std::uint64_t kMany = 32768;                    // entries in the wheel: looks ahead
  static constexpr std::uint32_t kDue = 16;                        // entries of one time that are not copied
  static constexpr std::size_t kLeastArena = 16;                   // blocks of one allocation
  static constexpr std::size_t kMostArena = 2048;

  struct Block {
    std::array<Entry, kEntries> entries;
    Block* next;
    std::array<std::byte, 88> apart;  // so that blocks do not all start at the same sets of the caches
  };
  struct List {
    Block* first = nullptr;
    Block* last = nullptr;
    std::uint32_t count = kEntries;  // of the last block; the others are full
    std::uint32_t full = 0;          // blocks before the last one

    [[nodiscard]] std::uint64_t size() const { return first == nullptr ? 0 : std::uint64_t{full} * kEntries + count; }
  };
  using Place = WheelClock::Place;

  // ---- the array ---------------------------------------------------------------------------------------------------

  Entry& insert(Time time) {
    if (end_ == full_) {
      make_room();
      if (time >= limit_) { return append(time); }
    }
    return make_hole(time);
  }

  // A place behind the entries of the same time and earlier ones. Entries before `head_` are not later than now().
  Entry& make_hole(Time time) {
    std::uint32_t hole = end_++;
    for (; array_[hole - 1].time > time; --hole) { array_[hole] = array_[hole - 1]; }
    return array_[hole];
  }

  // Moves the later half of the entries to the wheel if there are many, and the others to the front. Entries that are
  // due stay; other entries of one time are not separated.
  void make_room() {
    if (end_ - head_ > kMost) {
      const Time middle = array_[(head_ + end_) / 2].time;
      std::uint32_t from = due_end_;
      while (from < end_ && array_[from].time < middle) { ++from; }
      limit_ = from == end_ ? now_ : array_[from].time;
      if (wheel_.is_empty()) { wheel_.reach(now_); }
      for (std::uint32_t i = from; i < end_; ++i) { append(array_[i].time) = array_[i]; }
      end_ = from;
      look_ahead();
    }
    move_to_front();
    leave_room();
  }

  void move_to_front() {
    std::copy(array_.begin() + head_, array_.begin() + end_, array_.begin() + kFront);
    due_end_ -= head_ - kFront;
    end_ -= head_ - kFront;
    head_ = kFront;
  }

  // With few entries in the wheel, what they access is likely cached, and a short array costs less.
  void look_ahead() {
    const bool many = waiting_ >= kMany;
    low_ = many ? kLow : 0;
    enough_ = many ? kAhead : kEnough;
  }

  // Few entries that are added to the array fit before it makes room.
  void leave_room() { full_ = std::min(kCapacity, std::max(kFew, end_ + kMost)); }

  // Fills the array, or makes entries due, from the earliest slots; false when there are no entries.
  bool refill() {
    head_ = due_end_ = end_ = kFront;
    look_ahead();
    while (const std::optional<Place> place = wheel_.next()) {
      const List& list = lists_[place->level][place->slot];
      const bool is_due = place->level == 0 && end_ == kFront && list.size() >= kDue;
      if (is_due) {
        make_due(take(*place));
        return true;
      }
      const Filled filled = fill(*place);
      if (filled == Filled::due) { return true; }
      if (filled == Filled::no || end_ >= enough_ + kFront) {
        leave_room();
        return true;
      }
    }
    limit_ = kNever;
    leave_room();
    return end_ != kFront;
  }

  // Adds entries of the earliest slots to the array before it is empty.
  void top_up() {
    if (end_ > kCapacity - kMostByByte - kAhead) { move_to_front(); }
    const std::uint32_t enough = head_ + kAhead;
    while (end_ < enough) {
      const std::optional<Place> place = wheel_.next();
      if (!place || fill(*place) == Filled::no) {
        low_ = 0;  // until the array is empty
        break;
      }
    }
    leave_room();
  }

  enum class Filled : std::uint8_t {
    yes,  // the entries are in the array or in lower wheels, later ones than those of the array before
    due,  // only if the array was empty: they are due
    no    // they are too many of one time for an array with other entries
  };

  // Moves the entries of the earliest slot.
  [[gnu::always_inline]] Filled fill(Place place) {
    const List& list = lists_[place.level][place.slot];
    const std::uint64_t size = list.size();
    const bool is_empty = head_ == end_;
    const bool is_short = size <= kMost && list.full == 0;
    if (is_short && !is_empty && low_ == 0 && size + end_ - head_ > kMost) {
      limit_ = std::max(limit_, wheel_.start(place));
      return Filled::no;
    }
    if (is_short) {
      const Time last = wheel_.last(place);
      const List taken = take(place);
      for (std::uint32_t i = 0; i < taken.count; ++i) {
        const Entry& entry = taken.first->entries[i];
        make_hole(entry.time) = entry;
      }
      release(taken.first);
      limit_ = last == kNever ? kNever : last + 1;
      return Filled::yes;
    }
    if (place.level == 0) {  // of one time
      limit_ = std::max(limit_, wheel_.start(place));
      return Filled::no;
    }
    if (size <= kMostByByte && size * kWaiting <= waiting_ && sort_by_byte(place)) { return Filled::yes; }
    if (!is_empty) {
      limit_ = std::max(limit_, wheel_.start(place));
      return Filled::no;
    }
    return distribute(place) ? Filled::due : Filled::yes;
  }

  // Appends the entries of the earliest slot to the array, sorted; false if too many of them have the same next byte.
  bool sort_by_byte(Place place) {
    const List list = lists_[place.level][place.slot];
    const unsigned shift = WheelClock::kBits * (place.level - 1);
    const auto byte = [shift](const Entry& entry) { return (entry.time >> shift) % WheelClock::kSlots; };
    std::array<std::uint16_t, WheelClock::kSlots> at{};
    std::uint32_t most = 0;
    each_block(list, [&](const Block* block, std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) { most = std::max<std::uint32_t>(most, ++at[byte(block->entries[i])]); }
    });
    if (most > kEqual) { return false; }
    const Time last = wheel_.last(place);
    (void)take(place);
    std::uint32_t sum = end_;
    for (std::uint16_t& count : at) { sum += std::exchange(count, static_cast<std::uint16_t>(sum)); }
    each_block(list, [&](Block* block, std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) { array_[at[byte(block->entries[i])]++] = block->entries[i]; }
      release(block);
    });
    const std::uint32_t first = end_;
    end_ = sum;
    if (shift > 0) { sort_nearly_sorted(first); }
    limit_ = last == kNever ? kNever : last + 1;
    return true;
  }

  // Entries from `first` on are at most kEqual places from where they belong.
  void sort_nearly_sorted(std::uint32_t first) {
    for (std::uint32_t i = first + 1; i < end_; ++i) {
      if (array_[i - 1].time <= array_[i].time) { continue; }
      const Entry entry = array_[i];
      std::uint32_t hole = i;
      for (; array_[hole - 1].time > entry.time; --hole) { array_[hole] = array_[hole - 1]; }
      array_[hole] = entry;
    }
  }

  // ---- what is due -------------------------------------------------------------------------------------------------

  // The entries of the list have the same time.
  void make_due(const List& list) {
    due_ = list;
    read_ = 0;
    now_ = limit_ = list.first->entries[0].time;
    wheel_.reach(now_);
  }

  const Entry* pop_due() {
    const std::uint32_t count = due_.first == due_.last ? due_.count : kEntries;
    if (read_ == count) {
      Block* const done = due_.first;
      due_.first = done == due_.last ? nullptr : done->next;
      release(done);
      read_ = 0;
      if (due_.first == nullptr) { return nullptr; }
    }
    return &due_.first->entries[read_++];
  }

  // ---- the wheel ---------------------------------------------------------------------------------------------------

  Entry& append(Time time) {
    const Place place = wheel_.place(time);
    List& list = lists_[place.level][place.slot];
    if (list.count == kEntries) { grow(list, place); }
    ++waiting_;
    return list.last->entries[list.count++];
  }

  void grow(List& list, Place place) {
    Block* const block = free_ != nullptr ? std::exchange(free_, free_->next) : make();
    if (list.first == nullptr) {
      list.first = block;
      wheel_.use(place);
    } else {
      list.last->next = block;
      ++list.full;
    }
    list.last = block;
    list.count = 0;
  }

  Block* make() {
    if (unmade_ == 0) {
      unmade_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(made_, kLeastArena, kMostArena));
      arenas_.emplace_back(unmade_);
    }
    ++made_;
    return &arenas_.back()[--unmade_];
  }

  void release(Block* block) {
    block->next = free_;
    free_ = block;
  }

  // Empties a slot and returns its entries.
  [[nodiscard]] List take(Place place) {
    wheel_.leave(place);
    waiting_ -= lists_[place.level][place.slot].size();
    return std::exchange(lists_[place.level][place.slot], List());
  }

  // Calls `use` with each block of the list and the number of its entries; it may release the block.
  template <class Use>
  static void each_block(const List& list, Use&& use) {
    for (Block* block = list.first; block != nullptr;) {
      Block* const next = block == list.last ? nullptr : block->next;
      if (next != nullptr) { prefetch(next); }
      use(block, next == nullptr ? list.count : kEntries);
      block = next;
    }
  }

  // Distributes the earliest slot to lower wheels; true if its entries have the same time: they are due then.
  bool distribute(Place place) {
    const List list = take(place);
    const Time first = list.first->entries[0].time;
    Time difference = 0;
    each_block(list, [&](const Block* block, std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) { difference |= block->entries[i].time ^ first; }
    });
    if (difference == 0) {
      make_due(list);
      return true;
    }
    const int shift = WheelClock::kBits * static_cast<int>(WheelClock::level(difference));
    wheel_.reach(first >> shift >> WheelClock::kBits << WheelClock::kBits << shift);
    each_block(list, [&](Block* block, std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) { append(block->entries[i].time) = block->entries[i]; }
      release(block);
    });
    return false;
  }

  static constexpr std::uint32_t kFront = 1;  // of the array: before it is an entry of time 0, which ends searches

  Time now_ = 0;
  std::uint64_t waiting_ = 0;  // entries in the wheel
  Time limit_ = kNever;        // entries before it are in the array, the others in the wheel
  std::uint32_t head_ = kFront, due_end_ = kFront, end_ = kFront;  // of the array: not handled, not due, free
  std::uint32_t full_ = kFew;                                      // the array makes room at this end
  std::uint32_t low_ = 0;                                          // it is filled with fewer entries
  std::uint32_t enough_ = kEnough;                                 // and has so many then
  List due_;                                                       // where many are due, what is due
  std::uint32_t read_ = 0;                                         // entries of its first block
  WheelClock wheel_;
  Block* free_ = nullptr;
  std::size_t made_ = 0;
  std::uint32_t unmade_ = 0;  // blocks of the last arena
  std::vector<std::vector<Block, LargePages<Block>>> arenas_;
  std::array<Entry, kCapacity> array_{};
  WheelClock::Lists<List> lists_{};
};

}  // namespace orrery::engine
