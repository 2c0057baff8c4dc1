#include "orrery/api/profile.hpp"

#include "orrery/api/trace_read.hpp"
#include "orrery/profile/host_trace.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/link.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/foreign.hpp"

namespace orrery::api {

namespace {

std::vector<std::string> note_texts(const profile::Profile& profile) {
  std::vector<std::string> notes;
  for (const profile::ReadNote& note : profile.notes) { notes.push_back(note.text); }
  if (profile.no_time > 0) { notes.push_back(fmt::format("{} events have no time and are dropped", profile.no_time)); }
  return notes;
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
  Failure failed;
  ReadProgress progress(files, options);
  for (const std::string& file : files) {
    profile::KinetoOptions reading;
    reading.tolerant = options.tolerant;
    reading.progress = [&](std::uint64_t bytes) { progress.within(bytes); };
    auto profile = profile::read_kineto(file, reading);
    progress.next_file();
    if (!profile) {
      collect(failed, std::move(profile).error());
      continue;
    }
    all.push_back({file, profile::facts_of(*profile), note_texts(*profile)});
  }
  if (!failed.diagnostics.empty()) { return tl::make_unexpected(std::move(failed)); }
  return all;
}

Result<report::ProfileLink> profile_link(const std::string& host, const std::string& device, const std::string& out,
                                         const TraceOptions& options) {
  ORRERY_TRY(host_format, trace::profile_format_of_file(host));
  if (host_format == trace::ProfileFormat::kineto) {
    return fail(Place{host, 0, 0, "--host"}, "is a Kineto profile; --host takes a PyTorch execution trace");
  }
  if (host_format == trace::ProfileFormat::none) {
    return fail(Place{host, 0, 0, "--host"}, "is not a PyTorch execution trace (JSON of ExecutionTraceObserver)");
  }
  ORRERY_TRY(device_format, trace::profile_format_of_file(device));
  if (device_format == trace::ProfileFormat::execution_trace) {
    return fail(Place{device, 0, 0, "--device"}, "is a PyTorch execution trace; --device takes a Kineto profile");
  }
  if (device_format == trace::ProfileFormat::none) {
    return fail(Place{device, 0, 0, "--device"}, "is not a Kineto profile (Chrome trace JSON of torch.profiler)");
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
  for (const std::string& note : note_texts(events)) { made.notes.push_back(fmt::format("{}: {}", device, note)); }
  return made;
}

}  // namespace orrery::api
