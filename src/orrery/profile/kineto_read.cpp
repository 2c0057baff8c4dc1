#include "orrery/profile/kineto_read.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "orrery/profile/event_builder.hpp"
#include "orrery/profile/kineto_event.hpp"
#include "orrery/profile/metadata.hpp"
#include "orrery/profile/windows.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::profile {

namespace {

class KinetoReader {
 public:
  KinetoReader(trace::Source& source, std::string name, const KinetoOptions& options)
      : source_(source), options_(options), windows_(source), builder_(profile_, options.other_devices) {
    profile_.file = std::move(name);
  }

  // Room for the events of an uncompressed file. What is not used costs no memory; growing would need them twice.
  void reserve(std::uint64_t file_bytes) {
    constexpr std::size_t kBytesPerEvent = 200;  // of the file; those that are kept have more
    if (source_.compression() == trace::Compression::none) { profile_.events.reserve(file_bytes / kBytesPerEvent); }
  }

  Result<Profile> read() {
    try {
      document();
    } catch (const PullError& error) {
      if (auto failed = damage(error)) { return tl::make_unexpected(std::move(*failed)); }
    }
    profile_.bytes = windows_.offset();
    if (!has_events_) {
      return fail(Place{profile_.file, 0, 0, {}},
                  "is JSON without \"traceEvents\": not a profile of Kineto (Chrome trace)");
    }
    builder_.finish();
    return std::move(profile_);
  }

 private:
  void document() {
    bool is_list = false;
    windows_.unit([&](JsonPull& json) {
      is_list = json.peek() == '[';
      if (!is_list && json.peek() != '{') { json.fail("'{'"); }
    });
    if (is_list) {
      events();
      return;
    }
    bool more = true;
    windows_.unit([&](JsonPull& json) {
      json.expect('{');
      more = !json.accept('}');
    });
    while (more) { more = field(); }
  }

  // A field of the document, and what follows it; whether another field does.
  bool field() {
    bool is_events = false;
    windows_.unit([&](JsonPull& json) {
      if (json.peek() != '"') { json.fail("a field name in quotes"); }
      const std::string_view key = json.text(true);
      json.expect(':');
      is_events = key == "traceEvents";
      if (!is_events) { read_metadata(profile_, key, json.value()); }
    });
    if (is_events) { events(); }
    bool more = false;
    windows_.unit([&](JsonPull& json) {
      more = json.accept(',');
      if (!more) { json.expect('}'); }
    });
    return more;
  }

  void events() {
    has_events_ = true;
    bool more = true;
    windows_.unit([&](JsonPull& json) {
      json.expect('[');
      more = !json.accept(']');
    });
    RawEvent raw;
    std::uint32_t commas = 0;
    std::uint32_t quotes = 0;
    while (more) {
      windows_.unit([&](JsonPull& json) {
        commas = json.repaired_commas();
        quotes = json.repaired_quotes();
        // A list that ends in a comma: the profiler was stopped while it wrote.
        read_event(json, raw);
        builder_.add(raw);
        quotes = json.repaired_quotes() - quotes;
      });
      ++whole_events_;
      if (quotes > 0) { repaired("a quote inside a text is not escaped"); }
      windows_.unit([&](JsonPull& json) {
        commas = json.repaired_commas();
        more = json.more_elements();
        commas = json.repaired_commas() - commas;
      });
      if (commas > 0) { repaired("a comma between two events is missing"); }
      if ((whole_events_ & 0xFFFU) == 0 && options_.progress) { options_.progress(source_.file_bytes()); }
    }
  }

  void repaired(const char* what) {
    ++repairs_;
    constexpr std::uint64_t kShown = 5;
    if (repairs_ <= kShown) {
      profile_.notes.push_back({windows_.offset(), fmt::format("byte {}: {}; repaired", windows_.offset(), what)});
    } else if (repairs_ == kShown + 1) {
      profile_.notes.push_back({windows_.offset(), "more of the same kind are repaired"});
    }
  }

  // The failure, or nothing if what was read can be used.
  std::optional<Failure> damage(const PullError& error) {
    std::string what = fmt::format("byte {}: {}", windows_.offset_of(error.position), error.what());
    if (source_.damage() && !source_.damage()->diagnostics.empty()) {
      what = source_.damage()->diagnostics.front().message;
    }
    if (options_.tolerant && whole_events_ > 0) {
      profile_.notes.push_back({windows_.offset(), fmt::format("{}; the file is read up to its last whole event ({})",
                                                               what, whole_events_)});
      return std::nullopt;
    }
    if (whole_events_ > 0) {
      what += fmt::format(" after {} whole events; --tolerant reads the file up to there", whole_events_);
    }
    return Failure{{{Place{profile_.file, 0, 0, {}}, what}}};
  }

  trace::Source& source_;
  const KinetoOptions& options_;
  Profile profile_;
  Windows windows_;
  EventBuilder builder_;
  bool has_events_ = false;
  std::uint64_t whole_events_ = 0;
  std::uint64_t repairs_ = 0;
};

Result<Profile> read_source(Result<std::unique_ptr<trace::Source>> source, const std::string& name,
                            std::uint64_t file_bytes, const KinetoOptions& options) {
  if (!source) { return tl::make_unexpected(std::move(source).error()); }
  KinetoReader reader(**source, name, options);
  reader.reserve(file_bytes);
  return reader.read();
}

}  // namespace

Result<Profile> read_kineto(const std::string& path, const KinetoOptions& options) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return read_source(trace::open_source(path, trace::Access::buffered), path, error ? 0 : size, options);
}

Result<Profile> read_kineto_bytes(std::string_view bytes, const std::string& name, const KinetoOptions& options) {
  return read_source(trace::source_of_bytes(bytes, name), name, bytes.size(), options);
}

}  // namespace orrery::profile
