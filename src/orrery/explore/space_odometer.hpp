// Turns through the levels of a space, each with the values that the levels before it leave. Private to Space.
//
// Values of a level are computed again only when a level that they depend on has turned. Nothing is allocated once
// every list has had its longest form.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/explore/space_compiled.hpp"

namespace orrery::explore {

class Odometer {
 public:
  explicit Odometer(const CompiledSpace& space);

  // All points, invalid ones included, multiplied out; stops at the first value that cannot be calculated. The largest
  // 64-bit number stands for more.
  [[nodiscard]] std::int64_t count();
  [[nodiscard]] const Diagnostic& trouble() const { return trouble_; }

  using OfFamily = bool (*)(void*, const Family&);
  using OfMember = void (*)(void*, const Member&);
  void families(OfFamily visit, void* object);
  void members(const Family& family, OfMember visit, void* object);

 private:
  // A value of a level, with all that mean the same.
  struct Entry {
    std::int64_t value = 0;
    std::int64_t effect = 0;
    std::int64_t weight = 1;                 // values times those of the axes counted with it
    std::uint16_t position = 0;              // of the first
    std::array<std::uint16_t, 2> counted{};  // first positions of those axes
  };

  const std::vector<Entry>& entries(std::size_t level);
  void build(std::size_t index);
  void add_set(const Level& level, const ValueSet& set, std::int64_t& position, std::vector<Entry>& out);
  void add(const Level& level, std::int64_t value, std::int64_t position, std::vector<Entry>& out);
  [[nodiscard]] std::int64_t weigh(const Level& level, Entry& entry);
  [[nodiscard]] std::int64_t values_of(const Level& counted, std::uint16_t& first);
  [[nodiscard]] bool admits(const Level& level, const ValueSet& set, std::int64_t value);
  void note(const Level& level, Trouble trouble);

  void turn(std::size_t index, const Entry& entry);
  [[nodiscard]] std::int64_t count(std::size_t level);
  [[nodiscard]] bool walk_families(std::size_t level, std::int64_t weight);
  [[nodiscard]] bool show_family(std::int64_t weight);
  [[nodiscard]] bool find_first(std::size_t level, bool possible);
  [[nodiscard]] Verdict verdict();
  void count_possible(std::int64_t weight);
  [[nodiscard]] std::int64_t replay(const Order& at);
  void walk_members(std::size_t level, std::int64_t weight);
  void show(Verdict verdict, std::int64_t points);
  [[nodiscard]] bool groups_fill() const;
  [[nodiscard]] bool is_valid() const;

  const CompiledSpace& space_;
  Chosen chosen_;
  std::vector<std::vector<Entry>> entries_;
  std::vector<std::size_t> current_;  // which entry a level stands at
  LevelMask stale_ = ~LevelMask{0};   // levels whose entries have to be computed again
  std::vector<std::vector<std::int64_t>>
      scratch_;                     // of a level; of an axis counted with it; those of that without repeats
  std::vector<std::int64_t> seen_;  // values that an axis has so far
  Diagnostic trouble_;

  Family family_;
  OfFamily of_family_ = nullptr;
  OfMember of_member_ = nullptr;
  void* object_ = nullptr;
};

}  // namespace orrery::explore
