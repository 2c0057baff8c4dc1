#include "orrery/simulate/message_matcher.hpp"

namespace orrery::simulate {

Continuation MessageMatcher::match_message(Table& table, const MessageKey& key) {
  Unmatched& unmatched = table[key];
  if (unmatched.receivers.empty()) {
    ++unmatched.messages;
    return {};
  }
  const Continuation receiver = unmatched.receivers.front();
  unmatched.receivers.pop_front();
  if (unmatched.receivers.empty()) { table.erase(key); }
  return receiver;
}

bool MessageMatcher::match_receiver(Table& table, const Continuation& receiver, const MessageKey& key) {
  Unmatched& unmatched = table[key];
  if (unmatched.messages == 0) {
    unmatched.receivers.push_back(receiver);
    return false;
  }
  if (--unmatched.messages == 0) { table.erase(key); }
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
