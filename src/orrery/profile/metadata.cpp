#include "orrery/profile/metadata.hpp"

#include "orrery/profile/decimal.hpp"
#include "orrery/profile/json_pull.hpp"

namespace orrery::profile {

namespace {

ListedGroup read_group(JsonPull& json) {
  ListedGroup group;
  if (json.peek() != '{') {
    json.value();
    return group;
  }
  json.object([&](std::string_view key) {
    const std::string_view value = json.scalar();
    if (key == "pg_name") { group.name = decoded_text(value); }
    if (key == "pg_desc") { group.description = decoded_text(value); }
    if (key == "ranks") { group.ranks = ranks_of_text(value); }
  });
  return group;
}

void read_distributed(Profile& profile, JsonPull& json) {
  if (json.peek() != '{') { return; }
  json.object([&](std::string_view key) {
    if (key == "pg_config" && json.peek() == '[') {
      json.list([&] {
        profile.groups.push_back(read_group(json));
        ++profile.groups_listed;
      });
      return;
    }
    const std::string_view value = json.scalar();
    if (key == "rank") { profile.rank = integer_of<std::uint64_t>(value); }
    if (key == "world_size") { profile.world_size = integer_of<std::uint64_t>(value); }
  });
}

void read_devices(Profile& profile, JsonPull& json) {
  if (json.peek() != '[') { return; }
  json.list([&] {
    if (json.peek() != '{') {
      json.value();
      return;
    }
    json.object([&](std::string_view key) {
      const std::string_view value = json.scalar();
      if (key == "name" && profile.device_name.empty()) { profile.device_name = decoded_text(value); }
    });
  });
}

}  // namespace

std::vector<std::uint64_t> ranks_of_text(std::string_view text) {
  std::vector<std::uint64_t> ranks;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(",]", at), text.size());
    std::string_view word = text.substr(at, end - at);
    while (!word.empty() && (word.front() == '[' || word.front() == ' ' || word.front() == '\n')) {
      word.remove_prefix(1);
    }
    while (!word.empty() && (word.back() == ' ' || word.back() == '\n')) { word.remove_suffix(1); }
    at = end + 1;
    if (word.empty()) { continue; }
    const auto rank = integer_of<std::uint64_t>(word);
    if (!rank) { return {}; }
    ranks.push_back(*rank);
  }
  return ranks;
}

void read_metadata(Profile& profile, std::string_view key, std::string_view value) {
  JsonPull json(value, true);
  if (key == "baseTimeNanoseconds") {
    const std::int64_t base = integer_of<std::int64_t>(value).value_or(0);
    profile.base_ns = base > 0 && base < INT64_MAX / 4 ? base : 0;
  } else if (key == "distributedInfo") {
    read_distributed(profile, json);
  } else if (key == "deviceProperties") {
    read_devices(profile, json);
  }
}

}  // namespace orrery::profile
