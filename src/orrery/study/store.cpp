#include "orrery/study/store.hpp"

#include <sqlite3.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/core/text.hpp"

namespace orrery::study {

using results::StudyCell;
using results::StudyColumn;
using results::StudyInfo;
using results::StudyRow;
using results::StudyStatus;

namespace {

constexpr int kApplicationId = 0x4F525259;  // "ORRY"
constexpr std::array<std::string_view, 6> kTextColumns{"plan", "breakdown", "comm", "passes", "memory", "input_hash"};

Place db_place() { return {"", 0, 0, "--db"}; }

std::string identifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) { quoted += c == '"' ? std::string("\"\"") : std::string(1, c); }
  return quoted + "\"";
}

// A prepared statement. Indices of parameters and columns count from 0.
class Statement {
 public:
  Statement(sqlite3* db, const std::string& sql) : db_(db) {
    status_ = sqlite3_prepare_v2(db, sql.c_str(), -1, &statement_, nullptr);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  void bind(int i, const StudyCell& cell) {
    if (const double* number = results::number_of(cell)) {
      const bool whole = *number == std::round(*number) && std::abs(*number) < 0x1p53;
      note(whole ? sqlite3_bind_int64(statement_, i + 1, static_cast<std::int64_t>(*number))
                 : sqlite3_bind_double(statement_, i + 1, *number));
    } else if (const std::string* text = results::text_of_cell(cell)) {
      bind_text(i, *text);
    } else {
      note(sqlite3_bind_null(statement_, i + 1));
    }
  }
  void bind(int i, const std::optional<double>& number) {
    note(number ? sqlite3_bind_double(statement_, i + 1, *number) : sqlite3_bind_null(statement_, i + 1));
  }
  void bind(int i, std::int64_t number) { note(sqlite3_bind_int64(statement_, i + 1, number)); }
  // An empty text is NULL.
  void bind_text(int i, std::string_view text) { bind_text(i, text, SQLITE_TRANSIENT); }
  // The text must outlive the next step.
  void bind_view(int i, std::string_view text) { bind_text(i, text, SQLITE_STATIC); }
  // Whether there is a row; the error of the database is in failed().
  bool step() {
    if (status_ != SQLITE_OK) { return false; }
    status_ = sqlite3_step(statement_);
    const bool row = status_ == SQLITE_ROW;
    if (row || status_ == SQLITE_DONE) { status_ = SQLITE_OK; }
    return row;
  }
  void reset() { note(sqlite3_reset(statement_)); }
  [[nodiscard]] bool failed() const { return status_ != SQLITE_OK; }

  [[nodiscard]] StudyCell cell(int i) const {
    switch (sqlite3_column_type(statement_, i)) {
      case SQLITE_INTEGER:
      case SQLITE_FLOAT: return sqlite3_column_double(statement_, i);
      case SQLITE_NULL: return {};
      default: return text(i);
    }
  }
  [[nodiscard]] std::string text(int i) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, i));
    return bytes == nullptr ? std::string()
                            : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, i)));
  }
  [[nodiscard]] std::int64_t integer(int i) const { return sqlite3_column_int64(statement_, i); }
  [[nodiscard]] std::optional<double> number(int i) const {
    if (sqlite3_column_type(statement_, i) == SQLITE_NULL) { return std::nullopt; }
    return sqlite3_column_double(statement_, i);
  }

 private:
  void bind_text(int i, std::string_view text, sqlite3_destructor_type life) {
    note(text.empty() ? sqlite3_bind_null(statement_, i + 1)
                      : sqlite3_bind_text64(statement_, i + 1, text.data(), text.size(), life, SQLITE_UTF8));
  }
  void note(int status) {
    if (status_ == SQLITE_OK) { status_ = status; }
  }
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  int status_ = SQLITE_OK;
};

std::string joined_names(const std::vector<std::string>& names) {
  return config::print_json(config::json_texts(names));
}

std::vector<std::string> names_of(const std::string& json) {
  std::vector<std::string> names;
  const auto node = config::parse_json(json, {});
  if (!node) { return names; }
  for (const auto& item : node->items) { names.push_back(item.scalar); }
  return names;
}

}  // namespace

