// Builds a Node tree from parser events, within the limits of node.hpp. Private to the room: both parsers use it, so
// paths, duplicate keys, depth and size have the same rules in YAML and JSON.
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

// Stops the parser: both event interfaces can only be stopped by an exception.
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
  [[nodiscard]] const Node& end();  // the value just closed; valid until the next event

  // Adds a copy of an earlier value: with the paths of the new position, and the lines and columns of the original.
  void copy(const Node& original, Spot spot);
  // Counts memory outside the tree.
  void charge(const Node& node, Spot spot);

  // The finished tree, or all duplicate keys.
  [[nodiscard]] Result<Node> finish() &&;

 private:
  struct Frame {
    Node node;
    std::string key;  // the key of the next value
    Spot key_spot;
    bool has_key = false;
    std::unordered_map<std::string, int> lines;  // of the previous keys
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
