// YAML through yaml-cpp's event interface: its Node loses the places of keys and expands nothing under a limit.
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "orrery/config/node.hpp"
#include "orrery/config/source_text.hpp"
#include "orrery/config/tree_builder.hpp"
#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

Spot spot_of(const YAML::Mark& mark) { return mark.is_null() ? Spot{} : Spot{mark.line + 1, mark.column + 1}; }

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

// Only what JSON can say as well is accepted; anything else is more likely a template or a pickle than a config.
bool is_known_tag(std::string_view tag) {
  if (tag.empty() || tag == "?" || tag == "!") { return true; }
  if (!tag.starts_with(kCoreTag)) { return false; }
  tag.remove_prefix(kCoreTag.size());
  for (const std::string_view known : {"str", "int", "float", "bool", "null", "map", "seq"}) {
    if (tag == known) { return true; }
  }
  return false;
}

void expect_known_tag(const std::string& tag, Spot spot) {
  if (!is_known_tag(tag)) { throw TreeStop(spot, fmt::format("YAML tag {} is not supported", quote(tag))); }
}

class YamlEvents : public YAML::EventHandler {
 public:
  YamlEvents(std::string file, bool is_rest) : builder_(std::move(file)), is_rest_(is_rest) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (is_rest_) {
      throw TreeStop(spot_of(mark), "a second YAML document starts here, or this line does not belong to the first");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.expects_key()) { throw TreeStop(spot_of(mark), "a key is missing before \":\""); }
    builder_.scalar(Kind::null, {}, false, spot_of(mark));
    if (anchor != 0) { anchors_.emplace(anchor, Node{}); }
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) { throw TreeStop(spot_of(mark), "an alias stands inside the value it repeats"); }
    const Node& original = found->second;
    if (!builder_.expects_key()) {
      builder_.copy(original, spot_of(mark));
    } else if (original.is_scalar() && original.kind != Kind::null) {
      builder_.key(original.scalar, spot_of(mark));
    } else {
      refuse_key(mark);
    }
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const Spot spot = spot_of(mark);
    expect_known_tag(tag, spot);
    const bool as_text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (first_ill_formed(value) != std::string::npos) {  // yaml-cpp turns these two into Latin-1
      throw TreeStop(spot, R"(the escapes "\_" and "\N" are not supported; write "\u00a0" or "\u0085")");
    }
    if (tag == "!") { last_quoted_ = spot; }
    const Kind kind = as_text ? Kind::text : plain_kind(value);
    const bool is_key = builder_.expects_key();
    if (is_key) {
      builder_.key(value, spot);
    } else {
      builder_.scalar(kind, value, as_text, spot);
    }
    if (anchor == 0) { return; }
    Node node;
    node.kind = kind;
    node.scalar = value;
    node.quoted = as_text;
    node.place = {{}, spot.line, spot.column, {}};
    remember(anchor, std::move(node), spot);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::mapping, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Result<Node> finish() && { return std::move(builder_).finish(); }
  [[nodiscard]] Spot last_quoted() const { return last_quoted_; }

 private:
  [[noreturn]] static void refuse_key(const YAML::Mark& mark) {
    throw TreeStop(spot_of(mark), "a key must be text, not a list or a mapping (is a bracket left open?)");
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    expect_known_tag(tag, spot_of(mark));
    if (builder_.expects_key()) { refuse_key(mark); }
    builder_.begin(kind, spot_of(mark));
    open_anchors_.emplace_back(anchor, spot_of(mark));
  }

  void close() {
    const Node& node = builder_.end();
    const auto [anchor, spot] = open_anchors_.back();
    open_anchors_.pop_back();
    if (anchor != 0) { remember(anchor, node, spot); }
  }

  // An anchor may be defined again; the newest definition counts. yaml-cpp numbers each definition afresh.
  void remember(YAML::anchor_t anchor, Node node, Spot spot) {
    builder_.charge(node, spot);
    anchors_.insert_or_assign(anchor, std::move(node));
  }

  TreeBuilder builder_;
  bool is_rest_;      // of a file whose one document has been read
  Spot last_quoted_;  // the last scalar in quotes; line 0 when there is none
  std::vector<std::pair<YAML::anchor_t, Spot>> open_anchors_;
  std::map<YAML::anchor_t, Node> anchors_;
};

// yaml-cpp takes the end of the file for the end of an open quote when a line break stands before it. Such a quote
// swallows all that follows, so it is enough to look at the last one.
bool is_closed(std::string_view text, Spot spot) {
  std::size_t at = 0;
  for (int line = 1; line < spot.line; ++line) { at = text.find('\n', at) + 1; }
  at += static_cast<std::size_t>(spot.column) - 1;
  at = text.find_first_of("\"'", at);  // an anchor may stand before
  if (at == std::string_view::npos) { return true; }
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    const bool doubled = quote == '\'' && text.substr(at).starts_with("''");
    const bool escaped = quote == '"' && text[at] == '\\';
    if (doubled || escaped) {
      ++at;
    } else if (text[at] == quote) {
      return true;
    }
  }
  return false;
}

Result<Node> parse_documents(std::string_view text, const std::string& file) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  YamlEvents events(file, false);
  if (!parser.HandleNextDocument(events)) { return fail(Place{file, 0, 0, {}}, "is empty"); }
  const Spot quote = events.last_quoted();
  if (quote.line > 0 && !is_closed(text, quote)) {
    throw TreeStop(quote, "not valid YAML: this quote is never closed");
  }
  YamlEvents rest(file, true);
  (void)parser.HandleNextDocument(rest);
  return std::move(events).finish();
}

}  // namespace

Result<Node> parse_yaml(std::string_view text, std::string file) {
  ORRERY_TRY(checked, checked_text(text, file));
  try {
    return parse_documents(checked, file);
  } catch (const TreeStop& stop) {
    return fail(Place{file, stop.spot.line, stop.spot.column, {}}, stop.what());
  } catch (const YAML::Exception& exception) {
    const Spot spot = spot_of(exception.mark);
    return fail(Place{std::move(file), spot.line, spot.column, {}}, "not valid YAML: " + exception.msg);
  }
}

}  // namespace orrery::config
