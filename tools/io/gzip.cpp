#include "tools/io/gzip.h"

#include <zlib.h>

#include <cassert>
#include <cerrno>
#include <filesystem>
#include <new>
#include <streambuf>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/io/descriptor.h"

namespace plumb { inline namespace tools {
namespace {

constexpr unsigned kBlockBytes = 1U << 18;
constexpr int kGzipHeader = 16;  // added to the bits of the window, zlib writes gzip's header

/// Packs what it is given, piece by piece.
class Packer {
 public:
  Packer() : block_(kBlockBytes) {
    if (deflateInit2(&state_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipHeader, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~Packer() { deflateEnd(&state_); }
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  void take(std::string_view piece, int flush, const std::function<void(std::string_view)>& hand_on) {
    for (bool is_first = true; is_first || !piece.empty(); is_first = false) {
      const std::string_view part = piece.substr(0, kBlockBytes);
      piece.remove_prefix(part.size());
      state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));  // zlib only reads it
      state_.avail_in = static_cast<uInt>(part.size());
      do {
        state_.next_out = reinterpret_cast<Bytef*>(block_.data());
        state_.avail_out = kBlockBytes;
        [[maybe_unused]] const int status = deflate(&state_, flush);
        assert(status != Z_STREAM_ERROR);
        if (state_.avail_out < kBlockBytes) hand_on({block_.data(), kBlockBytes - state_.avail_out});
      } while (state_.avail_out == 0);
    }
  }

 private:
  z_stream state_{};
  std::vector<char> block_;
};

}  // namespace

class InputStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(const std::string& path) : path_(path), block_(kBlockBytes) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw InputError(fmt::format("{}: there is no such file: check the path", path));
    if (std::filesystem::is_directory(path, ignored))
      throw InputError(fmt::format("{}: this is a folder: name a file in it", path));
    errno = 0;
    file_ = gzopen(path.c_str(), "rbe");
    if (file_ == nullptr) fail_of_system(path, "this file cannot be read: check that you may read it", errno);
    gzbuffer(file_, kBlockBytes);
  }
  ~Buffer() override { gzclose_r(file_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::string_view ahead() const { return {gptr(), static_cast<std::size_t>(egptr() - gptr())}; }

 protected:
  int_type underflow() override {
    const int count = gzread(file_, block_.data(), kBlockBytes);
    int fault = Z_OK;
    gzerror(file_, &fault);
    if (fault == Z_ERRNO)
      throw InputError(fmt::format("{}: this file cannot be read: check that you may read it", path_));
    if (count < 0 || fault != Z_OK)
      throw InputError(
          fmt::format("{}: what gzip has packed is damaged or ends too early: fetch the whole file", path_));
    if (count == 0) return traits_type::eof();
    setg(block_.data(), block_.data(), block_.data() + count);
    return traits_type::to_int_type(block_.front());
  }

 private:
  std::string path_;
  std::vector<char> block_;
  gzFile file_ = nullptr;
};

InputStream::InputStream(const std::string& path) : std::istream(nullptr), buffer_(std::make_unique<Buffer>(path)) {
  rdbuf(buffer_.get());
  exceptions(std::ios::badbit);  // what the buffer throws goes on to the reader
}

InputStream::~InputStream() = default;

std::string_view InputStream::ahead() {
  peek();
  return buffer_->ahead();
}

bool is_gzip_name(std::string_view path) {
  return path.ends_with(".gz");
}

TextPieces gzipped(TextPieces pieces) {
  return [pieces = std::move(pieces)](const std::function<void(std::string_view)>& take) {
    Packer packer;
    pieces([&](std::string_view piece) { packer.take(piece, Z_NO_FLUSH, take); });
    packer.take({}, Z_FINISH, take);
  };
}

}}  // namespace plumb::tools
