#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/encode.hpp"

namespace orrery::trace {

using graph::Metadata;
using graph::NodeRecord;

namespace {

constexpr std::size_t kFlush = std::size_t{1} << 20;

// A file that appears when it is complete: written beside its place, then renamed.
class Output {
 public:
  Output(std::string path, int level) : path_(std::move(path)), partial_(path_ + ".partial") {
    file_ = std::fopen(partial_.c_str(), "wb");
    error_ = file_ == nullptr ? errno : 0;
    if (!path_.ends_with(".gz")) { return; }
    constexpr int kGzip = 16 + MAX_WBITS;
    packs_ = deflateInit2(&stream_, level, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (!packs_) { throw std::bad_alloc(); }
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (packs_) { deflateEnd(&stream_); }
    if (file_ == nullptr) { return; }
    std::fclose(file_);
    std::remove(partial_.c_str());
  }

  [[nodiscard]] Result<void> put(std::string_view bytes) {
    if (!packs_) { return put_raw(bytes); }
    return pack(bytes, Z_NO_FLUSH);
  }

  Result<std::uint64_t> close() {
    if (packs_) {
      if (auto packed = pack({}, Z_FINISH); !packed) { return tl::make_unexpected(std::move(packed).error()); }
    }
    if (error_ == 0 && std::fclose(std::exchange(file_, nullptr)) != 0) { error_ = errno; }
    if (error_ != 0) { return failure(); }
    std::error_code error;
    std::filesystem::rename(partial_, path_, error);
    if (error) {
      std::remove(partial_.c_str());
      error_ = error.value();
      return failure();
    }
    return bytes_;
  }

  [[nodiscard]] tl::unexpected<Failure> failure() const {
    return fail(Place{path_, 0, 0, {}}, fmt::format("cannot be written: {}", std::generic_category().message(error_)));
  }
  [[nodiscard]] bool good() const { return error_ == 0; }

 private:
  Result<void> put_raw(std::string_view bytes) {
    if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) { error_ = errno; }
    if (error_ != 0) { return failure(); }
    bytes_ += bytes.size();
    return {};
  }

  Result<void> pack(std::string_view bytes, int flush) {
    std::string packed(std::size_t{1} << 16, '\0');
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib does not write there
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed.data());
      stream_.avail_out = static_cast<uInt>(packed.size());
      deflate(&stream_, flush);
      if (auto put = put_raw(std::string_view(packed).substr(0, packed.size() - stream_.avail_out)); !put) {
        return put;
      }
    } while (stream_.avail_out == 0);
    return {};
  }

  std::string path_;
  std::string partial_;
  std::FILE* file_ = nullptr;
  int error_ = 0;
  bool packs_ = false;
  z_stream stream_ = {};
  std::uint64_t bytes_ = 0;
};

Metadata as_written(const Metadata& metadata, const WriteOptions& options) {
  Metadata written = metadata;
  if (options.version) { written.version = *options.version; }
  return written;
}

}  // namespace

struct ChakraWriter::State {
  State(const std::string& path, int level) : output(path, level) {}

  // Deflate takes at most 4 GiB at once; so do we.
  Result<void> flush() {
    std::string_view rest = buffer;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, std::size_t{1} << 30);
      if (auto put = output.put(part); !put) { return put; }
      rest.remove_prefix(part.size());
    }
    buffer.clear();
    return {};
  }

  Output output;
  std::string buffer;
};

ChakraWriter::ChakraWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChakraWriter::ChakraWriter(ChakraWriter&&) noexcept = default;
ChakraWriter& ChakraWriter::operator=(ChakraWriter&&) noexcept = default;
ChakraWriter::~ChakraWriter() = default;

Result<ChakraWriter> ChakraWriter::open(const std::string& path, const Metadata& metadata,
                                        const WriteOptions& options) {
  auto state = std::make_unique<State>(path, options.compression_level);
  if (!state->output.good()) { return state->output.failure(); }
  append_record(state->buffer, as_written(metadata, options));
  return ChakraWriter(std::move(state));
}

Result<void> ChakraWriter::write(const NodeRecord& node) {
  append_record(state_->buffer, node);
  return state_->buffer.size() < kFlush ? Result<void>() : state_->flush();
}

Result<std::uint64_t> ChakraWriter::close() {
  if (auto flushed = state_->flush(); !flushed) { return tl::make_unexpected(std::move(flushed).error()); }
  return state_->output.close();
}

Result<std::uint64_t> write_chakra(const graph::Graph& graph, const std::string& path, const WriteOptions& options) {
  ORRERY_TRY(writer, ChakraWriter::open(path, graph.metadata(), options));
  NodeRecord record;
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
    graph.copy_record(node, record);
    if (auto written = writer.write(record); !written) { return tl::make_unexpected(std::move(written).error()); }
  }
  return writer.close();
}

std::string chakra_bytes(const graph::Graph& graph, const WriteOptions& options) {
  std::string bytes;
  append_record(bytes, as_written(graph.metadata(), options));
  NodeRecord record;
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
    graph.copy_record(node, record);
    append_record(bytes, record);
  }
  return bytes;
}

}  // namespace orrery::trace
