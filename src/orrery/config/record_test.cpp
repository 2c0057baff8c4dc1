#include "orrery/config/record.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::config::record_test {
namespace {

enum class Precision { fp32, bf16, fp8 };

struct Link {
  BytesPerSecond bandwidth{};
  Seconds latency{2e-6};
  friend bool operator==(const Link&, const Link&) = default;
};

struct Model {
  std::string name{};
  int layers = 0;
  std::int64_t tokens = 4096;
  double dropout = 0.0;
  bool tied = false;
  Precision precision = Precision::bf16;
  std::optional<int> heads{};
  std::vector<int> tp{1, 2};
  std::map<std::string, Bytes> caches{};
  std::optional<Link> link{};
  std::vector<Link> links{};
  Hertz clock{1e9};
  friend bool operator==(const Model&, const Model&) = default;
};

}  // namespace
}  // namespace orrery::config::record_test

namespace orrery::config {

template <>
struct EnumNames<record_test::Precision> {
  using Precision = record_test::Precision;
  static constexpr std::array<std::pair<Precision, std::string_view>, 3> value{
      {{Precision::fp32, "fp32"}, {Precision::bf16, "bf16"}, {Precision::fp8, "fp8"}}};
};

template <>
struct Described<record_test::Link> {
  using Link = record_test::Link;
  static const Record<Link>& record() {
    static const Record<Link> record =
        Record<Link>("link", "A class of links.")
            .required("bandwidth", &Link::bandwidth, "per direction", {.positive = true, .unit = "Gb/s"})
            .optional("latency", &Link::latency, "of one message", {.max = Seconds(1)});
    return record;
  }
};

}  // namespace orrery::config

