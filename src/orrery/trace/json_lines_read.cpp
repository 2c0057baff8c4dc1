#include <bit>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/trace/json_cursor.hpp"
#include "orrery/trace/json_lines.hpp"
#include "orrery/trace/json_text.hpp"
#include "orrery/trace/utf8.hpp"
#include "orrery/trace/value_kind.hpp"

namespace orrery::trace {

using graph::Attribute;
using graph::IoInfo;
using graph::Metadata;
using graph::NodeRecord;
using graph::NodeType;
using graph::Value;
using graph::ValueType;

namespace {

constexpr int kLastType = static_cast<int>(ValueType::bytes_list);

template <class Int>
std::uint64_t signed_bits(JsonCursor& json) {
  return static_cast<std::uint64_t>(json.integer(std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max()));
}

// An empty record that keeps the memory of its lists.
void forget(NodeRecord& node) {
  NodeRecord empty;
  empty.ctrl_deps = std::move(node.ctrl_deps);
  empty.data_deps = std::move(node.data_deps);
  empty.attributes = std::move(node.attributes);
  empty.ctrl_deps.clear();
  empty.data_deps.clear();
  empty.attributes.clear();
  node = std::move(empty);
}

class LineReader {
 public:
  LineReader(std::string_view line, Scratch& store) : store_(store), json_(line, store) {
    if (!is_utf8(line)) { throw JsonError("the line is not UTF-8", 0); }
  }

  void read(NodeRecord& into) {
    forget(into);
    bool has_id = false;
    json_.object([&](std::string_view key) {
      if (key == "id") {
        into.id = natural();
        has_id = true;
      } else if (key == "name") {
        into.name = text();
      } else if (key == "type") {
        into.type = type();
      } else if (key == "ctrl_deps") {
        json_.array([&] { into.ctrl_deps.push_back(natural()); });
      } else if (key == "data_deps") {
        json_.array([&] { into.data_deps.push_back(natural()); });
      } else if (key == "start_time_micros") {
        into.start_us = natural();
      } else if (key == "duration_micros") {
        into.duration_us = natural();
      } else if (key == "inputs") {
        into.inputs = io();
      } else if (key == "outputs") {
        into.outputs = io();
      } else if (key == "attr") {
        json_.array([&] { into.attributes.push_back(attribute()); });
      } else if (key == "unknown") {
        into.unknown = base64();
      } else {
        unknown_key(key, {"id", "name", "type", "ctrl_deps", "data_deps", "start_time_micros", "duration_micros",
                          "inputs", "outputs", "attr", "unknown"});
      }
    });
    json_.end();
    if (!has_id) { json_.fail("the node has no \"id\""); }
  }

  void read(Metadata& into) {
    into = {};
    json_.object([&](std::string_view key) {
      if (key == "schema") {
        if (const std::string_view schema = json_.string(); schema != kJsonLinesSchema) {
          json_.fail(fmt::format("unknown schema {}; must be {}", quote(schema), kJsonLinesSchema));
        }
      } else if (key == "version") {
        into.version = text();
      } else if (key == "attr") {
        json_.array([&] { into.attributes.push_back(attribute()); });
      } else if (key == "unknown") {
        into.unknown = base64();
      } else {
        unknown_key(key, {"schema", "version", "attr", "unknown"});
      }
    });
    json_.end();
  }

 private:
  [[noreturn]] void unknown_key(std::string_view key, std::vector<std::string> known) {
    const auto near = nearest(key, known);
    json_.fail_at_key(near ? fmt::format("unknown field {}; did you mean {}?", quote(key), quote(*near))
                           : fmt::format("unknown field {}; valid fields are {}", quote(key), join(known, ", ")));
  }

  std::uint64_t natural() { return json_.natural(std::numeric_limits<std::uint64_t>::max()); }

  std::string_view base64() {
    const std::string_view written = json_.string();
    auto bytes = decoded_base64(written);
    if (!bytes) { json_.fail("not valid base64"); }
    return store_.fresh() = std::move(*bytes);
  }

