#include "orrery/profile/event_builder.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "orrery/profile/decimal.hpp"
#include "orrery/profile/kineto_read.hpp"

namespace orrery::profile {

namespace {

// Names of 2021 and what they are called since.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOldNames = {{
    {"Operator", "cpu_op"},
    {"Kernel", "kernel"},
    {"Memcpy", "gpu_memcpy"},
    {"Memset", "gpu_memset"},
    {"Runtime", "cuda_runtime"},
}};

std::string_view modern_name(std::string_view category) {
  for (const auto& [old, modern] : kOldNames) {
    if (category == old) { return modern; }
  }
  return category;
}

Category category_of(std::string_view name) {
  if (name == "cpu_op") { return Category::operation; }
  if (name == "user_annotation") { return Category::annotation; }
  if (name == "cuda_runtime" || name == "cuda_driver" || name == "xpu_runtime" || name == "xpu_driver") {
    return Category::call;
  }
  if (name == "kernel") { return Category::kernel; }
  if (name == "gpu_memcpy") { return Category::memcpy; }
  if (name == "gpu_memset") { return Category::memset; }
  if (name == "cuda_sync") { return Category::sync; }
  if (name == "overhead") { return Category::overhead; }
  return Category::other;
}

// MTIA's command processors report what runs on the processing elements, DMA transfers, and events.
Category mtia_category(std::string_view category, std::string_view name) {
  if (category == "mtia_runtime") { return Category::call; }
  if (category != "mtia_ccp_events") { return Category::other; }
  if (name.starts_with("dma")) { return Category::memcpy; }
  return name.starts_with("event_") ? Category::other : Category::kernel;
}

std::string text_of(std::string_view raw) { return raw.empty() ? std::string() : decoded_text(raw); }

