// The bus between a rank and its memory in the LogGP model: L latency, o overhead, g gap, G time per byte. Both sides
// send. On the side of the rank there is a second, inner bus with its own time per byte. The state machine of a port is
// exactly that of ASTRA-sim (docs/models/astra-sim.md). Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

struct BusRequest {
  std::uint32_t chunk = 0, step = 0;  // the chunk and step that are delayed
  bool reduce = false;                // a reduction follows
  std::uint64_t bytes = 0;
  bool work = false, back = false;
  // A transfer on the inner bus is a part of one on the outer bus: what follows when it ends.
  enum class Then : std::uint8_t { delivered, send, work_on };
  bool inner = false;
  Then then = Then::delivered;
  bool outer_work = false, outer_back = false;
};

// The functions of the machine that a bus calls.
class BusDriver {
 public:
  enum class Step : std::uint8_t { sent, received, worked };
  virtual ~BusDriver() = default;
  virtual void later(std::uint32_t rank, std::uint64_t delay_ns, Step step, std::uint8_t port) = 0;
  virtual void delivered(const BusRequest& request) = 0;
};

class Bus {
 public:
  Bus(const SharedBus& bus, std::uint64_t reduction_delay_ns, std::uint32_t rank, BusDriver& driver);

  void start(const BusRequest& request, bool to_memory, std::uint64_t now);
  void handle(BusDriver::Step step, std::uint8_t port, std::uint64_t now);

 private:
  enum class State : std::uint8_t { free, sending, receiving };
  static constexpr std::uint8_t kRank = 0, kMemory = 1, kInnerNear = 2, kInnerFar = 3;
  static constexpr std::uint32_t kMostInARow = 8;

  struct Port {
    State state = State::free, previous = State::free;
    std::uint64_t last = 0;
    std::uint32_t streak = 0;
    bool working = false;
    std::deque<BusRequest> sends, receives, work;
  };

  [[nodiscard]] static std::uint8_t opposite(std::uint8_t port) { return port ^ 1U; }
  void enqueue(std::uint8_t port, const BusRequest& request);
  void start_inner(std::uint8_t from, BusRequest request, bool back, BusRequest::Then then);
  void try_send(std::uint8_t port);
  void transmit(std::uint8_t port);
  void sent(std::uint8_t port);
  void received(std::uint8_t port);
  void worked(std::uint8_t port);
  void leave(std::uint8_t port, BusRequest request);
  void arrive(const BusRequest& request);
  void begin_work(std::uint8_t port);

  SharedBus bus_;
  std::uint64_t reduction_delay_ns_;
  std::uint32_t rank_;
  BusDriver* driver_;
  std::uint64_t now_ = 0;
  std::array<Port, 4> ports_;
};

}  // namespace orrery::simulate
