// A parsed JSON document, for the tests of the room.
#pragma once

#include <charconv>
#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "orrery/config/node.hpp"

namespace orrery::report {

class Json {
 public:
  explicit Json(config::Node node) : node_(std::move(node)) {}

  static Json parse(const std::string& text) { return Json(config::parse_json(text, "report").value()); }

  [[nodiscard]] bool contains(std::string_view key) const { return node_.find(key) != nullptr; }
  [[nodiscard]] bool is_null() const { return node_.kind == config::Kind::null; }
  [[nodiscard]] bool is_integer() const { return node_.kind == config::Kind::integer; }
  [[nodiscard]] std::size_t size() const { return node_.items.size() + node_.members.size(); }
  [[nodiscard]] std::vector<std::string> keys() const { return node_.keys(); }

  Json operator[](std::string_view key) const {
    ORRERY_ASSERT(contains(key));
    return Json(*node_.find(key));
  }
  Json operator[](std::size_t index) const { return Json(node_.items.at(index)); }

  // The values of a list or of an object.
  [[nodiscard]] std::vector<Json> values() const {
    std::vector<Json> all;
    for (const auto& item : node_.items) { all.emplace_back(item); }
    for (const auto& member : node_.members) { all.emplace_back(member.value); }
    return all;
  }

  [[nodiscard]] double number() const {
    ORRERY_ASSERT(is_integer() || node_.kind == config::Kind::real);
    double value = 0;
    const std::string& text = node_.scalar;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

  friend bool operator==(const Json& a, const Json& b) { return a.node_ == b.node_; }
  friend bool operator==(const Json& json, std::string_view text) {
    return json.node_.kind == config::Kind::text && json.node_.scalar == text;
  }
  template <class A>
    requires std::is_arithmetic_v<A>
  friend bool operator==(const Json& json, A value) {
    if constexpr (std::same_as<A, bool>) {
      return json.node_.kind == config::Kind::boolean && json.node_.scalar == (value ? "true" : "false");
    } else {
      return json.number() == static_cast<double>(value);
    }
  }
  friend std::ostream& operator<<(std::ostream& out, const Json& json) { return out << print_json(json.node_); }

 private:
  config::Node node_;
};

}  // namespace orrery::report