struct Store::Database {
  sqlite3* handle = nullptr;
  std::string path;
  StudyInfo info;
  std::vector<StudyColumn> columns;

  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite3_close_v2(handle); }

  [[nodiscard]] tl::unexpected<Failure> failure() const {
    return fail(db_place(), fmt::format("{}: {}", path, sqlite3_errmsg(handle)));
  }
  [[nodiscard]] tl::expected<void, Failure> execute(const std::string& sql) const {
    if (sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) { return failure(); }
    return {};
  }
  [[nodiscard]] std::int64_t pragma(const std::string& name) const {
    Statement statement(handle, "PRAGMA " + name);
    return statement.step() ? statement.integer(0) : -1;
  }
  [[nodiscard]] tl::expected<void, Failure> open_file(int flags) {
    if (sqlite3_open_v2(path.c_str(), &handle, flags, nullptr) != SQLITE_OK) { return failure(); }
    sqlite3_busy_timeout(handle, 10'000);
    return {};
  }
  [[nodiscard]] tl::expected<void, Failure> insert_description() const;
  void read_description();
  [[nodiscard]] tl::expected<void, Failure> use_log() const {
    return execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  }
};

// Rows of the tables study and columns.
tl::expected<void, Failure> Store::Database::insert_description() const {
  Statement row(handle, "INSERT INTO study VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  row.bind(0, std::int64_t{kStoreVersion});
  row.bind_text(1, info.version);
  row.bind_text(2, info.hash);
  row.bind_text(3, info.name);
  row.bind_text(4, info.description);
  row.bind_text(5, info.semantics);
  row.bind_text(6, info.objective);
  row.bind_text(7, joined_names(info.front));
  row.bind(8, info.points);
  row.bind_text(9, info.study);
  row.bind_text(10, info.inputs);
  row.bind_text(11, joined_names(info.not_modelled));
  row.step();
  if (row.failed()) { return failure(); }
  Statement column(handle, "INSERT INTO columns VALUES (?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    column.reset();
    column.bind(0, static_cast<std::int64_t>(i));
    column.bind_text(1, columns[i].name);
    column.bind_text(2, columns[i].path);
    column.bind_text(3, columns[i].unit);
    column.bind_text(4, columns[i].is_derived ? "derived" : "axis");
    column.step();
    if (column.failed()) { return failure(); }
  }
  return {};
}

// Reads info and columns, and leaves no statement open; info.study stays empty if there is no study.
void Store::Database::read_description() {
  Statement row(handle,
                "SELECT orrery_version, hash, name, description, semantics, objective, pareto, points, study, inputs, "
                "not_modelled FROM study");
  if (!row.step()) { return; }
  info = {row.text(2), row.text(3), row.text(0),    row.text(4),           row.text(8),           row.text(1),
          row.text(9), row.text(5), row.integer(7), names_of(row.text(6)), names_of(row.text(10))};
  Statement list(handle, "SELECT name, path, unit, kind FROM columns ORDER BY position");
  while (list.step()) { columns.push_back({list.text(0), list.text(1), list.text(2), list.text(3) == "derived"}); }
}

Store::Store(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const StudyInfo& Store::info() const { return database_->info; }
const std::vector<StudyColumn>& Store::columns() const { return database_->columns; }

namespace {

std::string points_table(const std::vector<StudyColumn>& columns) {
  std::string sql = "CREATE TABLE points (id INTEGER PRIMARY KEY";
  for (const auto& column : columns) { sql += ", " + identifier(column.name); }
  sql += ", status TEXT NOT NULL, reason TEXT";
  for (const auto metric : results::kMetricNames) { sql += fmt::format(", {} REAL", identifier(metric)); }
  for (const auto text : kTextColumns) { sql += fmt::format(", {} TEXT", identifier(text)); }
  return sql + ")";
}

constexpr const char* kOtherTables =
    "CREATE TABLE study (schema_version INTEGER NOT NULL, orrery_version TEXT NOT NULL, hash TEXT NOT NULL, name TEXT, "
    "description TEXT, semantics TEXT, objective TEXT, pareto TEXT, points INTEGER NOT NULL, study TEXT NOT NULL, "
    "inputs "
    "TEXT NOT NULL, not_modelled TEXT);"
    "CREATE TABLE columns (position INTEGER PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL, unit TEXT, kind TEXT "
    "NOT NULL);"
    "CREATE TABLE sensitivity (point INTEGER NOT NULL, path TEXT NOT NULL, factor REAL NOT NULL, step_time_s REAL, "
    "base_step_time_s REAL NOT NULL, reason TEXT)";

}  // namespace

Result<Store> Store::create(const std::string& path, const StudyInfo& info, const std::vector<StudyColumn>& columns) {
  if (!is_free(path)) {
    return fail(db_place(), fmt::format("{} exists; --resume continues the study that it has", quote(path)));
  }
  auto database = std::make_unique<Database>();
  database->path = path;
  database->info = info;
  database->columns = columns;
  ORRERY_TRY(opened, database->open_file(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).map([] { return true; }));
  (void)opened;
  // A row has about 3 kB of texts: on pages of the usual 4 KiB every row would have one of its own.
  if (auto set = database->execute("PRAGMA page_size = 16384"); !set) { return tl::make_unexpected(set.error()); }
  // One transaction: a file that has tables has the study, too.
  const std::string sql = fmt::format("BEGIN IMMEDIATE; PRAGMA application_id = {}; PRAGMA user_version = {}; {}; {}",
                                      kApplicationId, kStoreVersion, kOtherTables, points_table(columns));
  if (auto made = database->execute(sql); !made) { return tl::make_unexpected(made.error()); }
  if (auto made = database->insert_description(); !made) { return tl::make_unexpected(made.error()); }
  if (auto made = database->execute("COMMIT"); !made) { return tl::make_unexpected(made.error()); }
  if (auto made = database->use_log(); !made) { return tl::make_unexpected(made.error()); }
  return Store(std::move(database));
}

bool Store::is_free(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  if (!std::filesystem::exists(status)) { return true; }
  Database database;
  database.path = path;
  // To write: what a killed transaction has left is then rolled back.
  if (!std::filesystem::is_regular_file(status) || !database.open_file(SQLITE_OPEN_READWRITE)) { return false; }
  Statement tables(database.handle, "SELECT COUNT(*) FROM sqlite_master");
  return tables.step() && tables.integer(0) == 0 && !tables.failed();
}

namespace {

// What a file is that is no database of a study.
std::string foreign(const std::string& path, bool is_database) {
  return fmt::format("{} is {}; \"orrery explore STUDY.yaml --db FILE\" writes one", quote(path),
                     is_database ? "a database of another program, not results of a study" : "not a database");
}

}  // namespace

Result<Store> Store::open(const std::string& path, bool to_write) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) { return fail(db_place(), fmt::format("{} does not exist", quote(path))); }
  auto database = std::make_unique<Database>();
  database->path = path;
  if (auto opened = database->open_file(to_write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY); !opened) {
    return tl::make_unexpected(opened.error());
  }
  const std::int64_t id = database->pragma("application_id");
  if (id != kApplicationId) { return fail(db_place(), foreign(path, id >= 0)); }
  const std::int64_t version = database->pragma("user_version");
  if (version != kStoreVersion) {
    return fail(db_place(), fmt::format("{} has tables of version {}; this program reads version {}", quote(path),
                                        version, kStoreVersion));
  }
  database->read_description();
  if (database->info.study.empty()) { return fail(db_place(), fmt::format("{} has no study", quote(path))); }
  if (to_write) {
    if (auto logged = database->use_log(); !logged) { return tl::make_unexpected(logged.error()); }
  }
  return Store(std::move(database));
}

