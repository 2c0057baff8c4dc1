#include "orrery/calibrate/nccl_output.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::calibrate {

namespace {

constexpr double kMicro = 1e-6;
constexpr double kTolerance = 0.04;  // of busbw / algbw, which are printed with two decimals
constexpr double kLeastRate = 1.0;   // GB/s, so that two decimals are exact enough
constexpr std::size_t kOpWords = 4;

constexpr std::array kOperations = {
    std::pair{std::string_view{"all_reduce"}, Collective::all_reduce},
    std::pair{std::string_view{"all_gather"}, Collective::all_gather},
    std::pair{std::string_view{"reduce_scatter"}, Collective::reduce_scatter},
    std::pair{std::string_view{"alltoall"}, Collective::all_to_all},
    std::pair{std::string_view{"all_to_all"}, Collective::all_to_all},
    std::pair{std::string_view{"broadcast"}, Collective::broadcast},
};

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) { return std::nullopt; }
  return value;
}

// Without what mpirun ("[1,0]<stdout>:") or srun ("0: ") print before a line.
std::string_view without_prefix(std::string_view line) {
  constexpr std::string_view kTag = ">:";
  if (const auto tag = line.find(kTag); line.starts_with('[') && tag != std::string_view::npos) {
    return line.substr(tag + kTag.size());
  }
  const auto colon = line.find(": ");
  const bool is_rank = colon != std::string_view::npos && colon > 0 &&
                       line.substr(0, colon).find_first_not_of("0123456789") == std::string_view::npos;
  return is_rank ? line.substr(colon + 2) : line;
}

