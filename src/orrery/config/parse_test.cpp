// Both parsers: what the tree holds, where things are, and what is said when a text is wrong.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/config/node.hpp"

namespace orrery::config::parse_test {
namespace {

Node yaml(std::string_view text) {
  auto node = parse_yaml(text, "a.yaml");
  EXPECT_TRUE(node.has_value()) << (node ? "" : node.error().text());
  return node.value_or(Node{});
}

Node json(std::string_view text) {
  auto node = parse_json(text, "a.json");
  EXPECT_TRUE(node.has_value()) << (node ? "" : node.error().text());
  return node.value_or(Node{});
}

std::string yaml_error(std::string_view text) {
  const auto node = parse_yaml(text, "a.yaml");
  EXPECT_FALSE(node.has_value());
  return node ? "" : node.error().text();
}

std::string json_error(std::string_view text) {
  const auto node = parse_json(text, "a.json");
  EXPECT_FALSE(node.has_value());
  return node ? "" : node.error().text();
}

TEST(parse_yaml, plain_scalars_follow_the_core_schema) {
  const Node root = yaml("[~, null, true, false, 12, -3, +4, 1.5, 1e9, .5, 5., .inf, -.nan, yes, 0x10, 80 GiB, 1_000]");
  const std::vector<Kind> kinds{Kind::null,    Kind::null, Kind::boolean, Kind::boolean, Kind::integer, Kind::integer,
                                Kind::integer, Kind::real, Kind::real,    Kind::real,    Kind::real,    Kind::real,
                                Kind::real,    Kind::text, Kind::text,    Kind::text,    Kind::text};
  ASSERT_EQ(root.items.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) { EXPECT_EQ(root.items[i].kind, kinds[i]) << root.items[i].scalar; }
  EXPECT_EQ(root.items[6].scalar, "+4");
  EXPECT_EQ(root.items[15].scalar, "80 GiB");
}

TEST(parse_yaml, quotes_and_str_tags_make_text) {
  const Node root = yaml("['12', \"true\", !!str 1.5, !!int 3]");
  for (const std::size_t i : {0U, 1U, 2U}) {
    EXPECT_EQ(root.items[i].kind, Kind::text);
    EXPECT_TRUE(root.items[i].quoted);
  }
  EXPECT_EQ(root.items[3].kind, Kind::integer);
}

TEST(parse_yaml, knows_where_every_key_and_value_is) {
  const Node root = yaml(
      "name: x\n"
      "network:\n"
      "  - bandwidth: 400 Gb/s\n"
      "    a/b~c:   1\n");
  const Node& link = root.find("network")->items.at(0);
  EXPECT_EQ(link.place, (Place{"a.yaml", 3, 5, "/network/0"}));
  EXPECT_EQ(link.find("bandwidth")->place, (Place{"a.yaml", 3, 16, "/network/0/bandwidth"}));
  EXPECT_EQ(link.member("a/b~c")->place(), (Place{"a.yaml", 4, 5, "/network/0/a~1b~0c"}));
  EXPECT_EQ(link.find("a/b~c")->place, (Place{"a.yaml", 4, 14, "/network/0/a~1b~0c"}));
}

TEST(parse_json, knows_where_every_key_and_value_is) {
  const Node root = json("{\"name\": \"x\",\n  \"network\" : [\n  {\"b\\\"w\": -1.5e3 , \"c\":[]}, null ]\n}");
  EXPECT_EQ(root.place, (Place{"a.json", 1, 1, ""}));
  const Node& network = *root.find("network");
  EXPECT_EQ(root.member("network")->place(), (Place{"a.json", 2, 3, "/network"}));
  EXPECT_EQ(network.place, (Place{"a.json", 2, 15, "/network"}));
  EXPECT_EQ(network.items.at(0).member("b\"w")->place(), (Place{"a.json", 3, 4, "/network/0/b\"w"}));
  EXPECT_EQ(network.items[0].find("b\"w")->place, (Place{"a.json", 3, 12, "/network/0/b\"w"}));
  EXPECT_EQ(network.items[0].find("b\"w")->scalar, "-1.5e3");
  EXPECT_EQ(network.items[0].find("c")->place, (Place{"a.json", 3, 25, "/network/0/c"}));
  EXPECT_EQ(network.items.at(1).place, (Place{"a.json", 3, 30, "/network/1"}));
}

TEST(parse_json, resolves_escapes) {
  const Node root = json(R"(["a\"\\\/\b\n\t\u00e9\ud83d\ude00", "\\"])");
  EXPECT_EQ(root.items[0].scalar, "a\"\\/\b\n\t\u00e9\U0001F600");
  EXPECT_EQ(root.items[1].scalar, "\\");
  EXPECT_EQ(root.items[1].place.column,
            37);  // one bracket, 32 characters and two quotes of the first string, comma, space
}

TEST(parse_json, keeps_numbers_as_written) {
  const Node root = json("[0, -7, 123456789012345678901234567890, 1.50, 1E5, true, false, null]");
  EXPECT_EQ(root.items[2].kind, Kind::integer);
  EXPECT_EQ(root.items[2].scalar, "123456789012345678901234567890");
  EXPECT_EQ(root.items[3].scalar, "1.50");
  EXPECT_EQ(root.items[4].kind, Kind::real);
  EXPECT_EQ(root.items[5].scalar, "true");
  EXPECT_EQ(root.items[7].kind, Kind::null);
}

TEST(parse, one_tree_for_both_formats) {
  const std::string_view text = R"({"a": [1, 2.5, true, null, "x"], "b": {"c": {}}})";
  EXPECT_EQ(yaml(text), json(text));
}

TEST(parse, a_byte_order_mark_is_skipped) {
  EXPECT_EQ(json("\xEF\xBB\xBF[1]").items.size(), 1U);
  EXPECT_EQ(yaml("\xEF\xBB\xBF[1]").items.size(), 1U);
}

TEST(parse, a_second_byte_order_mark_is_an_error) {
  EXPECT_EQ(json_error("\xEF\xBB\xBF\xEF\xBB\xBF[1]"), "a.json:1:1: starts with two byte order marks");
  EXPECT_EQ(yaml_error("\xEF\xBB\xBF\xEF\xBB\xBF[1]"), "a.yaml:1:1: starts with two byte order marks");
}

TEST(parse, duplicate_keys_are_all_named) {
  EXPECT_EQ(yaml_error("a: 1\nb: {c: 1, c: 2}\na: 3\n"),
            "a.yaml:2:11 /b/c: key \"c\" is given twice; first in line 2\n"
            "a.yaml:3:1 /a: key \"a\" is given twice; first in line 1");
  EXPECT_EQ(json_error("{\"a\": 1,\n \"a\": {\"x\": 1}}"), "a.json:2:2 /a: key \"a\" is given twice; first in line 1");
}

TEST(parse, a_text_without_content_is_empty) {
  for (const std::string_view text : {"", "  \n\t", "\xEF\xBB\xBF"}) {
    EXPECT_EQ(yaml_error(text), "a.yaml: is empty");
    EXPECT_EQ(json_error(text), "a.json: is empty");
  }
  EXPECT_EQ(yaml_error("# only a comment\n"), "a.yaml: is empty");
}

TEST(parse, binary_and_other_encodings_are_refused) {
  EXPECT_EQ(yaml_error(std::string_view("ab\0c", 4)), "a.yaml: is not a text file (a zero byte at offset 2)");
  EXPECT_EQ(json_error("{\n \"a\": \"\xff\"}"), "a.json:2:8: is not UTF-8 text (byte 0xff)");
  EXPECT_EQ(yaml_error("caf\xe9"), "a.yaml:1:4: is not UTF-8 text (byte 0xe9)");  // Latin-1
  EXPECT_EQ(yaml_error("sixteen or more: \xe9"), "a.yaml:1:18: is not UTF-8 text (byte 0xe9)");
  EXPECT_EQ(yaml_error("caf\xc3\xa9 and more: \xff"), "a.yaml:1:17: is not UTF-8 text (byte 0xff)");
  EXPECT_EQ(yaml_error("\xed\xa0\x80"), "a.yaml:1:1: is not UTF-8 text (byte 0xed)");  // a surrogate
  EXPECT_EQ(yaml_error("\xc0\xaf"), "a.yaml:1:1: is not UTF-8 text (byte 0xc0)");      // overlong
}

TEST(parse_json, a_syntax_error_has_line_and_column) {
  EXPECT_EQ(json_error("{\"a\": 1,\n \"b\" 2}"),
            "a.json:2:6: not valid JSON: while parsing object separator - unexpected number literal; expected ':'");
  EXPECT_EQ(json_error("{\"a\": [1, 2"),
            "a.json:1:12: not valid JSON: while parsing array - unexpected end of input; expected ']' (is the file cut "
            "off?)");
  EXPECT_EQ(json_error("[1] 2"),
            "a.json:1:5: not valid JSON: while parsing value - unexpected number literal; expected end of input");
}

TEST(parse_json, nan_and_infinity_are_named) {
  const std::string reason = "not valid JSON: JSON has no NaN or Infinity; write null or a number";
  EXPECT_EQ(json_error("[NaN]"), "a.json:1:2: " + reason);
  EXPECT_EQ(json_error("{\"a\": Infinity}"), "a.json:1:7: " + reason);
  EXPECT_EQ(json_error("{\"a\": -Infinity}"), "a.json:1:8: " + reason);
  EXPECT_EQ(json_error("[1, 1e999]"), "a.json:1:9: \"1e999\" is too large for a number");
}

TEST(parse_json, a_huge_broken_token_is_not_repeated_in_full) {
  EXPECT_LT(json_error("[\"" + std::string(100'000, 'x')).size(), 500U);
}

TEST(parse_yaml, a_syntax_error_has_line_and_column) {
  EXPECT_EQ(yaml_error("a: [1, 2\nb: 3\n"), "a.yaml:2:2: not valid YAML: end of sequence flow not found");
  EXPECT_EQ(yaml_error("a: 1\n b: 2\n"), "a.yaml:2:3: not valid YAML: illegal map value");
  EXPECT_EQ(yaml_error("a: *b"), "a.yaml:1:4: not valid YAML: the referenced anchor is not defined");
}

TEST(parse_yaml, every_scalar_is_utf8) {
  EXPECT_EQ(yaml(R"("\u00a0\x41\t")").scalar, "\u00a0A\t");
  EXPECT_EQ(yaml_error(R"(a: "x\_y")"),
            R"(a.yaml:1:4: the escapes "\_" and "\N" are not supported; write "\u00a0" or "\u0085")");
}

TEST(parse_yaml, more_than_one_document_is_refused) {
  const std::string reason = "a second YAML document starts here, or this line does not belong to the first";
  EXPECT_EQ(yaml_error("a: 1\n---\nb: 2\n"), "a.yaml:2:1: " + reason);
  EXPECT_EQ(yaml_error("- 1\nb: 2\n"), "a.yaml:2:1: " + reason);
}

TEST(parse_yaml, an_open_quote_is_found_where_it_starts) {
  EXPECT_EQ(yaml_error("a: 1\nb: 'x\nc: 2\n"), "a.yaml:2:4: not valid YAML: this quote is never closed");
  EXPECT_EQ(yaml_error("a: &x \"x\\\"\nc: 2\n"), "a.yaml:1:4: not valid YAML: this quote is never closed");
  EXPECT_EQ(yaml_error("a: 'it''s\n"), "a.yaml:1:4: not valid YAML: this quote is never closed");
  EXPECT_EQ(yaml("a: 'it''s'\n").find("a")->scalar, "it's");
  EXPECT_EQ(yaml("a: \"\\\"'\"  # it's\n").find("a")->scalar, "\"'");
}

TEST(parse_yaml, keys_are_text) {
  const std::string reason = "a key must be text, not a list or a mapping (is a bracket left open?)";
  EXPECT_EQ(yaml_error("[1, 2]: 3\n"), "a.yaml:1:1: " + reason);
  EXPECT_EQ(yaml_error("{{ x }}: 3\n"), "a.yaml:1:1: " + reason);
  EXPECT_EQ(yaml_error("[1, 2"), "a.yaml:1:1: " + reason);
  EXPECT_EQ(yaml_error(": 3\n"), "a.yaml:1:1: a key is missing before \":\"");
  EXPECT_EQ(yaml("8: x").members.at(0).key, "8");
}

TEST(parse_yaml, foreign_tags_are_refused) {
  EXPECT_EQ(yaml_error("a: !python/object x\n"), "a.yaml:1:4: YAML tag \"!python/object\" is not supported");
  EXPECT_EQ(yaml_error("a: !!binary aGk=\n"), "a.yaml:1:4: YAML tag \"tag:yaml.org,2002:binary\" is not supported");
}

TEST(parse_yaml, an_alias_repeats_the_value_under_its_own_path) {
  const Node root = yaml("base: &base {x: 1}\nlist: [*base, 2]\nk: &k name\n*k : 5\n");
  const Node& copy = root.find("list")->items.at(0);
  EXPECT_EQ(copy, *root.find("base"));
  EXPECT_EQ(copy.find("x")->place, (Place{"a.yaml", 1, 17, "/list/0/x"}));
  EXPECT_EQ(root.find("name")->scalar, "5");
}

TEST(parse_yaml, an_alias_inside_its_own_value_is_refused) {
  EXPECT_EQ(yaml_error("a: &a [1, *a]\n"), "a.yaml:1:11: an alias stands inside the value it repeats");
}

TEST(parse_yaml, an_alias_bomb_is_refused) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {  // 10^10 values if it went off
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) { text += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1); }
    text += "]\n";
  }
  EXPECT_NE(yaml_error(text).find("holds more than 1000000 values"), std::string::npos);
}

TEST(parse_yaml, a_text_bomb_is_refused) {
  std::string text = "a: &a " + std::string(1'000'000, 'x') + "\nb: [";
  for (int i = 0; i < 1000; ++i) { text += i == 0 ? "*a" : ", *a"; }  // 1 GB if it went off
  EXPECT_NE(yaml_error(text + "]\n").find("holds more than 256 MiB of text"), std::string::npos);
}

std::string repeated(std::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) { text += part; }
  return text;
}

