#pragma once
// A number that tells two inputs apart. Processes that work together compare theirs before they begin.

#include <cstdint>
#include <string_view>

#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// FNV-1a (Fowler, Noll, Vo 1991). Two inputs that differ have the same value once in 2^64.
class Fingerprint {
 public:
  void add(std::uint64_t value);
  void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  void add(int value) { add(static_cast<std::int64_t>(value)); }
  void add(double value);
  void add(std::string_view text);  ///< includes its length
  void add(const Schedule& schedule);
  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(std::uint8_t byte);

  std::uint64_t hash_ = 0xCBF29CE484222325ULL;
};

}}  // namespace plumb::executor
