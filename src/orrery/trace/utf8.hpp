// Whether bytes are UTF-8. Private to the room.
#pragma once

#include <string_view>

namespace orrery::trace {

// Well-formed UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF. Fast where all of it is ASCII.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace orrery::trace
