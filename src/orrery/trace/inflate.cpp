#include "orrery/trace/inflate.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

namespace orrery::trace {

namespace {

class Gzip final : public Inflater {
 public:
  Gzip() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) { throw std::bad_alloc(); }
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() override { inflateEnd(&stream_); }

  tl::expected<InflateStep, std::string> step(std::string_view in, char* out, std::size_t room) override {
    if (complete_ && in.empty()) { return InflateStep{}; }
    if (complete_) {
      inflateReset(&stream_);
      complete_ = false;
    }
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const auto given = static_cast<uInt>(std::min(in.size(), kMost));
    const auto space = static_cast<uInt>(std::min(room, kMost));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // NOLINT: zlib does not write there
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = space;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) { throw std::bad_alloc(); }
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      return tl::make_unexpected(
          fmt::format("the gzip data are damaged ({})", stream_.msg == nullptr ? "no reason given" : stream_.msg));
    }
    complete_ = code == Z_STREAM_END;
    return InflateStep{given - stream_.avail_in, space - stream_.avail_out};
  }

  [[nodiscard]] bool complete() const override { return complete_; }

 private:
  z_stream stream_ = {};
  bool complete_ = false;
};

class Zstd final : public Inflater {
 public:
  Zstd() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) { throw std::bad_alloc(); }
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ZSTD_freeDStream(stream_); }

  tl::expected<InflateStep, std::string> step(std::string_view in, char* out, std::size_t room) override {
    if (complete_ && in.empty()) { return InflateStep{}; }
    ZSTD_inBuffer given{in.data(), in.size(), 0};
    ZSTD_outBuffer space{out, room, 0};
    const std::size_t code = ZSTD_decompressStream(stream_, &space, &given);
    if (ZSTD_isError(code) != 0) {
      return tl::make_unexpected(fmt::format("the zstd data are damaged ({})", ZSTD_getErrorName(code)));
    }
    complete_ = code == 0;
    return InflateStep{given.pos, space.pos};
  }

  [[nodiscard]] bool complete() const override { return complete_; }

 private:
  ZSTD_DStream* stream_;
  bool complete_ = false;
};

}  // namespace

Compression compression_of(std::string_view first_bytes) {
  using namespace std::string_view_literals;
  if (first_bytes.starts_with("\x1f\x8b"sv)) { return Compression::gzip; }
  if (first_bytes.starts_with("\x28\xb5\x2f\xfd"sv)) { return Compression::zstd; }
  return Compression::none;
}

std::unique_ptr<Inflater> make_inflater(Compression compression) {
  if (compression == Compression::zstd) { return std::make_unique<Zstd>(); }
  ORRERY_ASSERT(compression == Compression::gzip);
  return std::make_unique<Gzip>();
}

}  // namespace orrery::trace
