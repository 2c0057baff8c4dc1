#include "orrery/jobs/policy.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::jobs {

namespace {

class Fastest : public Policy {
 public:
  explicit Fastest(bool may_overtake) : may_overtake_(may_overtake) {}
  std::optional<std::size_t> width_of(const JobView& job, RandomStream&) const override {
    return static_cast<std::size_t>(std::min_element(job.times.begin(), job.times.end()) - job.times.begin());
  }
  bool overtakes() const override { return may_overtake_; }

 private:
  bool may_overtake_;
};

class Widest : public Policy {
 public:
  std::optional<std::size_t> width_of(const JobView& job, RandomStream&) const override {
    return job.widths.size() - 1;
  }
};

class RandomWidth : public Policy {
 public:
  std::optional<std::size_t> width_of(const JobView& job, RandomStream& random) const override {
    return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(job.widths.size())));
  }
};

// The smallest width of at least sequential / limit.
class AcceptableJct : public Policy {
 public:
  std::optional<std::size_t> width_of(const JobView& job, RandomStream&) const override {
    const double least = job.sequential / *job.limit - 1e-9;
    for (std::size_t i = 0; i < job.widths.size(); ++i) {
      if (static_cast<double>(job.widths[i]) >= least) { return i; }
    }
    return job.widths.size() - 1;
  }
};

class Deadline : public Policy {
 public:
  std::optional<std::size_t> width_of(const JobView& job, RandomStream&) const override {
    for (std::size_t i = 0; i < job.widths.size(); ++i) {
      if (job.times[i] <= *job.limit) { return i; }
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Policy> policy_of(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::fcfs: return std::make_unique<Fastest>(false);
    case PolicyKind::backfill: return std::make_unique<Fastest>(true);
    case PolicyKind::max_parallelism: return std::make_unique<Widest>();
    case PolicyKind::acceptable_jct: return std::make_unique<AcceptableJct>();
    case PolicyKind::deadline: return std::make_unique<Deadline>();
    case PolicyKind::random: return std::make_unique<RandomWidth>();
  }
  throw_internal_error("known policy", __FILE__, __LINE__);
}

}  // namespace orrery::jobs