std::optional<Collective> operation_named(std::string_view name) {
  constexpr std::string_view kSuffix = "_perf";
  if (name.ends_with(kSuffix)) { name.remove_suffix(kSuffix.size()); }
  for (const auto& [text, collective] : kOperations) {
    if (name == text) { return collective; }
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(std::string file, NcclDefaults defaults) : file_(std::move(file)), defaults_(std::move(defaults)) {}

  Result<std::vector<NcclRun>> read(std::string_view text) {
    int line = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view one = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ORRERY_TRY(done, read_line(without_prefix(one), ++line));
      (void)done;
    }
    ORRERY_TRY(last, close());
    (void)last;
    if (runs_.empty()) {
      return fail({file_, 0, 0, {}},
                  "no lines of nccl-tests: a comment with the columns size, time and algbw, and "
                  "numbers below it");
    }
    return std::move(runs_);
  }

 private:
  Result<std::monostate> read_line(std::string_view line, int number_of_line) {
    const auto words = words_of(line);
    if (words.empty()) { return std::monostate{}; }
    if (words.front().starts_with('#')) { return read_comment(words, number_of_line); }
    if (columns_.empty() || !number(words.front())) { return std::monostate{}; }  // other text
    return read_row(words, number_of_line);
  }

  // A comment that begins a run, or says something of it.
  Result<std::monostate> read_comment(const std::vector<std::string_view>& words, int line) {
    const auto is = [&](std::size_t i, std::string_view word) { return i < words.size() && words[i] == word; };
    const bool starts =
        is(1, "nThread") || is(1, "nThreads") || (is(1, "Collective") && is(2, "test")) || is(2, "among");
    if (starts && !rows_.empty()) {
      ORRERY_TRY(done, close());
      (void)done;
    }
    if (starts && line_ == 0) { line_ = line; }
    if (is(1, "Rank")) {
      ++ranks_;
    } else if (is(1, "Collective") && words.size() > kOpWords) {
      name_ = words[kOpWords];
    } else if (is(2, "among") && words.size() > 3) {
      name_ = words[1];
      ranks_ = static_cast<std::int64_t>(number(words[3]).value_or(0));
    } else if (is(1, "size") && std::find(words.begin(), words.end(), "time") != words.end()) {
      columns_.assign(words.begin() + 1, words.end());
    }
    return std::monostate{};
  }

  [[nodiscard]] std::optional<std::string_view> cell(const std::vector<std::string_view>& words,
                                                     std::string_view name) const {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    const auto at = static_cast<std::size_t>(found - columns_.begin());
    if (found == columns_.end() || at >= words.size()) { return std::nullopt; }
    return words[at];
  }

  Result<std::monostate> read_row(const std::vector<std::string_view>& words, int line) {
    const auto bytes = number(words.front());
    const auto text = cell(words, "time");
    const auto time = text ? number(*text) : std::nullopt;
    if (!bytes || !time) {
      return fail({file_, line, 0, {}},
                  fmt::format("time: {} is not a number of microseconds", quote(text.value_or("(no cell)"))));
    }
    if (line_ == 0) { line_ = line; }
    redop_ = cell(words, "redop").value_or("");
    root_ = cell(words, "root").value_or("-1");
    const auto algbw = number(cell(words, "algbw").value_or("")), busbw = number(cell(words, "busbw").value_or(""));
    if (algbw && busbw && *algbw >= kLeastRate) { factor_ = *busbw / *algbw; }
    if (*bytes > 0.0 && *time > 0.0) { rows_.push_back({line, *bytes, *time * kMicro}); }
    return std::monostate{};
  }

  // By what it reduces, its root, and busbw / algbw of the last row that is fast enough; nothing where all_gather and
  // all_to_all fit alike.
  [[nodiscard]] std::optional<Collective> operation(std::int64_t ranks) const {
    if (!name_.empty()) { return operation_named(name_); }
    if (defaults_.collective) { return defaults_.collective; }
    const bool reduces = !redop_.empty() && redop_ != "none" && redop_ != "-1";
    if (!reduces) { return root_ == "-1" || root_ == "N/A" ? std::nullopt : std::optional(Collective::broadcast); }
    if (root_ != "-1" && root_ != "N/A") { return std::nullopt; }
    const double n = static_cast<double>(ranks);
    const auto near = [&](double factor) { return std::abs(factor_ / factor - 1.0) < kTolerance; };
    if (near(2.0 * (n - 1.0) / n)) { return Collective::all_reduce; }
    return near((n - 1.0) / n) ? std::optional(Collective::reduce_scatter) : std::nullopt;
  }

  Result<std::monostate> close() {
    if (!rows_.empty()) {
      const std::int64_t ranks = ranks_ > 0 ? ranks_ : defaults_.ranks;
      const Place place{file_, line_, 0, {}};
      if (ranks < 2) {
        return fail(place, "the number of ranks is not stated (no lines \"#  Rank  0 ...\"); give it with --devices");
      }
      if (!name_.empty() && !operation_named(name_)) {
        return fail(place, fmt::format("{} is not read; valid: all_reduce, all_gather, reduce_scatter, alltoall, "
                                       "broadcast",
                                       quote(name_)));
      }
      const auto collective = operation(ranks);
      if (!collective) {
        return fail(place,
                    "the operation is not stated (no line \"# Collective test starting: all_gather_perf\"); "
                    "give it with --op");
      }
      runs_.push_back({*collective, ranks, std::move(rows_)});
    }
    rows_.clear();
    columns_.clear();
    name_.clear();
    ranks_ = 0;
    line_ = 0;
    factor_ = 0;
    return std::monostate{};
  }

  std::string file_;
  NcclDefaults defaults_;
  std::vector<NcclRun> runs_;
  // Of the run that is being read.
  std::vector<NcclRow> rows_;
  std::vector<std::string> columns_;
  std::string name_, redop_, root_ = "-1";
  std::int64_t ranks_ = 0;
  int line_ = 0;
  double factor_ = 0;  // busbw / algbw
};

}  // namespace

Result<std::vector<NcclRun>> parse_nccl_output(std::string_view text, const std::string& file,
                                               const NcclDefaults& defaults) {
  return Reader(file, defaults).read(text);
}

}  // namespace orrery::calibrate
