// The explanation of a price: one line per kernel and collective of the given segments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/estimate/explain.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::estimate {

class TermWriter {
 public:
  TermWriter(const Context& context, const parallel::Program& program) : context_(context), program_(program) {}

  // Adds the items of a segment that runs `executions` times per step. Recomputed items are listed under "recompute".
  void add(const parallel::Segment& segment, std::string_view name, double executions);

  void add(const parallel::Item& item, std::string_view segment, double count);

  // Equal items of several segments become one line; their counts are added.
  [[nodiscard]] std::vector<results::Term> take();

 private:
  void add_block(parallel::BlockId id, std::string_view segment, double count);
  [[nodiscard]] std::string bound_of(const parallel::CollectiveCall& call) const;
  [[nodiscard]] results::Term term(const parallel::Item& item, std::string_view segment, double count) const;

  const Context& context_;
  const parallel::Program& program_;
  std::vector<results::Term> terms_;
};

}  // namespace orrery::estimate
