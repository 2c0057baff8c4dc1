#include "orrery/simulate/message_matcher.hpp"

namespace orrery::simulate {

Continuation MessageMatcher::arrive(const MessageKey& key) {
  Unmatched& unmatched = unmatched_[key];
  if (unmatched.receivers.empty()) {
    ++unmatched.arrived;
    return {};
  }
  const Continuation receiver = unmatched.receivers.front();
  unmatched.receivers.pop_front();
  if (unmatched.receivers.empty()) { unmatched_.erase(key); }
  return receiver;
}

bool MessageMatcher::receive(const Continuation& receiver, const MessageKey& key) {
  Unmatched& unmatched = unmatched_[key];
  if (unmatched.arrived == 0) {
    unmatched.receivers.push_back(receiver);
    return false;
  }
  if (--unmatched.arrived == 0) { unmatched_.erase(key); }
  return true;
}

Continuation MessageMatcher::depart(const MessageKey& key) {
  Departures& departures = departures_[key];
  if (departures.receivers.empty()) {
    ++departures.departed;
    return {};
  }
  const Continuation receiver = departures.receivers.front();
  departures.receivers.pop_front();
  if (departures.receivers.empty()) { departures_.erase(key); }
  return receiver;
}

bool MessageMatcher::await_departure(const Continuation& receiver, const MessageKey& key) {
  Departures& departures = departures_[key];
  if (departures.departed == 0) {
    departures.receivers.push_back(receiver);
    return false;
  }
  if (--departures.departed == 0) { departures_.erase(key); }
  return true;
}

bool MessageMatcher::is_awaited(const MessageKey& ready, std::uint32_t message) {
  Rendezvous& rendezvous = rendezvous_[ready];
  if (rendezvous.ready == 0) {
    rendezvous.waiting.push_back(message);
    return false;
  }
  --rendezvous.ready;
  return true;
}

std::optional<std::uint32_t> MessageMatcher::release(const MessageKey& ready) {
  Rendezvous& rendezvous = rendezvous_[ready];
  if (rendezvous.waiting.empty()) {
    ++rendezvous.ready;
    return std::nullopt;
  }
  const std::uint32_t message = rendezvous.waiting.front();
  rendezvous.waiting.pop_front();
  return message;
}

}  // namespace orrery::simulate
