// Recursive descent over the grammar of expression.hpp. An error ends the parsing of its text; other texts are parsed.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/explore/expression.hpp"
#include "orrery/explore/expression_lexer.hpp"

namespace orrery::explore {

namespace {

constexpr std::size_t kLongestText = 4'000;
constexpr int kDeepest = 100;  // nested brackets

// Thrown and caught within one text.
struct Mistake {
  int column = 0;
  std::string message;
};

const std::vector<std::string>& functions() {
  static const std::vector<std::string> names{"divisors", "powers", "min", "max", "gcd"};
  return names;
}

}  // namespace

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, Place place, const ValueKind& kind, const Vocabulary& words)
      : lexer_(text, words.kinds), place_(std::move(place)), kind_(kind), words_(words) {}

  // values = set { "," set } [ "where" any ]
  std::vector<ValueSet> values() {
    std::vector<ValueSet> sets;
    over_sets(sets);
    Expression where;
    if (accept("where")) { where = condition(); }
    if (lexer_.token().kind != Token::Kind::end) { unexpected("the end, or \"where\""); }
    for (ValueSet& set : sets) { set.where = where; }
    return sets;
  }

 private:
  // A parsed part of an expression. Without a kind it is a name whose meaning depends on what it is compared with.
  struct Piece {
    std::int32_t part = -1;
    const ValueKind* kind = nullptr;
    std::string_view name;
    int column = 0;
  };

  [[noreturn]] void unexpected(std::string_view expected) const {
    const Token& token = lexer_.token();
    const std::string found = token.kind == Token::Kind::end ? "ends" : "has " + quote(token.text);
    throw Mistake{token.column, fmt::format("{} where {} is expected", found, expected)};
  }

  bool accept(std::string_view text) {
    if (!lexer_.token().is(text)) { return false; }
    lexer_.advance();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) { unexpected(quote(text)); }
  }

  void over_sets(std::vector<ValueSet>& sets) {
    do { one_set(sets); } while (accept(","));
  }

  void one_set(std::vector<ValueSet>& sets) {
    const Nesting nesting(*this);
    if (accept("[")) {
      over_sets(sets);
      return expect("]");
    }
    ValueSet set;
    set.place = place_at(lexer_.token().column);
    if (accept("divisors")) {
      set.form = ValueSet::Form::divisors;
      set.first = in_brackets(set.last, false);
    } else if (accept("powers")) {
      set.form = ValueSet::Form::powers;
      set.first = in_brackets(set.last, true);
    } else {
      set.first = value(kind_);
      if (accept("..")) {
        set.form = ValueSet::Form::range;
        set.last = value(integers());
      }
    }
    const bool numbers = set.form != ValueSet::Form::one;
    if (numbers && &kind_ != &integers()) {
      throw Mistake{column_of(set.place),
                    fmt::format("gives numbers; the values of the axis are {}", described(kind_))};
    }
    sets.push_back(std::move(set));
  }

  Expression in_brackets(Expression& second, bool may_have_second) {
    expect("(");
    Expression first = value(integers());
    if (may_have_second && accept(",")) { second = value(integers()); }
    expect(")");
    return first;
  }

  Expression value(const ValueKind& kind) {
    return finished([&] { return of_kind(sum(), kind); });
  }
  Expression condition() {
    return finished([&] { return of_kind(any(), booleans()); });
  }

  template <class Read>
  Expression finished(Read read) {
    parts_.clear();
    static_cast<void>(read());
    Expression expression;
    expression.parts_ = parts_;
    expression.place_ = place_;
    return expression;
  }

  Piece any() {
    Piece left = all();
    while (lexer_.token().is("or")) {
      left = joined(Operation::logical_or, left, [&] { return all(); });
    }
    return left;
  }
  Piece all() {
    Piece left = negation();
    while (lexer_.token().is("and")) {
      left = joined(Operation::logical_and, left, [&] { return negation(); });
    }
    return left;
  }
  Piece negation() {
    const int column = lexer_.token().column;
    if (!accept("not")) { return relation(); }
    const Nesting nesting(*this);
    return make(Operation::logical_not, of_kind(negation(), booleans()), {}, booleans(), column);
  }
  template <class Read>
  Piece joined(Operation operation, Piece left, Read right) {
    const int column = lexer_.token().column;
    left = of_kind(left, booleans());
    lexer_.advance();
    return make(operation, left, of_kind(right(), booleans()), booleans(), column);
  }

  Piece relation() {
    static constexpr std::pair<std::string_view, Operation> kRelations[] = {
        {"==", Operation::equal},      {"!=", Operation::not_equal}, {"<", Operation::less},
        {"<=", Operation::less_equal}, {">", Operation::greater},    {">=", Operation::greater_equal}};
    const Piece left = sum();
    for (const auto& [sign, operation] : kRelations) {
      const int column = lexer_.token().column;
      if (!accept(sign)) { continue; }
      return comparison(operation, left, sum(), column);
    }
    return left;
  }

  Piece comparison(Operation operation, Piece left, Piece right, int column) {
    const bool ordered = operation != Operation::equal && operation != Operation::not_equal;
    const ValueKind* const kind = ordered ? &integers() : left.kind != nullptr ? left.kind : right.kind;
    if (kind == nullptr) { throw unknown(left); }
    left = of_kind(left, *kind);  // of two errors the left one is reported
    return make(operation, left, of_kind(right, *kind), booleans(), column);
  }

  Piece sum() {
    Piece left = product();
    while (true) {
      const int column = lexer_.token().column;
      if (accept("+")) {
        left = arithmetic(Operation::add, left, product(), column);
      } else if (accept("-")) {
        left = arithmetic(Operation::subtract, left, product(), column);
      } else {
        return left;
      }
    }
  }

  Piece product() {
    Piece left = factor();
    while (true) {
      const int column = lexer_.token().column;
      if (accept("*")) {
        left = arithmetic(Operation::multiply, left, factor(), column);
      } else if (accept("/")) {
        left = arithmetic(Operation::divide, left, factor(), column);
      } else if (accept("%")) {
        left = arithmetic(Operation::remainder, left, factor(), column);
      } else {
        return left;
      }
    }
  }

  Piece arithmetic(Operation operation, Piece left, Piece right, int column) {
    left = of_kind(left, integers());
    return make(operation, left, of_kind(right, integers()), integers(), column);
  }

  Piece factor() {
    const Nesting nesting(*this);
    const Token token = lexer_.token();
    if (token.kind == Token::Kind::integer) {
      lexer_.advance();
      return literal(token.value, integers(), token.column);
    }
    if (accept("-")) { return make(Operation::negate, of_kind(factor(), integers()), {}, integers(), token.column); }
    if (accept("(")) {
      const Piece inside = any();
      expect(")");
      return inside;
    }
    if (token.kind != Token::Kind::name || is_word_of_grammar(token.text)) { unexpected("a value"); }
    lexer_.advance();
    return lexer_.token().is("(") ? call(token) : name(token);
  }

  static bool is_word_of_grammar(std::string_view text) {
    return text == "where" || text == "and" || text == "or" || text == "not";
  }

  Piece call(const Token& function) {
    const auto operation = function.text == "min"   ? Operation::least
                           : function.text == "max" ? Operation::greatest
                           : function.text == "gcd" ? Operation::common_divisor
                                                    : Operation::literal;
    if (operation == Operation::literal) { throw not_a_function(function); }
    expect("(");
    Piece left = of_kind(sum(), integers());
    do {
      expect(",");
      left = arithmetic(operation, left, sum(), function.column);
    } while (lexer_.token().is(",") && operation != Operation::common_divisor);
    expect(")");
    return left;
  }

  static Mistake not_a_function(const Token& function) {
    if (function.text == "divisors" || function.text == "powers") {
      return {function.column,
              fmt::format("{} gives several values; it cannot be part of a calculation", function.text)};
    }
    const auto near = nearest(function.text, functions());
    const std::string hint =
        near ? fmt::format("did you mean {}?", quote(*near)) : "the functions are " + join(functions(), ", ");
    return {function.column, fmt::format("{} is not a function; {}", quote(function.text), hint)};
  }

  Piece name(const Token& token) {
    for (const Word& word : words_.words) {
      if (word.name != token.text) { continue; }
      if (!word.why_not.empty()) {
        throw Mistake{token.column, fmt::format("{} cannot be used here: {}", quote(token.text), word.why_not)};
      }
      Piece piece = make(Operation::slot, {}, {}, *word.kind, token.column);
      parts_.back().value = word.slot;
      return piece;
    }
    if (const auto truth = booleans().choice(token.text)) { return literal(*truth, booleans(), token.column); }
    Piece open = literal(0, integers(), token.column);
    open.kind = nullptr;
    open.name = token.text;
    return open;
  }

  // Converts a piece to a kind: a name without a kind must be one of the kind's choices.
  Piece of_kind(Piece piece, const ValueKind& kind) {
    if (piece.kind == nullptr) {
      const auto choice = kind.choice(piece.name);
      if (!choice) { throw kind.choices.empty() ? not_a_number(piece) : not_a_choice(piece, kind); }
      parts_[static_cast<std::size_t>(piece.part)].value = *choice;
      piece.kind = &kind;
    }
    if (piece.kind != &kind) {
      throw Mistake{piece.column, fmt::format("is {} where {} is expected", described(*piece.kind), described(kind))};
    }
    return piece;
  }

  static std::string described(const ValueKind& kind) {
    const bool basic = &kind == &integers() || &kind == &booleans();
    return basic ? std::string(kind.name) : fmt::format("a choice of {}", kind.name);
  }

  Mistake unknown(const Piece& piece) const {
    std::vector<std::string> names;
    for (const Word& word : words_.words) { names.push_back(word.name); }
    for (const ValueKind* kind : words_.kinds) {
      names.insert(names.end(), kind->choices.begin(), kind->choices.end());
    }
    const auto near = nearest(piece.name, names);
    return {piece.column, near
                              ? fmt::format("{} is not a known name; did you mean {}?", quote(piece.name), quote(*near))
                              : fmt::format("{} is not a known name", quote(piece.name))};
  }

  // An unknown name where a number is expected: a choice of some axis, or a misspelling.
  Mistake not_a_number(const Piece& piece) const {
    for (const ValueKind* kind : words_.kinds) {
      if (!kind->choices.empty() && kind->choice(piece.name)) {
        return {piece.column, fmt::format("{} is {} where {} is expected", quote(piece.name), described(*kind),
                                          described(integers()))};
      }
    }
    return unknown(piece);
  }

  static Mistake not_a_choice(const Piece& piece, const ValueKind& kind) {
    const std::vector<std::string> choices(kind.choices.begin(), kind.choices.end());
    const auto near = nearest(piece.name, choices);
    const std::string hint = near ? fmt::format("; did you mean {}?", quote(*near)) : "";
    return {piece.column,
            fmt::format("{} is not valid; {} is one of {}{}", quote(piece.name), kind.name, join(choices, ", "), hint)};
  }

  Piece literal(std::int64_t value, const ValueKind& kind, int column) {
    Piece piece = make(Operation::literal, {}, {}, kind, column);
    parts_.back().value = value;
    return piece;
  }

  Piece make(Operation operation, const Piece& left, const Piece& right, const ValueKind& kind, int column) {
    parts_.push_back({operation, 0, left.part, right.part, column});
    return {static_cast<std::int32_t>(parts_.size()) - 1, &kind, {}, column};
  }

  // Counts nested brackets and signs.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) {
        throw Mistake{parser_.lexer_.token().column, fmt::format("has more than {} nested brackets", kDeepest)};
      }
    }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

  [[nodiscard]] Place place_at(int column) const {
    Place place = place_;
    if (place.column > 0) { place.column += column; }
    return place;
  }
  [[nodiscard]] int column_of(const Place& place) const { return place.column - place_.column; }

  Lexer lexer_;
  Place place_;
  const ValueKind& kind_;
  const Vocabulary& words_;
  std::vector<Expression::Part> parts_;
  int depth_ = 0;
};

