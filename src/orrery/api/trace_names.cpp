#include "orrery/api/trace_names.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

namespace orrery::api {

namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) { return std::nullopt; }
  return value;
}

}  // namespace

TraceName trace_name(const std::string& path) {
  TraceName name{path, std::nullopt, ""};
  const std::size_t base = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  for (const char* packed : {".gz", ".zst"}) {
    if (name.prefix.ends_with(packed)) {
      name.suffix = packed;
      name.prefix.resize(name.prefix.size() - name.suffix.size());
      break;
    }
  }
  const auto last_part = [&] {
    const std::size_t dot = name.prefix.rfind('.');
    return dot == std::string::npos || dot <= base ? std::string() : name.prefix.substr(dot);
  };
  if (const std::string part = last_part(); !part.empty() && !number(part.substr(1))) {
    name.suffix.insert(0, part);
    name.prefix.resize(name.prefix.size() - part.size());
  }
  if (const std::string part = last_part(); !part.empty()) {
    name.rank = number(part.substr(1));
    if (name.rank) { name.prefix.resize(name.prefix.size() - part.size()); }
  }
  return name;
}

std::vector<std::uint64_t> ranks_of(const std::vector<std::string>& files) {
  std::vector<std::uint64_t> ranks;
  std::set<std::uint64_t> distinct;
  for (const std::string& file : files) {
    if (const auto rank = trace_name(file).rank; rank && distinct.insert(*rank).second) { ranks.push_back(*rank); }
  }
  if (ranks.size() == files.size()) { return ranks; }
  ranks.resize(files.size());
  std::iota(ranks.begin(), ranks.end(), std::uint64_t{0});
  return ranks;
}

std::vector<std::string> output_names(const std::vector<std::string>& files, const std::string& out) {
  if (files.size() < 2) { return {out}; }
  const TraceName place = trace_name(out);
  const std::string prefix = place.rank ? fmt::format("{}.{}", place.prefix, *place.rank) : place.prefix;
  std::vector<std::string> names;
  for (const std::uint64_t rank : ranks_of(files)) {
    names.push_back(fmt::format("{}.{}{}", prefix, rank, place.suffix));
  }
  return names;
}

Result<std::vector<TraceJob>> jobs_of(const std::vector<std::string>& files) {
  std::map<std::string, std::map<std::uint64_t, std::size_t>> by_name;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const TraceName name = trace_name(files[i]);
    if (!name.rank) { continue; }
    auto& ranks = by_name[fmt::format("{}.*{}", name.prefix, name.suffix)];
    const auto [there, is_new] = ranks.try_emplace(*name.rank, i);
    if (!is_new) {
      return fail(Place{files[i], 0, 0, {}},
                  fmt::format("has rank {} of its job, and so has {}", *name.rank, files[there->second]));
    }
  }
  std::vector<TraceJob> jobs;
  for (const auto& [name, ranks] : by_name) {
    if (ranks.size() < 2) { continue; }
    jobs.push_back({name, {}});
    for (const auto& [rank, file] : ranks) { jobs.back().files.push_back(file); }
  }
  return jobs;
}

}  // namespace orrery::api