TEST(parse, depth_is_limited_before_the_stack_is) {
  EXPECT_EQ(json(repeated("[", 64) + repeated("]", 64)), yaml(repeated("[", 64) + repeated("]", 64)));
  EXPECT_EQ(json_error(repeated("[", 65) + repeated("]", 65)), "a.json:1:65: is nested more than 64 levels deep");
  for (const int depth : {65, 100'000}) {
    EXPECT_NE(json_error(repeated("[", depth)).find("64 levels deep"), std::string::npos);
    EXPECT_NE(json_error(repeated("{\"a\":", depth)).find("64 levels deep"), std::string::npos);
    EXPECT_NE(yaml_error(repeated("[\n", depth)).find("is a bracket left open?"), std::string::npos);
    EXPECT_NE(yaml_error(repeated("[", depth) + repeated("]", depth)).find("64 levels deep"), std::string::npos);
    EXPECT_NE(yaml_error(repeated("{a: ", depth) + repeated("}", depth)).find("64 levels deep"), std::string::npos);
    EXPECT_NE(yaml_error(repeated("- ", depth)).find("64 levels deep"), std::string::npos);
  }
  EXPECT_NE(yaml_error(repeated("? ", 1000)).find("a key must be text"), std::string::npos);
}

TEST(parse_yaml, aliases_cannot_build_depth_either) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_NE(yaml_error(text).find("is nested more than 64 levels deep"), std::string::npos);
}

