// The files of the page, which the build embeds from apps/web (cmake/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace orrery::server {

struct Asset {
  std::string_view path;  // "/app.js"; the page itself is "/"
  std::string_view type;  // of its content: "text/html"
  std::string_view content;
};

[[nodiscard]] std::span<const Asset> assets();

}  // namespace orrery::server
