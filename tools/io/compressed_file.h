#pragma once
// A file that may be compressed by gzip is read as a stream of what is in it, in bounded memory.
//
//   const CompressedFile file("rank0.json.gz");
//   read_profiler_trace(file.stream(), "rank0.json.gz");

#include <istream>
#include <memory>
#include <string>

namespace plumb { inline namespace tools {

class CompressedFile {
 public:
  /// A file that does not begin as gzip's do is read as it is. Throws InputError naming the path if it does not exist, is
  /// a folder, or cannot be opened. Reading stops where the compressed data end or have a fault; fault() then says it.
  explicit CompressedFile(const std::string& path);
  ~CompressedFile();

  std::istream& stream() { return *stream_; }

  /// Returns what is wrong with the compressed data that were read, as a clause; empty: nothing.
  std::string fault() const;

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::istream> stream_;
};

}}  // namespace plumb::tools