TEST(parse, the_number_of_values_is_limited) {
  EXPECT_EQ(json_error("[" + repeated("1,", 1'000'001) + "1]"), "a.json:1:2000000: holds more than 1000000 values");
}

TEST(parse, a_text_larger_than_64_MiB_is_refused) {
  EXPECT_EQ(json_error(std::string(kMaxFileBytes + 1, ' ')), "a.json: is too large; at most 64 MiB are read");
}

RC_GTEST_PROP(parse, arbitrary_bytes_give_a_tree_or_a_message, (const std::string& noise)) {
  for (const std::string_view frame : {"", "a: ", "{\"a\": [", "- &x "}) {
    const std::string text = std::string(frame) + noise;
    const auto from_yaml = parse_yaml(text, "f");
    const auto from_json = parse_json(text, "f");
    RC_ASSERT(from_yaml || !from_yaml.error().diagnostics.empty());
    RC_ASSERT(from_json || !from_json.error().diagnostics.empty());
  }
}

RC_GTEST_PROP(parse_json, a_cut_text_never_parses, ()) {
  const std::string whole = R"({"a": [1, 2.5, {"b": "x\ny"}], "c": true})";
  const auto length = *rc::gen::inRange<std::size_t>(0, whole.size());
  RC_ASSERT(!parse_json(whole.substr(0, length), "f").has_value());
}

}  // namespace
}  // namespace orrery::config::parse_test
