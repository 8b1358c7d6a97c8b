#include "executor/spec/fingerprint.h"

#include <bit>

namespace plumb { inline namespace executor {

void Fingerprint::add_byte(std::uint8_t byte) {
  hash_ = (hash_ ^ byte) * 0x100000001B3ULL;
}

void Fingerprint::add(std::uint64_t value) {
  constexpr int kBits = 64, kByteBits = 8;
  for (int bit = 0; bit < kBits; bit += kByteBits) add_byte(static_cast<std::uint8_t>(value >> bit));
}

void Fingerprint::add(double value) {
  add(std::bit_cast<std::uint64_t>(value));
}

void Fingerprint::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  for (const char byte : text) add_byte(static_cast<std::uint8_t>(byte));
}

void Fingerprint::add(const Schedule& schedule) {
  add(schedule.microbatches);
  for (const StagePlace& place : schedule.stages)
    for (const int number : {int{place.rank}, int{place.model_part}, int{place.lane}}) add(number);
  for (const std::vector<Action>& actions : schedule.ranks) {
    add(static_cast<std::uint64_t>(actions.size()));
    for (const Action& action : actions)
      for (const int number :
           {static_cast<int>(action.op), int{action.part}, int{action.stage}, int{action.microbatch}})
        add(number);
  }
}

}}  // namespace plumb::executor
