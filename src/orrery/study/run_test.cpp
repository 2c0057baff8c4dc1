#include "orrery/study/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "orrery/core/random.hpp"
#include "orrery/study/front.hpp"
#include "orrery/study/row_bytes.hpp"
#include "orrery/study/store.hpp"
#include "orrery/study/test_studies.hpp"

namespace orrery::study::run_test {

using results::StudyRow;
using testing::counting_work;
using testing::study_from;

namespace {

constexpr const char* kStudy =
    "axes: [{a: {from: 1, to: 50, points: 50}}, {b: [x, y, z]}]\n"
    "where: a % 3 != 0\nfigures: {twice: 2 * step_time_s}\nconstraints: step_time_s < 40";

std::vector<StudyRow> rows_by_id(std::vector<StudyRow> rows) {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return rows;
}

std::vector<StudyRow> rows_of_run(const Study& study, RunOptions options, const std::vector<bool>& skips = {}) {
  std::vector<StudyRow> rows;
  const auto done = run(
      counting_work(study), skips,
      [&](std::span<const StudyRow> more) -> tl::expected<void, Failure> {
        rows.insert(rows.end(), more.begin(), more.end());
        return {};
      },
      options);
  EXPECT_TRUE(done.has_value());
  return rows_by_id(std::move(rows));
}

// Ranks of one process that exchange messages in memory.
class Network {
 public:
  explicit Network(int size) : boxes_(static_cast<std::size_t>(size)) {}
  void put(int to, Ranks::Message message) {
    const std::lock_guard lock(mutex_);
    boxes_[static_cast<std::size_t>(to)].push_back(std::move(message));
  }
  std::optional<Ranks::Message> take(int rank) {
    const std::lock_guard lock(mutex_);
    auto& box = boxes_[static_cast<std::size_t>(rank)];
    if (box.empty()) { return std::nullopt; }
    auto message = std::move(box.front());
    box.pop_front();
    return message;
  }
  [[nodiscard]] int size() const { return static_cast<int>(boxes_.size()); }

 private:
  std::mutex mutex_;
  std::vector<std::deque<Ranks::Message>> boxes_;
};

class FakeRanks final : public Ranks {
 public:
  FakeRanks(Network& network, int rank) : network_(network), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return network_.size(); }
  void send(int to, const std::string& bytes) override { network_.put(to, {rank_, bytes}); }
  [[nodiscard]] std::optional<Message> receive() override { return network_.take(rank_); }
  void pause() override { std::this_thread::yield(); }

 private:
  Network& network_;
  int rank_;
};

struct File {
  std::string path =
      ::testing::TempDir() + "/run_test_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".sqlite";
  File() { remove(); }
  ~File() { remove(); }
  void remove() const {
    for (const char* end : {"", "-wal", "-shm", "-journal"}) { std::filesystem::remove(path + end); }
  }
};

}  // namespace

TEST(Run, rows_are_the_same_for_any_number_of_threads_and_batches) {
  const auto study = study_from(kStudy);
  const auto one = rows_of_run(study, {.threads = 1});
  ASSERT_EQ(one.size(), 102U);  // 34 values of a that 3 does not divide, three of b
  for (std::size_t i = 0; i < one.size(); ++i) { EXPECT_EQ(one[i].id, static_cast<std::int64_t>(i)); }
  EXPECT_EQ(one, rows_of_run(study, {.threads = 2}));
  EXPECT_EQ(one, rows_of_run(study, {.threads = 5, .batch = 7}));
}

TEST(Run, rows_are_the_same_for_any_number_of_ranks) {
  const auto study = study_from(kStudy);
  const auto one = rows_of_run(study, {.threads = 1});
  for (const int ranks : {2, 5}) {
    Network network(ranks);
    std::vector<std::unique_ptr<FakeRanks>> ends;
    std::vector<std::jthread> others;  // they end before what they use
    for (int rank = 0; rank < ranks; ++rank) { ends.push_back(std::make_unique<FakeRanks>(network, rank)); }
    for (int rank = 1; rank < ranks; ++rank) {
      others.emplace_back([&study, end = ends[static_cast<std::size_t>(rank)].get()] {
        RunOptions options{.threads = 2};
        options.ranks = end;
        serve(counting_work(study), options);
      });
    }
    RunOptions options{.threads = 1, .batch = 3};
    options.ranks = ends.front().get();
    EXPECT_EQ(one, rows_of_run(study, options));
  }
}

TEST(Run, figures_constraints_and_failures_are_in_their_rows) {
  const auto rows = rows_of_run(study_from(kStudy), {.threads = 1});
  EXPECT_EQ(*results::number_of(rows[0].columns[2]), 4.0);  // a = 1: step time 2, twice that
  EXPECT_EQ(rows[6].status, results::StudyStatus::failed);
  EXPECT_EQ(rows[6].reason, "every seventh");
  EXPECT_EQ(rows[100].status, results::StudyStatus::infeasible);  // a = 50: step time 51
  EXPECT_EQ(rows[100].reason, "constraint step_time_s < 40 does not hold");
}

