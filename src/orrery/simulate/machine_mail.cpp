// Messages: who is told of an arrival, and what is kept for those who come later. Messages of collectives are matched
// within their chunk, others by their address; the k-th message of an address meets the k-th that expects one.
#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

namespace {

std::uint64_t native_tag(const Chunk& chunk) { return kNativeTag | (std::uint64_t{chunk.group} << 32) | chunk.id; }

}  // namespace

// ---- collectives ---------------------------------------------------------------------------------------------------

// `to_chunk`: which chunk this is at the receiver's, if that is known; it saves the search on arrival.
void Machine::send_native(const Chunk& chunk, std::uint32_t to, std::uint64_t bytes, std::uint64_t flight,
                          std::uint32_t to_chunk) {
  if (bytes == 0) {
    const Running& running = running_[chunk.collective];
    throw Stop{chunk.rank, job_.programs[chunk.rank].nodes[running.node].id,
               "is a collective too small for its algorithm: a message would have 0 B"};
  }
  const Letter letter{bytes, native_tag(chunk), chunk.rank, to, {Party::Kind::nobody, 0, to_chunk, 0},
                      0,     chunk.rank,        kNone};
  if (job_.system.rendezvous) { return send(letter); }
  const std::uint32_t id = letters_.take();
  letters_[id] = letter;
  depart(id, flight);
}

void Machine::expect_native(std::uint32_t id, std::uint32_t from, std::uint64_t bytes) {
  const Chunk& chunk = chunks_[id];
  const Party party{Party::Kind::chunk, chunk.rank, id, from};
  const Address address{native_tag(chunk), bytes, from, chunk.rank};
  if (job_.system.rendezvous) { return announce(party, address); }
  post(party, address);
}

void Machine::arrive_native(const Letter& letter) {
  const auto group = static_cast<std::uint32_t>((letter.tag & ~kNativeTag) >> 32);
  const auto number = static_cast<std::uint32_t>(letter.tag);
  std::uint32_t id = letter.party.ref;
  if (id == kNone || chunks_[id].rank != letter.target || chunks_[id].id != number || chunks_[id].group != group) {
    id = find_chunk(letter.target, group, number);
    if (id == kOver) { return; }  // its chunk is done, so nobody will ever ask for it
  }
  if (chunks_[id].channels.balance(letter.source, letter.bytes)-- > 0) { receive(id, letter.source); }
}

// ---- all -----------------------------------------------------------------------------------------------------------

void Machine::send(const Letter& letter) {
  const std::uint32_t id = letters_.take();
  letters_[id] = letter;
  letters_[id].device = letter.source;
  if (!job_.system.rendezvous) { return depart(id); }
  // Waits until the receiver has said that it is ready.
  const Address notice{letter.tag | kNoticeTag, kNoticeBytes, letter.target, letter.source};
  NoticeBox& box = notices_[notice];
  if (box.arrived == 0) { return box.waiting.push_back(id); }
  --box.arrived;
  kernel_.at(kernel_.now(), {Happening::begin, 0, 0, id, 0});
}

void Machine::expect(const Party& party, const Address& address) {
  begin_to_expect(party, address);
  if (job_.system.rendezvous) { return announce(party, address); }
  post(party, address);
}

// Rendezvous: a notice to the sender. The receive is posted when the notice is there.
void Machine::announce(const Party& party, const Address& address) {
  const std::uint32_t id = letters_.take();
  letters_[id] = {kNoticeBytes,  address.tag | kNoticeTag, address.target, address.source, party,
                  address.bytes, address.target,           kNone};
  depart(id);
}

// From now on the message is expected; if it is there already, that is noticed as an event of its own.
void Machine::post(const Party& party, const Address& address) {
  bool is_there = false;
  if (party.kind == Party::Kind::chunk) {
    is_there = chunks_[party.ref].channels.balance(address.source, address.bytes)++ < 0;
    if (is_there) { kernel_.at(kernel_.now(), {Happening::received, 0, party.rank, party.ref, address.source}); }
    return;
  }
  Box& box = boxes_[address];
  if (box.arrived == 0) { return box.waiting.push_back(party); }
  if (--box.arrived == 0) { boxes_.erase(address); }
  kernel_.at(kernel_.now(),
             {Happening::received_by, static_cast<std::uint8_t>(party.kind), party.rank, party.ref, party.extra});
}

void Machine::arrive(std::uint32_t id) {
  const Letter letter = letters_[id];
  letters_.give_back(id);
  ++messages_;
  if ((letter.tag & kNoticeTag) != 0) { return arrive_notice(letter); }
  if ((letter.tag & kNativeTag) != 0) { return arrive_native(letter); }
  const Address address{letter.tag, letter.bytes, letter.source, letter.target};
  Box& box = boxes_[address];
  if (box.waiting.empty()) {
    ++box.arrived;  // noticed by who posts it, which may be the sender's next node
    return tell(letter.party);
  }
  const Party receiver = box.waiting.front();
  box.waiting.pop_front();
  if (box.waiting.empty()) { boxes_.erase(address); }
  tell(letter.party);
  tell(receiver);
}

// A message of a node or a custom collective starts on its way: who waits for it does not idle any more.
void Machine::set_out(const Letter& letter) {
  if (job_.tables && letter.party.kind == Party::Kind::node) {
    ranks_[letter.source].set_out[letter.party.ref] = kernel_.now();
  }
  const Address address{letter.tag, letter.bytes, letter.source, letter.target};
  Meeting& meeting = meetings_[address];
  if (meeting.expecting.empty()) {
    ++meeting.set_out;
    return;
  }
  const Party receiver = meeting.expecting.front();
  meeting.expecting.pop_front();
  if (meeting.expecting.empty()) { meetings_.erase(address); }
  if (receiver.kind == Party::Kind::node) { become_active(receiver.rank); }
}

void Machine::begin_to_expect(const Party& party, const Address& address) {
  Meeting& meeting = meetings_[address];
  if (meeting.set_out == 0) { return meeting.expecting.push_back(party); }
  if (--meeting.set_out == 0) { meetings_.erase(address); }
  if (party.kind == Party::Kind::node) { become_active(party.rank); }
}

void Machine::arrive_notice(const Letter& letter) {
  const Address address{letter.tag, letter.bytes, letter.source, letter.target};
  NoticeBox& box = notices_[address];
  std::uint32_t waiting = kNone;
  if (box.waiting.empty()) {
    ++box.arrived;
  } else {
    waiting = box.waiting.front();
    box.waiting.pop_front();
  }
  post(letter.party, {letter.tag & ~kNoticeTag, letter.about, letter.target, letter.source});
  if (waiting != kNone) { depart(waiting); }
}

void Machine::tell(const Party& party) {
  switch (party.kind) {
    case Party::Kind::nobody: return;
    case Party::Kind::chunk: return receive(party.ref, party.extra);
    case Party::Kind::node: return complete(party.rank, party.ref);
    case Party::Kind::custom: return custom_step_over(party.ref, party.extra);
  }
}

}  // namespace orrery::simulate
