// ldmatrix and mma.sync.m16n8k16, with the places of matrix elements in the lanes as "Matrix Fragments for
// mma.m16n8k16 with floating point type" and "ldmatrix" of the PTX ISA have them. Lane l is in group l / 4,
// at place l % 4 of the group.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/cpu/half.h"
#include "tests/ptx/forms/form.h"
#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/warp.h"

namespace plumb::test::ptx {
namespace {

constexpr int kSide = 8;  // of a matrix of ldmatrix, whose rows have 16 bytes
constexpr int kRows = 16, kColumns = 8, kDepth = 16;

/// Loads the row whose address lane `at` has. For races inside the warp, a lane reads what it gets.
void load_row(Warp& warp, const Instruction& in, int at, std::uint16_t* row) {
  Block& block = warp.block();
  const std::uint64_t address = warp.address(in.address[0], at);
  if (address % (2 * kSide) != 0)
    block.report().add(FaultKind::kMisaligned, in, block.index(), warp.thread(at),
                       "has a row that does not begin at a multiple of 16 bytes");
  for (int pair = 0; pair < kSide / 2; ++pair) {
    const std::byte* const from = block.reach(Space::kShared, address + static_cast<std::uint64_t>(4 * pair), 4,
                                              AccessKind::kRead, in, warp.thread(at % kSide * 4 + pair));
    if (from != nullptr) std::memcpy(row + 2 * pair, from, 4);
  }
}

/// Loads kCount matrices of 8 x 8 16-bit elements. Lane 8 i + r has the address of row r of matrix i. Lane l
/// gets elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, or of column l / 4 where the matrix is transposed.
template <int kCount, bool kTransposed>
void load_matrices(Warp& warp, const Instruction& in, LaneMask) {
  using Matrix = std::array<std::array<std::uint16_t, kSide>, kSide>;
  std::array<Matrix, kCount> matrices{};
  for (int at = 0; at < kCount * kSide; ++at)
    load_row(warp, in, at, matrices[static_cast<std::size_t>(at / kSide)][static_cast<std::size_t>(at % kSide)].data());
  for (std::size_t i = 0; i < kCount; ++i) {
    auto* const to = warp.lanes<std::uint32_t>(in.at[i]);
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::size_t group = lane / 4, first = 2 * (lane % 4);
      const std::uint32_t low = kTransposed ? matrices[i][first][group] : matrices[i][group][first];
      const std::uint32_t high = kTransposed ? matrices[i][first + 1][group] : matrices[i][group][first + 1];
      to[lane] = high << 16 | low;
    }
  }
}

/// The 16-bit numbers of a lane's registers.
template <float (*kWiden)(std::uint16_t)>
float element(Warp& warp, const Instruction& in, std::size_t first, int lane, int i) {
  const std::uint32_t word = warp.lanes<std::uint32_t>(in.at[first + static_cast<std::size_t>(i / 2)])[lane];
  return kWiden(static_cast<std::uint16_t>(i % 2 == 0 ? word : word >> 16));
}

/// D = A B + C: A [16, 16], B [16, 8], C and D [16, 8]. Operands: 4 registers of D, 4 of A, 2 of B, 4 of C.
/// Products are exact; the sum over 16 of them and C is taken in double and rounded once, while a device
/// rounds in between.
template <float (*kWiden)(std::uint16_t)>
void multiply_add(Warp& warp, const Instruction& in, LaneMask) {
  float a[kRows][kDepth], b[kDepth][kColumns];
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const int group = lane / 4, first = 2 * (lane % 4);
    for (int i = 0; i < 8; ++i)
      a[group + (i % 4 >= 2 ? 8 : 0)][first + i % 2 + (i >= 4 ? 8 : 0)] = element<kWiden>(warp, in, 4, lane, i);
    for (int i = 0; i < 4; ++i) b[first + i % 2 + (i >= 2 ? 8 : 0)][group] = element<kWiden>(warp, in, 8, lane, i);
  }
  std::array<std::array<float, kWarpLanes>, 4> d{};  // whose registers may be those of C
  for (std::size_t i = 0; i < 4; ++i) {
    const float* const c = warp.lanes<float>(in.at[10 + i]);
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const int row = lane / 4 + (i >= 2 ? 8 : 0), column = 2 * (lane % 4) + static_cast<int>(i % 2);
      double sum = c[lane];
      for (int k = 0; k < kDepth; ++k) sum += double{a[row][k]} * b[k][column];
      d[i][static_cast<std::size_t>(lane)] = static_cast<float>(sum);
    }
  }
  for (std::size_t i = 0; i < 4; ++i) std::ranges::copy(d[i], warp.lanes<float>(in.at[i]));
}

template <int kCount>
void add_load(FormTable& table) {
  const std::string name = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(kCount);
  std::vector<Slot> slots(kCount, Slot::k32);
  slots.push_back(Slot::kAddress);
  table.add(name + ".shared.b16", {.run = load_matrices<kCount, false>, .slots = slots, .is_aligned = true});
  table.add(name + ".trans.shared.b16", {.run = load_matrices<kCount, true>, .slots = slots, .is_aligned = true});
}

}  // namespace

void add_matrix_forms(FormTable& table) {
  add_load<1>(table);
  add_load<2>(table);
  add_load<4>(table);
  const std::vector<Slot> slots(14, Slot::k32);
  const std::string name = "mma.sync.aligned.m16n8k16.row.col.f32.";
  table.add(name + "f16.f16.f32", {.run = multiply_add<widen_fp16>, .slots = slots, .is_aligned = true});
  table.add(name + "bf16.bf16.f32", {.run = multiply_add<widen_bf16>, .slots = slots, .is_aligned = true});
}

}  // namespace plumb::test::ptx
