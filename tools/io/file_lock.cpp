#include "tools/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tools/io/descriptor.h"
#include "tools/io/utf8.h"

namespace plumb { inline namespace tools {

FileLock::FileLock(const std::string& path) : path_(path) {
  struct stat own {
  }, there{};
  do {  // repeated if the owner before has deleted its file between our opening and our lock
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kAnybodyReads);
    if (descriptor_ < 0) fail_of_system(path, kOtherFolder, errno);
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      std::array<char, 256> text{};
      const ssize_t size = read(descriptor_, text.data(), text.size());
      held_by_ =
          size > 0 ? printable(std::string_view(text.data(), static_cast<std::size_t>(size))) : "another process";
      return;
    }
  } while (fstat(descriptor_, &own) != 0 || stat(path.c_str(), &there) != 0 || own.st_ino != there.st_ino);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string owner = fmt::format("process {} on {}", getpid(), host.data());
  const bool is_written = ftruncate(descriptor_, 0) == 0 && pwrite(descriptor_, owner.data(), owner.size(), 0) > 0;
  if (!is_written) fail_of_system(path, kNoRoom, errno);
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      held_by_(std::move(other.held_by_)) {}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  if (held_by_.empty()) unlink(path_.c_str());
  close(descriptor_);
}

}}  // namespace plumb::tools
