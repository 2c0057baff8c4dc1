#include "orrery/api/profile.hpp"

#include "orrery/api/profile_read.hpp"
#include "orrery/profile/host_trace.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/link.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/foreign.hpp"

namespace orrery::api {

namespace {

constexpr const char* kTakesHost = "takes a PyTorch execution trace (JSON of ExecutionTraceObserver)";
constexpr const char* kTakesDevice = "takes a Kineto profile (Chrome trace JSON of torch.profiler)";

// Fails with what the file is and what the flag takes.
Result<void> need_format(const std::string& file, const char* flag, trace::ProfileFormat wanted) {
  ORRERY_TRY(format, trace::profile_format_of_file(file));
  if (format == wanted) { return {}; }
  const char* const takes = wanted == trace::ProfileFormat::kineto ? kTakesDevice : kTakesHost;
  if (format == trace::ProfileFormat::kineto) {
    return fail(Place{file, 0, 0, flag},
                fmt::format("is a Kineto profile, which \"orrery trace stats\" and \"orrery trace import\" read; {} {}",
                            flag, takes));
  }
  if (format == trace::ProfileFormat::execution_trace) {
    return fail(Place{file, 0, 0, flag},
                fmt::format("is a PyTorch execution trace, which \"orrery trace import\" reads; {} {}", flag, takes));
  }
  ORRERY_TRY(kind, trace::kind_of_file(file));
  return fail(Place{file, 0, 0, flag}, fmt::format("{}; {} {}", kind, flag, takes));
}

}  // namespace

Result<std::vector<bool>> are_kineto(const std::vector<std::string>& files) {
  std::vector<bool> kineto;
  for (const std::string& file : files) {
    ORRERY_TRY(format, trace::profile_format_of_file(file));
    kineto.push_back(format == trace::ProfileFormat::kineto);
  }
  return kineto;
}

Result<std::vector<report::ProfileFacts>> profile_stats(const std::vector<std::string>& files,
                                                        const TraceOptions& options) {
  std::vector<report::ProfileFacts> all;
  auto read = read_profiles(files, options, {}, [&](profile::Profile one) {
    all.push_back({one.file, profile::facts_of(one), profile::idle_facts(one, profile::plan_of(one)), read_notes(one)});
  });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  return all;
}

Result<report::ProfileLink> profile_link(const std::string& host, const std::string& device, const std::string& out,
                                         const TraceOptions& options) {
  if (auto ok = need_format(host, "--host", trace::ProfileFormat::execution_trace); !ok) {
    return tl::make_unexpected(ok.error());
  }
  if (auto ok = need_format(device, "--device", trace::ProfileFormat::kineto); !ok) {
    return tl::make_unexpected(ok.error());
  }
  profile::HostTraceOptions reading_host;
  reading_host.tolerant = options.tolerant;
  profile::KinetoOptions reading_device;
  reading_device.tolerant = options.tolerant;
  ORRERY_TRY(operators, profile::read_host_trace(host, reading_host));
  ORRERY_TRY(events, profile::read_kineto(device, reading_device));
  ORRERY_TRY(link, profile::link(operators, events));
  if (!out.empty()) {
    ORRERY_TRY(graph, profile::linked_graph(operators, events, link));
    ORRERY_TRY(bytes, trace::write_chakra(graph, out));
    (void)bytes;
  }
  report::ProfileLink made{host,
                           device,
                           out,
                           operators.schema,
                           link.by_id,
                           link.operators,
                           link.linked,
                           link.device_operations,
                           link.linked_device_operations,
                           link.unlinked,
                           {}};
  for (const profile::ReadNote& note : operators.notes) {
    made.notes.push_back(fmt::format("{}: {}", host, note.text));
  }
  for (const std::string& note : read_notes(events)) { made.notes.push_back(fmt::format("{}: {}", device, note)); }
  return made;
}

}  // namespace orrery::api
