#pragma once
// Files that gzip has packed. What is read is unpacked on the way, whatever its name; what is written is packed if its
// name ends in ".gz".
//
//   InputStream stream("rank0.json.gz");         // hands on the JSON
//   write_file("step.json.gz", pieces);          // files.h packs it

#include <istream>
#include <memory>
#include <string>
#include <string_view>

#include "tools/io/files.h"

namespace plumb { inline namespace tools {

/// The contents of a file, packed or plain. The constructor throws InputError naming the path if the file does not
/// exist, is a folder, or may not be read. Reading throws InputError if packed data are damaged or end too early.
class InputStream : public std::istream {
 public:
  explicit InputStream(const std::string& path);
  ~InputStream() override;
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  /// Returns what comes next, without taking it: up to 256 KiB, and nothing only at the end.
  std::string_view ahead();

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

/// Returns true for a name that ends in ".gz".
bool is_gzip_name(std::string_view path);

/// Returns the pieces of a packed file whose contents are `pieces`. It has no time and no name in it, so that the same
/// contents give the same bytes.
TextPieces gzipped(TextPieces pieces);

}}  // namespace plumb::tools
