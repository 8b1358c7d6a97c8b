// ld and st, of one number or a vector of two or four.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "tests/ptx/forms/form.h"
#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/warp.h"

namespace plumb::test::ptx {
namespace {

std::string name_of(Space space) {
  switch (space) {
    case Space::kGlobal:
      return ".global";
    case Space::kShared:
      return ".shared";
    case Space::kLocal:
      return ".local";
    case Space::kParameter:
      return ".param";
    default:
      return "";
  }
}

/// Writes a number into a register that may be wider, extended by zeros or the sign.
template <class T>
void put(std::byte* lanes, int bytes, int lane, T value) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const Wide wide = value;
  std::memcpy(lanes + lane * bytes, &wide, static_cast<std::size_t>(bytes));
}

template <class T, int kCount>
void load(Warp& warp, const Instruction& in, LaneMask lanes) {
  for_each_lane(lanes, [&](int lane) {
    std::array<T, kCount> values{};
    const std::byte* const from = warp.block().reach(in.space, warp.address(in.address[0], lane), sizeof values,
                                                     AccessKind::kRead, in, warp.thread(lane));
    if (from != nullptr) std::memcpy(values.data(), from, sizeof values);
    for (std::size_t i = 0; i < kCount; ++i) put(warp.lanes<std::byte>(in.at[i]), in.bytes[i], lane, values[i]);
  });
}

template <class T, int kCount>
void store_to(Warp& warp, const Instruction& in, LaneMask lanes) {
  for_each_lane(lanes, [&](int lane) {
    std::byte* to = warp.block().reach(in.space, warp.address(in.address[0], lane), sizeof(T) * kCount,
                                       AccessKind::kWrite, in, warp.thread(lane));
    for (std::size_t i = 0; to != nullptr && i < kCount; ++i, to += sizeof(T))
      std::memcpy(to, warp.lanes<std::byte>(in.at[i]) + lane * in.bytes[i], sizeof(T));
  });
}

template <class T, int kCount>
void add_access(FormTable& table, Space space, const std::string& ending) {
  const std::string name = name_of(space) + ending;
  Form form{.run = load<T, kCount>,
            .slots = std::vector(kCount, Slot::kAny),
            .space = space,
            .access_bytes = sizeof(T) * kCount};
  form.slots.push_back(Slot::kAddress);
  table.add("ld" + name, form);
  if (space == Space::kGlobal) table.add("ld.global.nc" + ending, form);
  if (space == Space::kParameter) return;
  form.run = store_to<T, kCount>;
  std::ranges::rotate(form.slots, form.slots.end() - 1);
  table.add("st" + name, form);
}

/// Adds accesses to numbers of T, whose names end with one of `kinds`.
template <class T>
void add_accesses_of(FormTable& table, Space space, const std::string& kinds) {
  for (const char kind : kinds) {
    const std::string type = std::string(".") + kind + std::to_string(8 * sizeof(T));
    add_access<T, 1>(table, space, type);
    add_access<T, 2>(table, space, ".v2" + type);
    if constexpr (sizeof(T) <= 4) add_access<T, 4>(table, space, ".v4" + type);
  }
}

}  // namespace

void add_memory_forms(FormTable& table) {
  for (const Space space : {Space::kGeneric, Space::kGlobal, Space::kShared, Space::kLocal, Space::kParameter}) {
    add_accesses_of<std::uint8_t>(table, space, "bu");
    add_accesses_of<std::int8_t>(table, space, "s");
    add_accesses_of<std::uint16_t>(table, space, "bu");
    add_accesses_of<std::int16_t>(table, space, "s");
    add_accesses_of<std::uint32_t>(table, space, "buf");
    add_accesses_of<std::int32_t>(table, space, "s");
    add_accesses_of<std::uint64_t>(table, space, "busf");
  }
}

}  // namespace plumb::test::ptx
