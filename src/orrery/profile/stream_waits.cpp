#include "orrery/profile/stream_waits.hpp"

#include <algorithm>
#include <array>

namespace orrery::profile {

namespace {

// The part of a name after "cuda", "hip", "cu": the same call of any vendor.
std::string_view without_vendor(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "hip", "cu", "musa"}) {
    if (name.starts_with(prefix)) { return name.substr(prefix.size()); }
  }
  return name;
}

class WaitFinder {
 public:
  WaitFinder(const Profile& profile, const DeviceWork& work, const OperatorIndex& operators)
      : profile_(profile), work_(work), operators_(operators), synced_(work.stream_count()) {
    waits_.of_operation.resize(work.operations().size());
    for (auto& known : synced_) { known.assign(work.stream_count(), -1); }
    named_.resize(work.stream_count());
    for (const Event& event : profile.events) {
      if (profile.sync(event) != nullptr && event.correlation != 0) { syncs_.emplace(event.correlation, &event); }
    }
  }

  Waits find(const std::vector<const Event*>& calls) {
    for (const Event* call : calls) {
      const auto launched = work_.launched_by(*call);
      for (const std::uint32_t operation : launched) { launch(operation, *call); }
      const CallKind kind = call_kind(profile_.name(*call));
      if (kind == CallKind::stream_wait) { stream_wait(*call); }
      if (launched.empty() || kind == CallKind::copy) { block(*call, kind); }
    }
    return std::move(waits_);
  }

 private:
  struct Pending {
    std::int64_t time = 0;
    const Event* collective = nullptr;  // outermost operator of a collective around the call
    const Event* call = nullptr;
    std::uint32_t source = kNone;  // the collective that the file names
  };

  [[nodiscard]] const SyncRecord* sync_of(const Event& call, const Event** event = nullptr) const {
    const auto found = syncs_.find(call.correlation);
    if (call.correlation == 0 || found == syncs_.end()) { return nullptr; }
    if (event != nullptr) { *event = found->second; }
    return profile_.sync(*found->second);
  }

  // The operation that a recorded event stands for: the last on the source stream before the call that recorded it.
  [[nodiscard]] std::uint32_t source_of(const SyncRecord& sync, std::string_view device) const {
    if (!sync.source_stream || !sync.record_call) { return kNone; }
    const Event* const record = work_.call(*sync.record_call);
    const std::uint32_t stream = work_.stream_of(device, *sync.source_stream);
    return record == nullptr || stream == kNone ? kNone : work_.last_launched(stream, record->start);
  }

  void stream_wait(const Event& call) {
    const Event* event = nullptr;
    const SyncRecord* const sync = sync_of(call, &event);
    if (sync != nullptr && sync->kind == SyncRecord::Kind::stream_wait) {
      const std::uint32_t source = source_of(*sync, profile_.streams[event->track].process);
      const std::uint32_t stream =
          sync->waiting_stream ? work_.stream_of(profile_.streams[event->track].process, *sync->waiting_stream) : kNone;
      if (source != kNone && stream != kNone) {
        named_[stream].push_back(source);
        return;
      }
      if (sync->source_stream && sync->record_call) { return; }  // of work before the recording
    }
    if (names_waits_ == 0) { names_waits_ = has_named_waits() ? 1 : -1; }
    if (names_waits_ == 1 && sync == nullptr) { return; }  // the file names the others: this one has no work
    std::uint32_t source = kNone;
    if (const Event* const record = operators_.record_around(call, profile_);
        record != nullptr && profile_.comm(*record)->name == "wait" && profile_.comm(*record)->sequence) {
      const auto found = by_sequence_.find(*profile_.comm(*record)->sequence);
      if (found != by_sequence_.end()) {
        source = found->second;
      } else if (!by_sequence_.empty()) {
        return;  // for a collective before the recording
      }
    }
    pending_.push_back({call.start, operators_.outermost_collective(call), &call, source});
  }

