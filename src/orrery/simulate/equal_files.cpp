#include "orrery/simulate/equal_files.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orrery/core/parallel_for.hpp"

namespace orrery::simulate {

namespace {

constexpr std::uint64_t kBeginning = 4096;  // bytes
constexpr std::uint64_t kBuffer = 65536;
constexpr std::uint64_t kMostKept = std::uint64_t{64} << 20U;  // bytes of files of one size

// What is known of a file. Files that differ in it are different.
struct Contents {
  std::uint64_t device = 0, number = 0;  // of the file system
  std::uint64_t size = 0;
  std::uint64_t beginning = 0, all = 0;  // hashes; 0: not needed
  bool is_known = false;
  std::string bytes;  // all, of short files that have been read

  [[nodiscard]] auto key() const { return std::tuple(size, beginning, all); }
};

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (file_ >= 0) { ::close(file_); }
  }

  // False if it could not be opened.
  [[nodiscard]] bool find(struct ::stat& into) const { return file_ >= 0 && ::fstat(file_, &into) == 0; }

  // Bytes of a regular file that were read: fewer than the buffer has only if the file ends there, 0 if it cannot be
  // read.
  template <std::size_t Most>
  [[nodiscard]] std::uint64_t read_once(std::array<char, Most>& into) const {
    const ssize_t count = file_ >= 0 ? ::read(file_, into.data(), into.size()) : 0;
    return count < 0 ? 0 : static_cast<std::uint64_t>(count);
  }

  // Reads up to `most` bytes, fewer only at the end of the file or if it cannot be read.
  [[nodiscard]] std::uint64_t read(char* into, std::uint64_t most) const {
    std::uint64_t done = 0;
    while (file_ >= 0 && done < most) {
      const ssize_t count = ::read(file_, into + done, most - done);
      if (count <= 0) { break; }
      done += static_cast<std::uint64_t>(count);
    }
    return done;
  }

 private:
  int file_;
};

using Buffer = std::unique_ptr<char[]>;  // NOLINT(*-avoid-c-arrays)
Buffer buffer_for(std::uint64_t bytes) {
  return std::make_unique_for_overwrite<char[]>(std::min(bytes, kBuffer));  // NOLINT(*-avoid-c-arrays)
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29U);
}

// A hash of the first bytes of a file; 0 if they cannot be read.
std::uint64_t hash_of(const std::string& path, std::uint64_t bytes) {
  const OpenFile file(path);
  const Buffer buffer = buffer_for(bytes);
  std::uint64_t hash = 1;
  for (std::uint64_t left = bytes; left > 0;) {
    const std::uint64_t count = file.read(buffer.get(), std::min(left, kBuffer));
    if (count == 0) { return 0; }
    left -= count;
    for (std::uint64_t i = 0; i < count; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, buffer.get() + i, std::min<std::uint64_t>(sizeof(word), count - i));
      hash = mixed(hash, word);
    }
  }
  return hash == 0 ? 1 : hash;
}

bool have_same_bytes(const std::string& a, const std::string& b, std::uint64_t bytes) {
  const OpenFile file_a(a), file_b(b);
  const Buffer buffer_a = buffer_for(bytes), buffer_b = buffer_for(bytes);
  for (std::uint64_t left = bytes; left > 0;) {
    const std::uint64_t next = std::min(left, kBuffer);
    if (file_a.read(buffer_a.get(), next) != next || file_b.read(buffer_b.get(), next) != next ||
        std::memcmp(buffer_a.get(), buffer_b.get(), next) != 0) {
      return false;
    }
    left -= next;
  }
  return true;
}

