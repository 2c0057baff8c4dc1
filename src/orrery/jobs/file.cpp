#include "orrery/jobs/file.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "orrery/jobs/servers.hpp"

namespace orrery::config {

const Record<jobs::Arrivals>& Described<jobs::Arrivals>::record() {
  using jobs::Arrivals;
  static const auto record =
      Record<Arrivals>("arrivals", "When jobs arrive.")
          .optional("process", &Arrivals::process, "Poisson, at fixed intervals, or at given times")
          .optional("interarrival", &Arrivals::interarrival, "mean time between arrivals", {.positive = true})
          .optional("count", &Arrivals::count, "number of arrivals", {.min = 1, .max = 100'000'000})
          .optional("times", &Arrivals::times, "trace: time of each arrival, ascending")
          .optional("end", &Arrivals::end, "jobs that still run or wait then count as blocked", {.positive = true})
          .check([](const Arrivals& arrivals) -> Objection {
            const bool is_trace = arrivals.process == jobs::Process::trace;
            if (is_trace && arrivals.times.empty()) {
              return {"/times", "process trace needs the time of each arrival"};
            }
            if (!is_trace && !arrivals.times.empty()) { return {"/times", "has an effect only with process trace"}; }
            if (!std::is_sorted(arrivals.times.begin(), arrivals.times.end())) {
              return {"/times", "must be ascending"};
            }
            return {};
          });
  return record;
}

const Record<jobs::Kind>& Described<jobs::Kind>::record() {
  using jobs::Kind;
  static const auto record =
      Record<Kind>("kind", "Jobs of one kind.")
          .required("name", &Kind::name, "name", {.nonempty = true})
          .optional("weight", &Kind::weight, "share of arrivals, relative to the other kinds", {.positive = true})
          .optional("sequential", &Kind::sequential, "time on one server")
          .optional("plan", &Kind::plan, "or flags of orrery estimate: the best plan for each width is searched")
          .optional("operators", &Kind::operators, "or a file of a step's operators, which every width divides")
          .optional("steps", &Kind::steps, "training steps of a job with a plan or operators",
                    {.min = 1, .max = 1'000'000'000})
          .required("widths", &Kind::widths, "numbers of servers that it may have, ascending",
                    {.min = 1, .nonempty = true})
          .optional("times", &Kind::times, "time with each of these; default: sequential / width + communication",
                    {.positive = true})
          .optional("communication", &Kind::communication, "added with more than one server")
          .optional("service", &Kind::service, "the time is fixed, or exponential with that mean")
          .check([](const Kind& kind) -> Objection {
            if (!kind.times.empty() && kind.times.size() != kind.widths.size()) {
              return {"/times", fmt::format("{} times for {} widths", kind.times.size(), kind.widths.size())};
            }
            const bool has_plan = !kind.plan.empty(), has_operators = !kind.operators.empty();
            if (int{has_plan} + int{has_operators} + int{kind.sequential > Seconds(0)} != 1) {
              return {"/sequential", "give sequential above 0, or plan and steps, or operators and steps"};
            }
            if ((has_plan || has_operators) && (kind.steps == 0 || !kind.times.empty())) {
              return {has_plan ? "/plan" : "/operators", "needs steps, and has no times"};
            }
            const bool ascends = std::is_sorted(kind.widths.begin(), kind.widths.end()) &&
                                 std::adjacent_find(kind.widths.begin(), kind.widths.end()) == kind.widths.end();
            return ascends ? Objection{} : Objection{"/widths", "must be ascending"};
          });
  return record;
}

}  // namespace orrery::config

namespace orrery::jobs {

namespace {

config::Objection wrong_with(const File& file) {
  if (file.fabric == Fabric::switched && !file.shape.empty()) {
    return {"/shape", "has an effect only with fabric ramp"};
  }
  if (file.limit_skew && file.limit.empty()) { return {"/limit_skew", "has an effect only with limit"}; }
  if (file.fabric == Fabric::ramp) {
    if (file.shape.empty()) { return {"/fabric", "ramp needs shape: groups, racks, servers per rack"}; }
    const std::int64_t product =
        std::accumulate(file.shape.begin(), file.shape.end(), std::int64_t{1}, std::multiplies<>());
    if (file.shape.size() != 3 || product != file.servers) {
      return {"/shape",
              fmt::format("groups, racks and servers per rack must multiply to the {} servers", file.servers)};
    }
  }
  if (!file.limit.empty() && (file.limit.size() != 2 || file.limit[0] > file.limit[1] || file.limit[0] <= 0.0)) {
    return {"/limit", "must be [LOW, HIGH] with 0 < LOW <= HIGH"};
  }
  const bool needs_limit = file.policy == PolicyKind::acceptable_jct || file.policy == PolicyKind::deadline;
  if (needs_limit && file.limit.empty()) {
    return {"/policy", fmt::format("{} needs limit, such as [0.1, 1]", config::enum_name(file.policy))};
  }
  for (std::size_t i = 0; i < file.kinds.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (file.kinds[j].name == file.kinds[i].name) {
        return {fmt::format("/kinds/{}/name", i), fmt::format("{} is the name of an earlier kind", file.kinds[i].name)};
      }
    }
    if (file.kinds[i].widths.back() > file.servers) {
      return {fmt::format("/kinds/{}/widths", i),
              fmt::format("{} servers, but the cluster has {}", file.kinds[i].widths.back(), file.servers)};
    }
  }
  return {};
}

}  // namespace

const config::Record<File>& file_record() {
  static const auto record =
      config::Record<File>("jobs", "Jobs that arrive at one cluster.")
          .required("servers", &File::servers, "of the cluster", {.min = 1, .max = 1'000'000})
          .optional("fabric", &File::fabric, "any free servers, or a box of them in groups x racks x servers")
          .optional("shape", &File::shape, "ramp: groups, racks, servers per rack", {.min = 1})
          .optional("quantum", &File::quantum, "operators: least forward time of a piece", {.positive = true})
          .optional("server_bandwidth", &File::server_bandwidth, "operators: of a server, in each direction",
                    {.positive = true})
          .optional("latency", &File::latency, "operators: of a message, in the network")
          .optional("io_latency", &File::io_latency, "operators: of a message, at each end")
          .required("arrivals", &File::arrivals, "when jobs arrive")
          .optional("policy", &File::policy, "servers of a job, and order")
          .optional("queue", &File::queue, "jobs that may wait; default: any number", {.min = 0})
          .optional("limit", &File::limit, "acceptable completion time / sequential time, uniform in [LOW, HIGH]")
          .optional("limit_skew", &File::limit_skew,
                    "skew-normal of this shape in [LOW, HIGH] instead: negative: most jobs have a long limit",
                    {.min = -100.0, .max = 100.0})
          .optional("balanced", &File::balanced, "every kind once in each block of arrivals, in random order")
          .required("kinds", &File::kinds, "kinds of jobs", {.nonempty = true})
          .optional("seed", &File::seed, "of all random numbers", {.min = 0})
          .check(wrong_with);
  return record;
}

Result<File> read_file(const std::string& path) {
  ORRERY_TRY(root, config::read_file(path));
  return read_file(root, path);
}

Result<File> read_file(const config::Node& root, const std::string& path) {
  ORRERY_TRY(file, file_record().read(root));
  const Servers servers(file);
  for (std::size_t i = 0; i < file.kinds.size(); ++i) {
    Kind& kind = file.kinds[i];
    if (kind.operators.empty()) { continue; }
    const auto at = [&](const char* field) { return config::place_below(root, fmt::format("/kinds/{}/{}", i, field)); };
    for (const auto width : kind.widths) {
      if (!servers.has_piece_block(width)) {
        return fail(at("widths"),
                    fmt::format("{} pieces of an operator: must be 1, or even and a symmetric block of the "
                                "groups, racks and servers",
                                width));
      }
    }
    ORRERY_TRY(step, read_operators((std::filesystem::path(path).parent_path() / kind.operators).string()));
    kind.step = std::move(step);
    kind.sequential = sequential_time(kind.step) * static_cast<double>(kind.steps);
  }
  return file;
}

}  // namespace orrery::jobs