  [[nodiscard]] bool has_named_waits() const {
    return std::any_of(profile_.syncs.begin(), profile_.syncs.end(), [](const SyncRecord& sync) {
      return sync.kind == SyncRecord::Kind::stream_wait && sync.source_stream && sync.record_call;
    });
  }

  [[nodiscard]] bool contradicts(std::uint32_t source, std::uint32_t target) const {
    return work_[source].event->end() > work_[target].event->start + kClockTolerance;
  }

  void add(std::uint32_t target, std::uint32_t source, Cause cause) {
    const TrackIndex to = work_[target].event->track;
    const TrackIndex from = work_[source].event->track;
    if (to == from) { return; }
    waits_.of_operation[target].push_back({source, cause});
    for (std::size_t other = 0; other < synced_.size(); ++other) {
      synced_[to][other] = std::max(synced_[to][other], synced_[from][other]);
    }
    synced_[to][from] = std::max(synced_[to][from], static_cast<std::int64_t>(work_[source].position));
  }

  void launch(std::uint32_t target, const Event& call) {
    const DeviceOperation& operation = work_[target];
    const TrackIndex stream = operation.event->track;
    for (const std::uint32_t source : named_[stream]) {
      if (!contradicts(source, target)) { add(target, source, Cause::named_wait); }
    }
    named_[stream].clear();
    if (operation.communicates) {
      collective(target, call);
    } else {
      consume(target, call);
      current_[call.track] = stream;
      last_current_ = stream;
      has_current_ = true;
    }
    last_launch_[call.track] = target;
  }

  // A collective on its own stream follows what its thread launched last, if a wait was called in between.
  void collective(std::uint32_t target, const Event& call) {
    const auto last = last_launch_.find(call.track);
    const auto current = current_.find(call.track);
    const std::int64_t since =
        last == last_launch_.end() || work_[last->second].call == nullptr ? INT64_MIN : work_[last->second].call->start;
    const Event* const inside = operators_.outermost_collective(call);
    if (inside != nullptr) { launching_[inside] = target; }
    const Event* const record = operators_.record_around(call, profile_);
    if (record != nullptr && profile_.comm(*record)->sequence) {
      by_sequence_[*profile_.comm(*record)->sequence] = target;
    } else if (const CommRecord* const own = profile_.comm(*operation_event(target)); own != nullptr && own->sequence) {
      by_sequence_[*own->sequence] = target;
    }
    const auto is_own = [&](const Pending& wait) {
      return wait.call->track == call.track && wait.time > since && wait.time < call.start && wait.collective == inside;
    };
    const auto own = std::find_if(pending_.rbegin(), pending_.rend(), is_own);
    if (own == pending_.rend()) { return; }
    if (inside != nullptr) {
      std::erase_if(pending_, is_own);
    } else {
      pending_.erase(std::next(own).base());  // the wait right before the launch
    }
    if (current == current_.end() && !has_current_) { return; }
    const TrackIndex source_stream = current == current_.end() ? last_current_ : current->second;
    const std::uint32_t source = not_contradicted(work_.last_launched(source_stream, call.start), target);
    if (source != kNone) { add(target, source, Cause::rule_wait); }
  }

  [[nodiscard]] const Event* operation_event(std::uint32_t operation) const { return work_[operation].event; }

  // The operation itself or the last before it on its stream that ended before the target started.
  [[nodiscard]] std::uint32_t not_contradicted(std::uint32_t source, std::uint32_t target) const {
    while (source != kNone && contradicts(source, target)) { source = work_[source].previous; }
    return source;
  }

