// Values at dotted paths of a description tree: "dimensions.1.bandwidth", "dimensions.infiniband.bandwidth".
#pragma once

#include <string>
#include <string_view>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"

namespace orrery::api {

// Replaces or adds the value. An item of a list is named by its index or by its name. Missing mappings are created; an
// unknown key is the record's to refuse. The place of errors is the value's.
[[nodiscard]] tl::expected<void, Failure> assign(config::Node& root, std::string_view path, const config::Node& value);

// The value at a path; nullptr: none.
[[nodiscard]] const config::Node* value_at(const config::Node& root, std::string_view path);

// The same value, `factor` times as large: a number, a quantity, or every one of a mapping. Fails for texts.
[[nodiscard]] Result<config::Node> scaled_value(const config::Node& value, double factor);

}  // namespace orrery::api
