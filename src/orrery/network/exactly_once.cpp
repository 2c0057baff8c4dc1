#include "orrery/network/exactly_once.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace orrery::network {

namespace {

// For each participant and block the set of members whose contributions it has, as `words_` words of bits.
class Contributions {
 public:
  explicit Contributions(const Requirement& requirement)
      : requirement_(requirement),
        words_((requirement.members + 63) / 64),
        sets_(std::size_t{requirement.participants} * requirement.blocks * words_, 0),
        whole_(std::size_t{requirement.blocks} * words_, 0),
        stored_in_(std::size_t{requirement.participants} * requirement.blocks, kNever),
        reduced_in_(stored_in_.size(), kNever) {
    for (std::uint32_t member = 0; member < requirement.members; ++member) {
      for (std::uint32_t block = 0; block < requirement.blocks; ++block) {
        if (!requirement.contributes(member, block)) { continue; }
        set_of(member, block)[member / 64] |= bit(member);
        whole(block)[member / 64] |= bit(member);
      }
    }
  }

  // All messages of one step.
  std::optional<std::string> apply(std::span<const BlockMessage> step) {
    std::vector<std::uint64_t> sent;  // sets before the step
    for (const BlockMessage& message : step) {
      for (const std::uint32_t block : message.blocks) {
        const std::uint64_t* has = set_of(message.source, block);
        if (!any(has)) { return fault_text(message, block, "which it does not have"); }
        sent.insert(sent.end(), has, has + words_);
      }
    }
    const std::uint64_t* content = sent.data();
    for (const BlockMessage& message : step) {
      for (const std::uint32_t block : message.blocks) {
        if (auto wrong = arrive(message, block, content)) { return wrong; }
        content += words_;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> missing_blocks() {
    for (std::uint32_t member = 0; member < requirement_.members; ++member) {
      for (std::uint32_t block = 0; block < requirement_.blocks; ++block) {
        if (!requirement_.ends_with(member, block) || is_whole(block, set_of(member, block))) { continue; }
        return fmt::format("member {} ends without {} of block {}", member,
                           any(set_of(member, block)) ? "all contributions" : "anything", block);
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static std::uint64_t bit(std::uint32_t member) { return std::uint64_t{1} << (member % 64); }

  [[nodiscard]] std::size_t index(std::uint32_t participant, std::uint32_t block) const {
    return std::size_t{participant} * requirement_.blocks + block;
  }
  std::uint64_t* set_of(std::uint32_t participant, std::uint32_t block) {
    return sets_.data() + index(participant, block) * words_;
  }
  std::uint64_t* whole(std::uint32_t block) { return whole_.data() + std::size_t{block} * words_; }
  [[nodiscard]] bool any(const std::uint64_t* set) const {
    return std::any_of(set, set + words_, [](std::uint64_t word) { return word != 0; });
  }
  bool is_whole(std::uint32_t block, const std::uint64_t* set) { return std::equal(set, set + words_, whole(block)); }

  bool contains(const std::uint64_t* set, const std::uint64_t* part) const {
    return std::equal(set, set + words_, part, [](std::uint64_t a, std::uint64_t b) { return (a & b) == b; });
  }

  static std::string fault_text(const BlockMessage& message, std::uint32_t block, const std::string& what) {
    return fmt::format("step {}: {} sends {} block {}, {}", message.step, message.source, message.destination, block,
                       what);
  }

  std::optional<std::string> arrive(const BlockMessage& message, std::uint32_t block, const std::uint64_t* content) {
    std::uint64_t* has = set_of(message.destination, block);
    const std::size_t at = index(message.destination, block);
    const bool stored_now = stored_in_[at] == message.step, reduced_now = reduced_in_[at] == message.step;
    if (stored_now || (reduced_now && !message.reduces)) {
      return fault_text(message, block, "which another message of the step stores or reduces there");
    }
    if (message.reduces) {
      for (std::size_t w = 0; w < words_; ++w) {
        if ((has[w] & content[w]) != 0) { return fault_text(message, block, "part of which is in the sum already"); }
        has[w] |= content[w];
      }
      reduced_in_[at] = message.step;
      return std::nullopt;
    }
    const bool is_of_switch = requirement_.has_partial_sums && message.source >= requirement_.members;
    if (!is_whole(block, content) && !(is_of_switch && contains(content, has))) {
      return fault_text(message, block, "a partial sum, to be stored as the whole");
    }
    const bool may_repeat = requirement_.may_receive_again && requirement_.may_receive_again(message.destination);
    if (is_whole(block, has) && !may_repeat) { return fault_text(message, block, "which it has already"); }
    std::copy(content, content + words_, has);
    stored_in_[at] = message.step;
    return std::nullopt;
  }

  const Requirement& requirement_;
  std::size_t words_;
  std::vector<std::uint64_t> sets_, whole_;
  std::vector<std::uint64_t> stored_in_, reduced_in_;  // by party and block: the last such step
};

// In a barrier, members learn from messages which members have arrived; they may learn it twice.
std::optional<std::string> barrier_fault(const Requirement& requirement, std::span<const BlockMessage> messages) {
  std::vector<std::vector<bool>> arrivals(requirement.participants, std::vector<bool>(requirement.members, false));
  for (std::uint32_t member = 0; member < requirement.members; ++member) { arrivals[member][member] = true; }
  for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
    const auto before = arrivals;
    for (end = begin; end < messages.size() && messages[end].step == messages[begin].step; ++end) {
      const BlockMessage& message = messages[end];
      for (std::uint32_t member = 0; member < requirement.members; ++member) {
        if (before[message.source][member]) { arrivals[message.destination][member] = true; }
      }
    }
  }
  for (std::uint32_t member = 0; member < requirement.members; ++member) {
    const auto missing = std::find(arrivals[member].begin(), arrivals[member].end(), false);
    if (missing == arrivals[member].end()) { continue; }
    return fmt::format("member {} passes the barrier without a message chain from member {}", member,
                       missing - arrivals[member].begin());
  }
  return std::nullopt;
}

// The member that owns block (x0, x1, …) of an all_gather or reduce_scatter: the one with these coordinates. The first
// extent varies slowest among blocks and fastest among members.
std::uint32_t owner(std::int64_t block, const InlineList<Extent, kMaxExtents>& extents) {
  std::int64_t position = 0, stride = 1;
  for (const Extent& extent : extents) { stride *= extent.members; }
  for (std::size_t e = extents.size(); e-- > 0;) {
    stride /= extents[e].members;
    position += block % extents[e].members * stride;
    block /= extents[e].members;
  }
  return static_cast<std::uint32_t>(position);
}

}  // namespace

std::optional<std::string> fault(const Requirement& requirement, std::span<const BlockMessage> messages) {
  for (std::size_t i = 1; i < messages.size(); ++i) {
    if (messages[i].step < messages[i - 1].step) { return fmt::format("step {} is out of order", messages[i].step); }
  }
  for (const BlockMessage& message : messages) {
    if (message.source >= requirement.participants || message.destination >= requirement.participants ||
        message.source == message.destination) {
      return fmt::format("step {}: {} sends to {}", message.step, message.source, message.destination);
    }
    if (message.blocks.empty() && !requirement.is_barrier) {
      return fmt::format("step {}: {} sends {} nothing", message.step, message.source, message.destination);
    }
  }
  if (requirement.is_barrier) { return barrier_fault(requirement, messages); }
  Contributions contributions(requirement);
  for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
    end = begin;
    while (end < messages.size() && messages[end].step == messages[begin].step) { ++end; }
    if (auto wrong = contributions.apply(messages.subspan(begin, end - begin))) { return wrong; }
  }
  return contributions.missing_blocks();
}

// ---- member schedules ----------------------------------------------------------------------------------------------

Requirement requirement_of(const MemberSchedule& schedule) {
  const std::uint32_t n = schedule.members, root = schedule.root;
  Requirement requirement;
  requirement.members = n;
  requirement.participants = participant_count(schedule);
  requirement.blocks = block_count(schedule) * (schedule.collective == Collective::all_to_all ? n : 1);
  const auto all = [](std::uint32_t, std::uint32_t) { return true; };
  const auto own = [](std::uint32_t member, std::uint32_t block) { return member == block; };
  const auto of_root = [root](std::uint32_t member, std::uint32_t) { return member == root; };
  switch (schedule.collective) {
    case Collective::all_reduce: requirement.contributes = all, requirement.ends_with = all; break;
    case Collective::reduce_scatter: requirement.contributes = all, requirement.ends_with = own; break;
    case Collective::all_gather: requirement.contributes = own, requirement.ends_with = all; break;
    case Collective::all_to_all:
      requirement.contributes = [n](std::uint32_t member, std::uint32_t block) { return block / n == member; };
      requirement.ends_with = [n](std::uint32_t member, std::uint32_t block) { return block % n == member; };
      break;
    case Collective::broadcast: requirement.contributes = of_root, requirement.ends_with = all; break;
    case Collective::reduce: requirement.contributes = all, requirement.ends_with = of_root; break;
    case Collective::gather: requirement.contributes = own, requirement.ends_with = of_root; break;
    case Collective::scatter: requirement.contributes = of_root, requirement.ends_with = own; break;
    case Collective::barrier: requirement.is_barrier = true; break;
  }
  return requirement;
}

std::vector<BlockMessage> messages_of(const MemberSchedule& schedule) {
  std::vector<BlockMessage> messages;
  const std::uint32_t blocks = block_count(schedule);
  const bool rows = schedule.collective == Collective::all_to_all;
  for (std::uint32_t step = 0; step < step_count(schedule); ++step) {
    for (std::uint32_t member = 0; member < participant_count(schedule); ++member) {
      for (std::uint32_t i = 0; i < send_count(schedule, member, step); ++i) {
        const StepMessage sent = send(schedule, member, step, i);
        BlockMessage message{step, member, sent.peer, {}, sent.reduces};
        std::uint64_t block = sent.first;
        for (std::uint32_t k = 0; k < sent.count; ++k, block += sent.stride) {
          const auto column = static_cast<std::uint32_t>(block % blocks);
          message.blocks.push_back(rows ? sent.row * blocks + column : column);
        }
        messages.push_back(std::move(message));
      }
    }
  }
  return messages;
}

// ---- over several dimensions ---------------------------------------------------------------------------------------

Requirement requirement_of(const Schedule& schedule, const Group& group, const Composition& composition) {
  const auto extents = effective_extents(group);
  const std::int64_t per_chunk = composition.blocks_per_chunk, n = composition.members;
  const auto all = [](std::uint32_t, std::uint32_t) { return true; };
  const std::int64_t in_shard = per_chunk / n;  // blocks; 0: trees and multicasts, which have no shards
  const auto own = [extents, per_chunk, in_shard](std::uint32_t member, std::uint32_t block) {
    return owner(block % per_chunk / in_shard, extents) == member;
  };
  Requirement requirement;
  requirement.members = static_cast<std::uint32_t>(n);
  requirement.participants = static_cast<std::uint32_t>(composition.participants);
  requirement.has_partial_sums = extents.size() > 1;
  requirement.blocks = static_cast<std::uint32_t>(composition.blocks);
  switch (schedule.collective) {
    case Collective::all_reduce: requirement.contributes = all, requirement.ends_with = all; break;
    case Collective::reduce_scatter: requirement.contributes = all, requirement.ends_with = own; break;
    case Collective::all_gather: requirement.contributes = own, requirement.ends_with = all; break;
    case Collective::all_to_all:
      requirement.contributes = [=](std::uint32_t member, std::uint32_t b) { return b % per_chunk / n == member; };
      requirement.ends_with = [=](std::uint32_t member, std::uint32_t b) { return b % per_chunk % n == member; };
      break;
    case Collective::broadcast:
      requirement.contributes = [](std::uint32_t member, std::uint32_t) { return member == 0; };
      requirement.ends_with = all;
      // The root scatters inwards, then members all-gather: those with its coordinate of the outermost extent have a
      // part already.
      requirement.may_receive_again = [extents, n](std::uint32_t member) {
        return extents.empty() || member / (n / extents[extents.size() - 1].members) == 0;
      };
      break;
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier: throw_internal_error("a collective with a schedule", __FILE__, __LINE__);
  }
  return requirement;
}

std::vector<BlockMessage> messages_of(const Schedule& schedule, const Composition& composition) {
  std::vector<BlockMessage> messages;
  std::uint64_t group = 0;
  const Transfer* last = nullptr;
  for (const Transfer& transfer : composition.transfers) {
    const auto key = [&](const Transfer& t) {
      return std::tuple(t.round, t.chunk, first_concurrent(schedule, t.phase), t.step);
    };
    if (last != nullptr && key(*last) != key(transfer)) { ++group; }
    last = &transfer;
    BlockMessage message{group,
                         static_cast<std::uint32_t>(transfer.source),
                         static_cast<std::uint32_t>(transfer.destination),
                         {},
                         transfer.reduces};
    for (std::int64_t b = 0; b < transfer.blocks; ++b) {
      message.blocks.push_back(static_cast<std::uint32_t>(transfer.first_block + b));
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace orrery::network
