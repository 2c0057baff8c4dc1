// One entry of "traceEvents": its fields as they are in the file. Private to the room.
#pragma once

#include <array>
#include <string_view>

#include "orrery/profile/json_pull.hpp"

namespace orrery::profile {

// Arguments of events that are read. The others are skipped.
enum class Arg : std::uint8_t {
  correlation,
  external_id,
  record_function,
  device,
  stream,
  bytes,
  size,
  input_dims,
  input_types,
  collective_name,
  in_elements,
  out_elements,
  group_size,
  dtype,
  group_name,
  group_description,
  group_ranks,
  sequence,
  comms_id,
  source_rank,
  destination_rank,
  rank,
  sync_kind,
  wait_on_stream,
  wait_on_record,
};
inline constexpr std::size_t kArgs = 25;

struct RawEvent {
  std::string_view ph, category, name, process, thread, start, duration;
  std::array<std::string_view, kArgs> args{};

  [[nodiscard]] std::string_view arg(Arg which) const { return args[static_cast<std::size_t>(which)]; }
};

// Reads the next value, which has to be an event.
void read_event(JsonPull& json, RawEvent& event);

}  // namespace orrery::profile