  // A text, or {"base64":"…"}.
  std::string_view text() {
    if (json_.peek() != '{') { return json_.string(); }
    std::string_view found;
    json_.object([&](std::string_view key) {
      if (key != "base64") { unknown_key(key, {"base64"}); }
      found = base64();
    });
    return found;
  }

  NodeType type() {
    if (json_.peek() != '"') {
      return static_cast<NodeType>(
          json_.integer(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
    }
    const std::string_view name = json_.string();
    const auto found = graph::node_type(name);
    if (!found) { json_.fail(fmt::format("{} is not a node type", quote(name))); }
    return *found;
  }

  IoInfo io() {
    IoInfo info;
    json_.object([&](std::string_view key) {
      if (key == "values") {
        info.values = text();
      } else if (key == "shapes") {
        info.shapes = text();
      } else if (key == "types") {
        info.types = text();
      } else {
        unknown_key(key, {"values", "shapes", "types"});
      }
    });
    return info;
  }

  Attribute attribute() {
    Attribute made;
    json_.object([&](std::string_view key) {
      if (key == "name") {
        made.name = text();
      } else if (key == "doc_string") {
        made.doc = text();
      } else if (key == "unknown") {
        made.unknown = base64();
      } else {
        made.value = value(value_type(key));
      }
    });
    return made;
  }

  ValueType value_type(std::string_view key) {
    for (int number = static_cast<int>(ValueType::double_val); number <= kLastType; ++number) {
      if (graph::name_of(static_cast<ValueType>(number)) == key) { return static_cast<ValueType>(number); }
    }
    std::vector<std::string> known = {"name", "doc_string", "unknown"};
    for (int number = static_cast<int>(ValueType::double_val); number <= kLastType; ++number) {
      known.emplace_back(graph::name_of(static_cast<ValueType>(number)));
    }
    unknown_key(key, std::move(known));
  }

  std::uint64_t number(ValueType type) {
    switch (element_kind(type)) {
      case ElementKind::real64: return std::bit_cast<std::uint64_t>(json_.real());
      case ElementKind::real32: return std::bit_cast<std::uint32_t>(json_.real32());
      case ElementKind::boolean: return json_.boolean() ? 1 : 0;
      case ElementKind::natural32: return json_.natural(std::numeric_limits<std::uint32_t>::max());
      case ElementKind::natural64: return natural();
      case ElementKind::integer32: return signed_bits<std::int32_t>(json_);
      case ElementKind::integer64: return signed_bits<std::int64_t>(json_);
      case ElementKind::none:
      case ElementKind::string:
      case ElementKind::bytes: break;
    }
    return 0;
  }

  Value value(ValueType type) {
    if (!graph::is_list(type)) {
      if (type == ValueType::bytes_val) { return Value::view(type, base64()); }
      if (type == ValueType::string_val) { return Value::view(type, text()); }
      return Value::scalar(type, number(type));
    }
    std::string& payload = store_.fresh();
    json_.array([&] {
      if (graph::is_text(type)) {
        graph::append_text(payload, type == ValueType::bytes_list ? base64() : text());
      } else {
        graph::append_number(payload, type, number(type));
      }
    });
    return Value::view(type, payload);
  }

  Scratch& store_;
  JsonCursor json_;
};

template <class Record>
Result<void> read_line(std::string_view line, Record& into, Scratch& store) {
  try {
    LineReader(line, store).read(into);
    return {};
  } catch (const JsonError& error) { return fail(Place{{}, 0, static_cast<int>(error.column), {}}, error.what()); }
}

}  // namespace

bool are_json_lines(std::string_view bytes) {
  // A Chakra trace begins like this only if its first record has 123 bytes and is a node that begins with its parents.
  return bytes.starts_with("{\"");
}

bool is_metadata_line(std::string_view line) { return line.substr(0, 64).find("\"schema\"") < 4; }

Result<void> read_json_line(std::string_view line, NodeRecord& into, Scratch& store) {
  return read_line(line, into, store);
}

Result<void> read_json_line(std::string_view line, Metadata& into, Scratch& store) {
  return read_line(line, into, store);
}

}  // namespace orrery::trace
