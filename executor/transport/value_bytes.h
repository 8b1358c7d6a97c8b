#pragma once
// Converts lists of plain values to bytes, one after the other, to send them to a process that runs the same program on
// the same kind of machine.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "executor/transport/transport.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

template <class T>
void put_values(std::string& bytes, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto count = static_cast<std::uint64_t>(values.size());
  bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Reads the lists that put_values has written, in their order. Throws RunError if the bytes end early or too late.
class ValueBytes {
 public:
  explicit ValueBytes(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  std::vector<T> get() {
    std::uint64_t count = 0;
    take(&count, sizeof(count));
    if (count > rest_.size() / sizeof(T)) end_early();
    std::vector<T> values(count);
    take(values.data(), count * sizeof(T));
    return values;
  }

  void require_end() const {
    if (!rest_.empty()) throw RunError("what a rank has sent is longer than it says");
  }

 private:
  void take(void* to, std::size_t count) {
    if (count > rest_.size()) end_early();
    if (count > 0) std::memcpy(to, rest_.data(), count);
    rest_.remove_prefix(count);
  }

  [[noreturn]] static void end_early() { throw RunError("what a rank has sent was cut short on its way"); }

  std::string_view rest_;
};

void put_timelines(std::string& bytes, const std::vector<RankTimeline>& timelines);
std::vector<RankTimeline> get_timelines(ValueBytes& bytes);

}}  // namespace plumb::executor