namespace orrery::config::record_test {
namespace {

const Record<Model>& model_record() {
  static const Record<Model> record =
      Record<Model>("model", "A model.")
          .required("name", &Model::name, "as published", {.nonempty = true})
          .required("layers", &Model::layers, "number of blocks", {.min = 1})
          .optional("tokens", &Model::tokens, "per sequence", {.min = 1, .max = 1'000'000})
          .optional("dropout", &Model::dropout, "share", {.min = 0.0, .max = 0.9})
          .optional("tied", &Model::tied, "embeddings")
          .optional("precision", &Model::precision, "of weights")
          .optional("heads", &Model::heads, "of attention", {.positive = true})
          .optional("tp", &Model::tp, "widths to try", {.min = 1, .nonempty = true})
          .optional("caches", &Model::caches, "by name")
          .optional("link", &Model::link, "to the store")
          .optional("links", &Model::links, "between devices")
          .optional("clock", &Model::clock, "of the chip")
          .check([](const Model& m) {
            return m.heads && m.layers < *m.heads ? std::string("heads must not exceed layers") : std::string();
          });
  return record;
}

Result<Model> read(std::string_view text) { return model_record().read(parse_yaml(text, "m.yaml").value()); }

std::string complaint(std::string_view fields) {
  const auto model = read("name: x\nlayers: 4\n" + std::string(fields));
  EXPECT_FALSE(model.has_value()) << fields;
  return model ? "" : model.error().text();
}

TEST(record, reads_every_supported_type) {
  const auto model = read(
      "name: 13b\nlayers: 40\ntokens: 8192\ndropout: 1e-1\ntied: true\nprecision: fp8\nheads: 40\ntp: [1, 2, 4]\n"
      "caches: {l2: 50 MB}\nlink: {bandwidth: 400 Gb/s}\nlinks:\n  - {bandwidth: 900 GB/s, latency: 500 ns}\nclock: "
      "1.41 GHz\n");
  ASSERT_TRUE(model.has_value()) << model.error().text();
  const Model expected{.name = "13b",
                       .layers = 40,
                       .tokens = 8192,
                       .dropout = 0.1,
                       .tied = true,
                       .precision = Precision::fp8,
                       .heads = 40,
                       .tp = {1, 2, 4},
                       .caches = {{"l2", Bytes(50e6)}},
                       .link = Link{BytesPerSecond(50e9)},
                       .links = {Link{BytesPerSecond(900e9), Seconds(500e-9)}},
                       .clock = Hertz(1.41e9)};
  EXPECT_EQ(*model, expected);
}

TEST(record, a_missing_optional_key_keeps_the_default) {
  const auto model = read("name: x\nlayers: 4\n");
  ASSERT_TRUE(model.has_value());
  const Model expected{.name = "x", .layers = 4};
  EXPECT_EQ(*model, expected);
}

TEST(record, all_mistakes_are_collected) {
  const auto model = read("layers: -4\ntokns: 3\nlink: {bandwith: 3 GB/s, latency: 400}\nprecision: bf61\n");
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().text(),
            "m.yaml:1:9 /layers: \"-4\" is negative; layers must be at least 1\n"
            "m.yaml:2:1 /tokns: unknown key; did you mean \"tokens\"?\n"
            "m.yaml:3:8 /link/bandwith: unknown key; did you mean \"bandwidth\"?\n"
            "m.yaml:3:35 /link/latency: \"400\" has no unit; did you mean \"400 us\"?\n"
            "m.yaml:3:7 /link: required key \"bandwidth\" is missing (data rate: per direction)\n"
            "m.yaml:4:12 /precision: \"bf61\" is not valid; precision must be one of fp32, bf16, fp8; did you mean "
            "\"bf16\"?\n"
            "m.yaml:1:1: required key \"name\" is missing (text: as published)");
}

TEST(record, an_unknown_key_that_is_near_nothing_lists_the_keys) {
  EXPECT_EQ(complaint("link: {bandwidth: 1 GB/s, colour: red}"),
            "m.yaml:3:27 /link/colour: unknown key; valid keys: bandwidth, latency");
}

TEST(record, integers_are_whole_and_in_range) {
  EXPECT_EQ(complaint("tokens: 3.5"), "m.yaml:3:9 /tokens: \"3.5\" is not a whole number; tokens must be an integer");
  EXPECT_EQ(complaint("tokens: 1e99"),
            "m.yaml:3:9 /tokens: \"1e99\" is too large; tokens must be between 1 and 1000000");
  EXPECT_EQ(complaint("tokens: 99999999999999999999"),
            "m.yaml:3:9 /tokens: \"99999999999999999999\" is too large; tokens must be between 1 and 1000000");
  EXPECT_EQ(complaint("tokens: 0"), "m.yaml:3:9 /tokens: \"0\" is too small; tokens must be between 1 and 1000000");
  EXPECT_EQ(complaint("heads: 3000000000"),
            "m.yaml:3:8 /heads: \"3000000000\" is too large; heads must be at most 2147483647");
  EXPECT_EQ(complaint("heads: .nan"), "m.yaml:3:8 /heads: \".nan\" is not a finite number; heads must be an integer");
  EXPECT_EQ(complaint("tokens: many"), "m.yaml:3:9 /tokens: \"many\" is not a number; tokens must be an integer");
  EXPECT_EQ(complaint("tokens: '8'"),
            "m.yaml:3:9 /tokens: \"8\" is text; tokens must be an integer, written without quotes");
  EXPECT_EQ(complaint("tokens: true"), "m.yaml:3:9 /tokens: \"true\" is not valid; tokens must be an integer");
  EXPECT_EQ(complaint("tokens: [1]"), "m.yaml:3:9 /tokens: is a list; tokens must be an integer");
  EXPECT_EQ(complaint("tokens:"), "m.yaml:3:1 /tokens: has no value; tokens must be an integer");
  EXPECT_EQ(read("name: x\nlayers: 4e1\n")->layers, 40);  // whole, only written otherwise
}

TEST(record, numbers_are_finite_and_in_bounds) {
  EXPECT_EQ(complaint("dropout: .inf"),
            "m.yaml:3:10 /dropout: \".inf\" is not a finite number; dropout must be finite");
  EXPECT_EQ(complaint("dropout: nan"), "m.yaml:3:10 /dropout: \"nan\" is not a number; dropout must be a number");
  EXPECT_EQ(complaint("dropout: 1e999"),
            "m.yaml:3:10 /dropout: \"1e999\" is not a finite number; dropout must be finite");
  EXPECT_EQ(complaint("dropout: 0.95"),
            "m.yaml:3:10 /dropout: \"0.95\" is too large; dropout must be between 0 and 0.9");
  EXPECT_EQ(complaint("heads: 0"), "m.yaml:3:8 /heads: \"0\" is too small; heads must be greater than 0");
  EXPECT_EQ(complaint("heads: -1"), "m.yaml:3:8 /heads: \"-1\" is negative; heads must be greater than 0");
}

TEST(record, booleans_are_true_or_false_only) {
  EXPECT_EQ(complaint("tied: yes"), "m.yaml:3:7 /tied: \"yes\" is not valid; tied must be true or false");
  EXPECT_EQ(complaint("tied: 1"), "m.yaml:3:7 /tied: \"1\" is not valid; tied must be true or false");
  EXPECT_EQ(complaint("tied: 'true'"),
            "m.yaml:3:7 /tied: \"true\" is not valid; tied must be true or false, written without quotes");
}

TEST(record, quantities_have_units_and_bounds) {
  EXPECT_EQ(complaint("link: {bandwidth: 400}"),
            "m.yaml:3:19 /link/bandwidth: \"400\" has no unit; did you mean \"400 Gb/s\"?");
  EXPECT_EQ(complaint("link: {bandwidth: 0}"),
            "m.yaml:3:19 /link/bandwidth: \"0\" is too small; bandwidth must be greater than 0");
  EXPECT_EQ(complaint("link: {bandwidth: 1 GB/s, latency: 2 s}"),
            "m.yaml:3:36 /link/latency: \"2 s\" is too large; latency must be at most 1 s");
  EXPECT_EQ(complaint("clock: true"), "m.yaml:3:8 /clock: \"true\" is not a frequency; write for example \"1.41 GHz\"");
  EXPECT_EQ(complaint("clock: [1 GHz]"), "m.yaml:3:8 /clock: is a list; clock must be a frequency");
}

TEST(record, lists_maps_and_structs_are_not_mixed_up) {
  EXPECT_EQ(complaint("tp: 8"), "m.yaml:3:5 /tp: \"8\" is not valid; tp must be a list, such as [8]");
  EXPECT_EQ(complaint("tp: [1, 0]"), "m.yaml:3:9 /tp/1: \"0\" is too small; tp must be at least 1");
  EXPECT_EQ(complaint("tp: []"), "m.yaml:3:5 /tp: tp must not be empty");
  EXPECT_EQ(read("name: ''\nlayers: 1").error().text(), "m.yaml:1:7 /name: name must not be empty");
  EXPECT_EQ(complaint("caches: [1]"), "m.yaml:3:9 /caches: is a list; caches must be a mapping of names to values");
  EXPECT_EQ(complaint("link: fast"),
            "m.yaml:3:7 /link: \"fast\" is not valid; a link is a mapping with the keys bandwidth, latency");
  EXPECT_EQ(complaint("links: [~]"),
            "m.yaml:3:9 /links/0: has no value; a link is a mapping with the keys bandwidth, latency");
}

TEST(record, checks_between_fields_run_when_the_fields_are_right) {
  EXPECT_EQ(complaint("heads: 8"), "m.yaml:1:1: heads must not exceed layers");
  EXPECT_EQ(complaint("heads: 8\ntied: 3"), "m.yaml:4:7 /tied: \"3\" is not valid; tied must be true or false");
}

TEST(record, a_long_list_of_mistakes_is_cut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) { text += "key" + std::to_string(i) + ": 1\n"; }
  const auto model = read(text);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().diagnostics.size(), 51U);
  EXPECT_EQ(model.error().diagnostics.back().message, "and at least 150 more errors");
}

