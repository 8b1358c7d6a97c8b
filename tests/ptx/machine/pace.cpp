#include "tests/ptx/machine/pace.h"

#include <algorithm>
#include <array>

namespace plumb::test::ptx {
namespace {

bool starts_with_any(std::string_view opcode, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return opcode.starts_with(beginning); });
}
bool ends_with_any(std::string_view opcode, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return opcode.ends_with(ending); });
}

std::uint8_t slots_of_arithmetic(std::string_view opcode) {
  const bool is_long = ends_with_any(opcode, {".s64", ".u64", ".b64"});
  const bool is_integer = is_long || ends_with_any(opcode, {".s32", ".u32"});
  if (is_integer && starts_with_any(opcode, {"div.", "rem."})) return is_long ? 77 : 24;
  if (!is_long) return 1;
  return starts_with_any(opcode, {"mul.lo", "mad.lo"}) ? 3 : 2;
}

}  // namespace

Pace pace_of(std::string_view opcode) {
  if (starts_with_any(opcode, {"mov.", "cvta.", "ld.param"})) return {.slots = 0, .origin = Origin::kRegister};
  if (starts_with_any(opcode, {"ld.shared", "ldmatrix.", "shfl."})) return {.origin = Origin::kShared};
  if (opcode.starts_with("ld.")) return {.origin = Origin::kMemory};
  if (opcode.starts_with("st.")) return {.is_store = true};
  if (opcode.starts_with("cp.async.wait")) return {.is_wait = true};
  if (opcode.starts_with("cp.async.c") && opcode.find("shared") != std::string_view::npos) return {.is_copy = true};
  if (starts_with_any(opcode, {"bar.sync", "barrier.sync"})) return {.is_barrier = true};
  return {.slots = slots_of_arithmetic(opcode)};
}

int clocks_of(Origin origin) {
  constexpr int kSum = 4, kSharedMemory = 23;
  switch (origin) {
    case Origin::kRegister:
    case Origin::kMemory:
      return 0;
    case Origin::kArithmetic:
      return kSum;
    case Origin::kShared:
      return kSharedMemory;
  }
  return 0;
}

int clocks_of(Found found) {
  constexpr std::array<int, 3> kClocks = {34, 265, 650};
  return kClocks.at(static_cast<std::size_t>(found));
}

}  // namespace plumb::test::ptx
