#include "orrery/api/report_page.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "orrery/api/explore.hpp"
#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/page.hpp"

namespace orrery::api {

namespace {

bool is_json(const std::string& file) { return std::filesystem::path(file).extension() == ".json"; }

Result<report::NamedResult> read_result(const std::string& file) {
  ORRERY_TRY(text, config::read_text_file(file));
  ORRERY_TRY(root, config::parse_json(text, file));
  const config::Node* schema = root.find("schema");
  const std::string name = schema == nullptr ? std::string() : schema->scalar;
  if (name != "orrery.campaign/1" && name != "orrery.jobs/1") {
    return fail({file, 0, 0, "/schema"},
                fmt::format("{}: no page for this result; valid: orrery.campaign/1, orrery.jobs/1 (campaign --json, "
                            "jobs --json)",
                            name.empty() ? "missing" : quote(name)));
  }
  return report::NamedResult{std::filesystem::path(file).stem().string(), std::move(text)};
}

}  // namespace

Result<std::string> results_page(const std::vector<std::string>& files) {
  if (files.size() == 1 && !is_json(files.front())) { return study_page(files.front()); }
  std::vector<report::NamedResult> runs;
  for (const auto& file : files) {
    if (!is_json(file)) {
      return fail({file, 0, 0, {}}, "a page has one database, or files .json of campaign and jobs");
    }
    ORRERY_TRY(run, read_result(file));
    runs.push_back(std::move(run));
  }
  return report::runs_page(runs);
}

}  // namespace orrery::api
