// Protobuf messages of Chakra to records, in every version of the schema. Private to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/graph/record.hpp"
#include "orrery/trace/chakra.hpp"

namespace orrery::trace {

// A message that is not well-formed protobuf.
class WireError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class AnomalyKind : std::uint8_t {
  unknown_field,      // kept
  other_wire_type,    // a field of the schema with the wrong wire type; kept as unknown
  dropped_field,      // unknown and within a list or a tensor list: not kept
  not_text,           // not UTF-8
  unknown_attribute,  // an old attribute whose type and value contradict each other
};

// An anomaly of a record that could be decoded.
struct Anomaly {
  enum class Where : std::uint8_t { node, metadata, attribute, list, io };

  AnomalyKind kind;
  Where where;
  std::uint32_t field;  // number

  [[nodiscard]] std::string text() const;
  friend bool operator==(const Anomaly&, const Anomaly&) = default;
};

// Owns the texts that decoding creates (lists, unknown fields) and that a record views; reused for the next record.
class Scratch {
 public:
  std::string& fresh() {
    if (used_ == texts_.size()) { texts_.emplace_back(); }
    std::string& text = texts_[used_++];
    text.clear();
    return text;
  }
  void clear() { used_ = 0; }

 private:
  std::deque<std::string> texts_;
  std::size_t used_ = 0;
};

// The payload of the list of an attribute so far: more elements of the same type are appended, as in protobuf.
class OpenList {
 public:
  std::string& payload(graph::ValueType type, Scratch& scratch) {
    if (type_ != type) { payload_ = &scratch.fresh(); }
    type_ = type;
    return *payload_;
  }

 private:
  graph::ValueType type_ = graph::ValueType::none;
  std::string* payload_ = nullptr;
};

class Decoder {
 public:
  explicit Decoder(ChakraVersion version) : version_(version) {}

  // The records view `bytes` and this decoder's scratch: valid until the next call. Throw WireError.
  void decode_node(std::string_view bytes, graph::NodeRecord& into);
  void decode_metadata(std::string_view bytes, graph::Metadata& into);

  // The anomalies of the latest record.
  [[nodiscard]] const std::vector<Anomaly>& anomalies() const { return anomalies_; }

 private:
  ChakraVersion version_;
  Scratch scratch_;
  std::vector<Anomaly> anomalies_;
};

// An empty record is a node with default values only.
inline constexpr const char* kEmptyRecord = "the record is empty; other readers stop here";

// The parts, by version. They append to `anomalies` and view `scratch`.
struct DecodeContext {
  Scratch& scratch;
  std::vector<Anomaly>& anomalies;
};

void decode_current_node(std::string_view bytes, graph::NodeRecord& into, const DecodeContext& context);
void decode_current_metadata(std::string_view bytes, graph::Metadata& into, const DecodeContext& context);
void decode_first_node(std::string_view bytes, graph::NodeRecord& into, const DecodeContext& context);  // 0.0.1
void decode_middle_node(std::string_view bytes, graph::NodeRecord& into, const DecodeContext& context,
                        ChakraVersion version);  // 0.0.2 … 0.0.3+
void decode_middle_metadata(std::string_view bytes, graph::Metadata& into, const DecodeContext& context);

[[nodiscard]] graph::Attribute decode_attribute(std::string_view bytes, const DecodeContext& context);

// Whether the bytes are metadata (of any version that has them), not a node.
[[nodiscard]] bool is_metadata(std::string_view bytes);

// For some weeks of 0.0.4 the attributes of the metadata had the field number that the version has now. Whether the
// record is of that kind: it has such attributes only.
[[nodiscard]] bool is_early_metadata(std::string_view bytes);

// The version that most records match; `has_metadata`: whether the first record is metadata.
[[nodiscard]] ChakraVersion sniffed_version(const std::vector<std::string_view>& records, bool has_metadata);

}  // namespace orrery::trace
