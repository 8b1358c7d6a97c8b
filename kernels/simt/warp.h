#pragma once
// The interface between the body of a GPU kernel for tensor cores and the block that runs it: warps of 32 lanes that
// multiply small matrices together. A body is a struct of its arguments with
//
//   static constexpr int kWarps;                 warps of a block
//   static constexpr std::int64_t kSharedBytes;  bytes that a block shares
//   std::int64_t items() const;                  number of items, which blocks take in turn
//   template <class Block> PLUMB_SIMT void operator()(const Block& block) const;
//
// and is written once, like the bodies of simt/thread.h: kernels/cuda/warp_block.cuh runs it on a device, and the tests
// run it on the host with an emulation of the instructions. A Block has
//
//   block(), blocks()         as in a Thread
//   shared()                  kSharedBytes, 256-byte aligned
//   Block::Warp               the type below
//   Block::PerWarp<State>     a State of each warp
//   each_warp(body)           calls body(warp) in every warp; of(state, warp) is the warp's own State
//   start_copy(to, from, is_there)
//                             called by a lane: copies 16 bytes from global to shared memory, or zeros if is_there is
//                             false; all lanes may read them after settle_copies() and then sync()
//   settle_copies(), sync()   called by all lanes; between two of them warps run in any order
//
// and a Warp has
//
//   index()                   the index of the warp in its block
//   Warp::PerLane<T>          a T of each lane; of(lane) is that lane's
//   each_lane(body)           calls body(lane)
//   Warp::Address, address_of(shared)
//                             a place in shared memory, as the next function takes it
//   load_matrices<transposed>(words, rows, flipped, moved)
//                             ldmatrix.m8n8.x4.b16: the lane's row of eight begins `moved` bytes behind the lane's
//                             address among `rows`, of which the bits of `flipped` have been changed
//   multiply_add<S>(sums, left, right, first)
//                             mma.m16n8k16: sums += left * right, where the two words of `right` begin at `first`
//   exchange(values, mask)    gives each lane the value of lane ^ mask
//
// On a device a lane has its own registers: PerLane is one T there, each_lane calls once, and nothing costs anything.
// PTX ISA 9.0, section 9.7.14.5, says how matrices lie in the registers of lanes (m16n8k16, .f16 and .bf16; ldmatrix).

#include <cstdint>

#include "kernels/simt/number.h"

#ifdef __CUDA_ARCH__  // g++, which reads the host's half of a .cu file, does not know them
#define PLUMB_UNROLL _Pragma("unroll")
#define PLUMB_ONE_BY_ONE _Pragma("unroll 1")
#else
#define PLUMB_UNROLL
#define PLUMB_ONE_BY_ONE
#endif

namespace plumb { inline namespace kernels { namespace simt {

inline constexpr int kWarpLanes = 32;

/// A lane's part of four 8x8 matrices of 16-bit numbers, or of one [16, 16] matrix. Each word holds two neighbours of a
/// row, the first in the low half.
struct FragmentWords {
  std::uint32_t word[4];
};

/// A lane's part of a [16, 8] matrix of fp32 sums: element i is at row_of_sum(lane, i), column_of_sum(lane, i).
struct FragmentSums {
  float sum[4];
};
PLUMB_SIMT int row_of_sum(int lane, int i) {
  return lane / 4 + 8 * (i / 2);
}
PLUMB_SIMT int column_of_sum(int lane, int i) {
  return 2 * (lane % 4) + i % 2;
}

/// Returns two numbers, as a tensor of S stores them, in one word.
template <class S>
PLUMB_SIMT std::uint32_t packed(float low, float high) {
  S first, second;
  store(first, low);
  store(second, high);
  return static_cast<std::uint32_t>(first.bits) | (static_cast<std::uint32_t>(second.bits) << 16U);
}
#ifdef __CUDA_ARCH__
template <>
PLUMB_SIMT std::uint32_t packed<Bf16>(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return static_cast<std::uint32_t>(__bfloat16_as_ushort(both.x)) |
         (static_cast<std::uint32_t>(__bfloat16_as_ushort(both.y)) << 16U);
}
#endif

/// Stores two neighbours at once. to: 4-byte aligned
template <class S>
PLUMB_SIMT void store_pair(S* to, float low, float high) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<std::uint32_t*>(to) = packed<S>(low, high);
#else
  store(to[0], low);
  store(to[1], high);
#endif
}

/// Returns two neighbouring [16, 8] sums as the [16, 16] left factor of the next product. Each lane already has the
/// elements that it needs.
template <class S>
PLUMB_SIMT FragmentWords as_left(const FragmentSums& first, const FragmentSums& second) {
  return {{packed<S>(first.sum[0], first.sum[1]), packed<S>(first.sum[2], first.sum[3]),
           packed<S>(second.sum[0], second.sum[1]), packed<S>(second.sum[2], second.sum[3])}};
}

/// Combines the values of the four lanes that share a row of sums, and gives all four the result.
template <class Warp, class Combine>
PLUMB_SIMT void combine_over_row(const Warp& warp, typename Warp::template PerLane<float>& values,
                                 const Combine& combine) {
  for (int mask = 1; mask <= 2; mask *= 2) {
    typename Warp::template PerLane<float> others = values;
    warp.exchange(others, mask);
    warp.each_lane([&](int lane) { values.of(lane) = combine(values.of(lane), others.of(lane)); });
  }
}

}}}  // namespace plumb::kernels::simt
