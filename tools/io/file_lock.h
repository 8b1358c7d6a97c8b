#pragma once
// One process at a time has a name: a checkpoint folder is one run's.

#include <string>

namespace plumb { inline namespace tools {

/// A name that one process has at a time. The kernel frees it with the process, however that ends, so that what a
/// killed one has left is no hindrance. Where a file system has no locks, everybody gets it.
class FileLock {
 public:
  /// Takes the name, as a small file that says who has it. Throws InputError if that cannot be made.
  explicit FileLock(const std::string& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  /// Returns who else has it, "process 4711 on node3"; empty if this one does.
  const std::string& held_by() const { return held_by_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::string held_by_;
};

}}  // namespace plumb::tools
