// The device operations of a profile with their calls, in the orders in which the rules of the import need them.
// Private to the room.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "orrery/profile/profile.hpp"
#include "orrery/profile/sorted_table.hpp"

namespace orrery::profile {

inline constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

struct DeviceOperation {
  const Event* event = nullptr;
  const Event* call = nullptr;          // nullptr: launched before the recording
  std::uint32_t previous = kNone;       // on the stream, by start
  std::uint32_t position = 0;           // on the stream
  std::uint32_t first_of_call = kNone;  // the first operation of the same call (graphs); itself for the first
  bool communicates = false;
};

class DeviceWork {
 public:
  explicit DeviceWork(const Profile& profile);

  [[nodiscard]] const std::vector<DeviceOperation>& operations() const { return operations_; }
  [[nodiscard]] const DeviceOperation& operator[](std::uint32_t operation) const { return operations_[operation]; }

  // Operations of a stream, by start.
  [[nodiscard]] const std::vector<std::uint32_t>& stream(TrackIndex stream) const { return streams_[stream]; }
  [[nodiscard]] std::size_t stream_count() const { return streams_.size(); }

  // Operations that a call launched, by start; empty if it launched none.
  [[nodiscard]] std::span<const std::uint32_t> launched_by(const Event& call) const;

  // The last operation of a stream that was launched before a time; kNone if there is none.
  [[nodiscard]] std::uint32_t last_launched(TrackIndex stream, std::int64_t before) const;

  // The call with that correlation; nullptr if there is none.
  [[nodiscard]] const Event* call(std::uint64_t correlation) const;

  // Streams of a device by number.
  [[nodiscard]] std::uint32_t stream_of(std::string_view device, std::int64_t number) const;

 private:
  void group_by_call();

  const Profile& profile_;
  std::vector<DeviceOperation> operations_;
  std::vector<std::vector<std::uint32_t>> streams_;
  // Of each stream: time of the call and operation, by time.
  std::vector<std::vector<std::pair<std::int64_t, std::uint32_t>>> launches_;
  SortedTable<std::uint64_t, const Event*> calls_;  // by correlation
  // Operations that were launched by calls, those of a call next to each other; of each call, the first and how many.
  std::vector<std::uint32_t> launched_;
  SortedTable<const Event*, std::pair<std::uint32_t, std::uint32_t>> by_call_;
};

}  // namespace orrery::profile
