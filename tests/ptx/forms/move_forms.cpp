// mov and cvta: copies, packing and unpacking, and addresses of variables.

#include <cstdint>
#include <string>

#include "tests/ptx/forms/elementwise.h"
#include "tests/ptx/machine/block.h"

namespace plumb::test::ptx {
namespace {

template <class T>
void add_copies(FormTable& table, const std::string& types) {
  for (const char kind : types)
    add_elementwise<[](T a) { return a; }>(table, std::string("mov.") + kind + std::to_string(8 * sizeof(T)));
}

/// mov of {low, high} into a register twice as wide, and back.
template <class Half, class Whole>
void add_pairs(FormTable& table, const std::string& type) {
  add_elementwise<[](Half low, Half high) { return static_cast<Whole>(Whole{high} << (8 * sizeof(Half)) | low); }>(
      table, "mov." + type + " 1:2");
  Form unpack{.slots = {slot_of<Half>(), slot_of<Half>(), slot_of<Whole>()}};
  unpack.run = [](Warp& warp, const Instruction& in, LaneMask lanes) {
    Half *const low = warp.lanes<Half>(in.at[0]), *const high = warp.lanes<Half>(in.at[1]);
    const Whole* const from = warp.lanes<Whole>(in.at[2]);
    for_each_lane(lanes, [&](int lane) {
      const Whole whole = from[lane];
      low[lane] = static_cast<Half>(whole);
      high[lane] = static_cast<Half>(whole >> (8 * sizeof(Half)));
    });
  };
  table.add("mov." + type + " 0:2", std::move(unpack));
}

}  // namespace

void add_move_forms(FormTable& table) {
  add_copies<std::uint16_t>(table, "bsu");
  add_copies<std::uint32_t>(table, "bsuf");
  add_copies<std::uint64_t>(table, "bsuf");
  add_elementwise<[](bool a) { return a; }>(table, "mov.pred");
  add_pairs<std::uint16_t, std::uint32_t>(table, "b32");
  add_pairs<std::uint32_t, std::uint64_t>(table, "b64");
  // Generic addresses of global memory are its own; those of other memories lie in windows.
  add_elementwise<[](std::uint64_t a) { return a; }>(table, "cvta.global.u64");
  add_elementwise<[](std::uint64_t a) { return a; }>(table, "cvta.to.global.u64");
  add_elementwise<[](std::uint64_t a) { return a + kSharedWindow; }>(table, "cvta.shared.u64");
  add_elementwise<[](std::uint64_t a) { return a - kSharedWindow; }>(table, "cvta.to.shared.u64");
  add_elementwise<[](std::uint64_t a) { return a + kLocalWindow; }>(table, "cvta.local.u64");
  add_elementwise<[](std::uint64_t a) { return a - kLocalWindow; }>(table, "cvta.to.local.u64");
}

}  // namespace plumb::test::ptx
