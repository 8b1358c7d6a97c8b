#include "tools/io/compressed_file.h"

#include <zlib.h>

#include <filesystem>
#include <streambuf>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace tools {

/// Hands on what zlib unpacks, block by block.
class CompressedFile::Buffer : public std::streambuf {
 public:
  explicit Buffer(const std::string& path) : file_(gzopen(path.c_str(), "rb")), block_(kBlock) {
    if (file_ == nullptr) throw InputError(fmt::format("{}: this file cannot be read: check that you may read it", path));
    gzbuffer(file_, kBlock);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() override { gzclose(file_); }

  const std::string& fault() const { return fault_; }

 protected:
  int_type underflow() override {
    const int count = gzread(file_, block_.data(), kBlock);
    if (count <= 0) {
      int code = Z_OK;
      const char* const said = gzerror(file_, &code);
      if (code != Z_OK && code != Z_STREAM_END)
        fault_ = code == Z_BUF_ERROR ? "its compressed data are cut short" : fmt::format("it cannot be unpacked ({})", said);
      return traits_type::eof();
    }
    setg(block_.data(), block_.data(), block_.data() + count);
    return traits_type::to_int_type(block_.front());
  }

 private:
  static constexpr unsigned kBlock = 1U << 18;

  gzFile file_;
  std::vector<char> block_;
  std::string fault_;
};

CompressedFile::CompressedFile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw InputError(fmt::format("{}: there is no such file: check the path", path));
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(fmt::format("{}: this is a folder: name a file in it", path));
  buffer_ = std::make_unique<Buffer>(path);
  stream_ = std::make_unique<std::istream>(buffer_.get());
}

CompressedFile::~CompressedFile() = default;

std::string CompressedFile::fault() const {
  return buffer_->fault();
}

}}  // namespace plumb::tools
