#pragma once
// A lock that one process at a time has, so that a checkpoint folder belongs to one run.

#include <string>

namespace plumb { inline namespace tools {

/// A path that one process at a time has. The kernel frees the lock with the process, however that ends, so that the
/// file of a killed process is no hindrance. On a file system without locks every process gets it.
class FileLock {
 public:
  /// Takes the lock, with a small file that names the process. Throws InputError if the file cannot be made.
  explicit FileLock(const std::string& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  /// Returns the other process that has the lock, "process 4711 on node3"; empty if this process has it.
  const std::string& held_by() const { return held_by_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::string held_by_;
};

}}  // namespace plumb::tools
