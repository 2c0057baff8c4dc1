// Times of recently priced collectives: the plans of a search request the same ones many times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/group.hpp"

namespace orrery::network {

// What a collective needs of the ports of each member, if it is alone.
struct CallLoads {
  struct Port {
    int dimension = 0;
    Seconds load;  // of the busier direction, at the port's full rate
  };
  Seconds time;
  InlineList<Port, kMaxExtents> ports;
};

// A direct-mapped cache: a new answer replaces the one in its key's slot. Starts with few slots, so that short runs pay
// little, and grows with misses up to a bound.
// Keeps a reference to the fabric. Not safe to share between threads.
class PriceCache {
 public:
  explicit PriceCache(const Fabric& fabric) : fabric_(fabric), entries_(kFewestSlots) {}

  // fabric.price(collective, bytes, group).time
  [[nodiscard]] Seconds time(Collective collective, Bytes bytes, const Group& group);

  // Time and loads of fabric.traffic(collective, bytes, group), or of its trees of switches. Valid until the next call.
  [[nodiscard]] const CallLoads& loads(Collective collective, Bytes bytes, const Group& group);

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }

 private:
  static constexpr std::size_t kFewestSlots = 64, kMostSlots = 4096;  // powers of two
  enum class Known : std::uint8_t { nothing, time, loads };           // loads: in loads_, at the same place
  struct Entry {
    Collective collective = Collective::all_reduce;
    Bytes bytes{-1.0};  // matches no request
    Group group;
    Seconds time;
    Known known = Known::nothing;
  };

  [[nodiscard]] Entry& entry(Collective collective, Bytes bytes, const Group& group);
  void grow();

  const Fabric& fabric_;
  std::vector<Entry> entries_;
  std::vector<CallLoads> loads_;  // as many as entries, or none before the first is asked for
  std::size_t misses_ = 0;        // since it last grew
};

}  // namespace orrery::network
