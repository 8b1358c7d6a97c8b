#pragma once
// Runs a body for tensor cores (kernels/simt/warp.h) on the host: the lanes of a warp in lockstep, and warps one after
// the other between two sync()s, in ascending or descending order. A value that one warp writes and another reads
// without a sync() between them differs in one of the two orders.
//
// Matrices lie in lanes as PTX ISA 9.0, section 9.7.14.5, says. Copies arrive when they are settled; until then their
// place holds NaNs.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/simt/warp.h"

namespace plumb::test {

class HostWarp {
 public:
  template <class T>
  class PerLane {
   public:
    T& of(int lane) { return lanes_[static_cast<std::size_t>(lane)]; }
    const T& of(int lane) const { return lanes_[static_cast<std::size_t>(lane)]; }

   private:
    std::array<T, simt::kWarpLanes> lanes_;
  };

  explicit HostWarp(int index) : index_(index) {}
  int index() const { return index_; }

  template <class Body>
  void each_lane(const Body& body) const {
    for (int lane = 0; lane < simt::kWarpLanes; ++lane) body(lane);
  }

  /// Lane 8j + r gives the address of row r of matrix j. A lane gets of each matrix, or of its transpose, row lane/4,
  /// columns 2*(lane%4) and the next.
  using Address = const std::byte*;
  static Address address_of(const void* shared) { return static_cast<Address>(shared); }

  template <bool transposed>
  void load_matrices(PerLane<simt::FragmentWords>& words, const PerLane<Address>& rows, int flipped, int moved) const {
    const auto row_of = [&](int lane) {
      const auto address = reinterpret_cast<std::uintptr_t>(rows.of(lane)) ^ static_cast<std::uintptr_t>(flipped);
      return reinterpret_cast<const std::byte*>(address) + moved;
    };
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint16_t numbers[8][8];
      for (int row = 0; row < 8; ++row) std::memcpy(numbers[row], row_of(8 * matrix + row), sizeof(numbers[row]));
      for (int lane = 0; lane < simt::kWarpLanes; ++lane) {
        const int row = lane / 4, column = 2 * (lane % 4);
        const std::uint32_t low = transposed ? numbers[column][row] : numbers[row][column];
        const std::uint32_t high = transposed ? numbers[column + 1][row] : numbers[row][column + 1];
        words.of(lane).word[matrix] = low | high << 16U;
      }
    }
  }

  template <class S>
  void multiply_add(PerLane<simt::FragmentSums>& sums, const PerLane<simt::FragmentWords>& left,
                    const PerLane<simt::FragmentWords>& right, int first) const {
    float a[16][16], b[16][8];
    for (int lane = 0; lane < simt::kWarpLanes; ++lane) {
      const int group = lane / 4, in_group = lane % 4;
      for (int i = 0; i < 8; ++i)  // a0 to a7 are words of two
        a[group + (i / 2 % 2 == 1 ? 8 : 0)][2 * in_group + i % 2 + (i >= 4 ? 8 : 0)] =
            number<S>(left.of(lane).word[i / 2], i % 2);
      for (int i = 0; i < 4; ++i)
        b[2 * in_group + i % 2 + (i >= 2 ? 8 : 0)][group] = number<S>(right.of(lane).word[first + i / 2], i % 2);
    }
    for (int lane = 0; lane < simt::kWarpLanes; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + (i >= 2 ? 8 : 0), column = 2 * (lane % 4) + i % 2;
        float& sum = sums.of(lane).sum[i];
        for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      }
  }

  void exchange(PerLane<float>& values, int mask) const {
    const PerLane<float> before = values;
    for (int lane = 0; lane < simt::kWarpLanes; ++lane) values.of(lane) = before.of(lane ^ mask);
  }

 private:
  template <class S>
  static float number(std::uint32_t word, int half) {
    S stored;
    stored.bits = static_cast<std::uint16_t>(word >> (16U * static_cast<unsigned>(half)));
    return widened(stored);
  }

  int index_;
};

enum class WarpOrder : std::uint8_t { kAscending, kDescending };

template <int kWarps>
class HostBlock {
 public:
  using Warp = HostWarp;
  template <class State>
  class PerWarp {
   public:
    State& of(int warp) { return states_[static_cast<std::size_t>(warp)]; }

   private:
    std::vector<State> states_ = std::vector<State>(kWarps);
  };

  HostBlock(int block, int blocks, std::byte* shared, WarpOrder order)
      : block_(block), blocks_(blocks), shared_(shared), order_(order) {}

  int block() const { return block_; }
  int blocks() const { return blocks_; }
  std::byte* shared() const { return shared_; }
  template <class Body>
  void each_warp(const Body& body) const {
    for (int i = 0; i < kWarps; ++i) body(HostWarp(order_ == WarpOrder::kAscending ? i : kWarps - 1 - i));
  }
  template <class State>
  static State& of(PerWarp<State>& states, const HostWarp& warp) {
    return states.of(warp.index());
  }
  void start_copy(void* to, const void* from, bool is_there) const {
    std::memset(to, 0xFF, kPieceBytes);
    copies_.push_back({to, is_there ? from : nullptr});
  }
  void settle_copies() const {
    for (const Copy& copy : copies_) {
      if (copy.from == nullptr)
        std::memset(copy.to, 0, kPieceBytes);
      else
        std::memcpy(copy.to, copy.from, kPieceBytes);
    }
    copies_.clear();
  }
  void sync() const {}

 private:
  static constexpr std::size_t kPieceBytes = 16;
  struct Copy {
    void* to;
    const void* from;
  };

  int block_, blocks_;
  std::byte* shared_;
  WarpOrder order_;
  mutable std::vector<Copy> copies_;
};

/// Runs a body. Shared memory begins with NaNs, and has exactly the bytes that the body declares.
template <class Body>
void run_warps_on_host(const Body& body, int blocks, WarpOrder order = WarpOrder::kAscending) {
  constexpr std::size_t kAlignment = 256;
  std::vector<std::byte> room(static_cast<std::size_t>(Body::kSharedBytes) + kAlignment);
  void* shared = room.data();
  std::size_t bytes = room.size();
  std::align(kAlignment, static_cast<std::size_t>(Body::kSharedBytes), shared, bytes);
  for (int block = 0; block < blocks; ++block) {
    std::ranges::fill(room, std::byte{0xFF});
    body(HostBlock<Body::kWarps>(block, blocks, static_cast<std::byte*>(shared), order));
  }
}

}  // namespace plumb::test
