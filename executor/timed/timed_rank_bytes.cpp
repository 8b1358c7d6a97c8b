#include "executor/timed/timed_rank_bytes.h"

#include "executor/transport/value_bytes.h"

namespace plumb { inline namespace executor {

std::string to_bytes(const TimedRank& rank) {
  std::string bytes;
  put_values(bytes, rank.ends);
  put_timelines(bytes, rank.timelines);
  return bytes;
}

TimedRank timed_rank_from_bytes(std::string_view bytes) {
  ValueBytes values(bytes);
  TimedRank rank;
  rank.ends = values.get<SimTime>();
  rank.timelines = get_timelines(values);
  values.require_end();
  return rank;
}

}}  // namespace plumb::executor
