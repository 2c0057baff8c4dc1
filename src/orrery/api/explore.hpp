// `orrery explore` and `orrery report`: studies, and pages of their results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/results/study.hpp"
#include "orrery/study/run.hpp"

namespace orrery::api {

struct StudyRequest {
  std::string file;      // the study
  std::string database;  // where results go
  bool resume = false;   // continue the study that the database has
  int threads = 0;
  std::string version;            // of this program
  study::Ranks* ranks = nullptr;  // other processes of this run
  std::function<bool()> is_stopped = [] { return false; };
  std::function<void(std::int64_t done, std::int64_t points)> progress = {};
};

struct StudyAnswer {
  results::StudyInfo info;
  std::vector<results::StudyColumn> columns;
  results::StudySummary summary;
  std::vector<results::Sensitivity> sensitivities;
  bool stopped = false;  // before the last point: --resume continues
};

// Nothing: this process is another rank, and rank 0 answers.
[[nodiscard]] Result<std::optional<StudyAnswer>> explore(const std::string& data_directory,
                                                         const StudyRequest& request);

// One point as files that `orrery estimate --scenario` reads: the scenario, and the cluster, model and stack where the
// study changes them. Names are relative to the scenario's folder. Where the study searches, the point is priced and
// the scenario has the plan of its row; of a threshold, the value that was found and the plan whose figures the row
// has.
struct PointFiles {
  struct File {
    std::string name, text;
  };
  std::vector<File> files;         // the scenario first
  std::vector<std::string> notes;  // why estimate has other figures than the row; also comments of the scenario
};
[[nodiscard]] Result<PointFiles> point_files(const std::string& data_directory, const std::string& file,
                                             std::int64_t id);

// A page of the results that are in the database now (orrery/report/page.hpp). Errors have no place: the caller's
// argument names the database.
[[nodiscard]] Result<std::string> study_page(const std::string& database);

}  // namespace orrery::api
