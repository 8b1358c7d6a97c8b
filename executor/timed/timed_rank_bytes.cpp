#include "executor/timed/timed_rank_bytes.h"

#include <cstring>
#include <type_traits>
#include <utility>

namespace plumb {
namespace {

template <class T>
void put(std::string& bytes, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto count = static_cast<std::uint64_t>(values.size());
  bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  void get(std::vector<T>& values) {
    std::uint64_t count = 0;
    take(&count, sizeof(count));
    if (count > rest_.size() / sizeof(T)) end_early();
    values.resize(count);
    take(values.data(), count * sizeof(T));
  }

  void require_end() const {
    if (!rest_.empty()) throw RunError("a rank's timeline has more bytes than it says");
  }

 private:
  void take(void* to, std::size_t count) {
    if (count > rest_.size()) end_early();
    if (count > 0) std::memcpy(to, rest_.data(), count);
    rest_.remove_prefix(count);
  }

  [[noreturn]] static void end_early() { throw RunError("a rank's timeline was cut short on its way"); }

  std::string_view rest_;
};

}  // namespace

std::string to_bytes(const TimedRank& rank) {
  std::string bytes;
  put(bytes, rank.ends);
  for (const RankTimeline& timeline : rank.timelines) {
    put(bytes, timeline.spans);
    put(bytes, timeline.memory);
    for (const std::vector<MemorySample>& samples : timeline.memory_by_kind) put(bytes, samples);
  }
  return bytes;
}

TimedRank timed_rank_from_bytes(std::string_view bytes) {
  Reader reader(bytes);
  TimedRank rank;
  reader.get(rank.ends);
  for (std::size_t step = 0; step < rank.ends.size(); ++step) {
    RankTimeline timeline;
    reader.get(timeline.spans);
    reader.get(timeline.memory);
    for (std::vector<MemorySample>& samples : timeline.memory_by_kind) reader.get(samples);
    rank.timelines.push_back(std::move(timeline));
  }
  reader.require_end();
  return rank;
}

}  // namespace plumb
