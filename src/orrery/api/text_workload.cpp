#include "orrery/api/text_workload.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::api {

namespace {

struct Name {
  std::string prefix;
  std::string suffix = ".et";
};

Result<Name> name_of(const std::string& out) {
  for (const std::string suffix : {".et", ".et.gz"}) {
    if (out.ends_with(suffix)) { return Name{out.substr(0, out.size() - suffix.size()), suffix}; }
  }
  for (const std::string_view suffix : {".jsonl", ".json", ".dot", ".gv", ".graphml", ".gz", ".zst"}) {
    if (out.ends_with(suffix)) {
      return fail(Place{out, 0, 0, {}},
                  "a text workload is written as .et or .et.gz only; convert these files in a second step");
    }
  }
  return Name{out, ".et"};
}

}  // namespace

bool is_text_workload(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) { return false; }
  std::ifstream file(path, std::ios::binary);
  std::array<char, 256> first{};
  file.read(first.data(), first.size());
  return trace::is_text_workload({first.data(), static_cast<std::size_t>(file.gcount())});
}

Result<std::vector<std::string>> text_workload_files(const std::string& out, const TextWorkloadOptions& options) {
  ORRERY_TRY(name, name_of(out));
  ORRERY_TRY(ranks, trace::ranks_of(options));
  std::vector<std::string> files;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    files.push_back(fmt::format("{}.{}{}", name.prefix, rank, name.suffix));
  }
  return files;
}

Result<TraceWritten> trace_import_text(const std::string& file, const std::string& out,
                                       const TextWorkloadOptions& options) {
  ORRERY_TRY(files, text_workload_files(out, options));
  ORRERY_TRY(notes, trace::import_text_workload(file, files, options));
  return TraceWritten{std::move(files), std::move(notes)};
}

}  // namespace orrery::api
