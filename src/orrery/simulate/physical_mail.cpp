// Messages of nodes and of custom collectives. A message sets out when it is sent, or, under rendezvous, when its
// receiver's notice has come; the k-th that is sent to an address meets the k-th receive of it.
#include "orrery/simulate/physical_machine.hpp"

namespace orrery::simulate {

namespace {

constexpr std::uint64_t kNoticeBytesOfRendezvous = 8192;

}  // namespace

void PhysicalMachine::send(const Envelope& envelope, const Correspondent& sender, const Order& order) {
  const std::uint32_t id = letters_.take();
  letters_[id] = {envelope, sender, {}, order, false, false};
  Mailbox& box = mail_[envelope];
  const bool is_awaited = !box.receivers.empty();
  if (is_awaited) {
    letters_[id].receiver = box.receivers.front();
    box.receivers.pop_front();
  } else {
    box.letters.push_back(id);
  }
  if (job_.system.rendezvous && box.notices == 0) { return box.held.push_back(id); }
  if (job_.system.rendezvous) { --box.notices; }
  if (box.empty()) { mail_.erase(envelope); }
  set_out(id);
}

void PhysicalMachine::set_out(std::uint32_t id) {
  PhysicalLetter& letter = letters_[id];
  letter.has_set_out = true;
  if (letter.receiver.kind != Correspondent::Kind::nobody) { receiving(letter.receiver); }
  const std::uint32_t number = links_.take();
  Packet& packet = links_[number];
  packet = {};
  packet.bytes = letter.envelope.bytes;
  packet.order = letter.order;
  packet.at = letter.envelope.source;
  packet.target = letter.envelope.target;
  packet.owner = id;
  links_.ask(number, rounds_.now());
}

void PhysicalMachine::receive(const Envelope& envelope, const Correspondent& receiver) {
  Mailbox& box = mail_[envelope];
  if (box.letters.empty()) {
    box.receivers.push_back(receiver);
  } else {
    const std::uint32_t id = box.letters.front();
    box.letters.pop_front();
    if (box.empty()) { mail_.erase(envelope); }
    pair(id, receiver);
  }
  if (!job_.system.rendezvous) { return; }
  const std::uint32_t notice = letters_.take();
  letters_[notice] = {envelope, {}, receiver, {}, false, false};
  const std::uint32_t number = links_.take();
  Packet& packet = links_[number];
  packet = {};
  packet.bytes = kNoticeBytesOfRendezvous;
  packet.order.node = receiver.kind == Correspondent::Kind::custom ? customs_[receiver.ref].node : receiver.ref;
  packet.at = envelope.target;
  packet.target = envelope.source;
  packet.owner = notice;
  packet.is_notice = true;
  links_.ask(number, rounds_.now());
}

void PhysicalMachine::pair(std::uint32_t id, const Correspondent& receiver) {
  PhysicalLetter& letter = letters_[id];
  letter.receiver = receiver;
  if (letter.has_set_out) { receiving(receiver); }
  if (!letter.has_arrived) { return; }
  tell(receiver);
  letters_.give_back(id);
}

void PhysicalMachine::letter_arrived(std::uint32_t packet) {
  const std::uint32_t id = links_[packet].owner;
  links_.give_back(packet);
  PhysicalLetter& letter = letters_[id];
  letter.has_arrived = true;
  tell(letter.sender);
  if (letter.receiver.kind == Correspondent::Kind::nobody) { return; }
  tell(letter.receiver);
  letters_.give_back(id);
}

void PhysicalMachine::notice_arrived(std::uint32_t packet) {
  const std::uint32_t id = links_[packet].owner;
  links_.give_back(packet);
  const Envelope envelope = letters_[id].envelope;
  letters_.give_back(id);
  Mailbox& box = mail_[envelope];
  if (box.held.empty()) {
    ++box.notices;
    return;
  }
  const std::uint32_t letter = box.held.front();
  box.held.pop_front();
  if (box.empty()) { mail_.erase(envelope); }
  set_out(letter);
}

std::optional<PhysicalMachine::Unreceived> PhysicalMachine::unreceived() const {
  std::optional<Unreceived> all;
  for (const auto& [envelope, box] : mail_) {
    if (envelope.scope != 0) { continue; }  // of a custom collective, whose check has warned of it
    for (const std::uint32_t id : box.letters) {
      const Correspondent& sender = letters_[id].sender;
      const std::uint64_t messages = all ? all->messages + 1 : 1;
      const bool is_first = !all || std::pair(sender.rank, sender.ref) < std::pair(all->rank, all->node);
      all = is_first ? Unreceived{sender.rank, sender.ref, messages} : Unreceived{all->rank, all->node, messages};
    }
  }
  return all;
}

// What a node waited for is on its way.
void PhysicalMachine::receiving(const Correspondent& who) {
  if (who.kind != Correspondent::Kind::node) { return; }
  change(who.rank, Activity::waiting, -1);
  change(who.rank, Activity::comm, 1);
}

void PhysicalMachine::tell(const Correspondent& who) {
  switch (who.kind) {
    case Correspondent::Kind::nobody: return;
    case Correspondent::Kind::node: return end_later(who.rank, who.ref);
    case Correspondent::Kind::custom: return custom_ended_.emplace_back(who.ref, who.step), void();
  }
}

// ---- custom collectives --------------------------------------------------------------------------------------------

void PhysicalMachine::start_custom(std::uint32_t rank, std::uint32_t node, std::int32_t priority) {
  const std::uint32_t number = collective_of(rank, node);
  const PhysicalCollective& collective = collectives_[number];
  const std::uint32_t id = customs_.take();
  PhysicalCustom& run = customs_[id];
  run.rank = rank;
  run.node = node;
  run.collective = number;
  run.program = &job_.customs.at(collective.custom).at(groups_[collective.work.group].position(rank));
  run.priority = priority;
  run.left = static_cast<std::uint32_t>(run.program->steps.size());
  run.parents.clear();
  for (const CustomStep& step : run.program->steps) { run.parents.push_back(step.parents); }
  if (run.left == 0) { return end_later(rank, node); }
  for (std::uint32_t step = 0; step < run.program->steps.size(); ++step) {
    if (run.program->steps[step].parents == 0) { start_custom_step(id, step); }
  }
}

void PhysicalMachine::start_custom_step(std::uint32_t id, std::uint32_t which) {
  const PhysicalCustom& run = customs_[id];
  const CustomStep& step = run.program->steps[which];
  const std::uint32_t peer = groups_[collectives_[run.collective].work.group].rank(step.peer);
  const Correspondent self{Correspondent::Kind::custom, run.rank, id, which};
  switch (step.act) {
    case CustomStep::Act::send: {
      Order order;
      order.priority = run.priority;
      order.node = run.node;
      order.step = which;
      return send({step.tag, step.amount, run.rank, peer, run.collective + 1}, self, order);
    }
    case CustomStep::Act::receive: return receive({step.tag, step.amount, peer, run.rank, run.collective + 1}, self);
    case CustomStep::Act::compute:
      if (step.amount > kMostTime - rounds_.now()) { throw TooLong{}; }
      return rounds_.at(rounds_.now() + step.amount, {PhysicalEvent::custom_over, id, which});
  }
}

void PhysicalMachine::custom_step_over(std::uint32_t id, std::uint32_t which) {
  const std::vector<std::uint32_t>& children = customs_[id].program->steps[which].children;
  for (const std::uint32_t child : children) {
    if (--customs_[id].parents[child] == 0) { start_custom_step(id, child); }
  }
  if (--customs_[id].left != 0) { return; }
  const PhysicalCustom& run = customs_[id];
  PhysicalCollective& collective = collectives_[run.collective];
  ++collective.over;
  collective.end = rounds_.now();
  end_later(run.rank, run.node);
  customs_.give_back(id);
}

}  // namespace orrery::simulate
