#pragma once
// Neighbouring elements of stored tensors, 16 bytes at a time, which is how a GPU's memory is fast. A body says what it
// does with N neighbours, and is run with as many as 16 bytes hold, or with one where a tensor does not allow that:
//
//   for_each_stretch<S>(thread, rows, columns, is_wide<S>(columns, x, y), [&]<int N>(std::int64_t row, std::int64_t c) {
//     float values[N];
//     load_all(values, x + row * columns + c);
//     ...
//     store_all(y + row * columns + c, values);
//   });

#include <cstdint>

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels {

inline constexpr int kWideBytes = 16;
template <class S>
inline constexpr int kWide = kWideBytes / static_cast<int>(sizeof(S));  ///< elements

/// True if rows of so many elements can be read wide from each of the addresses, which may be null.
template <class S, class... Elements>
PLUMB_SIMT bool is_wide(std::int64_t row, const Elements*... addresses) {
  return row % kWide<S> == 0 && ((reinterpret_cast<std::uintptr_t>(addresses) % kWideBytes == 0) && ...);
}

/// N elements that a GPU loads and stores at once, or 16 bytes of them at a time.
template <int N, class S>
struct alignas(N * sizeof(S) < kWideBytes ? N * sizeof(S) : kWideBytes) Neighbours {
  S elements[N];
};

/// Load and store N neighbours. Where N is more than 1 their address is a multiple of 16 bytes.
template <int N, class S>
PLUMB_SIMT void load_all(float (&to)[N], const S* from) {
  const auto all = *reinterpret_cast<const Neighbours<N, S>*>(from);
  for (int i = 0; i < N; ++i) to[i] = widened(all.elements[i]);
}
template <int N, class S>
PLUMB_SIMT void store_all(S* to, const float (&from)[N]) {
  Neighbours<N, S> all;
  for (int i = 0; i < N; ++i) store(all.elements[i], from[i]);
  *reinterpret_cast<Neighbours<N, S>*>(to) = all;
}

namespace simt {

template <int N, class Thread, class Body>
PLUMB_SIMT void walk(const Thread& thread, std::int64_t rows, std::int64_t columns, const Body& body) {
  const std::int64_t stretches = columns / N;
  for_each_element(thread, rows * stretches, [&](std::int64_t i) {
    const std::int64_t row = rows == 1 ? 0 : i / stretches;
    body.template operator()<N>(row, (i - row * stretches) * N);
  });
}

template <int N, class Thread, class Body>
PLUMB_SIMT void walk_row(const Thread& thread, std::int64_t columns, const Body& body) {
  for (std::int64_t c = std::int64_t{thread.lane()} * N; c < columns; c += std::int64_t{thread.lanes()} * N)
    body.template operator()<N>(c);
}

/// Calls body<N>(row, c) for the stretches of N columns from c on that fall to this thread.
template <class S, class Thread, class Body>
PLUMB_SIMT void for_each_stretch(const Thread& thread, std::int64_t rows, std::int64_t columns, bool wide,
                                 const Body& body) {
  if (wide)
    walk<kWide<S>>(thread, rows, columns, body);
  else
    walk<1>(thread, rows, columns, body);
}

/// Calls body<N>(c) for the stretches of the block's row that fall to this lane, in ascending order.
template <class S, class Thread, class Body>
PLUMB_SIMT void for_each_of_row(const Thread& thread, std::int64_t columns, bool wide, const Body& body) {
  if (wide)
    walk_row<kWide<S>>(thread, columns, body);
  else
    walk_row<1>(thread, columns, body);
}

}  // namespace simt

}}  // namespace plumb::kernels
