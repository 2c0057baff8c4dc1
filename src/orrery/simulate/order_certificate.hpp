// The certificate of a folded run under ASTRA-sim's rules: no result depends on the order in which different ranks
// handle events of one instant. docs/models/astra-sim.md has the rule and the proof. Private to the room.
//
// One rank is simulated for all. Events that a rank registers at one instant keep their order on every rank. Events
// that different ranks register at one instant for a rank may come in any order. The certificate keeps track of which
// events of the simulated rank have no certain order, and is void if two of them may not be exchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::simulate {

// Thrown when the certificate is void: what the two events have in common.
struct OrderMatters {
  std::string why;
};

class OrderCertificate {
 public:
  // What an event changes besides registering events.
  enum class Touches : std::uint8_t {
    receives,    // counts a message of a chunk and opens its next slot
    sends,       // a token of a chunk, which may send messages
    nothing,     // a reduction of a chunk starts
    link,        // of the rank
    everything,  // of the rank
  };
  struct Handled {
    std::uint64_t time = 0;
    std::uint32_t label = 0;  // of the event
    bool in_lane = false;     // handled back to back with the other events of the lane
    Touches touches = Touches::everything;
    std::uint32_t chunk = 0;
  };

  // `has_links`: sends change links, so that those of different chunks may not be exchanged.
  explicit OrderCertificate(bool has_links) : has_links_(has_links) {}

  // An event is handled now. All events are passed, in order.
  void begin(const Handled& event);
  // It has changed state that the chunks of the rank share.
  void note_shared_state() {
    if (!events_.empty()) { events_.back().shares = true; }
  }
  // A label for an event that is registered now. `source`: the rank that registers it, as a number that is equal for
  // two events only if their sources are the same on every rank.
  [[nodiscard]] std::uint32_t label(std::uint64_t time, std::uint32_t source);
  // After the last event.
  void end() { close(); }

 private:
  // Where an event was registered. Two events with the same source were registered in a certain order, unless the
  // handlers that did it, of threads of one block, had none.
  struct Origin {
    std::uint64_t instant = 0;
    std::uint64_t thread = 0;
    std::uint32_t block = 0, source = 0;
  };
  struct Event {
    Origin origin;
    Touches touches = Touches::everything;
    bool shares = false;        // has changed shared state
    bool is_immediate = false;  // has registered an event for its own time
    std::uint32_t chunk = 0, block = 0;
  };
  // Handled events without certain order between its threads, or (is_mixed false) in a certain order.
  struct Block {
    std::uint32_t same_as = 0;
    bool is_mixed = false;
  };

  void close();
  [[nodiscard]] const Block& block_of(std::uint32_t number) const { return blocks_[blocks_[number].same_as]; }
  [[nodiscard]] bool has_uncertain_order(std::span<const Event> events) const;
  void check(std::span<const Event> events);
  [[nodiscard]] static bool are_all_alike(std::span<const Event> events);

  bool has_links_;
  std::uint64_t now_ = 0, instant_ = 0;
  bool last_in_lane_ = false;
  std::uint64_t group_instant_ = 0;  // when the entries of the current group were registered
  std::size_t entries_ = 0;          // of the group: events without a lane, or with all that follow in their lane
  std::vector<Event> events_;        // of the group
  std::vector<Block> blocks_{{0, false}};
  std::vector<Origin> labels_;
  std::vector<std::uint32_t> free_labels_;
  std::vector<Event> found_;  // of the entries, for a moment
};

}  // namespace orrery::simulate
