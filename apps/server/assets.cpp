#include "apps/server/assets.hpp"

#include <array>
#include <utility>

namespace orrery::server {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes{
    {{".html", "text/html"}, {".js", "text/javascript"}, {".css", "text/css"}, {".svg", "image/svg+xml"}}};

std::string_view type_of(std::string_view name) {
  for (const auto& [suffix, type] : kTypes) {
    if (name.ends_with(suffix)) { return type; }
  }
  return "application/octet-stream";
}

}  // namespace

std::vector<Asset> assets() {
  std::vector<Asset> list;
  for (const EmbeddedFile& file : embedded_files()) {
    list.push_back({file.name == "index.html" ? "/" : "/" + std::string(file.name), type_of(file.name), file.bytes});
  }
  return list;
}

}  // namespace orrery::server
