#include "orrery/trace/foreign.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include <fmt/format.h>

#include "orrery/trace/decode.hpp"
#include "orrery/trace/framing.hpp"
#include "orrery/trace/json_lines.hpp"
#include "orrery/trace/text_workload.hpp"

namespace orrery::trace {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Whether the only control characters are blanks and line ends. Chakra nodes have others: the tags of their fields.
bool is_text(std::string_view start) {
  return std::none_of(start.begin(), start.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < ' ' && kBlanks.find(c) == std::string_view::npos) || byte == 0x7F;
  });
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

// The keys of a JSON object, or of the objects in a list, as far as the bytes reach.
class JsonOutline {
 public:
  explicit JsonOutline(std::string_view text) : rest_(without_blanks(text)) {
    is_list_ = rest_.starts_with('[');
    while (!rest_.empty() && !ended_) { next(); }
  }

  [[nodiscard]] bool is_json() const { return !keys_.empty(); }
  [[nodiscard]] bool is_list() const { return is_list_; }
  [[nodiscard]] std::string_view schema() const { return schema_; }
  [[nodiscard]] bool has_any(std::initializer_list<std::string_view> names) const {
    return std::find_first_of(keys_.begin(), keys_.end(), names.begin(), names.end()) != keys_.end();
  }

 private:
  void next() {
    const char c = rest_.front();
    if (c == '"') { return string(); }
    if (c == '{' || c == '[') { ++depth_; }
    if (c == '}' || c == ']') { --depth_; }
    ended_ = depth_ <= 0 || (keys_.empty() && c != '{' && c != '[');
    rest_ = without_blanks(rest_.substr(1));
  }

  void string() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') { end += rest_[end] == '\\' ? 2 : 1; }
    const std::string_view text = rest_.substr(1, end - 1);
    rest_ = without_blanks(rest_.substr(std::min(end + 1, rest_.size())));
    const bool is_key = rest_.starts_with(':');
    ended_ = depth_ <= 0 || (keys_.empty() && (!is_key || !is_text(text)));
    if (ended_ || depth_ != (is_list_ ? 2 : 1)) { return; }
    if (is_key) {
      keys_.push_back(text);
    } else if (keys_.back() == "schema" && schema_.empty()) {
      schema_ = text;
    }
  }

  std::string_view rest_;
  std::vector<std::string_view> keys_;
  std::string_view schema_;
  int depth_ = 0;
  bool is_list_ = false;
  bool ended_ = false;
};

ProfileFormat format_of(const JsonOutline& json) {
  const bool is_chrome = json.is_list() ? json.has_any({"ph"}) : json.has_any({"traceEvents", "schemaVersion"});
  if (is_chrome) { return ProfileFormat::kineto; }
  if (!json.schema().empty() && json.has_any({"nodes", "pid", "start_ts"}) && !json.schema().starts_with("orrery.")) {
    return ProfileFormat::execution_trace;
  }
  return ProfileFormat::none;
}

std::optional<std::string> foreign_json(std::string_view start) {
  const JsonOutline json(start);
  if (!json.is_json()) { return std::nullopt; }
  switch (format_of(json)) {
    case ProfileFormat::kineto:
      return "is a profile of PyTorch (Kineto, a Chrome trace in JSON), not a Chakra trace; \"orrery trace stats\" "
             "reads it, "
             "and \"orrery trace import\" makes a Chakra trace of it";
    case ProfileFormat::execution_trace:
      return fmt::format(
          "is a PyTorch execution trace (schema {}), not a Chakra trace; \"orrery trace import\" makes a Chakra trace "
          "of "
          "it, and \"orrery trace link\" joins it with the Kineto profile of the same process",
          json.schema());
    case ProfileFormat::none: break;
  }
  if (json.has_any({"workload_graph"})) {
    return "is a Chakra graph in JSON (\"workload_graph\"), which no command reads; \"orrery trace info\" and others "
           "read Chakra graphs in protobuf (.et) and as JSON lines (.jsonl)";
  }
  if (json.schema().starts_with("orrery.") && json.schema() != kJsonLinesSchema) {
    return fmt::format("is a result of orrery ({}), not a trace; no command reads it again", json.schema());
  }
  if (json.has_any({"model_type", "architectures"})) {
    return "is a model configuration of Hugging Face; \"orrery estimate --model\" and other commands with --model read "
           "it";
  }
  if (json.has_any({"all-reduce-implementation", "scheduling-policy"})) {
    return "is a system configuration of ASTRA-sim; \"orrery simulate --system-configuration\" reads it";
  }
  const bool may_be_node = json.has_any({"id", "name", "type", "data_deps", "ctrl_deps", "attr", "schema"});
  if (are_json_lines(start) && may_be_node) { return std::nullopt; }
  return "is JSON, but neither a supported trace format nor JSON lines, which have one node per line: {\"id\":1,…}";
}

bool is_archive(std::string_view start) {
  constexpr std::size_t kTarMagic = 257;  // its place in the first header
  return start.starts_with("PK\x03\x04") || (start.size() > kTarMagic && start.substr(kTarMagic).starts_with("ustar"));
}

// A trace without nodes may consist of characters only: its one record is the metadata.
bool is_chakra_metadata(std::string_view start) {
  const auto frame = frame_of(start);
  return frame && frame->record_bytes <= start.size() - frame->length_bytes &&
         is_metadata(start.substr(frame->length_bytes, static_cast<std::size_t>(frame->record_bytes)));
}

}  // namespace

ProfileFormat profile_format(std::string_view start) { return format_of(JsonOutline(start)); }

Result<ProfileFormat> profile_format_of_file(const std::string& path) {
  ORRERY_TRY(source, open_source(path));
  return profile_format(source->ahead(kForeignBytes).substr(0, kForeignBytes));
}

std::optional<std::string> foreign_format(std::string_view start) {
  if (auto json = foreign_json(start)) { return json; }
  if (is_archive(start)) { return "is an archive (tar or zip); extract the traces first"; }
  if (is_text_workload(start)) {
    return "is a text workload of ASTRA-sim 1.0; \"orrery trace convert FILE --dimensions N,... --out PREFIX\" writes "
           "the trace of each of its ranks";
  }
  if (!start.empty() && is_text(start) && !are_json_lines(start) && !is_chakra_metadata(start)) {
    return "is a text file; a trace is a Chakra graph in protobuf (.et) or JSON lines (.jsonl)";
  }
  return std::nullopt;
}

Result<std::string> kind_of_file(const std::string& path) {
  ORRERY_TRY(source, open_source(path));
  const auto foreign = foreign_format(source->ahead(kForeignBytes).substr(0, kForeignBytes));
  return foreign.value_or(
      "is a Chakra trace (protobuf or JSON lines), or damaged; \"orrery trace info\" and \"orrery simulate "
      "--workload\" read such traces");
}

Result<void> refuse_foreign(Source& source, const std::string& name) {
  const auto format = foreign_format(source.ahead(kForeignBytes).substr(0, kForeignBytes));
  if (format) { return fail(Place{name, 0, 0, {}}, *format); }
  return {};
}

}  // namespace orrery::trace
