// A configuration file in a foreign format. Keys are read one by one, errors are collected, and a key that was not read
// becomes a warning with the nearest known key.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"

namespace orrery::config {

class ForeignFile {
 public:
  // Opens a file, which must contain a mapping.
  [[nodiscard]] static Result<ForeignFile> open(const std::string& path);

  // nullptr if the key is absent. The key counts as known.
  [[nodiscard]] const Node* find(std::string_view key);

  // A known key without effect; if it is present, `why` becomes a warning.
  void ignored(std::string_view key, std::string_view why);

  [[nodiscard]] std::optional<double> real(std::string_view key);
  // Truncated to a whole number, which must be within the bounds.
  [[nodiscard]] std::optional<std::uint64_t> whole(std::string_view key, std::uint64_t least = 0,
                                                   std::uint64_t most = std::uint64_t{1} << 53);
  [[nodiscard]] bool flag(std::string_view key);  // 0 or 1, true or false; absent is no
  // The index of one of the names. Any other text is an error with the nearest name.
  [[nodiscard]] std::optional<std::size_t> choice(std::string_view key, std::span<const std::string_view> names);
  [[nodiscard]] std::optional<std::size_t> choice(const Node& node, std::string_view key,
                                                  std::span<const std::string_view> names);
  // The items of a list of numbers or names; empty if there is no list.
  [[nodiscard]] std::vector<const Node*> list(std::string_view key, bool required);
  [[nodiscard]] std::optional<double> real(const Node& node, std::string_view key);

  void missing(std::string_view key);
  void add_error(const Place& place, std::string message) { errors_.push_back({place, std::move(message)}); }

  [[nodiscard]] const Node& root() const { return root_; }

  // Fails if there are errors; otherwise appends warnings about keys that were not read.
  [[nodiscard]] Result<void> finish(std::vector<std::string>& warnings);

 private:
  explicit ForeignFile(Node root) : root_(std::move(root)) {}

  Node root_;
  std::vector<std::string> known_;
  std::vector<std::string> warnings_;
  std::vector<Diagnostic> errors_;
};

}  // namespace orrery::config
