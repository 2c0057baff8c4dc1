// Traces of requests as CSV.
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/serving/load.hpp"

namespace orrery::serving {

namespace {

constexpr std::uint64_t kTraceArrivals = 1;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t end = line.find(',');
    cells.push_back(line.substr(0, end));
    if (end == std::string_view::npos) { return cells; }
    line.remove_prefix(end + 1);
  }
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  while (!text.empty() && text.front() == ' ') { text.remove_prefix(1); }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) { return std::nullopt; }
  return value;
}

class TraceReader {
 public:
  TraceReader(const std::string& file, std::string_view text, const TraceOptions& options)
      : file_(file), text_(text), options_(options) {}

  Result<Workload> read() {
    load_.clients = options_.clients;
    load_.think = ticks_of(options_.think);
    load_.block_tokens = options_.block_tokens;
    if (auto ok = read_header(); !ok) { return tl::make_unexpected(ok.error()); }
    while (!text_.empty()) {
      const std::string_view line = next_line();
      if (line.empty()) { continue; }
      if (auto ok = read_row(line); !ok) { return tl::make_unexpected(ok.error()); }
    }
    if (load_.requests.empty()) { return fail(Place{file_, 0, 0, ""}, "has no requests"); }
    repeat();
    return std::move(load_);
  }

 private:
  std::string_view next_line() {
    ++line_;
    const std::size_t end = text_.find('\n');
    std::string_view line = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    if (line.ends_with('\r')) { line.remove_suffix(1); }
    return line;
  }

