// Records to protobuf messages of the current schema, byte for byte as protobuf's own libraries write them: fields by
// number, lists packed, defaults left out, unknown fields last. Private to the room.
#pragma once

#include <string>

#include "orrery/graph/record.hpp"

namespace orrery::trace {

// Append a length and the message.
void append_record(std::string& out, const graph::NodeRecord& node);
void append_record(std::string& out, const graph::Metadata& metadata);

}  // namespace orrery::trace
