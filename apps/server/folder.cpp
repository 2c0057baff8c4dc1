#include "apps/server/folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

namespace orrery::server {

PrivateFolder::PrivateFolder() : path_((std::filesystem::temp_directory_path() / "orrery-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw std::filesystem::filesystem_error("no folder for temporary files", path_,
                                            std::error_code(errno, std::generic_category()));
  }
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void PrivateFolder::write(const std::string& name, std::string_view text) const {
  const auto file = std::filesystem::path(path_) / name;
  std::ofstream out(file, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) {
    throw std::filesystem::filesystem_error("cannot be written", file, std::make_error_code(std::errc::io_error));
  }
}

std::string PrivateFolder::read(const std::string& name) const {
  std::ifstream in(std::filesystem::path(path_) / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace orrery::server
