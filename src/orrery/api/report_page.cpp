#include "orrery/api/report_page.hpp"

#include <array>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "orrery/api/explore.hpp"
#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/page.hpp"

namespace orrery::api {

namespace {

bool is_json(const std::string& file) { return std::filesystem::path(file).extension() == ".json"; }

// What the page draws: the place of each value, and its kind. A number may be null where nothing is known.
struct Drawn {
  std::string_view path;
  bool is_number = true;
};
constexpr std::array kCampaignValues = {Drawn{"model", false},
                                        Drawn{"cluster", false},
                                        Drawn{"devices"},
                                        Drawn{"tokens"},
                                        Drawn{"steps"},
                                        Drawn{"step_time_s"},
                                        Drawn{"days/p10"},
                                        Drawn{"days/p50"},
                                        Drawn{"days/p90"},
                                        Drawn{"ettr"},
                                        Drawn{"time_shares/useful"},
                                        Drawn{"interruptions"},
                                        Drawn{"checkpoint_interval_s"}};
constexpr std::array kJobsValues = {Drawn{"fabric", false}, Drawn{"policy", false}, Drawn{"servers"},
                                    Drawn{"arrived"},       Drawn{"blocking_rate"}, Drawn{"utilisation"},
                                    Drawn{"fairness"},      Drawn{"wait_s/mean"}};

const config::Node* value_at(const config::Node& root, std::string_view path) {
  const std::size_t slash = path.find('/');
  const config::Node* node = root.find(path.substr(0, slash));
  return node == nullptr || slash == std::string_view::npos ? node : value_at(*node, path.substr(slash + 1));
}

Failure wrong_values(const config::Node& root, std::span<const Drawn> drawn) {
  using config::Kind;
  Failure failure;
  for (const Drawn& one : drawn) {
    const config::Node* value = value_at(root, one.path);
    const Place place = value == nullptr ? Place{root.place.file, 0, 0, fmt::format("/{}", one.path)} : value->place;
    const auto kind = value == nullptr ? Kind::null : value->kind;
    const bool is_number = kind == Kind::integer || kind == Kind::real || (value != nullptr && kind == Kind::null);
    if (value != nullptr && (one.is_number ? is_number : kind == Kind::text)) { continue; }
    const std::string what = value == nullptr     ? "missing"
                             : value->is_scalar() ? quote(value->scalar)
                                                  : "a list or object";
    failure.diagnostics.push_back({place, fmt::format("{}: must be {}", what, one.is_number ? "a number" : "text")});
  }
  return failure;
}

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
  auto wrong = name == "orrery.jobs/1" ? wrong_values(root, kJobsValues) : wrong_values(root, kCampaignValues);
  if (!wrong.diagnostics.empty()) { return tl::make_unexpected(std::move(wrong)); }
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
