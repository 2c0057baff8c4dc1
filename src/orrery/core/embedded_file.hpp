// A file that the build compiles into a library (cmake/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace orrery {

struct EmbeddedFile {
  std::string_view name;  // without folder
  std::string_view bytes;
};

}  // namespace orrery
