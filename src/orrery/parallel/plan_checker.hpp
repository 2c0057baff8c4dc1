// What the rules about plans are written with: plan.cpp and plan_model.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::parallel {

// Runs the checks once for both callers: with `out` it writes messages, without it only notes that something is wrong.
class PlanChecker {
 public:
  explicit PlanChecker(std::vector<Diagnostic>* out) : out_(out) {}

  // `message` is called only when a message is wanted, so that a search pays nothing for text.
  template <class Message>
  void require(bool holds, const char* flag, Message message) {
    if (holds) { return; }
    ok_ = false;
    if (out_ != nullptr) { out_->push_back({{"", 0, 0, flag}, message()}); }
  }
  [[nodiscard]] bool ok() const { return ok_; }
  // Whether further checks would change nothing: something is wrong, and no messages are wanted.
  [[nodiscard]] bool is_decided() const { return !ok_ && out_ == nullptr; }

 private:
  std::vector<Diagnostic>* out_;
  bool ok_ = true;
};

// The divisor of `whole` nearest to `wanted`; the smaller one on a tie.
[[nodiscard]] std::int64_t nearest_divisor(std::int64_t whole, std::int64_t wanted);

// The nearest ones below and above: "2 and 4", or the one that there is.
[[nodiscard]] std::string nearest_divisors(std::int64_t whole, std::int64_t wanted);
// The multiple of `step` nearest to `wanted`, at least `step`; the larger one on a tie.
[[nodiscard]] std::int64_t nearest_multiple(std::int64_t wanted, std::int64_t step);

// The rules that bring model, job and plan together, one family each. Degrees are positive by then.
void check_tensor_parallel(PlanChecker& check, const workload::Model& model, const Job& job, const Plan& plan);
void check_context_parallel(PlanChecker& check, const workload::Model& model, const Job& job, const Plan& plan);
void check_expert_parallel(PlanChecker& check, const workload::Model& model, const Plan& plan);
void check_tables(PlanChecker& check, const workload::Model& model, const Job& job, const Plan& plan);
void check_pipeline(PlanChecker& check, const workload::Model& model, const Plan& plan);

}  // namespace orrery::parallel
