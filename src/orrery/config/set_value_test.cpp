#include <gtest/gtest.h>

#include "orrery/config/node.hpp"

namespace orrery::config::set_value_test {
namespace {

Node sample() {
  return parse_yaml("name: x\nnetwork: [{bandwidth: 400 Gb/s}, {bandwidth: 1 Tb/s}]\nnothing:\n", "a.yaml").value();
}

std::string complaint(std::string_view path, std::string_view value) {
  Node root = sample();
  const auto done = set(root, path, value);
  EXPECT_FALSE(done.has_value());
  EXPECT_EQ(root, sample()) << "a failed set leaves the tree alone";
  return done ? "" : done.error().text();
}

TEST(set, replaces_a_value_and_says_where_it_came_from) {
  Node root = sample();
  ASSERT_TRUE(set(root, "network.1.bandwidth", "200 Gb/s").has_value());
  const Node& value = *root.find("network")->items[1].find("bandwidth");
  EXPECT_EQ(value.scalar, "200 Gb/s");
  EXPECT_EQ(value.place, (Place{"", 0, 0, "--set network.1.bandwidth"}));
  EXPECT_EQ(root.find("network")->items[0].find("bandwidth")->scalar, "400 Gb/s");
}

TEST(set, creates_missing_mappings) {
  Node root = sample();
  ASSERT_TRUE(set(root, "plan.mesh.tp", "8").has_value());
  ASSERT_TRUE(set(root, "nothing.at.all", "true").has_value());
  EXPECT_EQ(root.find("plan")->find("mesh")->find("tp")->kind, Kind::integer);
  EXPECT_EQ(root.find("nothing")->find("at")->find("all")->kind, Kind::boolean);
}

TEST(set, reads_values_as_yaml) {
  Node root = sample();
  ASSERT_TRUE(set(root, "tp", "[1, 2, '3']").has_value());
  EXPECT_EQ(root.find("tp")->items.at(1).kind, Kind::integer);
  EXPECT_EQ(root.find("tp")->items.at(2).kind, Kind::text);
  EXPECT_EQ(root.find("tp")->items.at(2).place.path, "--set tp");
  ASSERT_TRUE(set(root, "name", "null").has_value());
  EXPECT_EQ(root.find("name")->kind, Kind::null);
}

TEST(set, takes_json_pointers_for_keys_with_dots) {
  Node root = sample();
  ASSERT_TRUE(set(root, "/models/llama-3.1~18b/layers", "32").has_value());
  EXPECT_EQ(root.find("models")->find("llama-3.1/8b")->find("layers")->scalar, "32");
}

TEST(set, splits_an_assignment_at_the_first_equals_sign) {
  Node root = sample();
  ASSERT_TRUE(set_assignment(root, "name=a=b").has_value());
  EXPECT_EQ(root.find("name")->scalar, "a=b");
  EXPECT_EQ(set_assignment(root, "name").error().text(), "--set: \"name\" is not valid; write path.to.field=value");
  EXPECT_EQ(set_assignment(root, "=3").error().text(), "--set: \"=3\" is not valid; write path.to.field=value");
}

TEST(set, says_why_a_path_does_not_fit) {
  EXPECT_EQ(complaint("network.2.bandwidth", "1"),
            "--set network.2.bandwidth: 2 is not an index of \"/network\", a list of 2 items counted from 0");
  EXPECT_EQ(complaint("network.first.bandwidth", "1"),
            "--set network.first.bandwidth: \"/network\" is a list; \"first\" is not an index");
  EXPECT_EQ(complaint("name.first", "1"), "--set name.first: \"/name\" is the value \"x\" and has no fields");
  EXPECT_EQ(complaint("a..b", "1"), "--set a..b: \"a..b\" has an empty key");
  EXPECT_EQ(complaint("", "1"), "--set : \"\" has an empty key");
}

TEST(set, says_why_a_value_does_not_fit) {
  EXPECT_EQ(complaint("name", ""), "--set name: has no value; write null to clear the field");
  EXPECT_EQ(complaint("name", "[1, 2"),
            "--set name: \"[1, 2\": a key must be text, not a list or a mapping (is a bracket left open?)");
  EXPECT_EQ(complaint("name", "a: b: c"), "--set name: \"a: b: c\": not valid YAML: illegal map value");
}

}  // namespace
}  // namespace orrery::config::set_value_test
