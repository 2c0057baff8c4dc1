// Which events may come in any order, and which void the certificate.
#include "orrery/simulate/order_certificate.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace orrery::simulate::order_certificate_test {
namespace {

using Touches = OrderCertificate::Touches;

struct Happens {
  std::uint32_t source = 0;  // the rank that registers the event
  Touches touches = Touches::receives;
  std::uint32_t chunk = 0;
  bool shares = false;
  bool in_lane = false;
};

// An event at time 1 registers the given ones for time 2. Why the certificate is void; empty if it holds.
std::string verdict_on(const std::vector<Happens>& events, bool has_links = false) {
  OrderCertificate certificate(has_links);
  try {
    certificate.begin({1, certificate.label(1, 0), true, Touches::everything, 0});
    std::vector<std::uint32_t> labels;
    for (const Happens& event : events) { labels.push_back(certificate.label(2, event.source)); }
    for (std::size_t i = 0; i < events.size(); ++i) {
      certificate.begin({2, labels[i], events[i].in_lane, events[i].touches, events[i].chunk});
      if (events[i].shares) { certificate.note_shared_state(); }
    }
    certificate.end();
  } catch (const OrderMatters& order) { return order.why; }
  return "";
}

constexpr const char* kShared = "a chunk ends a phase, or a node ends, at the same time as other events of its rank";
constexpr const char* kSameChunk = "a chunk receives a message at the same time as it may send one";

TEST(OrderCertificate, events_of_one_source_have_an_order) {
  EXPECT_EQ(verdict_on({{0, Touches::sends, 1, true}, {0, Touches::receives, 1, true}}), "");
  EXPECT_EQ(verdict_on({{6, Touches::sends, 1, true}, {6, Touches::everything, 2, true}}), "");
}

TEST(OrderCertificate, events_of_several_sources_may_be_exchanged_if_they_change_different_chunks_or_are_the_same) {
  EXPECT_EQ(verdict_on({{2, Touches::receives, 1}, {4, Touches::receives, 1}, {6, Touches::receives, 1}}), "");
  EXPECT_EQ(verdict_on({{2, Touches::receives, 1}, {4, Touches::receives, 2}}), "");
  EXPECT_EQ(verdict_on({{2, Touches::receives, 1}, {0, Touches::sends, 2}}), "");
  EXPECT_EQ(verdict_on({{2, Touches::receives, 1}, {0, Touches::sends, 1}}), kSameChunk);
  EXPECT_EQ(verdict_on({{2, Touches::receives, 1}, {0, Touches::sends, 2, true}}), kShared);
  EXPECT_EQ(verdict_on({{2, Touches::receives, 1}, {0, Touches::everything}}), kShared);
  // The last of equal operations ends the phase, whichever it is.
  EXPECT_EQ(verdict_on({{2, Touches::sends, 1}, {4, Touches::sends, 1, true}}), "");
}

TEST(OrderCertificate, sends_of_several_chunks_may_not_be_exchanged_where_they_use_links) {
  EXPECT_EQ(verdict_on({{2, Touches::sends, 1}, {4, Touches::sends, 2}}, true),
            "messages may be sent over a link at the same time");
  EXPECT_EQ(verdict_on({{2, Touches::receives, 1}, {4, Touches::receives, 2}}, true), "");
}

// Two messages of unknown order, each of which registers a token: the tokens have no certain order either, unless they
// are of one chunk.
TEST(OrderCertificate, what_has_no_order_causes_what_has_none) {
  const auto verdict = [](std::uint32_t second_chunk) -> std::string {
    OrderCertificate certificate(false);
    try {
      certificate.begin({1, certificate.label(1, 0), true, Touches::everything, 0});
      const std::uint32_t first = certificate.label(2, 2), second = certificate.label(2, 4);
      certificate.begin({2, first, false, Touches::receives, 1});
      const std::uint32_t first_token = certificate.label(3, 0);
      certificate.begin({2, second, false, Touches::receives, second_chunk});
      const std::uint32_t second_token = certificate.label(3, 0);
      certificate.begin({3, first_token, true, Touches::sends, 1});
      certificate.begin({3, second_token, true, Touches::sends, second_chunk});
      certificate.note_shared_state();
      certificate.end();
    } catch (const OrderMatters& order) { return order.why; }
    return "";
  };
  EXPECT_EQ(verdict(1), "");
  EXPECT_EQ(verdict(2), kShared);
}

TEST(OrderCertificate, events_without_order_may_not_register_others_for_their_own_time) {
  OrderCertificate certificate(false);
  certificate.begin({1, certificate.label(1, 0), true, Touches::everything, 0});
  const std::uint32_t first = certificate.label(2, 2), second = certificate.label(2, 4);
  certificate.begin({2, first, false, Touches::receives, 1});
  (void)certificate.label(2, 0);
  certificate.begin({2, second, false, Touches::receives, 2});
  EXPECT_THROW(certificate.end(), OrderMatters);
}

}  // namespace
}  // namespace orrery::simulate::order_certificate_test
