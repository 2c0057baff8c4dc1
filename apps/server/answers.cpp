#include "apps/server/answers.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery::server {

namespace {

using nlohmann::ordered_json;

std::string dumped(const ordered_json& document) {
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// Without --json: lines "error: …", maybe after notes.
std::string errors_of_text(const std::string& err) {
  constexpr std::string_view kPrefix = "error: ";
  std::string text;
  for (std::size_t start = 0; start < err.size();) {
    const std::size_t end = std::min(err.find('\n', start), err.size());
    const std::string_view line(err.data() + start, end - start);
    if (line.starts_with(kPrefix)) { text.append(text.empty() ? "" : "\n").append(line.substr(kPrefix.size())); }
    start = end + 1;
  }
  return text.empty() ? err : text;
}

// What a command with --json writes on standard error: {"schema": …, "errors": [{"text": …}, …]}, maybe after notes.
std::string errors_of(const std::string& err) {
  const std::size_t start = err.find('{');
  const auto document =
      start == std::string::npos ? ordered_json() : ordered_json::parse(err.substr(start), nullptr, false);
  if (!document.is_object() || !document.contains("errors")) { return errors_of_text(err); }
  std::string text;
  for (const auto& error : document["errors"]) {
    text += (text.empty() ? "" : "\n") + error.value("text", error.dump());
  }
  return text;
}

std::optional<std::int64_t> count_of(std::string_view& text) {
  std::int64_t count = 0;
  std::size_t used = 0;
  while (used < text.size() && (text[used] == ',' || (text[used] >= '0' && text[used] <= '9'))) {
    if (text[used] != ',') { count = 10 * count + (text[used] - '0'); }
    ++used;
  }
  text.remove_prefix(used);
  return used == 0 || used > 24 ? std::nullopt : std::optional(count);
}

}  // namespace

Answer error_answer(int status, std::string_view message) { return {status, dumped({{"error", message}})}; }

std::string message_of(const Failure& failure) {
  std::string text;
  for (const auto& diagnostic : failure.diagnostics) { text += (text.empty() ? "" : "\n") + diagnostic.text(); }
  return text;
}

std::string reason_of(int status, const std::string& path) {
  switch (status) {
    case 404: return fmt::format("there is no {}; GET /api lists the commands", path.substr(0, 200));
    case 413: return "the request is larger than 1 MiB";
    default: return fmt::format("the request cannot be answered (HTTP status {})", status);
  }
}

Answer answer_of(const ChildResult& result, bool is_text) {
  using End = ChildResult::End;
  switch (result.end) {
    case End::exited: break;
    case End::stopped: return error_answer(503, "the request was cancelled");
    case End::timed_out: return error_answer(504, "the answer takes too long; ask for less, or use the command line");
    case End::too_much_output: return error_answer(413, "the answer is larger than 64 MiB; use the command line");
    case End::crashed: return error_answer(500, fmt::format("the command ended by signal {}", result.code));
    case End::not_started: return error_answer(503, "the command cannot be started; try again");
  }
  const bool answered = result.code == 0 || (result.code == 1 && !result.out.empty());
  if (answered) { return {200, is_text ? dumped({{"text", result.out}}) : result.out}; }
  return error_answer(result.code <= 2 ? 400 : 500, errors_of(result.err));
}

Answer with_timeline(const Answer& answer, const std::string& trace) {
  if (answer.status != 200) { return answer; }
  auto document = ordered_json::parse(answer.body, nullptr, false);
  document["timeline"] = ordered_json::parse(trace, nullptr, false);
  return {200, dumped(document)};
}

std::optional<std::string> progress_line(std::string_view line) {
  const auto done = count_of(line);
  constexpr std::string_view kOf = " of ";
  if (!done || !line.starts_with(kOf)) { return std::nullopt; }
  line.remove_prefix(kOf.size());
  const auto all = count_of(line);
  if (!all || !line.starts_with(' ')) { return std::nullopt; }
  const std::string_view unit = line.substr(1, line.find(',') - 1);
  return dumped({{"progress", {{"done", *done}, {"all", *all}, {"unit", unit}}}});
}

std::string final_line(const Answer& answer) {
  auto document = ordered_json::parse(answer.body, nullptr, false);
  return dumped({{"status", answer.status}, {"answer", std::move(document)}});
}

}  // namespace orrery::server
