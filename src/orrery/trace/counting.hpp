// Counts the entries of each kind in records, without decoding them. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/graph/record.hpp"
#include "orrery/trace/decode.hpp"

namespace orrery::trace {

struct EntryCounts {
  std::size_t ctrl = 0;
  std::size_t data = 0;
  std::size_t attributes = 0;
  std::size_t io = 0;

  friend EntryCounts operator+(const EntryCounts& a, const EntryCounts& b) {
    return {a.ctrl + b.ctrl, a.data + b.data, a.attributes + b.attributes, a.io + b.io};
  }
};

class EntryCounter {
 public:
  explicit EntryCounter(ChakraVersion version) : version_(version), decoder_(version) {}

  // Counts the entries of a node; returns its id. Throws if the examined part of the record is malformed.
  std::uint64_t add(std::string_view record);

  [[nodiscard]] const EntryCounts& counts() const { return counts_; }

 private:
  std::uint64_t add_current(std::string_view record);

  ChakraVersion version_;
  Decoder decoder_;  // for versions that are counted by decoding
  graph::NodeRecord node_;
  EntryCounts counts_;
};

}  // namespace orrery::trace