TEST(Run, bytes_of_rows_read_back) {
  const auto rows = rows_of_run(study_from(kStudy), {.threads = 1});
  EXPECT_EQ(rows_of_bytes(bytes_of_rows(rows)), rows);
}

// A run that is stopped at random moments, again and again, ends with the rows of a run that is not.
TEST(Run, a_stopped_run_continues_to_the_same_rows) {
  const auto study = study_from(kStudy);
  const auto whole = rows_of_run(study, {.threads = 1});
  RandomStream random(7);
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::vector<bool> present(whole.size());
    std::vector<StudyRow> rows;
    for (bool complete = false; !complete;) {
      std::int64_t left = 1 + random.below(40);
      RunOptions options{.threads = 2};
      options.is_stopped = [&] { return left-- <= 0; };
      const auto done = run(
          counting_work(study), present,
          [&](std::span<const StudyRow> more) -> tl::expected<void, Failure> {
            rows.insert(rows.end(), more.begin(), more.end());
            return {};
          },
          options);
      for (const auto& row : rows) { present[static_cast<std::size_t>(row.id)] = true; }
      complete = *done && rows.size() == whole.size();
    }
    EXPECT_EQ(rows_by_id(rows), whole);
  }
}

TEST(Run, an_error_of_the_store_ends_the_run) {
  const auto done =
      run(counting_work(study_from(kStudy)), {},
          [](std::span<const StudyRow>) -> tl::expected<void, Failure> { return fail("disk full"); }, {.threads = 2});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().text(), "disk full");
}

TEST(Store, what_is_written_reads_back) {
  const File file;
  const auto study = study_from(kStudy);
  const auto rows = rows_of_run(study, {.threads = 1});
  const results::StudyInfo info{"name",           "text",        "1.0", "physical",           "{}",     "abc",
                                "{\"a\": \"b\"}", "step_time_s", 102,   {"step_time_s", "a"}, {"noise"}};
  {
    auto store = Store::create(file.path, info, study.columns());
    ASSERT_TRUE(store.has_value());
    ASSERT_TRUE(store->append(std::span(rows).subspan(0, 50)).has_value());
    ASSERT_TRUE(store->append(std::span(rows).subspan(50)).has_value());
    const std::vector<results::Sensitivity> list{{3, "a", 1.1, 2.0, 4.0, {}}};
    ASSERT_TRUE(store->set_sensitivities(list).has_value());
    ASSERT_TRUE(store->finish().has_value());
  }
  for (const bool to_write : {false, true}) {
    const auto store = Store::open(file.path, to_write);
    ASSERT_TRUE(store.has_value()) << store.error().text();
    const auto table = store->table();
    ASSERT_TRUE(table.has_value());
    EXPECT_EQ(table->info, info);
    EXPECT_EQ(table->columns, study.columns());
    EXPECT_EQ(table->rows, rows);
    EXPECT_EQ(table->sensitivities.size(), 1U);
    const auto summary = store->summary("step_time_s");
    EXPECT_EQ(summary->best->id, 0);
    EXPECT_EQ(summary->counts[0] + summary->counts[1] + summary->counts[2], 102);
    EXPECT_EQ(pareto_front(*table, {"step_time_s", "a"}), (std::vector<std::size_t>{0, 1, 2}));  // equal rows: all
  }
}

TEST(Store, files_of_others_are_refused) {
  const File file;
  EXPECT_NE(Store::open(file.path, false).error().text().find("does not exist"), std::string::npos);
  std::ofstream(file.path) << "id,value\n1,2\n";
  EXPECT_NE(Store::open(file.path, false).error().text().find("is not a database"), std::string::npos);
  EXPECT_NE(Store::create(file.path, {}, {}).error().text().find("exists; --resume"), std::string::npos);
  EXPECT_FALSE(Store::create("/nowhere/at/all.sqlite", {}, {}).has_value());
}

// Points in three dimensions against the definition: a row is on the front if no other is as good everywhere and better
// somewhere.
TEST(Front, equals_the_definition) {
  RandomStream random(5);
  results::StudyTable table;
  for (const char* name : {"x", "y", "z"}) { table.columns.push_back({name, name, {}, false}); }
  for (int i = 0; i < 200; ++i) {
    StudyRow row;
    row.id = i;
    for (int c = 0; c < 3; ++c) { row.columns.emplace_back(static_cast<double>(random.below(12))); }
    if (i % 10 == 9) { row.status = results::StudyStatus::infeasible; }
    table.rows.push_back(row);
  }
  for (const std::vector<std::string>& columns : {std::vector<std::string>{"x", "y"}, {"x", "y", "z"}}) {
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      bool beaten = table.rows[i].status != results::StudyStatus::ok;
      for (const auto& other : table.rows) {
        if (other.status != results::StudyStatus::ok) { continue; }
        bool as_good = true, better = false;
        for (const auto& column : columns) {
          const double a = *value_of(table, other, column), b = *value_of(table, table.rows[i], column);
          as_good = as_good && a <= b;
          better = better || a < b;
        }
        beaten = beaten || (as_good && better);
      }
      if (!beaten) { expected.push_back(i); }
    }
    auto found = pareto_front(table, columns);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
  }
}

}  // namespace orrery::study::run_test
