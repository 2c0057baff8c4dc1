#include "orrery/network/flow_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::network {

namespace {

constexpr std::size_t kMostErrors = 20;

class FlowReader {
 public:
  FlowReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<FlowList> read() {
    while (next_line() && errors_.diagnostics.size() < kMostErrors) { read_line(); }
    if (errors_.diagnostics.empty()) { resolve_dependencies(); }
    if (errors_.diagnostics.empty() && flows_.size() == 0) { error_at(0, "has no line \"flow ...\""); }
    if (errors_.diagnostics.empty()) { check_cycles(); }
    if (!errors_.diagnostics.empty()) { return tl::make_unexpected(std::move(errors_)); }
    return std::move(flows_);
  }

 private:
  void error_at(int line, std::string message) {
    errors_.diagnostics.push_back({Place{file_, line, 0, {}}, std::move(message)});
  }
  void error(std::string message) { error_at(line_number_, std::move(message)); }

  bool next_line() {
    if (text_.empty()) { return false; }
    const std::size_t end = text_.find('\n');
    line_ = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    line_ = line_.substr(0, line_.find('#'));
    ++line_number_;
    return true;
  }

  // Empty at the end of the line.
  std::string_view word() {
    const std::size_t first = line_.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) {
      line_ = {};
      return {};
    }
    line_.remove_prefix(first);
    const std::size_t length = std::min(line_.find_first_of(" \t\r"), line_.size());
    const std::string_view found = line_.substr(0, length);
    line_.remove_prefix(length);
    return found;
  }

  void read_line() {
    const std::string_view kind = word();
    if (kind.empty() || kind == "note") { return; }
    if (kind == "case") {
      flows_.name = std::string(word());
    } else if (kind == "topo") {
      read_topology();
    } else if (kind == "link") {
      read_link();
    } else if (kind == "flow") {
      read_flow();
    } else if (kind == "change") {
      read_change();
    } else {
      static const std::vector<std::string> kinds = {"case", "topo", "link", "flow", "change", "note"};
      const auto near = nearest(kind, kinds);
      error(fmt::format("{} is not a kind of line; {}", quote(kind),
                        near ? fmt::format("did you mean {}?", *near) : "valid: " + join(kinds, ", ")));
    }
  }

  void read_topology() {
    constexpr std::string_view kWeighted = "weighted=";
    for (std::string_view found = word(); !found.empty(); found = word()) {
      if (!found.starts_with(kWeighted)) { continue; }
      const std::string_view value = found.substr(kWeighted.size());
      if (value != "0" && value != "1") { error(fmt::format("weighted={}: valid: 0, 1", value)); }
      flows_.is_weighted = value == "1";
    }
  }

  std::optional<std::uint64_t> id(std::string_view what) {
    const std::string_view found = word();
    const auto number = whole_number(found);
    if (!number) { error(fmt::format("{} {}: the id must be a whole number", what, quote(found))); }
    return number;
  }

  // At least 0; more than 0 if `positive`.
  std::optional<double> number(std::string_view what, bool positive) {
    const std::string_view found = word();
    double value = 0;
    const auto [end, code] = std::from_chars(found.data(), found.data() + found.size(), value);
    const bool is_number = code == std::errc() && end == found.data() + found.size() && std::isfinite(value);
    if (is_number && (positive ? value > 0 : value >= 0)) { return value; }
    error(found.empty()
              ? fmt::format("the {} is missing", what)
              : fmt::format("{} {}: valid: a number {}", what, quote(found), positive ? "greater than 0" : "from 0"));
    return std::nullopt;
  }

  void check_end() {
    if (const auto rest = word(); !rest.empty()) { error(fmt::format("{}: the line has too many words", quote(rest))); }
  }

  void read_link() {
    const auto number_of_link = id("link");
    const std::string_view name = number_of_link ? word() : std::string_view();
    if (!number_of_link) { return; }
    const auto bandwidth = number("bandwidth", true);
    const auto latency = bandwidth ? number("latency", false) : std::nullopt;
    if (!latency) { return; }
    check_end();
    if (!links_.try_emplace(*number_of_link, static_cast<std::uint32_t>(flows_.links.size())).second) {
      return error(fmt::format("link {}: the id is taken by an earlier line", *number_of_link));
    }
    flows_.links.push_back({*number_of_link, std::string(name), *bandwidth, *latency});
  }

