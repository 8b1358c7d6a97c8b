#pragma once
// File descriptors, and the errors of the system.

#include <string>
#include <string_view>

#include <sys/types.h>

namespace plumb { inline namespace tools {

inline constexpr mode_t kAnybodyReads = 0644;
inline constexpr const char* kOtherFolder =
    "cannot be written: name a file in a folder that exists and that you may write to";
inline constexpr const char* kNoRoom = "cannot be written whole: nothing was changed; make room and try again";

/// Throws InputError "PATH: WHAT (the system's word for `error`)".
[[noreturn]] void fail_of_system(const std::string& path, std::string_view what, int error);

/// A descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

}}  // namespace plumb::tools
