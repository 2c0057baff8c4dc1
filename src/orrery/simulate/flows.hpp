// Calls that share ports. A flow takes `alone` picoseconds if nothing else uses its ports. It needs a share of each of
// its ports during that time; where the shares of all flows exceed a port, the flows are slowed down, so that no port
// carries more than its bandwidth. Private to the room.
//
// Speeds are fair: the speeds of all flows rise together, each in proportion to 1 / (its largest share), until a port
// is full or the flow has its full speed; flows of a full port stay at their speed, the others rise on. The result
// depends on the set of flows only, not on their order: all arithmetic is in whole numbers, sums are exact, and
// quotients are rounded towards slower flows. So ranks that are images of each other stay so, and a job that is folded
// to one rank of each class has the speeds of the whole job.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// Of a port, and of full speed: 2^32 is all of it.
using FlowShare = std::uint64_t;
inline constexpr unsigned kShareBits = 32;
inline constexpr FlowShare kWholeShare = FlowShare{1} << kShareBits;
inline constexpr std::uint64_t kNever = ~std::uint64_t{0};
inline constexpr FlowShare kLeastShare = 1024;  // 2.4e-7 of a port

struct PortDemand {
  PortDemand(std::uint32_t number, FlowShare needed, std::uint32_t alike = 1)
      : port(number), copies(alike), share(needed) {}

  std::uint32_t port = 0;
  std::uint32_t copies = 1;  // flows like this one, itself included, that it stands for on this port (folded jobs)
  FlowShare share = 0;       // of each; at most kWholeShare; raised to kLeastShare
};

// What flows of two kinds took from each other.
struct FlowMeeting {
  std::uint64_t together = 0;  // picoseconds with both on a full port, summed over the flows of the first kind
  std::uint64_t lost = 0;      // picoseconds by which the flows of the first kind were slowed down, there
};

// What flows of one kind had of a port.
struct PortUse {
  std::uint64_t busy = 0;  // picoseconds that they needed of it, if alone
  std::uint64_t lost = 0;  // picoseconds by which they were slowed down because it was full, summed over the flows
};

class Flows {
 public:
  // `classes`: port p is of class p % classes; meetings() are by class. `shared`: false gives every flow its full
  // speed. port_uses() are kept of the ports from `watched` on.
  Flows(std::uint32_t ports, std::uint32_t classes, bool shared, std::uint32_t watched = kNone)
      : classes_(classes), shared_(shared), watched_(watched), ports_(ports) {}

  // `kind`: a label of the caller, for meetings(). Ports must differ.
  [[nodiscard]] std::uint32_t start(std::uint64_t now, std::uint64_t alone, std::uint32_t kind,
                                    std::span<const PortDemand> demands);
  // From now on the port carries this part of its bandwidth; 0: nothing.
  void set_capacity(std::uint32_t port, FlowShare capacity);
  // The rest of the flow goes on over other ports, on which the whole of it takes `alone` picoseconds.
  void replace(std::uint64_t now, std::uint32_t flow, std::uint64_t alone, std::span<const PortDemand> demands);
  // The flows that use a port.
  [[nodiscard]] std::vector<std::uint32_t> users(std::uint32_t port) const;
  // The flow ends now, as settle() said; its number can be used again.
  void end(std::uint64_t now, std::uint32_t flow);

  // After all starts and ends of an instant: calls changed(flow, end) for every flow that has started or whose speed
  // differs from before. Ends are in picoseconds. Flows on a port without capacity end at kNever.
  template <class Changed>
  void settle(std::uint64_t now, Changed&& changed) {
    find_speeds(now);
    for (const std::uint32_t flow : changed_) { changed(flow, ends_at(now, flow)); }
    changed_.clear();
  }

  // Of a port: the time that its flows needed of it, if alone, in picoseconds.
  [[nodiscard]] std::uint64_t busy(std::uint32_t port) const { return ports_[port].busy; }

  // By the kinds of both flows and the class of the port where they met: a full port that limits the first.
  using Meetings = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, FlowMeeting>;
  [[nodiscard]] const Meetings& meetings() const { return meetings_; }

  // By kind and port.
  using PortUses = std::map<std::pair<std::uint32_t, std::uint32_t>, PortUse>;
  [[nodiscard]] const PortUses& port_uses() const { return port_uses_; }

 private:
  __extension__ using Wide = unsigned __int128;

  struct Flow {
    std::vector<PortDemand> demands;
    Wide left = 0;  // picoseconds at full speed x 2^32
    std::uint64_t alone = 0;
    std::uint64_t since = 0;
    FlowShare largest = 0;  // of its shares
    FlowShare speed = 0;
    std::uint32_t kind = 0;
    std::uint32_t limit = kNone;  // the full port that limits it
    bool is_listed = false;       // during find_speeds
    FlowShare found = 0;          // its new speed; 0: not yet known
    std::uint32_t found_limit = kNone;
  };
  struct User {
    std::uint32_t flow = 0, copies = 1;
    FlowShare share = 0;
  };
  struct Port {
    std::vector<User> users;
    std::uint64_t asked = 0;  // sum of shares
    std::uint64_t busy = 0;
    FlowShare capacity = kWholeShare;
    bool is_listed = false;  // during find_speeds
    bool is_dirty = false;
    std::uint64_t rest = 0;  // of kWholeShare
    Wide rise = 0;           // sum over flows of unknown speed: share x weight
  };

  [[nodiscard]] std::uint64_t ends_at(std::uint64_t now, std::uint32_t flow) const;
  void find_speeds(std::uint64_t now);
  void list_affected();
  void list(std::uint32_t flow);
  void fill_ports();
  void set_speed(std::uint32_t flow, FlowShare speed, std::uint32_t limit);
  void take(std::uint64_t now, std::uint32_t flow);
  void note_meetings(const Flow& flow, std::uint64_t length);
  void mark(std::uint32_t port);
  void occupy(std::uint32_t flow);
  void leave(std::uint64_t now, std::uint32_t flow);

  std::uint32_t classes_;
  bool shared_;
  std::uint32_t watched_;
  std::vector<Port> ports_;
  Pool<Flow> flows_;
  std::vector<std::uint32_t> dirty_ports_, started_;
  std::vector<std::uint32_t> affected_flows_, affected_ports_, full_ports_;
  std::vector<std::uint32_t> changed_;
  Meetings meetings_;
  PortUses port_uses_;
};

}  // namespace orrery::simulate
