// Every algorithm does what its collective requires: every member that must have a byte has it, reduced over all
// contributions, and received it once.

#include "orrery/network/expand.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/network/test_cluster.hpp"
#include "orrery/network/test_collectives.hpp"

namespace orrery::network::expand_test {
namespace {

using test::group_of;

const std::vector<std::vector<std::int64_t>> kShapes = {{1}, {2},    {3},    {4},    {5},    {6},    {7},      {8},
                                                        {9}, {2, 2}, {2, 4}, {3, 2}, {4, 3}, {8, 2}, {2, 3, 2}};
std::string text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const auto n : shape) { out += (out.empty() ? "" : "x") + std::to_string(n); }
  return out;
}

// The data of all members: for every block the set of members whose contribution it contains, as bits.
class MemberData {
 public:
  explicit MemberData(const Expansion& expansion)
      : expansion_(expansion),
        contributions_(static_cast<std::size_t>(expansion.members * expansion.blocks), 0),
        deliveries_(contributions_.size(), 0) {}

  std::uint64_t& contributions(std::int64_t member, std::int64_t block) { return contributions_[index(member, block)]; }
  int& deliveries(std::int64_t member, std::int64_t block) { return deliveries_[index(member, block)]; }

  // Applies all transfers; false if one sends a block that its source does not have or adds a contribution twice.
  bool apply_all() {
    bool is_correct = true;
    for (const Transfer& t : expansion_.transfers) {
      for (std::int64_t b = t.first_block; b < t.first_block + t.blocks; ++b) {
        const std::uint64_t sent = contributions(t.source, b);
        std::uint64_t& received = contributions(t.destination, b);
        is_correct = is_correct && sent != 0;
        if (t.source == t.destination) { continue; }  // a member's own part of a pass through a switch
        if (t.reduces) {
          is_correct = is_correct && (received & sent) == 0;
          received |= sent;
          continue;
        }
        is_correct = is_correct && std::popcount(sent) >= std::popcount(received);
        received = sent;
        ++deliveries(t.destination, b);
      }
    }
    return is_correct;
  }

 private:
  [[nodiscard]] std::size_t index(std::int64_t member, std::int64_t block) const {
    return static_cast<std::size_t>(member * expansion_.blocks + block);
  }
  const Expansion& expansion_;
  std::vector<std::uint64_t> contributions_;
  std::vector<int> deliveries_;
};

std::uint64_t bit(std::int64_t member) { return std::uint64_t{1} << static_cast<unsigned>(member); }

// The member that owns a block of an all_gather or reduce_scatter: block (x0, x1) belongs to the member with those
// coordinates; the first extent varies slowest among blocks and fastest among members.
std::int64_t owner(std::int64_t block, const std::vector<std::int64_t>& shape) {
  std::int64_t position = 0;
  std::int64_t stride = 1;
  for (const auto n : shape) { stride *= n; }
  for (std::size_t e = shape.size(); e-- > 0;) {
    stride /= shape[e];
    position += block % shape[e] * stride;
    block /= shape[e];
  }
  return position;
}

// The shard that a block belongs to: flat rings have several blocks in one.
std::int64_t shard(const Expansion& expansion, std::int64_t block) {
  return block % expansion.blocks_per_chunk / (expansion.blocks_per_chunk / expansion.members);
}

template <class Check>
void for_each_schedule(Collective collective, Check check) {
  for (const auto& shape : kShapes) {
    for (const CollectiveAlgorithm algorithm : test::kScheduleAlgorithms) {
      for (const std::int64_t chunks : {1, 3}) {
        const Group group = group_of(shape);
        Schedule schedule = make_schedule(collective, algorithm, Bytes(720720.0), group);
        schedule.chunks = chunks;
        if (schedule.phases.empty()) { continue; }
        SCOPED_TRACE(text(shape) + " algorithm " + std::to_string(static_cast<int>(algorithm)));
        const Expansion expansion = expand(schedule, group);
        check(shape, expansion);
      }
    }
  }
}

TEST(Expand, all_reduce_sums_every_byte_over_all_members_exactly_once_on_every_member) {
  int schedules = 0;
  for_each_schedule(Collective::all_reduce, [&](const auto&, const Expansion& expansion) {
    MemberData data(expansion);
    for (std::int64_t m = 0; m < expansion.members; ++m) {
      for (std::int64_t b = 0; b < expansion.blocks; ++b) { data.contributions(m, b) = bit(m); }
    }
    EXPECT_TRUE(data.apply_all());
    const std::uint64_t all = bit(expansion.members) - 1;
    for (std::int64_t m = 0; m < expansion.members; ++m) {
      for (std::int64_t b = 0; b < expansion.blocks; ++b) {
        ASSERT_EQ(data.contributions(m, b), all) << "member " << m << " block " << b;
        ASSERT_LE(data.deliveries(m, b), 1);
      }
    }
    EXPECT_DOUBLE_EQ(expansion.block_bytes.value() * static_cast<double>(expansion.blocks), 720720.0);
    ++schedules;
  });
  EXPECT_EQ(schedules, 14 * 5 * 2);  // every shape except the group of one, every algorithm
}

