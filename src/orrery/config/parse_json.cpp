// JSON through nlohmann's event interface. Its events carry no places; since every event belongs to the next token of
// the text, a cursor that walks over the tokens finds them.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/config/node.hpp"
#include "orrery/config/source_text.hpp"
#include "orrery/config/tree_builder.hpp"
#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

// Walks over the tokens of a text whose part up to the current token is known to be valid JSON.
class TokenCursor {
 public:
  explicit TokenCursor(std::string_view text) : text_(text) {}

  // The next token that is not punctuation between values.
  [[nodiscard]] std::string_view next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n,:").find(text_[at_]) != std::string_view::npos) {
      advance();
    }
    spot_ = {line_, static_cast<int>(at_ - line_start_) + 1};
    const std::size_t start = at_;
    const std::size_t stop = start + token_length(text_.substr(start));
    while (at_ < stop) { advance(); }
    return text_.substr(start, stop - start);
  }
  [[nodiscard]] Spot spot() const { return spot_; }  // where the last token starts

 private:
  static std::size_t token_length(std::string_view rest) {
    if (rest.empty()) { return 0; }
    if (rest.front() == '"') {
      std::size_t i = 1;
      while (i < rest.size() && rest[i] != '"') { i += rest[i] == '\\' ? 2 : 1; }
      return std::min(i + 1, rest.size());
    }
    if (std::string_view("{}[]").find(rest.front()) != std::string_view::npos) { return 1; }
    return std::min(rest.find_first_of(" \t\r\n,:{}[]\""), rest.size());
  }

  void advance() {
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t line_start_ = 0;
  Spot spot_;
};

// The reason inside nlohmann's message, whose first part repeats the place.
std::string reason_of(std::string_view what) {
  constexpr std::string_view kSyntax = "syntax error ";
  constexpr std::size_t kLongest = 300;
  const std::size_t at = what.find(kSyntax);
  std::string reason(at == std::string_view::npos ? what : what.substr(at + kSyntax.size()));
  const bool cut_off = reason.find("unexpected end of input") != std::string::npos ||
                       reason.find("missing closing quote") != std::string::npos;
  if (reason.size() > kLongest) { reason = reason.substr(0, kLongest) + "..."; }
  return cut_off ? reason + " (is the file cut off?)" : reason;
}

class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonEvents(std::string_view text, std::string file)
      : text_(text), cursor_(text), builder_(file), file_(std::move(file)) {}

  bool null() override { return plain(Kind::null); }
  bool boolean(bool) override { return plain(Kind::boolean); }
  bool number_integer(number_integer_t) override { return plain(Kind::integer); }
  bool number_unsigned(number_unsigned_t) override { return plain(Kind::integer); }
  bool number_float(number_float_t, const string_t& token) override {
    return plain(token.find_first_of(".eE") == string_t::npos ? Kind::integer : Kind::real);
  }
  bool string(string_t& value) override {
    (void)cursor_.next();
    builder_.scalar(Kind::text, std::move(value), true, cursor_.spot());
    return true;
  }
  bool binary(binary_t&) override { return false; }  // never in text
  bool key(string_t& value) override {
    (void)cursor_.next();
    builder_.key(std::move(value), cursor_.spot());
    return true;
  }
  bool start_object(std::size_t) override { return open(Kind::mapping); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Kind::sequence); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    const Spot spot = spot_at(text_, position > 0 ? position - 1 : 0);
    std::string message = "not valid JSON: ";
    if (error.id == kNumberOverflow) {
      message = fmt::format("{} is too large for a number", quote(token));
    } else if (is_not_a_number(position)) {
      message += "JSON has no NaN or Infinity; write null or a number";
    } else {
      message += reason_of(error.what());
    }
    failure_ = Failure{{{Place{file_, spot.line, spot.column, {}}, std::move(message)}}};
    return false;
  }

  [[nodiscard]] Result<Node> finish() && {
    if (!failure_.diagnostics.empty()) { return tl::make_unexpected(std::move(failure_)); }
    return std::move(builder_).finish();
  }

 private:
  bool plain(Kind kind) {
    const std::string_view token = cursor_.next();
    builder_.scalar(kind, kind == Kind::null ? std::string() : std::string(token), false, cursor_.spot());
    return true;
  }
  bool open(Kind kind) {
    (void)cursor_.next();
    builder_.begin(kind, cursor_.spot());
    return true;
  }
  bool close() {
    (void)cursor_.next();
    (void)builder_.end();
    return true;
  }

  // Python and JavaScript programs write these; the parser stops within the word.
  [[nodiscard]] bool is_not_a_number(std::size_t position) const {
    const std::size_t start = position > 2 ? position - 2 : 0;
    const std::string_view near = text_.substr(std::min(start, text_.size()), 10);
    for (const std::string_view word : {"NaN", "Infinity"}) {
      if (near.find(word) <= 1) { return true; }
    }
    return false;
  }

  std::string_view text_;
  TokenCursor cursor_;
  TreeBuilder builder_;
  std::string file_;
  Failure failure_;
};

}  // namespace

Result<Node> parse_json(std::string_view text, std::string file) {
  ORRERY_TRY(checked, checked_text(text, file));
  try {
    JsonEvents events(checked, file);
    nlohmann::json::sax_parse(checked.begin(), checked.end(), &events);
    return std::move(events).finish();
  } catch (const TreeStop& stop) {
    return fail(Place{std::move(file), stop.spot.line, stop.spot.column, {}}, stop.what());
  }
}

}  // namespace orrery::config
