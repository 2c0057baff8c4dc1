// Enumerates the points of a space like an odometer: each level takes the values that the levels before it allow.
// Private to Space.
//
// Values of a level are computed again only when a level that they depend on has changed. No allocation after every
// list has reached its longest form.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/explore/space_compiled.hpp"

namespace orrery::explore {

class Odometer {
 public:
  explicit Odometer(const CompiledSpace& space);

  // Number of all points, including invalid ones. Stops at the first value that cannot be calculated. Saturates at the
  // largest 64-bit number.
  [[nodiscard]] std::int64_t count();
  // Called now and then by `count`; may throw.
  void while_counting(std::function<void()> call) { while_counting_ = std::move(call); }
  [[nodiscard]] const Diagnostic& error() const { return error_; }

  using OfFamily = bool (*)(void*, const Family&);
  using OfMember = void (*)(void*, const Member&);
  void families(OfFamily visit, void* object);
  void members(const Family& family, OfMember visit, void* object);

 private:
  // A value of a level; represents all values with the same effect.
  struct Entry {
    std::int64_t value = 0;
    std::int64_t effect = 0;
    std::int64_t weight = 1;                 // number of represented values times those of the axes counted with it
    std::uint16_t position = 0;              // position of the first represented value
    std::array<std::uint16_t, 2> counted{};  // positions of the first values of the counted axes
  };

  const std::vector<Entry>& entries(std::size_t level);
  void build(std::size_t index);
  void add_set(const Level& level, const ValueSet& set, std::int64_t& position, std::vector<Entry>& out);
  void add(const Level& level, std::int64_t value, std::int64_t position, std::vector<Entry>& out);
  [[nodiscard]] std::int64_t count_combinations(const Level& level, Entry& entry);
  [[nodiscard]] std::int64_t count_values(const Level& counted, std::uint16_t& first);
  [[nodiscard]] bool admits(const Level& level, const ValueSet& set, std::int64_t value);
  void report(const Level& level, EvaluationError error);

  void select(std::size_t index, const Entry& entry);
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
  std::vector<std::size_t> current_;  // index of the chosen entry of each level
  LevelMask stale_ = ~LevelMask{0};   // levels whose entries must be computed again
  std::vector<std::vector<std::int64_t>>
      scratch_;                     // values of a level; values and distinct values of an axis counted with it
  std::vector<std::int64_t> seen_;  // values of the current level so far
  Diagnostic error_;
  std::function<void()> while_counting_;
  std::uint32_t counted_ = 0;  // levels, for the pace of while_counting_

  Family family_;
  OfFamily of_family_ = nullptr;
  OfMember of_member_ = nullptr;
  void* object_ = nullptr;
};

}  // namespace orrery::explore