TEST(Expand, reduce_scatter_gives_each_member_its_shard_reduced_over_all) {
  int schedules = 0;
  for_each_schedule(Collective::reduce_scatter, [&](const auto& shape, const Expansion& expansion) {
    MemberData data(expansion);
    for (std::int64_t m = 0; m < expansion.members; ++m) {
      for (std::int64_t b = 0; b < expansion.blocks; ++b) { data.contributions(m, b) = bit(m); }
    }
    EXPECT_TRUE(data.apply_all());
    for (std::int64_t b = 0; b < expansion.blocks; ++b) {
      const std::int64_t m = owner(shard(expansion, b), shape);
      ASSERT_EQ(data.contributions(m, b), bit(expansion.members) - 1) << "member " << m << " block " << b;
    }
    ++schedules;
  });
  EXPECT_EQ(schedules, 14 * 4 * 2);  // there is no tree
}

TEST(Expand, all_gather_delivers_every_shard_to_every_member_exactly_once) {
  int schedules = 0;
  for_each_schedule(Collective::all_gather, [&](const auto& shape, const Expansion& expansion) {
    MemberData data(expansion);
    for (std::int64_t b = 0; b < expansion.blocks; ++b) {
      const std::int64_t m = owner(shard(expansion, b), shape);
      data.contributions(m, b) = bit(m);
    }
    EXPECT_TRUE(data.apply_all());
    for (std::int64_t m = 0; m < expansion.members; ++m) {
      for (std::int64_t b = 0; b < expansion.blocks; ++b) {
        const std::int64_t from = owner(shard(expansion, b), shape);
        ASSERT_EQ(data.contributions(m, b), bit(from));
        ASSERT_EQ(data.deliveries(m, b), m == from ? 0 : 1);
      }
    }
    ++schedules;
  });
  EXPECT_EQ(schedules, 14 * 4 * 2);
}

TEST(Expand, all_to_all_delivers_every_block_to_its_destination) {
  int schedules = 0;
  for_each_schedule(Collective::all_to_all, [&](const auto&, const Expansion& expansion) {
    MemberData data(expansion);
    const auto source = [&](std::int64_t b) { return b % expansion.blocks_per_chunk / expansion.members; };
    for (std::int64_t b = 0; b < expansion.blocks; ++b) { data.contributions(source(b), b) = bit(source(b)); }
    EXPECT_TRUE(data.apply_all());
    for (std::int64_t b = 0; b < expansion.blocks; ++b) {
      const std::int64_t destination = b % expansion.members;
      ASSERT_EQ(data.contributions(destination, b), bit(source(b)));
      ASSERT_EQ(data.deliveries(destination, b), destination == source(b) ? 0 : 1);
    }
    ++schedules;
  });
  EXPECT_EQ(schedules, 14 * 2 * 2);  // ring and direct
}

TEST(Expand, broadcast_delivers_the_root_s_bytes_to_every_member) {
  int schedules = 0;
  for_each_schedule(Collective::broadcast, [&](const auto&, const Expansion& expansion) {
    MemberData data(expansion);
    for (std::int64_t b = 0; b < expansion.blocks; ++b) { data.contributions(0, b) = 1; }
    EXPECT_TRUE(data.apply_all());
    for (std::int64_t m = 0; m < expansion.members; ++m) {
      for (std::int64_t b = 0; b < expansion.blocks; ++b) { ASSERT_EQ(data.contributions(m, b), 1U) << m << " " << b; }
    }
    ++schedules;
  });
  EXPECT_EQ(schedules, 14 * 4 * 2);
}

TEST(Expand, a_group_of_one_has_no_transfers) {
  for (const CollectiveAlgorithm algorithm : test::kScheduleAlgorithms) {
    const Schedule schedule = make_schedule(Collective::all_reduce, algorithm, Bytes(8.0), group_of({1}));
    EXPECT_TRUE(expand(schedule, group_of({1})).transfers.empty());
  }
}

TEST(Expand, no_member_has_more_than_two_children_or_two_parents_over_both_trees) {
  for (std::int64_t n = 2; n <= 70; ++n) {
    std::vector<int> children(static_cast<std::size_t>(n), 0);
    for (const int which : {0, 1}) {
      const auto tree = double_tree(n, which);
      int roots = 0;
      for (const TreeNode& node : tree) {
        roots += node.parent ? 0 : 1;
        EXPECT_LE(node.depth, std::bit_width(static_cast<std::uint64_t>(n - 1))) << n;  // ceil(log2 n)
        if (!node.parent) { continue; }
        EXPECT_EQ(node.depth, tree[static_cast<std::size_t>(*node.parent)].depth + 1);
        ++children[static_cast<std::size_t>(*node.parent)];
      }
      EXPECT_EQ(roots, 1);
    }
    for (const int count : children) { EXPECT_LE(count, 2) << n; }
  }
}

}  // namespace
}  // namespace orrery::network::expand_test
