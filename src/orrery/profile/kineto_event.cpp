#include "orrery/profile/kineto_event.hpp"

#include <optional>
#include <utility>

namespace orrery::profile {

namespace {

constexpr std::pair<std::string_view, Arg> kArgNames[] = {
    {"correlation", Arg::correlation},
    {"External id", Arg::external_id},
    {"external id", Arg::external_id},
    {"Record function id", Arg::record_function},
    {"device", Arg::device},
    {"stream", Arg::stream},
    {"bytes", Arg::bytes},
    {"size", Arg::size},
    {"Input Dims", Arg::input_dims},
    {"Input type", Arg::input_types},
    {"Collective name", Arg::collective_name},
    {"In msg nelems", Arg::in_elements},
    {"Out msg nelems", Arg::out_elements},
    {"Group size", Arg::group_size},
    {"dtype", Arg::dtype},
    {"Process Group Name", Arg::group_name},
    {"Process Group Description", Arg::group_description},
    {"Process Group Ranks", Arg::group_ranks},
    {"Seq", Arg::sequence},
    {"Comms Id", Arg::comms_id},
    {"Src Rank", Arg::source_rank},
    {"Dst Rank", Arg::destination_rank},
    {"Rank", Arg::rank},
    {"cuda_sync_kind", Arg::sync_kind},
    {"wait_on_stream", Arg::wait_on_stream},
    {"wait_on_cuda_event_record_corr_id", Arg::wait_on_record},
};

// By length and first letter first: most keys are none of them.
std::optional<Arg> arg_of(std::string_view key) {
  for (const auto& [name, arg] : kArgNames) {
    if (name.size() == key.size() && name[0] == key[0] && name == key) { return arg; }
  }
  return std::nullopt;
}

void read_args(JsonPull& json, RawEvent& event) {
  if (json.peek() != '{') {
    json.value();
    return;
  }
  json.object([&](std::string_view key) {
    const auto arg = arg_of(key);
    if (!arg) {
      json.value();
      return;
    }
    event.args[static_cast<std::size_t>(*arg)] = json.scalar();
  });
}

}  // namespace

void read_event(JsonPull& json, RawEvent& event) {
  event = {};
  if (json.peek() != '{') { json.fail("an event, which is an object"); }
  json.object([&](std::string_view key) {
    if (key == "args") {
      if (event.category == "python_function") {
        json.value();
      } else {
        read_args(json, event);
      }
      return;
    }
    std::string_view* const field = key == "ph"     ? &event.ph
                                    : key == "ts"   ? &event.start
                                    : key == "dur"  ? &event.duration
                                    : key == "cat"  ? &event.category
                                    : key == "name" ? &event.name
                                    : key == "pid"  ? &event.process
                                    : key == "tid"  ? &event.thread
                                                    : nullptr;
    const std::string_view read = json.scalar();
    if (field != nullptr) { *field = read; }
  });
}

}  // namespace orrery::profile
