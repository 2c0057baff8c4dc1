#include "orrery/api/profile.hpp"

#include "orrery/api/trace_read.hpp"
#include "orrery/profile/kineto_read.hpp"
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

}  // namespace orrery::api
