#pragma once
// Instructions that compute a lane's result from its own operands: made from the function of one lane.

#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/ptx/forms/form.h"
#include "tests/ptx/machine/warp.h"

namespace plumb::test::ptx {

/// The operand that has values of T. bool: a predicate.
template <class T>
constexpr Slot slot_of() {
  if constexpr (std::is_same_v<T, bool>) return Slot::kPredicate;
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
  return sizeof(T) == 2 ? Slot::k16 : sizeof(T) == 4 ? Slot::k32 : Slot::k64;
}

/// A register's values, for the function of a lane.
template <class T>
class LaneValues {
 public:
  LaneValues(Warp& warp, std::uint32_t at) : values_(warp.lanes<T>(at)) {}
  T operator[](int lane) const { return values_[lane]; }
  void set(int lane, T value) { values_[lane] = value; }

 private:
  T* values_;
};
template <>
class LaneValues<bool> {
 public:
  LaneValues(Warp& warp, std::uint32_t at) : mask_(&warp.predicate(at)) {}
  bool operator[](int lane) const { return (*mask_ >> lane & 1) != 0; }
  void set(int lane, bool value) { *mask_ = (*mask_ & ~(LaneMask{1} << lane)) | (LaneMask{value} << lane); }

 private:
  LaneMask* mask_;
};

template <auto kFunction, class Pointer = decltype(+kFunction)>
struct Elementwise;

template <auto kFunction, class To, class... From>
struct Elementwise<kFunction, To (*)(From...)> {
  static void run(Warp& warp, const Instruction& in, LaneMask lanes) {
    run_with(warp, in, lanes, std::index_sequence_for<From...>());
  }
  static Form form() { return {.run = run, .slots = {slot_of<To>(), slot_of<From>()...}}; }

 private:
  template <std::size_t... kAt>
  static void run_with(Warp& warp, const Instruction& in, LaneMask lanes, std::index_sequence<kAt...>) {
    LaneValues<To> to(warp, in.at[0]);
    const std::tuple<LaneValues<From>...> from{LaneValues<From>(warp, in.at[kAt + 1])...};
    for_each_lane(lanes, [&](int lane) { to.set(lane, kFunction(std::get<kAt>(from)[lane]...)); });
  }
};

/// Adds the instruction that computes kFunction, a lambda without captures.
template <auto kFunction>
void add_elementwise(FormTable& table, std::string opcode) {
  table.add(std::move(opcode), Elementwise<kFunction>::form());
}

}  // namespace plumb::test::ptx
