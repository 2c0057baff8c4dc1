// A folder that only this user can read, removed with all that is in it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace orrery::server {

class PrivateFolder {
 public:
  PrivateFolder();  // throws std::filesystem::filesystem_error
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  [[nodiscard]] const std::string& path() const { return path_; }
  // Throws std::filesystem::filesystem_error. `name`: without folders.
  void write(const std::string& name, std::string_view text) const;
  // Empty if there is no such file.
  [[nodiscard]] std::string read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace orrery::server
