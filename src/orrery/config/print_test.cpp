#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/config/node.hpp"
#include "orrery/config/units_text.hpp"

namespace orrery::config::print_test {
namespace {

Node sample() {
  Node link = mapping_node();
  add(link, "bandwidth", text_node("400 Gb/s"));
  add(link, "note", text_node("fast: really"));
  Node root = mapping_node();
  add(root, "name", text_node("8x"));
  add(root, "version", text_node("12"));
  add(root, "tp", sequence_node({integer_node(1), integer_node(2)}));
  add(root, "links", sequence_node({link, link}));
  add(root, "nothing", null_node());
  add(root, "empty", sequence_node());
  add(root, "ratio", real_node(2.0));
  return root;
}

TEST(print_yaml, is_what_a_person_would_write) {
  EXPECT_EQ(print_yaml(sample()),
            "name: 8x\n"
            "version: \"12\"\n"
            "tp: [1, 2]\n"
            "links:\n"
            "  - bandwidth: 400 Gb/s\n"
            "    note: \"fast: really\"\n"
            "  - bandwidth: 400 Gb/s\n"
            "    note: \"fast: really\"\n"
            "nothing: null\n"
            "empty: []\n"
            "ratio: 2.0\n");
}

TEST(print_json, is_indented_by_two) {
  Node root = mapping_node();
  add(root, "a", sequence_node({integer_node(1), text_node("x\"\n\x01")}));
  add(root, "b", mapping_node());
  add(root, "c", real_node(1e300));
  EXPECT_EQ(print_json(root),
            "{\n"
            "  \"a\": [\n"
            "    1,\n"
            "    \"x\\\"\\n\\u0001\"\n"
            "  ],\n"
            "  \"b\": {},\n"
            "  \"c\": 1e+300\n"
            "}");
}

TEST(print_json, numbers_of_yaml_become_numbers_of_json) {
  const auto node = parse_yaml("[+5, 007, .5, 5., -.5e3, 5.e2, .inf, .nan, -0]", "f");
  ASSERT_TRUE(node.has_value());
  const auto back = parse_json(print_json(*node), "f");
  ASSERT_TRUE(back.has_value()) << back.error().text();
  std::string scalars;
  for (const Node& item : back->items) { scalars += item.scalar + "|"; }
  EXPECT_EQ(scalars, "5|7|0.5|5|-0.5e3|5e2|||-0|");
}

// Text that looks like something else, and text of any characters.
rc::Gen<std::string> any_text() {
  const auto letters = rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("aZ09 :#-+.,?!&*|>'\"%@`{}[]\\/\n\t\r\x01\x7f~=_")));
  const auto tricky = rc::gen::element<std::string>(
      "", "null", "~", "true", "yes", "12", "1e9", ".inf", "- a", "a: b", "a #b", "0x10", "\u00e9\u2028\ufeff\u0085",
      "---", "...", "<<", "=", " a", "a ", std::string(300, 'k'), std::string(2000, 'k'), "a\nb\n");
  return rc::gen::oneOf(letters, tricky);
}

rc::Gen<Node> any_node(int depth) {
  auto leaf = rc::gen::oneOf(rc::gen::map(any_text(), [](std::string text) { return text_node(std::move(text)); }),
                             rc::gen::map(rc::gen::arbitrary<std::int64_t>(), integer_node),
                             rc::gen::map(rc::gen::arbitrary<double>(), real_node),
                             rc::gen::map(rc::gen::arbitrary<bool>(), boolean_node), rc::gen::just(null_node()));
  if (depth == 0) { return leaf; }
  const auto children = rc::gen::resize(4, rc::gen::container<std::vector<Node>>(any_node(depth - 1)));
  const auto list = rc::gen::map(children, [](std::vector<Node> items) { return sequence_node(std::move(items)); });
  const auto mapping = rc::gen::apply(
      [](const std::vector<Node>& values, const std::string& key) {
        Node node = mapping_node();
        for (std::size_t i = 0; i < values.size(); ++i) {
          add(node, i == 0 ? key : key + std::to_string(i), values[i]);
        }
        return node;
      },
      children, any_text());
  return rc::gen::oneOf(leaf, list, mapping);
}

RC_GTEST_PROP(print_yaml, parses_back_to_an_equal_tree, ()) {
  const Node node = *any_node(3);
  const auto back = parse_yaml(print_yaml(node), "f");
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == node);
}

RC_GTEST_PROP(print_json, parses_back_to_an_equal_tree, ()) {
  const Node node = *any_node(3);
  const auto back = parse_json(print_json(node), "f");
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == node);
}

RC_GTEST_PROP(print_json, is_yaml_too, ()) {
  const Node node = *any_node(2);
  const auto back = parse_yaml(print_json(node), "f");
  RC_PRE(back.has_value());  // YAML does not take keys above 1024 characters in this form
  RC_ASSERT(*back == node);
}

}  // namespace
}  // namespace orrery::config::print_test
