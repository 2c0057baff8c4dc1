// Assembles a Node tree from parser events under the limits of node.hpp. Private to the room: both parsers feed it, so
// that paths, duplicate keys, depth and size are treated alike in YAML and JSON.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "orrery/config/node.hpp"

namespace orrery::config {

struct Spot {
  int line = 0;
  int column = 0;
};

// The tree cannot be finished. Thrown through the parsers, whose event interfaces have no other way to stop both.
class TreeStop : public std::runtime_error {
 public:
  TreeStop(Spot at, const std::string& message) : std::runtime_error(message), spot(at) {}
  Spot spot;
};

[[nodiscard]] std::string pointer_step(std::string_view key);  // "/a~1b" for the key "a/b"

class TreeBuilder {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  [[nodiscard]] bool expects_key() const;
  void key(std::string text, Spot spot);
  void scalar(Kind kind, std::string text, bool quoted, Spot spot);
  void begin(Kind kind, Spot spot);
  [[nodiscard]] const Node& end();  // the value just closed, where it stays until the next event

  // A copy of a value seen before: the paths become those of the new site; lines and columns stay where the text is.
  void copy(const Node& original, Spot spot);
  // Accounts for memory held outside the tree.
  void charge(const Node& node, Spot spot);

  // The finished tree, or all duplicate keys.
  [[nodiscard]] Result<Node> finish() &&;

 private:
  struct Frame {
    Node node;
    std::string key;  // the pending one
    Spot key_spot;
    bool has_key = false;
    std::unordered_map<std::string, int> lines;  // of the keys so far
  };

  void attach(Node node);
  void relocate(Node& node, std::string path, std::size_t depth, Spot spot);
  void charge(std::size_t nodes, std::size_t bytes, Spot spot);
  [[nodiscard]] std::string next_path() const;

  std::string file_;
  std::vector<Frame> stack_;
  Node root_;
  Node dropped_;  // the value of a duplicate key
  const Node* last_ = nullptr;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
  std::vector<Diagnostic> duplicates_;
};

}  // namespace orrery::config