Result<std::vector<bool>> Store::present(std::int64_t count) const {
  std::vector<bool> ids(static_cast<std::size_t>(count));
  Statement statement(database_->handle, "SELECT id FROM points");
  while (statement.step()) {
    const std::int64_t id = statement.integer(0);
    if (id >= 0 && id < count) { ids[static_cast<std::size_t>(id)] = true; }
  }
  if (statement.failed()) { return database_->failure(); }
  return ids;
}

namespace {

StudyStatus status_named(const std::string& name) {
  for (std::size_t s = 0; s < results::kStudyStatusNames.size(); ++s) {
    if (results::kStudyStatusNames[s] == name) { return static_cast<StudyStatus>(s); }
  }
  return StudyStatus::failed;
}

// The current row of "SELECT * FROM points".
StudyRow row_at(const Statement& statement, std::size_t columns) {
  StudyRow row;
  int i = 0;
  row.id = statement.integer(i++);
  for (std::size_t c = 0; c < columns; ++c) { row.columns.push_back(statement.cell(i++)); }
  row.status = status_named(statement.text(i++));
  row.reason = statement.text(i++);
  for (auto& metric : row.metrics) { metric = statement.number(i++); }
  for (std::string* text : {&row.plan, &row.breakdown, &row.comm, &row.passes, &row.memory, &row.input_hash}) {
    *text = statement.text(i++);
  }
  return row;
}

}  // namespace

