// Collects notes: one per message, with the first place and a count. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "orrery/trace/chakra.hpp"

namespace orrery::trace {

class Notes {
 public:
  void add(NoteKind kind, const std::string& message, std::uint64_t offset, std::optional<std::uint64_t> node);

  // Adds the notes of a later part of the file.
  void add_all(const Notes& later);

  [[nodiscard]] const std::vector<Note>& all() const { return notes_; }

 private:
  std::vector<Note> notes_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace orrery::trace
