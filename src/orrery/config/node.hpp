// One tree for YAML and JSON. Every value and key has the place where the user wrote it.
//
// Scalars keep the text as written: 400, "400 Gb/s" and 1e12 become numbers only in the field that reads them, which
// has the unit and the bounds. Plain YAML scalars follow the YAML 1.2 core schema, restricted to decimal numbers: true,
// false, null, ~ and numbers are special; yes/no/on/off and 0x10 are text.
//
// Left out: YAML tags other than the core ones, merge keys (<<), more than one document in a file, comments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::config {

// Limits of a file, so that a wrong or hostile file gets an error instead of the machine's memory.
inline constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxNodes = 1'000'000;                   // after YAML aliases are expanded
inline constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;  // scalars, keys and paths together
inline constexpr int kMaxDepth = 64;

enum class Kind { null, boolean, integer, real, text, sequence, mapping };

// The kind of a plain YAML scalar, from its text alone.
[[nodiscard]] Kind plain_kind(std::string_view text);

struct Member;

struct Node {
  Node();  // the special members are in node.cpp: inline, they would be compiled again in every file that uses trees
  Node(const Node& other);
  Node(Node&& other) noexcept;
  Node& operator=(const Node& other);
  Node& operator=(Node&& other) noexcept;
  ~Node();

  Kind kind = Kind::null;
  std::string scalar;           // boolean, integer, real: as written; text: with escapes resolved
  bool quoted = false;          // text that was quoted (or tagged !!str): never a number
  std::vector<Node> items;      // sequence
  std::vector<Member> members;  // mapping, in the order written; keys are distinct
  Place place;                  // of the value; place.path is a JSON pointer, "" for the root

  [[nodiscard]] bool is_scalar() const { return kind != Kind::sequence && kind != Kind::mapping; }
  [[nodiscard]] const Node* find(std::string_view key) const;  // nullptr when absent or not a mapping
  [[nodiscard]] Node* find(std::string_view key);
  [[nodiscard]] const Member* member(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> keys() const;

  // Compares kind, text, items and members in order; not places and quotes.
  friend bool operator==(const Node& a, const Node& b);
};

struct Member {
  std::string key;
  int line = 0;  // of the key
  int column = 0;
  Node value;

  [[nodiscard]] Place place() const;  // of the key; file and path are the value's
};

// A scalar given as plain text at a place, such as the value of a flag.
[[nodiscard]] Node plain_node(std::string text, Place place);

// Trees made by the program: schemas, reports, printed records. They have no places.
[[nodiscard]] Node null_node();
[[nodiscard]] Node boolean_node(bool value);
[[nodiscard]] Node integer_node(std::int64_t value);
[[nodiscard]] Node real_node(double value);  // shortest text that reads back as the same double
[[nodiscard]] Node text_node(std::string value);
[[nodiscard]] Node sequence_node(std::vector<Node> items = {});
[[nodiscard]] Node mapping_node();
Node& add(Node& mapping, std::string key, Node value);  // appends; the key must be new; returns the added value
Node& append(Node& sequence, Node item);                // returns the appended item

// `.json` (any case) is JSON, everything else YAML. Fails, with the place and the reason, if the file does not exist
// (the message names the nearest file in that folder), is not a regular file, is too large (checked before reading), is
// empty or binary, or does not parse.
[[nodiscard]] Result<Node> read_file(const std::string& path);

// Text in memory; `file` is only for the places.
[[nodiscard]] Result<Node> parse_yaml(std::string_view text, std::string file);
[[nodiscard]] Result<Node> parse_json(std::string_view text, std::string file);

// The bytes of a regular file, with the checks of read_file, for other formats (csv, traces).
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes = kMaxFileBytes);

// `--set network.0.bandwidth=400 Gb/s`: replaces or adds the value at a dotted path (or at a JSON pointer, if the path
// starts with '/'; for keys that contain dots). The value is read as YAML, so lists work: `tp=[1, 2]`. Missing mappings
// on the path are created; an index must exist. The value's place is {"", "--set network.0.bandwidth"}.
[[nodiscard]] tl::expected<void, Failure> set(Node& root, std::string_view dotted_path, std::string_view value);
[[nodiscard]] tl::expected<void, Failure> set(Node& root, std::string_view dotted_path, std::string_view value,
                                              const Place& place);
[[nodiscard]] tl::expected<void, Failure> set_assignment(Node& root, std::string_view path_equals_value);

// Text that parses back to an equal tree. YAML in block style; JSON indented by two spaces.
[[nodiscard]] std::string print_yaml(const Node& node);
[[nodiscard]] std::string print_json(const Node& node);

}  // namespace orrery::config
