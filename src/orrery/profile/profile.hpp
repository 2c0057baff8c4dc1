// A profile of one process as Kineto records it: what ran on the threads of the host and on the streams of the devices,
// with times in integer nanoseconds. Read from Chrome trace JSON (kineto_read.hpp).
//
// Memory: 56 bytes an event, names and communication records once. Python frames, flows, counters and names of rows
// are counted and not kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace orrery::profile {

using NameIndex = std::uint32_t;
using TrackIndex = std::uint32_t;

// What an event is, whatever the vendor and the year of the file.
enum class Category : std::uint8_t {
  operation,   // an operator of PyTorch on the host
  annotation,  // a range that a user or PyTorch named
  call,        // a call of the runtime or the driver of a device
  kernel,
  memcpy,
  memset,
  sync,      // what a synchronization on the device waited for
  overhead,  // the host waits for the profiler itself
  other,
};

[[nodiscard]] constexpr bool is_device_work(Category category) {
  return category == Category::kernel || category == Category::memcpy || category == Category::memset;
}

// Texts that occur many times, each kept once.
class NameTable {
 public:
  // `raw`: as in the file, with escapes.
  NameIndex add(std::string_view raw);
  [[nodiscard]] std::string_view operator[](NameIndex name) const { return names_[name]; }
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameIndex, Hash, std::equal_to<>> index_;
};

struct Event {
  std::int64_t start = 0;             // ns, see Profile::base_ns
  std::int64_t duration = 0;          // ns
  std::uint64_t correlation = 0;      // of calls, device work and synchronizations; 0 = none
  std::uint64_t external = 0;         // External id; of operations: their number
  std::uint64_t record_function = 0;  // of operations and annotations; 0 = none
  NameIndex name = 0;
  TrackIndex track = 0;      // a thread, or a stream for device work and synchronizations
  std::uint32_t detail = 0;  // position + 1 in Profile::comms or ::syncs; of memcpys: bytes are in ::sizes; 0 = none
  Category category = Category::other;

  [[nodiscard]] std::int64_t end() const { return start + duration; }
};

// A thread (process and thread number) or a stream (device and stream number), as texts of the file.
struct Track {
  std::string process;  // or device
  std::string thread;   // or stream
};

// The communication that a kernel, or record_param_comms on the host, carries out. Elements are per rank.
struct CommRecord {
  std::string name;  // "allreduce", "_allgather_base", …
  std::int64_t in_elements = 0, out_elements = 0;
  std::int64_t group_size = 0;
  std::string dtype;  // PyTorch's name: "Float", "BFloat16"
  std::string group, group_description;
  std::string ranks;  // as in the file: "[0, 1]", may be cut after 30
  std::optional<std::uint64_t> sequence;
  std::string id;                                   // Comms Id, equal on all ranks of a collective
  std::optional<std::int64_t> source, destination;  // ranks of a send or a receive; the own one may be missing
  // PyTorch's "rank": position in the group of the root of a broadcast, reduction, gather or scatter, or of the peer of
  // a message.
  std::optional<std::int64_t> peer_or_root;
};

// What a synchronization waited for.
struct SyncRecord {
  enum class Kind : std::uint8_t { other, stream, context, event, stream_wait };
  Kind kind = Kind::other;
  std::optional<std::int64_t> waiting_stream;  // stream that waits
  std::optional<std::int64_t> source_stream;   // stream that it waits for
  std::optional<std::uint64_t> record_call;    // correlation of the cudaEventRecord call
};

// A process group that the file lists.
struct ListedGroup {
  std::string name, description;
  std::vector<std::uint64_t> ranks;
};

// What a reader repaired or skipped, for the user.
struct ReadNote {
  std::uint64_t byte = 0;  // of the uncompressed file
  std::string text;
};

struct Profile {
  std::string file;
  NameTable names;
  std::vector<Track> threads, streams;
  std::vector<Event> events;
  std::vector<CommRecord> comms;
  std::vector<SyncRecord> syncs;
  std::vector<std::uint64_t> memcpy_bytes;  // by Event::detail - 1
  // Shapes ("[[64,512],[512,512]]") and types of the inputs of operators and annotations, by name of text; position + 1
  // in detail.
  std::vector<std::pair<NameIndex, NameIndex>> shapes;
  std::vector<ListedGroup> groups;
  std::size_t groups_listed = 0;

  std::int64_t base_ns = 0;  // time of an event since 1970 = base_ns + start
  bool whole_microseconds = true;
  std::optional<std::uint64_t> rank, world_size;
  std::string device_name;
  std::uint64_t all_events = 0;                     // entries of traceEvents of any kind
  std::map<std::string, std::uint64_t> categories;  // complete events by category
  std::uint64_t mtia_operations = 0;                // device work of MTIA, which has no calls
  std::uint64_t no_time = 0;                        // device work without a time, dropped
  std::uint64_t bytes = 0;                          // of the uncompressed file
  std::vector<ReadNote> notes;

  [[nodiscard]] std::string_view name(const Event& event) const { return names[event.name]; }
  [[nodiscard]] const CommRecord* comm(const Event& event) const {
    return event.category != Category::memcpy && event.category != Category::sync && event.detail > 0 &&
                   has_comm(event.category, names[event.name])
               ? &comms[event.detail - 1]
               : nullptr;
  }
  [[nodiscard]] const SyncRecord* sync(const Event& event) const {
    return event.category == Category::sync && event.detail > 0 ? &syncs[event.detail - 1] : nullptr;
  }

  // Whether the detail of such an event is in comms; that of other operations and annotations is in shapes.
  [[nodiscard]] static bool has_comm(Category category, std::string_view name) {
    return category == Category::kernel || name == "record_param_comms";
  }
};

}  // namespace orrery::profile
