// A configuration file in a foreign format: keys are read one by one, errors are collected, and keys that were not read
// become warnings with the nearest known key. Private to the room.
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

namespace orrery::simulate {

class ForeignFile {
 public:
  // A file that holds a mapping; complaints are left to failure().
  [[nodiscard]] static Result<ForeignFile> open(const std::string& path);

  // nullptr when the key is absent. The key is known from now on.
  [[nodiscard]] const config::Node* find(std::string_view key);

  // A known key without effect; where it is present, `why` becomes a warning.
  void ignored(std::string_view key, std::string_view why);

  [[nodiscard]] std::optional<double> real(std::string_view key);
  // Cut to a whole number, which must be in the bounds.
  [[nodiscard]] std::optional<std::uint64_t> whole(std::string_view key, std::uint64_t least = 0,
                                                   std::uint64_t most = std::uint64_t{1} << 53);
  [[nodiscard]] bool flag(std::string_view key);  // 0 or 1, true or false; absent is no
  // One of the names; where it is none of them, complains with the nearest.
  [[nodiscard]] std::optional<std::size_t> choice(std::string_view key, std::span<const std::string_view> names);
  [[nodiscard]] std::optional<std::size_t> choice(const config::Node& node, std::string_view key,
                                                  std::span<const std::string_view> names);
  // A list of numbers or names: its items, none where there is no list.
  [[nodiscard]] std::vector<const config::Node*> list(std::string_view key, bool required);
  [[nodiscard]] std::optional<double> real(const config::Node& node, std::string_view key);

  void missing(std::string_view key);
  void complain(const Place& place, std::string message) { complaints_.push_back({place, std::move(message)}); }

  [[nodiscard]] const config::Node& root() const { return root_; }

  // The errors, if there are any; else appends warnings about keys that were not read.
  [[nodiscard]] Result<void> finish(std::vector<std::string>& warnings);

 private:
  explicit ForeignFile(config::Node root) : root_(std::move(root)) {}

  config::Node root_;
  std::vector<std::string> known_;
  std::vector<std::string> warnings_;
  std::vector<Diagnostic> complaints_;
};

}  // namespace orrery::simulate