  Result<void> read_header() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) { text_.remove_prefix(kByteOrderMark.size()); }
    const auto names = cells_of(next_line());
    const auto find = [&](std::string_view name) -> int {
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == name) { return static_cast<int>(i); }
      }
      return -1;
    };
    arrival_ = find("arrival_s");
    input_ = find("input_tokens");
    output_ = find("output_tokens");
    blocks_ = find("block_ids");
    priority_ = find("priority");
    session_ = find("session");
    const bool needs_arrivals = options_.clients == 0 && !options_.rate;
    for (const auto& [column, name] : {std::pair{needs_arrivals ? arrival_ : 0, "arrival_s"},
                                       {input_, "input_tokens"},
                                       {output_, "output_tokens"}}) {
      if (column < 0) {
        return fail(Place{file_, 1, 0, ""},
                    fmt::format("has no column \"{}\"; needed: arrival_s, input_tokens, output_tokens", name));
      }
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<Failure> wrong(const char* column, std::string_view cell, const char* what) const {
    return fail(Place{file_, line_, 0, column}, fmt::format("{} {}", quote(std::string(cell)), what));
  }

  Result<void> read_row(std::string_view line) {
    const auto cells = cells_of(line);
    const auto cell = [&](int column) {
      return column >= 0 && static_cast<std::size_t>(column) < cells.size() ? cells[static_cast<std::size_t>(column)]
                                                                            : std::string_view();
    };
    Request request;
    if (arrival_ >= 0) {
      const auto at = number_in<double>(cell(arrival_));
      if (!at || !(*at >= 0.0)) { return wrong("arrival_s", cell(arrival_), "is not a number of seconds"); }
      if (*at >= kLongestSeconds) {
        return wrong("arrival_s", cell(arrival_),
                     "is beyond the longest simulation of 900,000 s; subtract the first arrival from all");
      }
      if (*at / options_.speed >= kLongestSeconds) {
        return wrong("arrival_s", cell(arrival_),
                     "is, at this --trace-speed, beyond the longest simulation of 900,000 s");
      }
      request.arrival = ticks_of(Seconds(*at / options_.speed));
      if (!load_.requests.empty() && request.arrival < load_.requests.back().arrival) {
        return wrong("arrival_s", cell(arrival_), "is before the request above; sort the trace by arrival");
      }
    }
    const auto input = number_in<std::int64_t>(cell(input_)), output = number_in<std::int64_t>(cell(output_));
    const auto is_length = [](const auto& tokens) { return tokens && *tokens >= 1 && *tokens <= kMostTokens; };
    constexpr const char* kLength = "is not a number of tokens, from 1 to 10,000,000";
    if (!is_length(input)) { return wrong("input_tokens", cell(input_), kLength); }
    if (!is_length(output)) { return wrong("output_tokens", cell(output_), kLength); }
    request.input = *input;
    request.output = *output;
    const auto priority = number_in<std::int32_t>(cell(priority_));
    if (!priority && !cell(priority_).empty()) {
      return wrong("priority", cell(priority_), "is not a whole number (0 is first)");
    }
    request.priority = priority.value_or(0);
    if (!cell(session_).empty()) { request.session = session_of(cell(session_)); }
    if (auto ok = read_blocks(request, cell(blocks_)); !ok) { return ok; }
    load_.requests.push_back(request);
    return {};
  }

  // Numbers are kept. Other names are counted behind all that are likely.
  std::int32_t session_of(std::string_view name) {
    constexpr std::int32_t kNames = 1 << 30;
    if (const auto number = number_in<std::int32_t>(name); number && *number >= 0) { return *number; }
    const auto next = static_cast<std::int32_t>(sessions_.size());
    return kNames + sessions_.try_emplace(std::string(name), next).first->second;
  }

  std::uint32_t dense(std::int64_t id) {
    return ids_.try_emplace(id, static_cast<std::uint32_t>(ids_.size())).first->second;
  }

  Result<void> read_blocks(Request& request, std::string_view text) {
    constexpr std::int64_t kMostBlocks = 1 << 20;  // of a request: 2^29 tokens in blocks of 512
    const std::string_view whole = text;
    request.first_block = static_cast<std::uint32_t>(load_.block_ids.size());
    while (!text.empty()) {
      const std::size_t end = text.find(' ');
      const std::string_view part = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (part.empty()) { continue; }
      const std::size_t dash = part.find('-', 1);
      const auto first = number_in<std::int64_t>(part.substr(0, dash));
      const auto last = dash == std::string_view::npos ? first : number_in<std::int64_t>(part.substr(dash + 1));
      if (!first || !last || *last < *first || *last - *first > kMostBlocks) {
        return wrong("block_ids", whole, "is not a list of block hashes such as 1 2 7-9");
      }
      for (std::int64_t id = *first; id <= *last; ++id) { load_.block_ids.push_back(dense(id)); }
    }
    request.blocks = static_cast<std::uint32_t>(load_.block_ids.size()) - request.first_block;
    return {};
  }

  // As many requests as are wanted, the trace again and again; and the arrivals of another load.
  void repeat() {
    auto& requests = load_.requests;
    const std::size_t own = requests.size();
    const auto wanted = static_cast<std::size_t>(options_.requests.value_or(static_cast<std::int64_t>(own)));
    const Ticks span = requests.back().arrival - requests.front().arrival;
    const Ticks period = own > 1 ? span + span / static_cast<Ticks>(own - 1) : span;
    requests.reserve(wanted);
    for (std::size_t i = own; i < wanted; ++i) {
      Request request = requests[i - own];
      request.arrival = saturated_sum(request.arrival, period);
      requests.push_back(request);
    }
    requests.resize(wanted);
    if (!options_.rate) { return; }
    Draws draws(options_.seed, kTraceArrivals);
    double at = 0.0;
    for (Request& request : requests) {
      at += draws.gap(options_.cv);
      request.arrival = ticks_of(Seconds(at / *options_.rate));
    }
  }

  const std::string& file_;
  std::string_view text_;
  const TraceOptions& options_;
  Workload load_;
  std::unordered_map<std::int64_t, std::uint32_t> ids_;
  std::unordered_map<std::string, std::int32_t> sessions_;  // names that are no numbers
  int line_ = 0;
  int arrival_ = -1, input_ = -1, output_ = -1, blocks_ = -1, priority_ = -1, session_ = -1;
};

}  // namespace

Result<Workload> trace_of(const std::string& file, const TraceOptions& options) {
  if (file.ends_with(".xz") || file.ends_with(".gz")) {
    return fail(Place{file, 0, 0, ""}, "is compressed; decompress it first, for example with xz --decompress --keep");
  }
  ORRERY_TRY(text, config::read_text_file(file));
  return TraceReader(file, text, options).read();
}

}  // namespace orrery::serving
