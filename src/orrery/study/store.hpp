// Results of a study in a SQLite database. docs/format/study-results.md describes the tables.
//
// Rows are appended in transactions, with a write-ahead log while the study runs: whatever ends the program, the file
// has every committed row and can be continued. A database is recognised by its application id; user_version is the
// version of the tables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/results/study.hpp"

namespace orrery::study {

inline constexpr int kStoreVersion = 2;

class Store {
 public:
  // `path` must not exist, or be a database without tables, as a run leaves that is killed when it begins.
  [[nodiscard]] static Result<Store> create(const std::string& path, const results::StudyInfo& info,
                                            const std::vector<results::StudyColumn>& columns);
  // Whether `create` can use this path.
  [[nodiscard]] static bool is_free(const std::string& path);
  // Fails for what is no database of a study, or of a newer version.
  [[nodiscard]] static Result<Store> open(const std::string& path, bool to_write);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  [[nodiscard]] const results::StudyInfo& info() const;
  [[nodiscard]] const std::vector<results::StudyColumn>& columns() const;

  // [id]: whether the row is there, for ids below `count`.
  [[nodiscard]] Result<std::vector<bool>> present(std::int64_t count) const;
  [[nodiscard]] Result<std::vector<results::StudyRow>> rows() const;
  [[nodiscard]] Result<results::StudyTable> table() const;
  // How many rows have each status, and the row with status ok that has least of `objective`, the first of equals.
  [[nodiscard]] Result<results::StudySummary> summary(const std::string& objective) const;

  // One transaction.
  [[nodiscard]] tl::expected<void, Failure> append(std::span<const results::StudyRow> rows);
  // Replaces those that are there.
  [[nodiscard]] tl::expected<void, Failure> set_sensitivities(std::span<const results::Sensitivity> list);
  // Folds the log into the file, which then is the only one.
  [[nodiscard]] tl::expected<void, Failure> finish();

 private:
  struct Database;
  explicit Store(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace orrery::study
