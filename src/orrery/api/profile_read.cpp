#include "orrery/api/profile_read.hpp"

#include <fmt/format.h>

#include "orrery/api/trace_read.hpp"

namespace orrery::api {

Result<void> read_profiles(const std::vector<std::string>& files, const TraceOptions& options,
                           profile::KinetoOptions reading, const std::function<void(profile::Profile)>& take) {
  Failure failed;
  ReadProgress progress(files, options);
  for (const std::string& file : files) {
    reading.tolerant = options.tolerant;
    reading.progress = [&](std::uint64_t bytes) { progress.within(bytes); };
    auto profile = profile::read_kineto(file, reading);
    progress.next_file();
    if (profile) {
      take(std::move(*profile));
    } else {
      collect(failed, std::move(profile).error());
    }
  }
  if (!failed.diagnostics.empty()) { return tl::make_unexpected(std::move(failed)); }
  return {};
}

std::vector<std::string> read_notes(const profile::Profile& profile) {
  std::vector<std::string> notes;
  for (const profile::ReadNote& note : profile.notes) { notes.push_back(note.text); }
  if (profile.no_time > 0) {
    notes.push_back(fmt::format("{} dropped: no time, a negative one, or one above 11 days",
                                profile.no_time == 1 ? "1 event is" : fmt::format("{} events are", profile.no_time)));
  }
  return notes;
}

}  // namespace orrery::api