std::optional<std::int64_t> stream_number(std::string_view text) {
  const auto number = integer_of<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace

NameIndex NameTable::add(std::string_view raw) {
  if (const auto found = index_.find(raw); found != index_.end()) { return found->second; }
  const auto position = static_cast<NameIndex>(names_.size());
  names_.push_back(decoded_text(raw));
  index_.emplace(std::string(raw), position);
  return position;
}

TrackIndex EventBuilder::Tracks::index(std::string_view process, std::string_view thread) {
  if (last_ < tracks_.size() && tracks_[last_].process == process && tracks_[last_].thread == thread) { return last_; }
  key_.assign(process);
  key_ += '\n';
  key_ += thread;
  const auto [found, is_new] = known_.try_emplace(key_, static_cast<TrackIndex>(tracks_.size()));
  if (is_new) { tracks_.push_back({std::string(process), std::string(thread)}); }
  last_ = found->second;
  return last_;
}

Category EventBuilder::category(std::string_view text) {
  if (last_category_ == nullptr || last_category_->first != text) {
    const auto [found, is_new] = categories_.try_emplace(std::string(text), Category::other, 0);
    if (is_new) { found->second.first = category_of(modern_name(text)); }
    last_category_ = &*found;
  }
  ++last_category_->second.second;
  return last_category_->second.first;
}

void EventBuilder::add(const RawEvent& raw) {
  ++profile_.all_events;
  if (raw.ph != "X") { return; }
  Category what = category(raw.category);
  if (other_devices_ && what == Category::other) {
    what = mtia_category(raw.category, raw.name);
    profile_.mtia_operations += is_device_work(what) ? 1 : 0;
  }
  if (what != Category::other) { add_complete(raw, what); }
}

void EventBuilder::add_complete(const RawEvent& raw, Category what) {
  const auto start = nanoseconds_of(raw.start);
  const auto duration = nanoseconds_of(raw.duration.empty() ? "0" : raw.duration);
  constexpr std::int64_t kLongest = 1'000'000'000'000'000;  // ns: 11 days; more is no time
  if (!start || !duration || *duration < 0 || std::abs(*start) > INT64_MAX / 4 || *duration > kLongest) {
    ++profile_.no_time;
    return;
  }
  if (is_device_work(what) && *start == 0 && *duration == 0) {
    ++profile_.no_time;
    return;
  }
  profile_.whole_microseconds = profile_.whole_microseconds && *start % 1000 == 0 && *duration % 1000 == 0;
  Event event;
  event.start = *start;
  event.duration = *duration;
  event.category = what;
  event.name = profile_.names.add(raw.name);
  event.correlation = integer_of<std::uint64_t>(raw.arg(Arg::correlation)).value_or(0);
  event.external = integer_of<std::uint64_t>(raw.arg(Arg::external_id)).value_or(0);
  event.record_function = integer_of<std::uint64_t>(raw.arg(Arg::record_function)).value_or(0);
  const bool on_device = is_device_work(what) || what == Category::sync;
  const std::string_view device = raw.arg(Arg::device).empty() ? raw.process : raw.arg(Arg::device);
  const std::string_view stream = raw.arg(Arg::stream).empty() ? raw.thread : raw.arg(Arg::stream);
  event.track = on_device ? streams_.index(device, stream) : threads_.index(raw.process, raw.thread);
  event.detail = detail(raw, event);
  profile_.events.push_back(event);
}

std::uint32_t EventBuilder::detail(const RawEvent& raw, const Event& event) {
  const Category what = event.category;
  if (what == Category::sync) { return sync_detail(raw); }
  if (what == Category::memcpy) {
    const std::string_view bytes = raw.arg(Arg::bytes).empty() ? raw.arg(Arg::size) : raw.arg(Arg::bytes);
    profile_.memcpy_bytes.push_back(integer_of<std::uint64_t>(bytes).value_or(0));
    return static_cast<std::uint32_t>(profile_.memcpy_bytes.size());
  }
  if (Profile::has_comm(what, profile_.names[event.name])) {
    return raw.arg(Arg::collective_name).empty() || what == Category::annotation ? 0 : comm_detail(raw);
  }
  const bool has_shapes = what == Category::operation || what == Category::annotation;
  if (has_shapes && !raw.arg(Arg::input_dims).empty()) {
    profile_.shapes.emplace_back(profile_.names.add(raw.arg(Arg::input_dims)),
                                 profile_.names.add(raw.arg(Arg::input_types)));
    return static_cast<std::uint32_t>(profile_.shapes.size());
  }
  return 0;
}

std::uint32_t EventBuilder::comm_detail(const RawEvent& raw) {
  CommRecord comm;
  comm.name = text_of(raw.arg(Arg::collective_name));
  comm.in_elements = integer_of<std::int64_t>(raw.arg(Arg::in_elements)).value_or(0);
  comm.out_elements = integer_of<std::int64_t>(raw.arg(Arg::out_elements)).value_or(0);
  comm.group_size = integer_of<std::int64_t>(raw.arg(Arg::group_size)).value_or(0);
  comm.dtype = text_of(raw.arg(Arg::dtype));
  comm.group = text_of(raw.arg(Arg::group_name));
  comm.group_description = text_of(raw.arg(Arg::group_description));
  comm.ranks = text_of(raw.arg(Arg::group_ranks));
  comm.sequence = integer_of<std::uint64_t>(raw.arg(Arg::sequence));
  comm.id = text_of(raw.arg(Arg::comms_id));
  comm.source = integer_of<std::int64_t>(raw.arg(Arg::source_rank));
  comm.peer_or_root = integer_of<std::int64_t>(raw.arg(Arg::rank));
  comm.destination = integer_of<std::int64_t>(raw.arg(Arg::destination_rank));
  profile_.comms.push_back(std::move(comm));
  return static_cast<std::uint32_t>(profile_.comms.size());
}

std::uint32_t EventBuilder::sync_detail(const RawEvent& raw) {
  using Kind = SyncRecord::Kind;
  std::string_view kind = raw.arg(Arg::sync_kind);
  if (kind.empty()) { kind = raw.name; }
  SyncRecord sync;
  sync.kind = kind == "Stream Sync" || kind == "Stream Synchronize"     ? Kind::stream
              : kind == "Context Sync" || kind == "Context Synchronize" ? Kind::context
              : kind == "Event Sync" || kind == "Event Synchronize"     ? Kind::event
              : kind == "Stream Wait Event"                             ? Kind::stream_wait
                                                                        : Kind::other;
  sync.waiting_stream = stream_number(raw.arg(Arg::stream));
  sync.source_stream = stream_number(raw.arg(Arg::wait_on_stream));
  const auto record = stream_number(raw.arg(Arg::wait_on_record));
  if (record) { sync.record_call = static_cast<std::uint64_t>(*record); }
  profile_.syncs.push_back(sync);
  return static_cast<std::uint32_t>(profile_.syncs.size());
}

void EventBuilder::finish() {
  for (const auto& [name, found] : categories_) {
    if (name.empty()) { continue; }
    profile_.categories[std::string(modern_name(name))] += found.second;
  }
}

}  // namespace orrery::profile
