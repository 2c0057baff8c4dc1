// The files of the page, which the build embeds from apps/web.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/embedded_file.hpp"

namespace orrery::server {

struct Asset {
  std::string path;       // "/app.js"; the page itself is "/"
  std::string_view type;  // of its content: "text/html"
  std::string_view content;
};

[[nodiscard]] std::vector<Asset> assets();

[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

}  // namespace orrery::server
