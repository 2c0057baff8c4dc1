// Walks over lists of plans, for tests of code that uses walks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "orrery/explore/search.hpp"

namespace orrery::explore::test {

// Families, and the members of each.
struct Listed {
  std::vector<Family> families;
  std::vector<std::vector<Member>> members;
};

inline Order order_of(std::size_t place) {
  Order order{};
  order[0] = static_cast<std::uint16_t>(place >> 16U);
  order[1] = static_cast<std::uint16_t>(place & 0xFFFFU);
  return order;
}

// Plans in the order of their space; consecutive plans for which `same_family` is true form a family.
inline Listed listed(const std::vector<parallel::Plan>& plans, std::int64_t batch,
                     const std::function<bool(const parallel::Plan&, const parallel::Plan&)>& same_family) {
  Listed list;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (i == 0 || !same_family(plans[i - 1], plans[i])) {
      Family family;
      family.first = {plans[i], batch};
      family.number = static_cast<std::int64_t>(list.families.size());
      list.families.push_back(family);
      list.members.emplace_back();
    }
    ++list.families.back().points;
    list.members.back().push_back({{plans[i], batch}, order_of(i), 1, Verdict::possible});
  }
  return list;
}

// The same, with plans that differ only in zero as a family.
inline Listed listed(const std::vector<parallel::Plan>& plans, std::int64_t batch) {
  return listed(plans, batch, [](parallel::Plan a, const parallel::Plan& b) {
    a.zero = b.zero;
    return a == b;
  });
}

class ListWalk final : public Walk {
 public:
  explicit ListWalk(const Listed& list) : list_(list) {}
  void families(const std::function<void(const Family&)>& visit) override {
    for (const Family& family : list_.families) { visit(family); }
  }
  void members(const Family& family, const std::function<void(const Member&)>& visit) override {
    for (const Member& member : list_.members[static_cast<std::size_t>(family.number)]) { visit(member); }
  }

 private:
  const Listed& list_;
};

inline WalkFactory walks_of(const Listed& list) {
  return [&list] { return std::make_unique<ListWalk>(list); };
}

}  // namespace orrery::explore::test
