// Findings of a check: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::graph {

enum class Problem : std::uint8_t {
  duplicate_id,
  missing_parent,
  cycle,
  self_dependency,
  duplicate_dependency,
  unknown_type,
  missing_attribute,
  unusable_attribute,
  group_members,          // a group has a rank twice, a missing rank, or lacks the rank that uses it
  collective_type,        // ranks of a group call different collectives
  collective_size,        // or the same with different sizes
  collective_order,       // or the same ones in another order
  collective_membership,  // or some ranks call fewer, or files disagree on the members
  unmatched_send,
  unmatched_receive,
  message_size,  // a send and its receive have different sizes
  deadlock,      // ranks wait for each other in a cycle
  missing_rank,  // no file for a rank of the job
  not_compared,  // communication that cannot be compared with other ranks
  odd_attribute  // valid, but misread by other readers
};

// "duplicate id", as reports say it.
[[nodiscard]] std::string_view name_of(Problem problem);

struct Example {
  std::string message;                  // without place
  std::optional<std::uint64_t> rank;    // of a job
  std::optional<std::uint64_t> node;    // id
  std::optional<std::uint64_t> offset;  // byte of the uncompressed file where the node starts

  friend bool operator==(const Example&, const Example&) = default;
};

struct Finding {
  Problem problem = Problem::cycle;
  bool unsound = true;            // whether it makes the trace unsound
  std::uint64_t count = 0;        // occurrences
  std::vector<Example> examples;  // the first few

  friend bool operator==(const Finding&, const Finding&) = default;
};

// Collects findings: one per problem, in the order of the list above.
class Findings {
 public:
  explicit Findings(std::size_t examples) : most_(examples) {}

  void add(Problem problem, Example example, bool unsound = true);
  [[nodiscard]] std::vector<Finding> take();

 private:
  std::size_t most_;
  std::vector<Finding> found_;
};

// "0, 1, 2": the ranks of a group in a message; of a large group the first ones and the number of all.
[[nodiscard]] std::string ranks_text(const std::vector<std::uint64_t>& ranks);

// Whether none of the findings is unsound.
[[nodiscard]] bool is_sound(const std::vector<Finding>& findings);

}  // namespace orrery::graph
