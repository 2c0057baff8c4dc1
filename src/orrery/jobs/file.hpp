// A file of `orrery jobs`: one cluster, the kinds of jobs that arrive, the policy.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"
#include "orrery/jobs/operators.hpp"

namespace orrery::jobs {

enum class Fabric : std::uint8_t {
  switched,  // any free servers
  ramp,      // groups x racks x servers: a job takes a box of free servers (RAMP, arXiv:2301.13799)
};
enum class Process : std::uint8_t { poisson, fixed, trace };
enum class Service : std::uint8_t { fixed, exponential };
// How many servers a job gets, and whether jobs may overtake.
enum class PolicyKind : std::uint8_t {
  fcfs,             // the width with the shortest time; no job overtakes
  backfill,         // the same; a job may overtake if it does not delay the first one (EASY)
  max_parallelism,  // the largest width (SiP-ML, PAC-ML's Para_max)
  acceptable_jct,   // the smallest width that meets the job's limit, communication ignored (Para_min)
  deadline,         // the smallest width that meets it, communication counted; refuses jobs that cannot
  random,           // any width
};

struct Arrivals {
  Process process = Process::poisson;
  Seconds interarrival{1000.0};  // mean
  std::int64_t count = 10'000;
  std::vector<Seconds> times;  // trace: one per arrival, ascending
  std::optional<Seconds> end;  // jobs that still run or wait then count as blocked
};

struct Kind {
  std::string name;
  double weight = 1.0;               // of its share of arrivals
  Seconds sequential;                // time on one server; 0: that of `plan` on its smallest width times that width
  std::string plan;                  // or flags of `orrery estimate`: the best plan for every width, and its step time
  std::string operators;             // or a file of a step's operators, which every width divides and places
  Operators step;                    // what that file has
  std::int64_t steps = 0;            // of a job with a plan or operators
  std::vector<std::int64_t> widths;  // servers that it may have
  std::vector<Seconds> times;        // with these widths; default: sequential / width + communication
  Seconds communication{0.0};        // added with more than one server
  Service service = Service::fixed;
};

struct File {
  std::int64_t servers = 1;
  Fabric fabric = Fabric::switched;
  std::vector<std::int64_t> shape;          // ramp: groups, racks, servers per rack
  Seconds quantum{0.01};                    // operators: forward time of a piece at least, but for the last one
  BytesPerSecond server_bandwidth{1.6e12};  // operators: of a server, in each direction
  Seconds latency{50e-9}, io_latency{1e-7};
  Arrivals arrivals;
  PolicyKind policy = PolicyKind::fcfs;
  std::optional<std::int64_t> queue;  // jobs that may wait; absent: any number
  std::vector<double> limit;         // completion / sequential time at most: uniform between LOW and HIGH, two decimals
  std::optional<double> limit_skew;  // skew-normal of this shape between them instead of uniform
  bool balanced = false;             // kinds in blocks that have each once, in random order
  std::vector<Kind> kinds;
  std::int64_t seed = 0;
};

[[nodiscard]] const config::Record<File>& file_record();
// With the operators of its kinds, whose files are relative to `path`.
[[nodiscard]] Result<File> read_file(const std::string& path);
[[nodiscard]] Result<File> read_file(const config::Node& root, const std::string& path);

}  // namespace orrery::jobs

namespace orrery::config {

template <>
struct EnumNames<jobs::Fabric> {
  using F = jobs::Fabric;
  static constexpr std::array<std::pair<F, std::string_view>, 2> value{{{F::switched, "switched"}, {F::ramp, "ramp"}}};
};
template <>
struct EnumNames<jobs::Process> {
  using P = jobs::Process;
  static constexpr std::array<std::pair<P, std::string_view>, 3> value{
      {{P::poisson, "poisson"}, {P::fixed, "fixed"}, {P::trace, "trace"}}};
};
template <>
struct EnumNames<jobs::Service> {
  using S = jobs::Service;
  static constexpr std::array<std::pair<S, std::string_view>, 2> value{
      {{S::fixed, "fixed"}, {S::exponential, "exponential"}}};
};
template <>
struct EnumNames<jobs::PolicyKind> {
  using P = jobs::PolicyKind;
  static constexpr std::array<std::pair<P, std::string_view>, 6> value{{{P::fcfs, "fcfs"},
                                                                        {P::backfill, "backfill"},
                                                                        {P::max_parallelism, "max-parallelism"},
                                                                        {P::acceptable_jct, "acceptable-jct"},
                                                                        {P::deadline, "deadline"},
                                                                        {P::random, "random"}}};
};
template <>
struct Described<jobs::Arrivals> {
  static const Record<jobs::Arrivals>& record();
};
template <>
struct Described<jobs::Kind> {
  static const Record<jobs::Kind>& record();
};

}  // namespace orrery::config
