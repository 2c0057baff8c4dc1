// Times of the collectives that were priced lately: the plans of a search ask for the same ones again and again.
#pragma once

#include <cstddef>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/network/collective.hpp"
#include "orrery/network/group.hpp"

namespace orrery::network {

// Keeps as many answers as it has places; a new one takes the place of whatever its key falls on. Starts with few
// places, so that asking little costs little, and has more when it is asked much, up to a bound. Keeps a reference to
// the fabric. Not safe to share between threads.
class PriceCache {
 public:
  explicit PriceCache(const Fabric& fabric) : fabric_(fabric), entries_(kFewestPlaces) {}

  // fabric.price(collective, bytes, group).time
  [[nodiscard]] Seconds time(Collective collective, Bytes bytes, const Group& group);

 private:
  static constexpr std::size_t kFewestPlaces = 64, kMostPlaces = 4096;  // powers of two
  struct Entry {
    Collective collective = Collective::all_reduce;
    Bytes bytes{-1.0};  // of nobody
    Group group;
    Seconds time;
  };

  void make_room();

  const Fabric& fabric_;
  std::vector<Entry> entries_;
  std::size_t misses_ = 0;  // since it last grew
};

}  // namespace orrery::network
