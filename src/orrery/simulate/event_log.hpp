// Which event of a machine under ASTRA-sim's rules registered which, for the critical path of a run: an event is
// registered by the one that is handled, so the chain back from the last event has no gaps. Private to the room.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "orrery/simulate/event.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// What an event ends, from the time when it was registered.
struct EventWork {
  enum class Kind : std::uint8_t {
    none,
    node,       // of `rank`: its whole time
    endpoint,   // a delay between the network and the memory of `rank`
    reduction,  // of arriving data by the memory of `rank`
    flight,     // of a message from `from` to `to`
    link,       // a message crosses a link, from device `from` to `to`
    memory,     // remote memory serves a request
    reduction_in_switch
  };
  Kind kind = Kind::none;
  std::uint32_t rank = 0, node = kNone;  // the node that it is about
  std::uint32_t chunk = kNone, phase = 0;
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;
};

class EventLog final : public EventObserver {
 public:
  struct Record {
    std::uint64_t time = 0;
    std::uint32_t cause = kNone;  // the record of the event that registered it
    EventWork work;
  };

  void registered(engine::Time time, const Event& event) override {
    waiting_[key(time, event)].push_back(static_cast<std::uint32_t>(records_.size()));
    records_.push_back({time, current_, {}});
  }
  // The event is handled from now on. Equal events of one time are handled in the order of registration.
  void begin(std::uint64_t time, const Event& event) {
    const auto found = waiting_.find(key(time, event));
    current_ = found->second.front();
    found->second.erase(found->second.begin());
    if (found->second.empty()) { waiting_.erase(found); }
  }
  void describe(const EventWork& work) { records_[current_].work = work; }
  // The node has ended with the event that is handled.
  void end_node(std::uint32_t rank, std::uint32_t node) { ends_.push_back({rank, node, current_}); }

  struct NodeEnd {
    std::uint32_t rank = 0, node = 0, record = kNone;
  };
  [[nodiscard]] const std::vector<Record>& records() const { return records_; }
  [[nodiscard]] const std::vector<NodeEnd>& ends() const { return ends_; }

 private:
  struct Key {
    std::uint64_t time = 0, what = 0, ref = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t mixed = (key.time ^ key.what * 0x9E3779B97F4A7C15U) * 0xFF51AFD7ED558CCDU;
      mixed = (mixed ^ (mixed >> 29U) ^ key.ref) * 0x94D049BB133111EBU;
      return mixed ^ (mixed >> 31U);
    }
  };
  static Key key(std::uint64_t time, const Event& event) {
    const std::uint64_t kind = static_cast<std::uint64_t>(event.kind) << 8U | event.flag;
    return {time, kind << 32U | event.rank, std::uint64_t{event.ref} << 32U | event.extra};
  }

  std::vector<Record> records_;
  std::vector<NodeEnd> ends_;
  std::unordered_map<Key, std::vector<std::uint32_t>, KeyHash> waiting_;
  std::uint32_t current_ = kNone;
};

}  // namespace orrery::simulate