TEST(record, foreign_files_may_hold_other_keys) {
  const Record<Link> record = Record<Link>("link", "").optional("latency", &Link::latency, "").foreign();
  EXPECT_TRUE(record.read(parse_json("{\"latency\": \"1 us\", \"other\": 1}", "f").value()).has_value());
}

TEST(record, read_over_keeps_what_is_not_given) {
  const Model base{.name = "x", .layers = 4, .tp = {1, 2, 4}, .link = Link{BytesPerSecond(5e9), Seconds(1e-6)}};
  const auto changed =
      model_record().read_over(base, parse_yaml("layers: 8\nlink: {latency: 3 us}\ntp: [8]", "f").value());
  ASSERT_TRUE(changed.has_value()) << changed.error().text();
  Model expected = base;
  expected.layers = 8;
  expected.link->latency = Seconds(3e-6);
  expected.tp = {8};
  EXPECT_EQ(*changed, expected);
}

TEST(record, read_over_asks_for_required_keys_of_new_parts) {
  const auto changed = model_record().read_over(Model{.name = "x"}, parse_yaml("link: {latency: 3 us}", "f").value());
  EXPECT_EQ(changed.error().text(), "f:1:7 /link: required key \"bandwidth\" is missing (data rate: per direction)");
}

TEST(record, a_flag_obeys_the_same_descriptor) {
  Model model{.name = "x", .layers = 4, .link = Link{BytesPerSecond(5e9)}};
  const auto set = [&](std::string_view field, std::string_view text) {
    return model_record().set(model, field, text, Place{{}, 0, 0, "--" + std::string(field)});
  };
  ASSERT_TRUE(set("layers", "12").has_value());
  ASSERT_TRUE(set("name", "a: b # c").has_value());
  ASSERT_TRUE(set("tp", "1,2,4").has_value());
  ASSERT_TRUE(set("link.latency", "5 us").has_value());
  ASSERT_TRUE(set("precision", "fp8").has_value());
  const Model expected{.name = "a: b # c",
                       .layers = 12,
                       .precision = Precision::fp8,
                       .tp = {1, 2, 4},
                       .link = Link{BytesPerSecond(5e9), Seconds(5e-6)}};
  EXPECT_EQ(model, expected);
  EXPECT_EQ(set("layers", "x").error().text(), "--layers: \"x\" is not a number; layers must be an integer");
  EXPECT_EQ(set("layers", "0").error().text(), "--layers: \"0\" is too small; layers must be at least 1");
  EXPECT_EQ(set("clock", "5").error().text(), "--clock: \"5\" has no unit; did you mean \"5 GHz\"?");
  EXPECT_EQ(set("tp", "1,b").error().text(), "--tp: \"b\" is not a number; tp must be an integer");
  EXPECT_EQ(set("layer", "5").error().text(), "--layer: unknown key; did you mean \"layers\"?");
  EXPECT_EQ(model, expected) << "a flag that fails changes nothing";
}

