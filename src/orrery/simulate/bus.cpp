#include "orrery/simulate/bus.hpp"

#include <algorithm>

namespace orrery::simulate {

namespace {

constexpr double kInnerNsPerByte = 0.0038;
constexpr std::uint64_t kWorkNs = 50;             // per request, in addition to
constexpr std::uint64_t kBytesPerWorkStep = 100;  // one local-reduction-delay per this number of bytes

}  // namespace

Bus::Bus(const SharedBus& bus, std::uint64_t reduction_delay_ns, std::uint32_t rank, BusDriver& driver)
    : bus_(bus), reduction_delay_ns_(reduction_delay_ns), rank_(rank), driver_(&driver) {}

void Bus::start(const BusRequest& request, bool to_memory, std::uint64_t now) {
  now_ = now;
  enqueue(to_memory ? kRank : kMemory, request);
}

void Bus::enqueue(std::uint8_t port, const BusRequest& request) {
  if (port == kRank) { return start_inner(kInnerFar, request, false, BusRequest::Then::send); }
  ports_[port].sends.push_back(request);
  try_send(port);
}

void Bus::start_inner(std::uint8_t from, BusRequest inner, bool back, BusRequest::Then then) {
  inner.outer_work = inner.work;
  inner.outer_back = inner.back;
  inner.inner = true;
  inner.then = then;
  inner.work = false;
  inner.back = back;
  enqueue(from, inner);
}

void Bus::try_send(std::uint8_t number) {
  Port& port = ports_[number];
  if (port.state != State::free || port.sends.empty()) { return; }
  const Port& other = ports_[opposite(number)];
  if (port.streak > kMostInARow && !other.sends.empty() && other.streak <= kMostInARow) {
    if (other.state == State::free) { try_send(opposite(number)); }
    return;
  }
  transmit(number);
}

void Bus::transmit(std::uint8_t number) {
  Port& port = ports_[number];
  Port& other = ports_[opposite(number)];
  const BusRequest sending = port.sends.front();
  std::uint64_t offset = bus_.overhead_ns;
  if (port.previous == State::sending && bus_.overhead_ns + (now_ - port.last) <= bus_.gap_ns) {
    offset = bus_.gap_ns - (now_ - port.last);
  }
  const double per_byte = number >= kInnerNear ? kInnerNsPerByte : static_cast<double>(bus_.ns_per_byte);
  const double transfer = per_byte * (static_cast<double>(sending.bytes) - 1.0);  // negative for 0 B, as in ASTRA-sim
  other.receives.push_back(sending);
  other.previous = other.state;
  other.state = State::receiving;
  other.streak = 0;
  const auto arrival = static_cast<double>(offset) + transfer + static_cast<double>(bus_.latency_ns) +
                       static_cast<double>(bus_.overhead_ns);
  driver_->later(rank_, static_cast<std::uint64_t>(std::max(arrival, 0.0)), BusDriver::Step::received,
                 opposite(number));
  port.sends.pop_front();
  port.state = State::sending;
  const double sent = std::max(static_cast<double>(offset) + transfer, 0.0);
  driver_->later(rank_, static_cast<std::uint64_t>(sent), BusDriver::Step::sent, number);
}

void Bus::handle(BusDriver::Step step, std::uint8_t port, std::uint64_t now) {
  now_ = now;
  switch (step) {
    case BusDriver::Step::sent: return sent(port);
    case BusDriver::Step::received: return received(port);
    case BusDriver::Step::worked: return worked(port);
  }
}

void Bus::sent(std::uint8_t number) {
  Port& port = ports_[number];
  port.last = now_;
  port.previous = port.state;
  port.state = State::free;
  ++port.streak;
  try_send(number);
}

void Bus::received(std::uint8_t number) {
  Port& port = ports_[number];
  port.last = now_;
  port.previous = port.state;
  if (port.receives.size() < 2) { port.state = State::free; }
  BusRequest request = port.receives.front();
  port.receives.pop_front();
  if (!request.work) {
    leave(number, request);
  } else {
    request.work = false;
    if (number == kRank) {
      start_inner(kInnerNear, request, true, BusRequest::Then::work_on);
    } else {
      port.work.push_back(request);
      begin_work(number);
    }
  }
  try_send(number);
}

void Bus::leave(std::uint8_t number, BusRequest request) {
  const bool back = request.back;
  request.back = false;
  if (number == kRank) {
    return start_inner(kInnerNear, request, back, back ? BusRequest::Then::send : BusRequest::Then::delivered);
  }
  if (back) {
    ports_[number].sends.push_back(request);
    try_send(number);
  } else {
    arrive(request);
  }
}

void Bus::arrive(const BusRequest& request) {
  if (!request.inner) { return driver_->delivered(request); }
  BusRequest outer = request;
  outer.inner = false;
  outer.work = request.outer_work;
  outer.back = request.outer_back;
  switch (request.then) {
    case BusRequest::Then::delivered: driver_->delivered(outer); break;
    case BusRequest::Then::send: ports_[kRank].sends.push_back(outer); break;
    case BusRequest::Then::work_on:
      ports_[kRank].work.push_back(outer);
      begin_work(kRank);
      break;
  }
  try_send(kRank);
}

void Bus::begin_work(std::uint8_t number) {
  Port& port = ports_[number];
  if (port.working || port.work.empty()) { return; }
  port.working = true;
  const std::uint64_t steps = port.work.front().bytes / kBytesPerWorkStep;
  driver_->later(rank_, steps * reduction_delay_ns_ + kWorkNs, BusDriver::Step::worked, number);
}

void Bus::worked(std::uint8_t number) {
  Port& port = ports_[number];
  const BusRequest request = port.work.front();
  port.work.pop_front();
  port.working = false;
  leave(number, request);
  begin_work(number);
  try_send(number);
}

}  // namespace orrery::simulate