  // Waits that were called before the launch: each is for another stream with work that this stream does not know of.
  void consume(std::uint32_t target, const Event& call) {
    const TrackIndex stream = work_[target].event->track;
    for (auto wait = pending_.begin(); wait != pending_.end();) {
      if (wait->source != kNone && wait->time < call.start && wait->call->track == call.track) {
        if (!contradicts(wait->source, target)) { add(target, wait->source, Cause::named_wait); }
        wait = pending_.erase(wait);
        continue;
      }
      if (const auto own = launching_.find(wait->collective); own != launching_.end()) {
        if (wait->time < call.start && wait->call->track == call.track) {
          add_after_collective(target, own->second);
          wait = pending_.erase(wait);
        } else {
          ++wait;
        }
        continue;
      }
      const bool open = wait->time < call.start && wait->source == kNone;
      const std::uint32_t source = open ? candidate(stream, wait->time, target) : kNone;
      if (source == kNone) {
        ++wait;
        continue;
      }
      add(target, source, Cause::rule_wait);
      wait = pending_.erase(wait);
    }
    constexpr std::size_t kMost = 64;
    if (pending_.size() > kMost) { pending_.erase(pending_.begin(), pending_.end() - kMost); }
  }

  // A wait that a collective calls after its launch may make the current stream wait for it: its next operation does,
  // unless the record contradicts that.
  void add_after_collective(std::uint32_t target, std::uint32_t collective) {
    const TrackIndex stream = work_[target].event->track;
    const TrackIndex source = work_[collective].event->track;
    if (stream == source || contradicts(collective, target)) { return; }
    if (synced_[stream][source] >= static_cast<std::int64_t>(work_[collective].position)) { return; }
    add(target, collective, Cause::rule_wait);
  }

  // The latest launched operation of another stream that the stream has not waited for.
  [[nodiscard]] std::uint32_t candidate(TrackIndex stream, std::int64_t time, std::uint32_t target) const {
    std::uint32_t best = kNone;
    std::int64_t best_launch = 0;
    for (TrackIndex other = 0; other < work_.stream_count(); ++other) {
      if (other == stream) { continue; }
      const std::uint32_t source = not_contradicted(work_.last_launched(other, time), target);
      if (source == kNone || synced_[stream][other] >= static_cast<std::int64_t>(work_[source].position)) { continue; }
      if (work_[source].call == nullptr) { continue; }
      const std::int64_t launched = work_[source].call->start;
      if (best == kNone || launched > best_launch) {
        best = source;
        best_launch = launched;
      }
    }
    return best;
  }

  void block(const Event& call, CallKind kind) {
    std::vector<std::uint32_t> sources;
    const Event* event = nullptr;
    const SyncRecord* const sync = sync_of(call, &event);
    if (kind == CallKind::copy) {
      sources = copy_sources(call);
    } else if (kind == CallKind::synchronize_device) {
      sources = all_streams(call);
    } else if (kind == CallKind::query) {
      sources = guessed_sources(call, CallKind::synchronize_event);
    } else if (kind == CallKind::synchronize_stream || kind == CallKind::synchronize_event) {
      if (sync != nullptr) { sources = named_sources(call, *sync, profile_.streams[event->track].process); }
      if (sources.empty()) { sources = guessed_sources(call, kind); }
    } else {
      return;
    }
    waits_.of_call.emplace(&call, std::move(sources));
  }

  [[nodiscard]] bool ended_by(std::uint32_t operation, std::int64_t time) const {
    return work_[operation].event->end() <= time + kClockTolerance;
  }

  // The last operation of a stream that was launched before the call and ended before it returned.
  [[nodiscard]] std::uint32_t finished(TrackIndex stream, const Event& call) const {
    std::uint32_t last = work_.last_launched(stream, call.start);
    while (last != kNone && !ended_by(last, call.end())) { last = work_[last].previous; }
    return last;
  }

  std::vector<std::uint32_t> all_streams(const Event& call) const {
    std::vector<std::uint32_t> sources;
    for (TrackIndex stream = 0; stream < work_.stream_count(); ++stream) {
      if (const std::uint32_t last = finished(stream, call); last != kNone) { sources.push_back(last); }
    }
    return sources;
  }

