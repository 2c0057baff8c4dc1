#include "orrery/api/profile.hpp"

#include "orrery/api/profile_read.hpp"
#include "orrery/profile/host_trace.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/link.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/foreign.hpp"

namespace orrery::api {

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
  auto read = read_profiles(files, options, [&](profile::Profile one) {
    all.push_back({one.file, profile::facts_of(one), profile::idle_facts(one, profile::plan_of(one)), read_notes(one)});
  });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
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
  for (const std::string& note : read_notes(events)) { made.notes.push_back(fmt::format("{}: {}", device, note)); }
  return made;
}

}  // namespace orrery::api
