// The explanation of a price, line by line: every item of some segments, with its own price.
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

  // The items of a segment that runs `executions` times a step. What is run again goes by the name "recompute".
  void add(const parallel::Segment& segment, std::string_view name, double executions);

  // The same item in several segments becomes one line with its count added up.
  [[nodiscard]] std::vector<results::Term> take();

 private:
  void add_block(parallel::BlockId id, std::string_view segment, double count);
  [[nodiscard]] std::string way_taken(const parallel::CollectiveCall& call) const;
  [[nodiscard]] results::Term term(const parallel::Item& item, std::string_view segment, double count) const;

  const Context& context_;
  const parallel::Program& program_;
  std::vector<results::Term> terms_;
};

}  // namespace orrery::estimate
