// Random records for the tests of the room.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/graph/builder.hpp"

namespace orrery::trace::test {

// A random number generator with the same results on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}

  std::uint64_t bits() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545F4914F6CDD1DU;
  }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>((bits() >> 33) % end); }
  bool one_in(std::size_t chances) { return below(chances) == 0; }

  // A number with a random number of bits, so that varints of all lengths occur.
  std::uint64_t number() { return bits() >> below(64); }

 private:
  std::uint64_t state_;
};

struct Records {
  graph::Metadata metadata;
  std::vector<graph::NodeRecord> nodes;
  std::deque<std::string> texts;  // of the records

  [[nodiscard]] graph::Graph graph() const {
    graph::GraphBuilder builder;
    builder.set_metadata(metadata);
    for (const graph::NodeRecord& node : nodes) { builder.add(node); }
    return builder.finish().value();
  }
};

class RecordMaker {
 public:
  explicit RecordMaker(std::uint64_t seed) : random_(seed) {}

  Records records(std::size_t count) {
    made_.metadata = {text(), attributes(), {}};
    for (std::size_t i = 0; i < count; ++i) { made_.nodes.push_back(node(i)); }
    return std::move(made_);
  }

 private:
  std::string_view keep(std::string value) { return made_.texts.emplace_back(std::move(value)); }

  std::string_view text() {
    static constexpr std::string_view kPieces[] = {"aten::", "n", "é", "日本", "\U0001F30D", "0", "\n", "\"", " "};
    std::string made;
    for (std::size_t n = random_.below(random_.one_in(9) ? 200 : 5); n > 0; --n) { made += kPieces[random_.below(9)]; }
    return keep(std::move(made));
  }

  std::string_view bytes() {
    std::string made;
    for (std::size_t n = random_.below(20); n > 0; --n) { made += static_cast<char>(random_.bits()); }
    return keep(std::move(made));
  }

  // Bits that a number of that type can have.
  std::uint64_t number(graph::ValueType type) {
    std::string payload;
    const auto list = graph::is_list(type) ? type : static_cast<graph::ValueType>(static_cast<int>(type) + 1);
    graph::append_number(payload, list, random_.one_in(3) ? random_.number() : std::uint64_t{0} - random_.number());
    return graph::Value::view(list, payload).bits_at(0);
  }

  graph::Value value() {
    const auto type = static_cast<graph::ValueType>(random_.below(31) + 2);
    if (type == static_cast<graph::ValueType>(2)) { return {}; }
    const bool is_string = type == graph::ValueType::string_val || type == graph::ValueType::string_list;
    if (!graph::is_list(type)) {
      if (graph::is_text(type)) { return graph::Value::view(type, is_string ? text() : bytes()); }
      return graph::Value::scalar(type, number(type));
    }
    std::string payload;
    for (std::size_t n = random_.below(5); n > 0; --n) {
      if (graph::is_text(type)) {
        graph::append_text(payload, is_string ? text() : bytes());
      } else {
        graph::append_number(payload, type, number(type));
      }
    }
    return graph::Value::view(type, keep(std::move(payload)));
  }

  std::vector<graph::Attribute> attributes() {
    static constexpr std::string_view kNames[] = {"is_cpu_op", "comm_type", "comm_size", "pg_name"};
    std::vector<graph::Attribute> made;
    for (std::size_t n = random_.below(5); n > 0; --n) {
      made.push_back({random_.one_in(3) ? text() : kNames[random_.below(4)],
                      value(),
                      random_.one_in(5) ? text() : std::string_view(),
                      {}});
    }
    return made;
  }

  std::vector<std::uint64_t> deps(std::uint64_t id) {
    std::vector<std::uint64_t> made;
    for (std::size_t n = random_.below(4); n > 0; --n) {
      made.push_back(random_.one_in(8) ? random_.number() : random_.below(static_cast<std::size_t>(id) + 2));
    }
    return made;
  }

  std::optional<graph::IoInfo> io() {
    if (random_.one_in(2)) { return std::nullopt; }
    return graph::IoInfo{text(), text(), random_.one_in(2) ? text() : std::string_view()};
  }

  graph::NodeRecord node(std::uint64_t position) {
    graph::NodeRecord made;
    made.id = random_.one_in(20) ? random_.number() : position;
    made.name = text();
    made.type = static_cast<graph::NodeType>(random_.one_in(20) ? static_cast<std::int32_t>(random_.bits())
                                                                : static_cast<std::int32_t>(random_.below(8)));
    made.start_us = random_.one_in(2) ? 0 : random_.number();
    made.duration_us = random_.one_in(2) ? 0 : random_.number();
    made.ctrl_deps = deps(made.id);
    made.data_deps = deps(made.id);
    made.inputs = io();
    made.outputs = io();
    made.attributes = attributes();
    return made;
  }

  Random random_;
  Records made_;
};

inline Records random_records(std::uint64_t seed, std::size_t count) { return RecordMaker(seed).records(count); }

}  // namespace orrery::trace::test
