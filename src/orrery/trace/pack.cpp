#include "orrery/trace/pack.hpp"

#include <zlib.h>
#include <zstd.h>

#include <new>

#include "orrery/core/error.hpp"

namespace orrery::trace {

namespace {

constexpr std::size_t kStep = std::size_t{1} << 16;  // bytes of room

class Gzip : public Packer {
 public:
  explicit Gzip(int level) {
    constexpr int kGzip = 16 + MAX_WBITS;
    if (deflateInit2(&stream_, level, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) { throw std::bad_alloc(); }
  }
  ~Gzip() override { deflateEnd(&stream_); }

  void pack(std::string_view bytes, bool ends, std::string& packed) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib does not write there
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      const std::size_t before = packed.size();
      packed.resize(before + kStep);
      stream_.next_out = reinterpret_cast<Bytef*>(packed.data() + before);
      stream_.avail_out = static_cast<uInt>(kStep);
      deflate(&stream_, ends ? Z_FINISH : Z_NO_FLUSH);
      packed.resize(packed.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_ = {};
};

class Zstd : public Packer {
 public:
  Zstd() : stream_(ZSTD_createCStream()) {
    if (stream_ == nullptr) { throw std::bad_alloc(); }
    ZSTD_CCtx_setParameter(stream_, ZSTD_c_checksumFlag, 1);  // as the zstd program does, at its default level
  }
  ~Zstd() override { ZSTD_freeCStream(stream_); }

  void pack(std::string_view bytes, bool ends, std::string& packed) override {
    ZSTD_inBuffer given{bytes.data(), bytes.size(), 0};
    for (bool goes_on = true; goes_on;) {
      const std::size_t before = packed.size();
      packed.resize(before + kStep);
      ZSTD_outBuffer room{packed.data() + before, kStep, 0};
      const std::size_t left = ZSTD_compressStream2(stream_, &room, &given, ends ? ZSTD_e_end : ZSTD_e_continue);
      ORRERY_ASSERT(ZSTD_isError(left) == 0);
      packed.resize(before + room.pos);
      goes_on = ends ? left != 0 : given.pos < given.size;
    }
  }

 private:
  ZSTD_CStream* stream_;
};

}  // namespace

std::unique_ptr<Packer> packer_for(std::string_view path, int gzip_level) {
  if (path.ends_with(".gz")) { return std::make_unique<Gzip>(gzip_level); }
  if (path.ends_with(".zst")) { return std::make_unique<Zstd>(); }
  return nullptr;
}

}  // namespace orrery::trace
