// Traces as JSON lines: one object per node and line, field names and numbers as in the Chakra schema. A Chakra file
// of our writer that is converted to JSON lines and back is the same byte for byte: every attribute type, numbers of 64
// bits, NaN, bytes, fields that are not in the schema.
//
//   {"schema":"orrery.trace-nodes/1","version":"0.0.4","attr":[…]}            first line; print leaves it out
//   {"id":7,"name":"mm","type":"COMP_NODE","ctrl_deps":[…],"data_deps":[…],"start_time_micros":…,"duration_micros":…,
//    "inputs":{"values":"…","shapes":"…","types":"…"},"outputs":{…},
//    "attr":[{"name":"comm_size","doc_string":"…","int64_val":4096},{"name":"…","bool_list":[true]}],"unknown":"…"}
//
// Each is on one line. Absent fields are omitted (id, name and type never are). A type without a name is its
// number. A bytes_val, and `unknown` (wire bytes), are base64. A text that is not UTF-8 is {"base64":"…"}. Reals
// that JSON cannot represent are "NaN", "Infinity", "-Infinity", and "NaN:…" with the bits of an unusual NaN. Integers
// are plain numbers, up to 64 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/graph/record.hpp"
#include "orrery/trace/decode.hpp"

namespace orrery::trace {

inline constexpr std::string_view kJsonLinesSchema = "orrery.trace-nodes/1";

// Appends a line, with its end.
void append_json_line(std::string& out, const graph::NodeRecord& node);
void append_json_line(std::string& out, const graph::Metadata& metadata);

// Whether bytes at the start of a file are JSON lines rather than a Chakra trace.
[[nodiscard]] bool are_json_lines(std::string_view bytes);

// Reads one line (without its end). Texts are views of `store` or of the line. Fails with the mistake and its column
// (place.column, from 1).
[[nodiscard]] Result<void> read_json_line(std::string_view line, graph::NodeRecord& into, Scratch& store);
[[nodiscard]] Result<void> read_json_line(std::string_view line, graph::Metadata& into, Scratch& store);

// Whether a line is the metadata.
[[nodiscard]] bool is_metadata_line(std::string_view line);

}  // namespace orrery::trace
