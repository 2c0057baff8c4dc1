#include "orrery/trace/source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orrery/trace/inflate.hpp"

namespace orrery::trace {

namespace {

Place in(const std::string& file) { return {file, 0, 0, {}}; }

std::string reason(int error) { return std::generic_category().message(error); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) { ::close(number_); }
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// Bytes in memory.
class Memory : public Source {
 public:
  explicit Memory(std::string_view bytes) : bytes_(bytes) {}

  std::string_view ahead(std::size_t /*wanted*/) override { return bytes_.substr(position_); }
  void consume(std::size_t bytes) override { position_ += bytes; }
  void seek(std::size_t position) override { position_ = std::min(position, bytes_.size()); }
  [[nodiscard]] std::uint64_t file_bytes() const override { return position_; }
  [[nodiscard]] std::optional<std::string_view> whole() const override { return bytes_; }

 protected:
  std::string_view bytes_;
  std::size_t position_ = 0;
};

class Mapped final : public Memory {
 public:
  Mapped(void* address, std::size_t size) : Memory({static_cast<const char*>(address), size}), address_(address) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() override { ::munmap(address_, bytes_.size()); }

  void consume(std::size_t bytes) override {
    Memory::consume(bytes);
    if (position_ < forgotten_) { forgotten_ = position_; }
    if (position_ - forgotten_ < kStep) { return; }
    forget(forgotten_, position_);
    forgotten_ = position_;
  }

  void forget(std::size_t begin, std::size_t end) override {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (end > begin) { ::madvise(static_cast<char*>(address_) + begin, end - begin, MADV_DONTNEED); }
  }

 private:
  static constexpr std::size_t kStep = std::size_t{1} << 20;  // released at once

  void* address_;
  std::size_t forgotten_ = 0;
};

// Reads compressed bytes, or those of a pipe.
class Input {
 public:
  Input(Descriptor file, std::string_view first, std::string name)
      : file_(std::move(file)),
        name_(std::move(name)),
        buffer_(file_.number() < 0 ? 0 : kBuffer),
        rest_(first),
        total_(first.size()) {}

  // The rest of the last read; reads more if it is empty. Empty at the end.
  Result<std::string_view> rest() {
    if (!rest_.empty() || file_.number() < 0) { return rest_; }
    const ssize_t got = ::read(file_.number(), buffer_.data(), buffer_.size());
    if (got < 0) { return fail(in(name_), fmt::format("cannot be read: {}", reason(errno))); }
    rest_ = {buffer_.data(), static_cast<std::size_t>(got)};
    total_ += rest_.size();
    return rest_;
  }
  void take(std::size_t bytes) { rest_.remove_prefix(bytes); }
  [[nodiscard]] std::uint64_t taken() const { return total_ - rest_.size(); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 18;

  Descriptor file_;
  std::string name_;
  std::vector<char> buffer_;
  std::string_view rest_;
  std::uint64_t total_;
};

class Streamed final : public Source {
 public:
  Streamed(Input input, std::unique_ptr<std::string> first, Compression compression)
      : first_(std::move(first)), input_(std::move(input)) {
    compression_ = compression;
    if (compression != Compression::none) { inflater_ = make_inflater(compression); }
  }

  std::string_view ahead(std::size_t wanted) override {
    while (end_ - begin_ < wanted && !ended_) {
      make_room();
      if (auto filled = fill(); !filled) {
        // The bytes before the damage are valid and are returned; damage() has the reason.
        damage_ = std::move(filled).error();
        ended_ = true;
      }
    }
    return {window_.data() + begin_, end_ - begin_};
  }
  void consume(std::size_t bytes) override { begin_ += bytes; }
  [[nodiscard]] std::uint64_t file_bytes() const override { return input_.taken(); }

 private:
  static constexpr std::size_t kStep = std::size_t{1} << 16;

  void make_room() {
    if (begin_ > 0) {
      std::memmove(window_.data(), window_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (window_.size() - end_ < kStep) { window_.resize(std::max(window_.size() * 2, end_ + kStep)); }
  }

  Result<void> fill() {
    ORRERY_TRY(rest, input_.rest());
    if (inflater_ == nullptr) {
      const std::size_t copied = std::min(rest.size(), window_.size() - end_);
      std::memcpy(window_.data() + end_, rest.data(), copied);
      input_.take(copied);
      end_ += copied;
      ended_ = rest.empty();
      return {};
    }
    auto step = inflater_->step(rest, window_.data() + end_, window_.size() - end_);
    if (!step) { return fail(in(input_.name()), fmt::format("compressed byte {}: {}", input_.taken(), step.error())); }
    input_.take(step->taken);
    end_ += step->written;
    if (rest.empty() && step->written == 0) {
      ended_ = true;
      if (!inflater_->complete()) {
        return fail(in(input_.name()), fmt::format("compressed byte {}: the {} data are truncated", input_.taken(),
                                                   name_of(compression_)));
      }
    }
    return {};
  }

  std::unique_ptr<std::string> first_;  // bytes read to recognize the compression; the input views them
  Input input_;
  std::unique_ptr<Inflater> inflater_;
  std::vector<char> window_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool ended_ = false;
};

Result<std::unique_ptr<Source>> mapped(const Descriptor& file, const std::string& path, std::size_t size) {
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (address == MAP_FAILED) { return fail(in(path), fmt::format("cannot be mapped: {}", reason(errno))); }
  ::madvise(address, size, MADV_SEQUENTIAL);
  return std::make_unique<Mapped>(address, size);
}

std::string first_bytes(const Descriptor& file) {
  std::string first(4, '\0');
  std::size_t size = 0;
  while (size < first.size()) {
    const ssize_t got = ::read(file.number(), first.data() + size, first.size() - size);
    if (got <= 0) { break; }
    size += static_cast<std::size_t>(got);
  }
  first.resize(size);
  return first;
}

}  // namespace

Result<std::unique_ptr<Source>> open_source(const std::string& path, Access access) {
  if (path.empty()) { return fail("the file name is empty"); }
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT(cppcoreguidelines-pro-type-vararg)
  if (file.number() < 0) {
    return fail(in(path), errno == ENOENT ? "does not exist" : "cannot be read: " + reason(errno));
  }
  struct stat facts = {};
  if (::fstat(file.number(), &facts) != 0) { return fail(in(path), "cannot be read: " + reason(errno)); }
  if (S_ISDIR(facts.st_mode)) { return fail(in(path), "is a folder, not a file"); }
  std::string first = first_bytes(file);
  if (first.empty()) { return fail(in(path), "is empty; a Chakra trace has at least a metadata record"); }
  const Compression compression = compression_of(first);
  if (S_ISREG(facts.st_mode) && compression == Compression::none && access == Access::mapped) {
    return mapped(file, path, static_cast<std::size_t>(facts.st_size));
  }
  // Moved together with the text that it views: the text is on the heap of the source from here on.
  auto kept = std::make_unique<std::string>(std::move(first));
  Input input(std::move(file), *kept, path);
  return std::make_unique<Streamed>(std::move(input), std::move(kept), compression);
}

Result<std::unique_ptr<Source>> source_of_bytes(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) { return fail(in(name), "is empty; a Chakra trace has at least a metadata record"); }
  const Compression compression = compression_of(bytes);
  if (compression == Compression::none) { return std::make_unique<Memory>(bytes); }
  return std::make_unique<Streamed>(Input(Descriptor(-1), bytes, name), nullptr, compression);
}

}  // namespace orrery::trace