  void read_change() {
    const auto link = id("change of link");
    const auto time = link ? number("time", false) : std::nullopt;
    const auto bandwidth = time ? number("bandwidth", false) : std::nullopt;
    if (!bandwidth) { return; }
    check_end();
    const auto known = links_.find(*link);
    if (known == links_.end()) { return error(fmt::format("change: no earlier line has link {}", *link)); }
    flows_.changes.push_back({known->second, *time, *bandwidth});
  }

  void read_flow() {
    const auto number_of_flow = id("flow");
    const auto start = number_of_flow ? number("start", false) : std::nullopt;
    const auto bytes = start ? number("number of bytes", false) : std::nullopt;
    if (!bytes) { return; }
    for_ids(word(), "dependencies", [&](std::uint64_t on) { on_.push_back(on); });
    flows_.dependencies.first.push_back(static_cast<std::uint32_t>(on_.size()));
    for_ids(word(), "route", [&](std::uint64_t link) {
      const auto known = links_.find(link);
      if (known == links_.end()) {
        return error(fmt::format("flow {}: no earlier line has link {}", *number_of_flow, link));
      }
      flows_.routes.items.push_back(known->second);
    });
    flows_.routes.close();
    if (!word().empty()) { check_end(); }
    if (!numbers_.try_emplace(*number_of_flow, static_cast<std::uint32_t>(flows_.ids.size())).second) {
      error(fmt::format("flow {}: the id is taken by line {}", *number_of_flow, lines_[numbers_.at(*number_of_flow)]));
    }
    flows_.ids.push_back(*number_of_flow);
    flows_.starts.push_back(*start);
    flows_.bytes.push_back(*bytes);
    lines_.push_back(line_number_);
  }

  // The ids of a list "a,b,c"; "-" is the empty list.
  template <class Take>
  void for_ids(std::string_view list, std::string_view what, Take&& take) {
    if (list == "-") { return; }
    if (list.empty()) { return error(fmt::format("no {}; \"-\" means none", what)); }
    for (;;) {
      const std::size_t comma = std::min(list.find(','), list.size());
      const auto found = whole_number(list.substr(0, comma));
      if (!found) {
        return error(
            fmt::format("{} in the {}: valid: whole numbers a,b,c, or - for none", quote(list.substr(0, comma)), what));
      }
      take(*found);
      if (comma == list.size()) { return; }
      list.remove_prefix(comma + 1);
    }
  }

  void resolve_dependencies() {
    flows_.dependencies.items.reserve(on_.size());
    std::size_t flow = 0;
    for (std::size_t i = 0; i < on_.size(); ++i) {
      while (flows_.dependencies.first[flow + 1] <= i) { ++flow; }
      const auto known = numbers_.find(on_[i]);
      if (known == numbers_.end()) {
        if (errors_.diagnostics.size() == kMostErrors) { return; }
        error_at(lines_[flow], fmt::format("flow {}: depends on flow {}, which no line has", flows_.ids[flow], on_[i]));
        continue;
      }
      flows_.dependencies.items.push_back(known->second);
    }
  }

  void check_cycles() {
    const auto cycle = find_cycle(flows_.dependencies);
    if (cycle.empty()) { return; }
    constexpr std::size_t kMostNamed = 6;
    std::string text;
    for (std::size_t i = 0; i < cycle.size() && i < kMostNamed; ++i) {
      text += fmt::format("{} waits for ", flows_.ids[cycle[i]]);
    }
    error_at(lines_[cycle.front()],
             fmt::format("flow {}: cycle of dependencies: {}{}{}", flows_.ids[cycle.front()], text,
                         cycle.size() > kMostNamed ? "... waits for " : "", flows_.ids[cycle.front()]));
  }

  std::string_view text_, line_;
  std::string file_;
  int line_number_ = 0;
  FlowList flows_;
  std::unordered_map<std::uint64_t, std::uint32_t> links_, numbers_;  // by id
  std::vector<std::uint64_t> on_;                                     // ids, as FlowList::dependencies
  std::vector<int> lines_;                                            // by flow
  Failure errors_;
};

}  // namespace

Result<FlowList> read_flows(std::string_view text, const std::string& file) { return FlowReader(text, file).read(); }

}  // namespace orrery::network
