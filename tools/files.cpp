#include "tools/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/limits.h"
#include "tools/utf8.h"

namespace plumb { inline namespace tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, std::string_view what, int error) {
  throw InputError(fmt::format("{}: {} ({})", path, what, std::strerror(error)));
}

/// A file beside `path` that is gone with its owner unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : name_(path + ".XXXXXX.tmp") {
    constexpr int kSuffixLength = 4;  // ".tmp"
    descriptor_ = mkstemps(name_.data(), kSuffixLength);
    if (descriptor_ < 0)
      fail(path, "cannot be written: name a file in a folder that exists and that you may write to", errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!renamed_) unlink(name_.c_str());
  }

  void write(const std::string& path, std::string_view contents) {
    while (!contents.empty()) {
      const ssize_t written = ::write(descriptor_, contents.data(), contents.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path, "cannot be written whole: nothing was changed; make room and try again", errno);
      contents.remove_prefix(static_cast<std::size_t>(written));
    }
    constexpr mode_t kAnybodyReads = 0644;
    const bool finished = fchmod(descriptor_, kAnybodyReads) == 0 && fsync(descriptor_) == 0;
    if (!finished) fail(path, "cannot be written whole: nothing was changed; make room and try again", errno);
  }

  void rename_to(const std::string& path) {
    if (std::rename(name_.c_str(), path.c_str()) != 0)
      fail(path, "cannot be replaced: name a file, not a folder", errno);
    renamed_ = true;
    // The new name outlives a power cut once its folder is on the disk; a file system without this leaves it as it is.
    const fs::path folder = fs::path(path).parent_path();
    const int handle = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) return;
    fsync(handle);
    close(handle);
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) throw InputError(fmt::format("{}: there is no such file: check the path", path));
  if (fs::is_directory(path, ignored)) throw InputError(fmt::format("{}: this is a folder: name a file in it", path));
  std::ifstream file(path, std::ios::binary);
  std::string contents;
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  while (file) {
    const std::size_t before = contents.size();
    contents.resize(before + kBlock);
    file.read(contents.data() + before, kBlock);
    contents.resize(before + static_cast<std::size_t>(file.gcount()));
    if (contents.size() > kMostFileBytes) {
      throw InputError(
          fmt::format("{}: this file has more than {} MiB, which nothing that Plumb reads has: give the right file",
                      path, kMostFileBytes >> 20));
    }
  }
  if (!file.eof()) throw InputError(fmt::format("{}: this file cannot be read: check that you may read it", path));
  return contents;
}

std::string read_text_file(const std::string& path) {
  std::string text = read_file(path);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets and Windows editors begin with it
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  const std::size_t at = first_invalid_utf8(text);
  if (at == std::string::npos) return text;
  throw InputError(fmt::format("{}: byte {} is not text (UTF-8): give the right file, or mend it there", path, at));
}

void write_file(const std::string& path, std::string_view contents) {
  TemporaryFile temporary(path);
  temporary.write(path, contents);
  temporary.rename_to(path);
}

void require_writable(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw InputError(fmt::format("{}: this is a folder: name a file in it", path));
  TemporaryFile probe(path);
}

}}  // namespace plumb::tools
