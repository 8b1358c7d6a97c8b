#include "tools/io/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/limits.h"
#include "tools/io/descriptor.h"
#include "tools/io/gzip.h"
#include "tools/io/utf8.h"

namespace plumb { inline namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryEnd = ".tmp";
constexpr std::string_view kSixLetters = "XXXXXX";  // mkstemps chooses them

/// Returns the status of the file that `path` leads to through symbolic links, or nothing if there is none.
std::optional<struct stat> status_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

/// Returns the name behind a chain of symbolic links, also where the file does not exist yet.
std::string behind_links(const std::string& path) {
  constexpr int kLongestChain = 40;
  fs::path name = path;
  for (int links = 0; links < kLongestChain; ++links) {
    std::error_code is_no_link;
    const fs::path target = fs::read_symlink(name, is_no_link);
    if (is_no_link) return name.string();
    name = name.parent_path() / target;
  }
  fail_of_system(path, "these symbolic links lead to each other: name a file", ELOOP);
}

void write_all(int descriptor, std::string_view contents, const std::string& path, std::string_view remedy) {
  while (!contents.empty()) {
    const ssize_t written = ::write(descriptor, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_of_system(path, remedy, errno);
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Returns stdout's or stderr's descriptor if that stream goes to the file of `status`: `-o /dev/stdout`.
std::optional<int> own_stream(const struct stat& status) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own {};
    const bool is_written =
        (fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY;  // a closed stream was opened to be read only
    if (is_written && fstat(descriptor, &own) == 0 && own.st_dev == status.st_dev && own.st_ino == status.st_ino)
      return descriptor;
  }
  return std::nullopt;
}

/// Returns true for a file that takes bytes as they come: a device, a FIFO, a socket, or a file that answers go to.
bool is_stream(const struct stat& status) {
  return !S_ISDIR(status.st_mode) && (!S_ISREG(status.st_mode) || own_stream(status).has_value());
}

void write_stream(const std::string& path, const struct stat& status, const TextPieces& pieces) {
  constexpr std::string_view kRemedy = "cannot be written to its end: see to who reads it, or name a file";
  if (const std::optional<int> own = own_stream(status)) {
    std::fflush(nullptr);  // earlier answers stand before these bytes
    return pieces([&](std::string_view piece) { write_all(*own, piece, path, kRemedy); });
  }
  const Descriptor stream(open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (!stream.is_open()) fail_of_system(path, "cannot be opened to write: name a file, or what somebody reads", errno);
  pieces([&](std::string_view piece) { write_all(stream.number(), piece, path, kRemedy); });
}

bool is_temporary_of(std::string_view name, std::string_view file) {
  if (!name.starts_with(file) || !name.ends_with(kTemporaryEnd)) return false;
  return name.size() == file.size() + 1 + kSixLetters.size() + kTemporaryEnd.size() && name[file.size()] == '.';
}

/// Deletes the temporary files that killed processes have left beside `path`. A process that still writes one holds its
/// lock.
void clear_temporaries(const std::string& path) {
  const fs::path file = path, folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_temporary_of(entry->path().filename().string(), file.filename().string())) found.push_back(entry->path());
  for (const fs::path& temporary : found) {
    const Descriptor handle(open(temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (handle.is_open() && flock(handle.number(), LOCK_EX | LOCK_NB) == 0) unlink(temporary.c_str());
  }
}

/// A file beside `path` that is deleted with this object unless it was renamed. It is locked, so that other processes
/// tell it from one that a killed process has left.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) {
    clear_temporaries(path);
    struct stat status {};
    do {  // repeated if another process has deleted the file before it was locked
      if (descriptor_ >= 0) close(descriptor_);
      name_ = fmt::format("{}.{}{}", path, kSixLetters, kTemporaryEnd);
      descriptor_ = mkostemps(name_.data(), static_cast<int>(kTemporaryEnd.size()), O_CLOEXEC);
      if (descriptor_ < 0) fail_of_system(path, kOtherFolder, errno);
      flock(descriptor_, LOCK_EX);
    } while (fstat(descriptor_, &status) == 0 && status.st_nlink == 0);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!renamed_) unlink(name_.c_str());
    close(descriptor_);
  }

  void write(const std::string& path, const TextPieces& pieces, mode_t mode) {
    pieces([&](std::string_view piece) { write_all(descriptor_, piece, path, kNoRoom); });
    const bool finished = fchmod(descriptor_, mode) == 0 && fsync(descriptor_) == 0;
    if (!finished) fail_of_system(path, kNoRoom, errno);
  }

  void rename_to(const std::string& path) {
    if (std::rename(name_.c_str(), path.c_str()) != 0)
      fail_of_system(path, "cannot be replaced: name a file, not a folder", errno);
    renamed_ = true;
    // The new name outlives a power cut once its folder is on the disk. A file system that cannot do so may fail here.
    const fs::path folder = fs::path(path).parent_path();
    const Descriptor handle(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (handle.is_open()) fsync(handle.number());
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

}  // namespace

std::string read_file(const std::string& path) {
  InputStream file(path);
  std::string contents;
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  while (file) {
    const std::size_t before = contents.size();
    if (before >= kMostFileBytes) {
      throw InputError(
          fmt::format("{}: this file has more than {} MiB, which nothing that Plumb reads has: give the right file",
                      path, kMostFileBytes >> 20));
    }
    contents.resize(before + kBlock);
    file.read(contents.data() + before, kBlock);
    contents.resize(before + static_cast<std::size_t>(file.gcount()));
  }
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
  write_file(path, [contents](const auto& take) { take(contents); });
}

void write_file(const std::string& path, const TextPieces& contents) {
  const TextPieces pieces = is_gzip_name(path) ? gzipped(contents) : contents;
  const std::optional<struct stat> there = status_of(path);
  if (there && is_stream(*there)) return write_stream(path, *there, pieces);
  constexpr mode_t kPermissions = 0777;
  const std::string name = behind_links(path);
  TemporaryFile temporary(name);
  temporary.write(path, pieces, there ? there->st_mode & kPermissions : kAnybodyReads);
  temporary.rename_to(name);
}

void require_writable(const std::string& path) {
  const std::optional<struct stat> there = status_of(path);
  if (there && S_ISDIR(there->st_mode)) throw InputError(fmt::format("{}: this is a folder: name a file in it", path));
  if (!there || !is_stream(*there)) {
    TemporaryFile probe(behind_links(path));
  } else if (!own_stream(*there) && access(path.c_str(), W_OK) != 0) {
    fail_of_system(path, "cannot be written: name what you may write to", errno);
  }
}

}}  // namespace plumb::tools