TEST(record, checks_wait_until_all_flags_are_set) {
  Model model{.name = "x", .layers = 4};
  ASSERT_TRUE(model_record().set(model, "heads", "8", {}).has_value());
  EXPECT_EQ(model_record().validate(model).error().text(), "heads must not exceed layers");
  ASSERT_TRUE(model_record().set(model, "layers", "8", {}).has_value());
  EXPECT_TRUE(model_record().validate(model).has_value());
}

TEST(record, a_check_is_placed_as_deep_as_the_file_goes) {
  const Node node = parse_yaml("links:\n  - {bandwidth: 1 GB/s}\n  - {bandwidth: 2 GB/s}\n", "m.yaml").value();
  EXPECT_EQ(place_below(node, "/links/1/bandwidth").path, "/links/1/bandwidth");
  EXPECT_EQ(place_below(node, "/links/1/latency").path, "/links/1");
  EXPECT_EQ(place_below(node, "/links/2/bandwidth").path, "/links");
  EXPECT_EQ(place_below(node, "/links/first").path, "/links");
  EXPECT_EQ(place_below(node, ""), node.place);
}

TEST(record, fields_say_name_type_default_bounds_and_doc) {
  const auto& fields = model_record().fields();
  EXPECT_EQ(fields[1].name, "layers");
  EXPECT_EQ(fields[1].type.text, "integer");
  EXPECT_EQ(fields[1].bounds, "at least 1");
  EXPECT_EQ(fields[1].default_text, std::nullopt);
  EXPECT_EQ(fields[2].default_text, "4096");
  EXPECT_EQ(fields[5].type.text, "one of fp32, bf16, fp8");
  EXPECT_EQ(fields[7].type.text, "list of integer");
  EXPECT_EQ(fields[7].default_text, "[1, 2]");
  EXPECT_EQ(fields[8].type.text, "map of name to size");
  EXPECT_EQ(fields[9].type.text, "link");
  EXPECT_EQ(fields[9].default_text, "null");
  EXPECT_EQ(fields[11].default_text, "1 GHz");
}

TEST(record, help_is_one_aligned_line_per_field) {
  EXPECT_EQ(help_text(Described<Link>::record()),
            "bandwidth  data rate  required      per direction (greater than 0)\n"
            "latency    time       default 2 us  of one message (at most 1 s)\n");
}

