#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orrery/config/node.hpp"

namespace orrery::config::read_file_test {
namespace {

namespace fs = std::filesystem;

class ReadFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "orrery-read-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view content) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  [[nodiscard]] std::string path_of(const std::string& name) const { return (folder_ / name).string(); }

  // The message without the path in front.
  static std::string complaint(const std::string& path) {
    const auto node = read_file(path);
    EXPECT_FALSE(node.has_value());
    if (node) { return {}; }
    EXPECT_EQ(node.error().diagnostics.size(), 1U);
    EXPECT_EQ(node.error().diagnostics.front().place.file, path);
    return node.error().diagnostics.front().message;
  }

  fs::path folder_;
};

TEST_F(ReadFile, the_extension_decides_the_format) {
  const std::string tabs_between = "{\"a\":\t[1,\t2]}";
  EXPECT_TRUE(read_file(write("a.json", tabs_between)).has_value());
  EXPECT_TRUE(read_file(write("a.JSON", tabs_between)).has_value());
  EXPECT_TRUE(read_file(write("b.yaml", "a: [1, 2]\n")).has_value());
  EXPECT_TRUE(read_file(write("b", "a: [1, 2]\n")).has_value());
  EXPECT_FALSE(read_file(write("b.json", "a: [1, 2]\n")).has_value());
}

TEST_F(ReadFile, profiles_of_pytorch_name_the_command_that_reads_them) {
  EXPECT_EQ(
      complaint(write("kineto.json", "{\n \"schemaVersion\": 1,\n \"traceEvents\": [\n")),
      "is a profile of PyTorch (Kineto, a Chrome trace in JSON); \"orrery trace stats\" and \"orrery trace import\" "
      "read it");
  EXPECT_EQ(complaint(write("host.json", R"({"schema": "1.1.0", "pid": 7, "nodes": []})")),
            "is a PyTorch execution trace; \"orrery trace link\" reads it");
}

TEST_F(ReadFile, a_missing_file_gets_the_nearest_name) {
  write("llama.yaml", "a: 1");
  EXPECT_EQ(complaint(path_of("lama.yaml")), "does not exist; did you mean \"" + path_of("llama.yaml") + "\"?");
  EXPECT_EQ(complaint(path_of("something-else.txt")), "does not exist");
}

TEST_F(ReadFile, a_missing_folder_is_named) {
  EXPECT_EQ(complaint(path_of("models/llama.yaml")),
            "does not exist: there is no folder \"" + path_of("models") + "\"");
}

TEST_F(ReadFile, what_is_not_a_file_is_named) {
  EXPECT_EQ(complaint(folder_.string()), "is a folder, not a file");
  EXPECT_EQ(complaint("/dev/zero"), "is a device, not a file");
  ASSERT_EQ(mkfifo(path_of("pipe").c_str(), 0600), 0);
  EXPECT_EQ(complaint(path_of("pipe")), "is a pipe, not a file");
}

TEST_F(ReadFile, an_unreadable_file_says_why) {
  const std::string path = write("secret.yaml", "a: 1");
  fs::permissions(path, fs::perms::none);
  if (geteuid() == 0) { GTEST_SKIP() << "root reads everything"; }
  EXPECT_EQ(complaint(path), "cannot be read: Permission denied");
}

TEST_F(ReadFile, a_file_that_is_too_large_is_refused_unread) {
  const std::string path = write("huge.yaml", "a: 1");
  fs::resize_file(path, std::uintmax_t{2} << 30);  // sparse
  EXPECT_EQ(complaint(path), "is too large (2.00 GiB); at most 64 MiB are read");
}

TEST_F(ReadFile, the_limit_itself_is_read) {
  const std::string path = write("a.txt", "12345678");
  EXPECT_EQ(read_text_file(path, 8).value(), "12345678");
  ASSERT_FALSE(read_text_file(path, 7).has_value());
}

TEST_F(ReadFile, an_empty_file_is_named) {
  EXPECT_EQ(complaint(write("empty.yaml", "")), "is empty");
  EXPECT_EQ(complaint(write("empty.json", "")), "is empty");
}

TEST_F(ReadFile, no_name_is_an_error) { EXPECT_EQ(read_file("").error().text(), "no file name is given"); }

}  // namespace
}  // namespace orrery::config::read_file_test
