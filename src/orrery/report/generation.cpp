#include "orrery/report/generation.hpp"

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr double kKilo = 1e3, kMega = 1e6;
  const auto size = static_cast<double>(bytes);
  return size < kMega ? fmt::format("{:.1f} kB", size / kKilo) : fmt::format("{:.1f} MB", size / kMega);
}

}  // namespace

std::string generation_text(const results::Generation& generation) {
  const bool classes = generation.classes > 0;
  const std::int64_t files = classes ? generation.classes : generation.ranks;
  std::string graphs =
      files == 1 ? "1 graph: " + generation.first_file
                 : fmt::format("{} graphs: {} to {}", grouped(files), generation.first_file, generation.last_file);
  std::string text = wrapped("", printable(graphs));
  text +=
      fmt::format("  {} nodes, {}{}\n", grouped(static_cast<long long>(generation.nodes)), size_text(generation.bytes),
                  classes ? fmt::format("; classes of {} ranks", grouped(generation.ranks)) : "");
  text += fmt::format("{}: {}\n", classes ? "classes" : "process groups", printable(generation.index_file));
  if (!generation.chosen.empty()) { text += wrapped_list("chosen: ", generation.chosen); }
  for (const std::string& note : generation.notes) { text += wrapped("note: ", note); }
  return text;
}

std::string generation_json(const results::Generation& generation) {
  return config::json_document(config::json_object({{"schema", "orrery.generate/1"},
                                                    {"ranks", generation.ranks},
                                                    {"classes", generation.classes},
                                                    {"first_file", generation.first_file},
                                                    {"last_file", generation.last_file},
                                                    {"index_file", generation.index_file},
                                                    {"nodes", generation.nodes},
                                                    {"size_B", generation.bytes},
                                                    {"chosen", generation.chosen},
                                                    {"warnings", generation.warnings},
                                                    {"notes", generation.notes}}));
}

}  // namespace orrery::report
