// Small questions about text that error messages ask.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`; letters compare without case.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, if it is near enough to be what the user meant (at most a third of the word's
// letters differ, at least one edit is always allowed). Ties go to the first candidate.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// The candidates that go on where `word` ends ("h100" of h100-pcie and h100-sxm), in their order, as long as they are
// few (four); empty otherwise.
[[nodiscard]] std::vector<std::string> continued(std::string_view word, std::span<const std::string> candidates);

// "a", "a or b", "a, b or c".
[[nodiscard]] std::string either(std::span<const std::string> parts);

[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);

// `"text"`, with control characters escaped and long text cut, for messages.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace orrery