TEST(record, prints_as_a_person_would_write) {
  const Model model{.name = "13b", .layers = 40, .caches = {{"l2", Bytes(50e6)}}, .links = {Link{400_Gbps}}};
  EXPECT_EQ(model_record().print_yaml(model),
            "name: 13b\nlayers: 40\ntokens: 4096\ndropout: 0.0\ntied: false\nprecision: bf16\ntp: [1, 2]\n"
            "caches:\n  l2: 50 MB\nlinks:\n  - bandwidth: 50 GB/s\n    latency: 2 us\nclock: 1 GHz\n");
}

rc::Gen<Link> any_link() {
  return rc::gen::apply(
      [](int bandwidth, int latency) { return Link{BytesPerSecond(bandwidth * 1.1e7), Seconds(latency * 1e-9)}; },
      rc::gen::inRange(1, 1'000'000), rc::gen::inRange(0, 1'000'000));
}

Model any_model() {
  Model model;
  model.name = *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("aB1.: #-\n\"'{"))));
  model.layers = *rc::gen::inRange(1, 1000);
  model.tokens = *rc::gen::inRange(1, 1'000'000);
  model.dropout = *rc::gen::inRange(0, 900) / 1000.0;
  model.tied = *rc::gen::arbitrary<bool>();
  model.precision = *rc::gen::element(Precision::fp32, Precision::bf16, Precision::fp8);
  if (*rc::gen::arbitrary<bool>()) { model.heads = *rc::gen::inRange(1, model.layers + 1); }
  model.tp = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 64)));
  const auto sizes = rc::gen::map(rc::gen::inRange(0, 1 << 30), [](int n) { return Bytes(n * 1.5); });
  for (const Bytes size : *rc::gen::container<std::vector<Bytes>>(sizes)) {
    model.caches[std::to_string(size.value())] = size;
  }
  if (*rc::gen::arbitrary<bool>()) { model.link = *any_link(); }
  model.links = *rc::gen::container<std::vector<Link>>(any_link());
  return model;
}

RC_GTEST_PROP(record, parses_back_what_it_prints, ()) {
  const Model model = any_model();
  const auto back = model_record().read(parse_yaml(model_record().print_yaml(model), "f").value());
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == model);
  const auto from_json = model_record().read(parse_json(print_json(model_record().to_node(model)), "f").value());
  RC_ASSERT(from_json.has_value());
  RC_ASSERT(*from_json == model);
}

TEST(json_schema, says_types_defaults_bounds_and_docs) {
  EXPECT_EQ(json_schema(Described<Link>::record()), R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "title": "link",
  "description": "A class of links.",
  "properties": {
    "bandwidth": {
      "anyOf": [
        {
          "type": "string",
          "pattern": "^[+]?[0-9.]+([eE][-+]?[0-9]+)? *[A-Za-z)"
                                                    "\u00b5\u03bc"
                                                    R"(/]+$"
        }
      ],
      "examples": [
        "1 Gb/s"
      ],
      "description": "per direction"
    },
    "latency": {
      "anyOf": [
        {
          "type": "string",
          "pattern": "^[+]?[0-9.]+([eE][-+]?[0-9]+)? *[A-Za-z)"
                                                    "\u00b5\u03bc"
                                                    R"(/]+$"
        },
        {
          "const": 0
        }
      ],
      "examples": [
        "1 us"
      ],
      "description": "of one message",
      "default": "2 us"
    }
  },
  "required": [
    "bandwidth"
  ],
  "additionalProperties": false
}
)");
}

TEST(json_schema, covers_every_supported_type) {
  const auto schema = parse_json(json_schema(model_record()), "schema");
  ASSERT_TRUE(schema.has_value()) << schema.error().text();
  const Node& properties = *schema->find("properties");
  EXPECT_EQ(properties.members.size(), model_record().fields().size());
  EXPECT_EQ(properties.find("layers")->find("minimum")->scalar, "1");
  EXPECT_EQ(properties.find("dropout")->find("maximum")->scalar, "0.9");
  EXPECT_EQ(properties.find("precision")->find("enum")->items.size(), 3U);
  EXPECT_EQ(properties.find("tp")->find("minItems")->scalar, "1");
  EXPECT_EQ(properties.find("links")->find("items")->find("title")->scalar, "link");
  EXPECT_EQ(properties.find("heads")->find("default")->kind, Kind::null);
}

}  // namespace
}  // namespace orrery::config::record_test
