// The frame of a page of results: style, data, chart library, scripts in one file. Private to the room.
#pragma once

#include <string>
#include <string_view>

namespace orrery::report {

// `data`: one JSON value. `script` reads it from the element #data; Page (page/common.js) is defined before it.
[[nodiscard]] std::string page_document(std::string_view title, std::string_view data, std::string_view script);

// An embedded file by its name; there must be one.
[[nodiscard]] std::string_view embedded_text(std::string_view name);

}  // namespace orrery::report
