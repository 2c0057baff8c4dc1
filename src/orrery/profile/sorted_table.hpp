// Values by key in one list: a third of the memory of a hash table. All are added before the first question. Private to
// the room.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace orrery::profile {

template <class Key, class Value>
class SortedTable {
 public:
  void add(const Key& key, const Value& value) { entries_.emplace_back(key, value); }

  // Call after the last add(). Of several values of a key, the first is found.
  void sort() {
    entries_.shrink_to_fit();
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const auto& a, const auto& b) { return std::less<Key>()(a.first, b.first); });
  }

  // nullptr if there is none.
  [[nodiscard]] const Value* find(const Key& key) const {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, [](const auto& entry, const Key& wanted) {
      return std::less<Key>()(entry.first, wanted);
    });
    return at == entries_.end() || at->first != key ? nullptr : &at->second;
  }

 private:
  std::vector<std::pair<Key, Value>> entries_;
};

}  // namespace orrery::profile
