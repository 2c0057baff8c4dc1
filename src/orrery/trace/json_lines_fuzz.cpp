// Any line gives a node (or metadata) that is read back equal after it is written, or one message with a column within
// the line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "orrery/trace/json_lines.hpp"

namespace {

using namespace orrery;
using namespace orrery::trace;

void expect(bool holds) {
  if (!holds) { __builtin_trap(); }
}

template <class Record>
void read_and_write(std::string_view line) {
  Record record;
  Scratch store;
  const auto read = read_json_line(line, record, store);
  if (!read) {
    const Diagnostic& diagnostic = read.error().diagnostics.front();
    expect(diagnostic.message.find('\n') == std::string::npos);
    expect(diagnostic.place.column >= 1 && static_cast<std::size_t>(diagnostic.place.column) <= line.size() + 1);
    return;
  }
  std::string written;
  append_json_line(written, record);
  Record back;
  Scratch other;
  expect(written.find('\n') == written.size() - 1);
  written.pop_back();
  expect(read_json_line(written, back, other).has_value() && back == record);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  if (is_metadata_line(line)) {
    read_and_write<graph::Metadata>(line);
  } else {
    read_and_write<graph::NodeRecord>(line);
  }
  return 0;
}
