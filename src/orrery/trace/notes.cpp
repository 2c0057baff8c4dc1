#include "orrery/trace/notes.hpp"

#include <fmt/format.h>

namespace orrery::trace {

namespace {

// A malformed file may have a note for every field number.
constexpr std::size_t kMostNotes = 200;
constexpr const char* kMore = "more anomalies of other kinds";

}  // namespace

std::string Note::text() const {
  std::string where = fmt::format("byte {}", offset);
  if (node) { where += fmt::format(", node {}", *node); }
  const std::string more = count > 1 ? fmt::format(" (and {} more)", count - 1) : "";
  return fmt::format("{}: {}{}", where, message, more);
}

void Notes::add(NoteKind kind, const std::string& message, std::uint64_t offset, std::optional<std::uint64_t> node) {
  const bool full = notes_.size() >= kMostNotes;
  const std::string kept = full && !index_.contains(message) ? kMore : message;
  const auto [entry, is_new] = index_.try_emplace(kept, notes_.size());
  if (is_new) {
    notes_.push_back({kind, kept, offset, node, 1});
  } else {
    ++notes_[entry->second].count;
    if (kind == NoteKind::lost_record) { notes_[entry->second].kind = kind; }
  }
}

void Notes::add_all(const Notes& later) {
  for (const Note& note : later.notes_) {
    add(note.kind, note.message, note.offset, note.node);
    notes_[index_.at(index_.contains(note.message) ? note.message : std::string(kMore))].count += note.count - 1;
  }
}

bool ReadReport::complete() const {
  for (const Note& note : notes) {
    if (note.kind == NoteKind::lost_record) { return false; }
  }
  return true;
}

std::string_view name_of(ChakraVersion version) {
  switch (version) {
    case ChakraVersion::v0_0_1: return "0.0.1";
    case ChakraVersion::v0_0_2: return "0.0.2";
    case ChakraVersion::v0_0_3: return "0.0.3";
    case ChakraVersion::v0_0_3_plus: return "0.0.3+";
    case ChakraVersion::v0_0_4: return "0.0.4";
  }
  return "unknown";
}

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::none: return "none";
    case Compression::gzip: return "gzip";
    case Compression::zstd: return "zstd";
  }
  return "unknown";
}

}  // namespace orrery::trace