  std::vector<std::uint32_t> named_sources(const Event& call, const SyncRecord& sync, std::string_view device) const {
    if (sync.kind == SyncRecord::Kind::context) { return all_streams(call); }
    if (sync.kind == SyncRecord::Kind::stream && sync.waiting_stream) {
      const std::uint32_t stream = work_.stream_of(device, *sync.waiting_stream);
      const std::uint32_t last = stream == kNone ? kNone : finished(stream, call);
      return last == kNone ? std::vector<std::uint32_t>() : std::vector<std::uint32_t>{last};
    }
    if (sync.kind == SyncRecord::Kind::event) {
      const std::uint32_t source = source_of(sync, device);
      if (source != kNone && ended_by(source, call.end())) { return {source}; }
    }
    return {};
  }

  // Without a record of the file: what ended last inside the call, on a stream that was then done; else the last launch
  // of the thread.
  std::vector<std::uint32_t> guessed_sources(const Event& call, CallKind kind) const {
    std::uint32_t best = kNone;
    for (TrackIndex stream = 0; stream < work_.stream_count(); ++stream) {
      const std::uint32_t launched = work_.last_launched(stream, call.start);
      const std::uint32_t last = finished(stream, call);
      const bool done = last == launched || kind == CallKind::synchronize_event;
      if (last == kNone || !done || work_[last].event->end() < call.start) { continue; }
      if (best == kNone || work_[last].event->end() > work_[best].event->end()) { best = last; }
    }
    if (best != kNone) { return {best}; }
    const auto last = last_launch_.find(call.track);
    if (last == last_launch_.end() || !ended_by(last->second, call.end())) { return {}; }
    return {last->second};
  }

  // A copy blocks its call if it ended before the call returned: pageable memory, and calls that are not asynchronous.
  std::vector<std::uint32_t> copy_sources(const Event& call) const {
    const auto launched = work_.launched_by(call);
    if (launched.empty()) { return {}; }
    const std::uint32_t copy = launched.back();
    return work_[copy].event->end() <= call.end() ? std::vector<std::uint32_t>{copy} : std::vector<std::uint32_t>();
  }

  const Profile& profile_;
  const DeviceWork& work_;
  const OperatorIndex& operators_;
  Waits waits_;
  std::unordered_map<std::uint64_t, const Event*> syncs_;
  std::vector<std::vector<std::int64_t>> synced_;  // [stream][other]: position on the other that the stream waited for
  std::vector<std::vector<std::uint32_t>> named_;  // waits for the next operation of each stream
  // Outermost operators of collectives, and the kernel that each launched last.
  std::unordered_map<const Event*, std::uint32_t> launching_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_sequence_;  // of collectives: the last with that number
  std::vector<Pending> pending_;
  std::unordered_map<TrackIndex, TrackIndex> current_;  // of threads: the stream of their last launch that computes
  std::unordered_map<TrackIndex, std::uint32_t> last_launch_;
  TrackIndex last_current_ = 0;  // of any thread
  bool has_current_ = false;
  int names_waits_ = 0;
};

}  // namespace

CallKind call_kind(std::string_view name) {
  const std::string_view call = without_vendor(name);
  if (call.starts_with("StreamWaitEvent")) { return CallKind::stream_wait; }
  if (call.starts_with("EventRecord")) { return CallKind::event_record; }
  if (call.starts_with("StreamSynchronize")) { return CallKind::synchronize_stream; }
  if (call.starts_with("DeviceSynchronize") || call.starts_with("CtxSynchronize")) {
    return CallKind::synchronize_device;
  }
  // MTIA.
  if (call == "synchronizeStream") { return CallKind::synchronize_stream; }
  if (call == "synchronize") { return CallKind::synchronize_device; }
  if (call.starts_with("EventSynchronize")) { return CallKind::synchronize_event; }
  if (call.starts_with("EventQuery")) { return CallKind::query; }
  if (call.starts_with("Memcpy")) { return CallKind::copy; }
  return CallKind::other;
}

Waits waits_of(const Profile& profile, const DeviceWork& work, const OperatorIndex& operators,
               const std::vector<const Event*>& calls) {
  return WaitFinder(profile, work, operators).find(calls);
}

}  // namespace orrery::profile