class Comparison {
 public:
  Comparison(const std::vector<std::string>& files, int threads, const std::vector<bool>& are_regular)
      : files_(files), threads_(threads), contents_(files.size()), first_(files.size()) {
    std::atomic<std::uint64_t> kept = 0;
    parallel_for(files_.size(), threads_, [&](std::size_t i) {
      contents_[i] = !are_regular.empty() && are_regular[i] ? short_file(files_[i], kept) : status(files_[i]);
    });
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t i = 0; i < first_.size(); ++i) { first_[i] = i; }
    match_links();
    match_short();
    hash([](const Contents& contents) { return std::min(contents.size, kBeginning); }, &Contents::beginning);
    hash([](const Contents& contents) { return contents.size > kBeginning ? contents.size : 0; }, &Contents::all);
    match_bytes();
    // A link of a file that is equal to an earlier one.
    for (std::uint32_t& first : first_) { first = first_[first]; }
    return std::move(first_);
  }

 private:
  static Contents contents_of(const struct ::stat& found) {
    Contents contents;
    contents.device = found.st_dev;
    contents.number = found.st_ino;
    contents.size = static_cast<std::uint64_t>(found.st_size);
    contents.is_known = S_ISREG(found.st_mode);
    return contents;
  }

  static Contents status(const std::string& path) {
    struct ::stat found{};
    return path.empty() || ::stat(path.c_str(), &found) != 0 ? Contents() : contents_of(found);
  }

  // Of a regular file: with its bytes, if it is short and not too many are kept. A short file is opened, read and
  // closed; its size is where reading ends.
  static Contents short_file(const std::string& path, std::atomic<std::uint64_t>& kept) {
    const OpenFile file(path);
    std::array<char, kBeginning + 1> buffer;  // NOLINT(*-member-init): filled by read()
    const std::uint64_t size = kept < kMostKept ? file.read_once(buffer) : buffer.size();
    if (size > 0 && size <= kBeginning && kept.fetch_add(size) + size <= kMostKept) {
      Contents contents;
      contents.size = size;
      contents.is_known = true;
      contents.bytes.assign(buffer.data(), size);
      return contents;
    }
    struct ::stat found{};
    return file.find(found) ? contents_of(found) : Contents();
  }

  void match_links() {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> first;
    for (std::uint32_t i = 0; i < first_.size(); ++i) {
      if (!contents_[i].is_known || !contents_[i].bytes.empty()) { continue; }
      first_[i] = first.try_emplace({contents_[i].device, contents_[i].number}, i).first->second;
    }
  }

  // Calls `use` with the files that may be equal, apart from links: those in whose contents nothing is known to differ.
  template <class Use>
  void each_kind(Use&& use) const {
    std::map<decltype(Contents().key()), std::vector<std::uint32_t>> kinds;
    for (std::uint32_t i = 0; i < first_.size(); ++i) {
      if (contents_[i].is_known && first_[i] == i) { kinds[contents_[i].key()].push_back(i); }
    }
    for (const auto& [key, members] : kinds) {
      if (members.size() > 1) { use(members); }
    }
  }

  // Short files of one size are read once, and compared in memory. No other step sees them.
  void match_short() {
    each_kind([&](const std::vector<std::uint32_t>& members) {
      const std::uint64_t size = contents_[members.front()].size;
      if (size == 0 || size > kBeginning || size * members.size() > kMostKept) { return; }
      parallel_for(members.size(), threads_, [&](std::size_t i) {
        std::string& bytes = contents_[members[i]].bytes;
        if (!bytes.empty()) { return; }
        bytes.resize(size);
        bytes.resize(OpenFile(files_[members[i]]).read(bytes.data(), size));
      });
      std::unordered_map<std::string_view, std::uint32_t> first;
      for (const std::uint32_t member : members) {
        contents_[member].is_known = false;
        if (contents_[member].bytes.size() != size) { continue; }
        first_[member] = first.try_emplace(contents_[member].bytes, member).first->second;
      }
    });
  }

  template <class BytesOf>
  void hash(const BytesOf& bytes_of, std::uint64_t Contents::* into) {
    std::vector<std::uint32_t> files;
    each_kind([&](const std::vector<std::uint32_t>& members) {
      if (bytes_of(contents_[members.front()]) > 0) { files.insert(files.end(), members.begin(), members.end()); }
    });
    parallel_for(files.size(), threads_, [&](std::size_t i) {
      Contents& contents = contents_[files[i]];
      contents.*into = hash_of(files_[files[i]], bytes_of(contents));
      contents.is_known = contents.*into != 0;
    });
  }

  // Hashes do not decide.
  void match_bytes() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    each_kind([&](const std::vector<std::uint32_t>& members) {
      for (std::size_t i = 1; i < members.size(); ++i) { pairs.emplace_back(members.front(), members[i]); }
    });
    parallel_for(pairs.size(), threads_, [&](std::size_t i) {
      const auto [first, other] = pairs[i];
      if (have_same_bytes(files_[first], files_[other], contents_[first].size)) { first_[other] = first; }
    });
  }

  const std::vector<std::string>& files_;
  int threads_;
  std::vector<Contents> contents_;
  std::vector<std::uint32_t> first_;
};

}  // namespace

std::vector<std::uint32_t> first_equal_files(const std::vector<std::string>& files, int threads,
                                             const std::vector<bool>& are_regular) {
  return Comparison(files, threads, are_regular).run();
}

}  // namespace orrery::simulate