Result<std::vector<StudyRow>> Store::rows() const {
  std::vector<StudyRow> rows;
  Statement statement(database_->handle, "SELECT * FROM points ORDER BY id");
  while (statement.step()) { rows.push_back(row_at(statement, database_->columns.size())); }
  if (statement.failed()) { return database_->failure(); }
  return rows;
}

Result<results::StudySummary> Store::summary(const std::string& objective) const {
  results::StudySummary summary;
  Statement counts(database_->handle, "SELECT status, COUNT(*) FROM points GROUP BY status");
  while (counts.step()) { summary.counts[static_cast<std::size_t>(status_named(counts.text(0)))] = counts.integer(1); }
  const std::string name = identifier(objective);
  Statement best(database_->handle,
                 fmt::format("SELECT * FROM points WHERE status = 'ok' AND {} IS NOT NULL ORDER BY {}{}, id LIMIT 1",
                             name, name, results::is_more_better(objective) ? " DESC" : ""));
  if (best.step()) { summary.best = row_at(best, database_->columns.size()); }
  if (counts.failed() || best.failed()) { return database_->failure(); }
  return summary;
}

Result<results::StudyTable> Store::table() const {
  ORRERY_TRY(all, rows());
  results::StudyTable table{database_->info, database_->columns, std::move(all), {}};
  Statement statement(database_->handle,
                      "SELECT point, path, factor, step_time_s, base_step_time_s, reason FROM sensitivity");
  while (statement.step()) {
    table.sensitivities.push_back({statement.integer(0), statement.text(1), statement.number(2).value_or(0.0),
                                   statement.number(3), statement.number(4).value_or(0.0), statement.text(5)});
  }
  if (statement.failed()) { return database_->failure(); }
  return table;
}

tl::expected<void, Failure> Store::append(std::span<const StudyRow> rows) {
  if (rows.empty()) { return {}; }
  const std::size_t count = 3 + database_->columns.size() + results::kMetricNames.size() + kTextColumns.size();
  std::string sql = "INSERT OR REPLACE INTO points VALUES (?";
  for (std::size_t i = 1; i < count; ++i) { sql += ", ?"; }
  if (auto begun = database_->execute("BEGIN IMMEDIATE"); !begun) { return begun; }
  {
    Statement statement(database_->handle, sql + ")");
    for (const StudyRow& row : rows) {
      statement.reset();
      int i = 0;
      statement.bind(i++, row.id);
      for (const auto& cell : row.columns) { statement.bind(i++, cell); }
      statement.bind_view(i++, results::kStudyStatusNames[static_cast<std::size_t>(row.status)]);
      statement.bind_view(i++, row.reason);
      for (const auto& metric : row.metrics) { statement.bind(i++, metric); }
      for (const std::string* text :
           {&row.plan, &row.breakdown, &row.comm, &row.passes, &row.memory, &row.input_hash}) {
        statement.bind_view(i++, *text);
      }
      statement.step();
      if (statement.failed()) { return database_->failure(); }
    }
  }
  return database_->execute("COMMIT");
}

tl::expected<void, Failure> Store::set_sensitivities(std::span<const results::Sensitivity> list) {
  if (auto begun = database_->execute("BEGIN; DELETE FROM sensitivity"); !begun) { return begun; }
  {
    Statement statement(database_->handle, "INSERT INTO sensitivity VALUES (?, ?, ?, ?, ?, ?)");
    for (const auto& one : list) {
      statement.reset();
      statement.bind(0, one.point);
      statement.bind_text(1, one.path);
      statement.bind(2, std::optional<double>(one.factor));
      statement.bind(3, one.step_time_s);
      statement.bind(4, std::optional<double>(one.base_step_time_s));
      statement.bind_text(5, one.reason);
      statement.step();
      if (statement.failed()) { return database_->failure(); }
    }
  }
  return database_->execute("COMMIT");
}

tl::expected<void, Failure> Store::finish() { return database_->execute("PRAGMA journal_mode = DELETE"); }

}  // namespace orrery::study