namespace {

// Place of the text's first character.
Place text_place(const config::Node& node) {
  Place place = node.place;
  if (node.quoted && place.column > 0) { ++place.column; }
  return place;
}

// Choices may contain characters that names cannot (zero-bubble, 1f1b), so a misspelled one would give a misleading
// error.
void check_spelling(std::string_view text, const ValueKind& kind) {
  const auto belongs = [](char c) { return c == '-' || c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool is_one_word = !text.empty() && std::all_of(text.begin(), text.end(), belongs);
  const bool has_other_characters = text.find('-') != std::string_view::npos || (!text.empty() && text.front() <= '9');
  if (kind.choices.empty() || !is_one_word || !has_other_characters || kind.choice(text)) { return; }
  const std::vector<std::string> choices(kind.choices.begin(), kind.choices.end());
  const auto near = nearest(text, choices);
  throw Mistake{0, fmt::format("is not one of {}{}", join(choices, ", "),
                               near ? fmt::format("; did you mean {}?", quote(*near)) : "")};
}

std::vector<ValueSet> parse_text(const config::Node& node, const ValueKind& kind, const Vocabulary& words) {
  if (node.scalar.size() > kLongestText) { throw Mistake{0, "is longer than 4000 characters"}; }
  if (node.scalar.find('\n') != std::string::npos) { throw Mistake{0, "must be on one line"}; }
  check_spelling(node.scalar, kind);
  return ExpressionParser(node.scalar, text_place(node), kind, words).values();
}

void parse_item(const config::Node& node, const ValueKind& kind, const Vocabulary& words, AxisValues& values,
                std::vector<Diagnostic>& complaints) {
  if (!node.is_scalar() || node.kind == config::Kind::null) {
    complaints.push_back({node.place, fmt::format("{}; an axis needs a value, an expression, or a list of them",
                                                  node.is_scalar() ? "has no value" : "is a list or a mapping")});
    return;
  }
  try {
    for (auto& set : parse_text(node, kind, words)) { values.sets.push_back(std::move(set)); }
  } catch (const Mistake& mistake) {
    Place place = text_place(node);
    if (place.column > 0) { place.column += mistake.column; }
    complaints.push_back({place, fmt::format("{}: {}", quote(node.scalar), mistake.message)});
  }
}

}  // namespace

Result<AxisValues> parse_values(const config::Node& node, const ValueKind& kind, const Vocabulary& words) {
  AxisValues values;
  std::vector<Diagnostic> complaints;
  if (node.kind == config::Kind::sequence) {
    for (const config::Node& item : node.items) { parse_item(item, kind, words, values, complaints); }
    if (node.items.empty()) { complaints.push_back({node.place, "has no values; an axis needs at least one"}); }
  } else {
    parse_item(node, kind, words, values, complaints);
  }
  if (!complaints.empty()) { return tl::make_unexpected(Failure{std::move(complaints)}); }
  return values;
}

}  // namespace orrery::explore
