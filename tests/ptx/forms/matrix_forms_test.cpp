// ldmatrix and mma.sync, against the figures of the PTX ISA and a plain product.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/half.h"
#include "tests/ptx/small_kernel.h"

namespace plumb::test::ptx {
namespace {

/// A place in a fragment: lane, register, half of it.
struct Place {
  int row, column, lane, word, half;
};

/// Some corners of the ISA's figures for m16n8k16: A [16, 16] in a0 .. a7, B [16, 8] in b0 .. b3, C [16, 8]
/// in c0 .. c3.
constexpr std::array<Place, 8> kPlacesOfA = {{{0, 0, 0, 0, 0},
                                              {0, 1, 0, 0, 1},
                                              {8, 0, 0, 1, 0},
                                              {0, 8, 0, 2, 0},
                                              {8, 9, 0, 3, 1},
                                              {1, 3, 5, 0, 1},
                                              {7, 6, 31, 0, 0},
                                              {15, 15, 31, 3, 1}}};
constexpr std::array<Place, 6> kPlacesOfB = {
    {{0, 0, 0, 0, 0}, {1, 0, 0, 0, 1}, {8, 0, 0, 1, 0}, {0, 1, 4, 0, 0}, {6, 7, 31, 0, 0}, {15, 7, 31, 1, 1}}};

/// mma with A, B and C of `in`: 4, 2 and 4 words of each lane.
const std::string kProduct = R"(
  mul.wide.u32 %d5, %r0, 40;
  add.u64 %d6, %d1, %d5;
  ld.global.u32 %r10, [%d6];
  ld.global.u32 %r11, [%d6+4];
  ld.global.u32 %r12, [%d6+8];
  ld.global.u32 %r13, [%d6+12];
  ld.global.u32 %r14, [%d6+16];
  ld.global.u32 %r15, [%d6+20];
  ld.global.f32 %f0, [%d6+24];
  ld.global.f32 %f1, [%d6+28];
  ld.global.f32 %f2, [%d6+32];
  ld.global.f32 %f3, [%d6+36];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r10, %r11, %r12, %r13}, {%r14, %r15},
    {%f0, %f1, %f2, %f3};
  mul.wide.u32 %d5, %r0, 16;
  add.u64 %d6, %d0, %d5;
  st.global.v4.f32 [%d6], {%f0, %f1, %f2, %f3};
)";

constexpr int kWordsOfLane = 10;

void clear(SmallKernel& kernel) {
  kernel.in.assign(kWarpLanes * kWordsOfLane, 0);
  kernel.out.assign(kWarpLanes * 4, 0);
}

/// D [row, column] of the lanes' words.
float sum_at(const SmallKernel& kernel, int row, int column) {
  const int lane = row % 8 * 4 + column / 2, word = column % 2 + (row >= 8 ? 2 : 0);
  return std::bit_cast<float>(kernel.out[static_cast<std::size_t>(lane * 4 + word)]);
}

void put_half(SmallKernel& kernel, const Place& at, int first_word, float value) {
  std::uint32_t& word = kernel.in[static_cast<std::size_t>(at.lane * kWordsOfLane + first_word + at.word)];
  word |= std::uint32_t{narrow_to_fp16(value)} << (16 * at.half);
}

}  // namespace

TEST_CASE("elements of A and B lie in the lanes as the ISA's figures have them") {
  SmallKernel kernel(kProduct);
  for (const Place& a : kPlacesOfA)
    for (const Place& b : kPlacesOfB) {
      clear(kernel);
      put_half(kernel, a, 0, 3);
      put_half(kernel, b, 4, 5);
      CHECK(kernel.run().empty());
      for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 8; ++column)
          CHECK(sum_at(kernel, row, column) == (a.column == b.row && row == a.row && column == b.column ? 15 : 0));
    }
}

TEST_CASE("the sums are added to C, whose elements lie as D's") {
  SmallKernel kernel(kProduct);
  clear(kernel);
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
    for (std::size_t word = 0; word < 4; ++word)
      kernel.in[lane * kWordsOfLane + 6 + word] = std::bit_cast<std::uint32_t>(static_cast<float>(4 * lane + word));
  put_half(kernel, kPlacesOfA[7], 0, 2);
  put_half(kernel, kPlacesOfB[5], 4, 1);
  CHECK(kernel.run().empty());
  for (std::size_t i = 0; i < kernel.out.size(); ++i)
    CHECK(std::bit_cast<float>(kernel.out[i]) == static_cast<float>(i) + (i == 127 ? 2 : 0));
}

TEST_CASE("matrices that ldmatrix loads multiply as matrices, straight and transposed") {
  // A is [16, 16] in shared memory; B^T is [8, 16], and B [16, 8] for the transposed load. All are read from
  // `in`.
  const std::string begin = R"(
  mov.u32 %r1, shared;
  shl.b32 %r2, %r0, 5;
  add.u32 %r3, %r1, %r2;
  mul.wide.u32 %d5, %r0, 32;
  add.u64 %d6, %d1, %d5;
  ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d6];
  ld.global.v4.u32 {%r14, %r15, %r16, %r17}, [%d6+16];
  st.shared.v4.u32 [%r3], {%r10, %r11, %r12, %r13};
  st.shared.v4.u32 [%r3+16], {%r14, %r15, %r16, %r17};
  bar.sync 0;
  and.b32 %r4, %r0, 15;
  shr.u32 %r5, %r0, 4;
  shl.b32 %r6, %r4, 5;
  shl.b32 %r7, %r5, 4;
  add.u32 %r8, %r6, %r7;
  add.u32 %r8, %r8, %r1;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r8];
)";
  // Lane l has the row of B^T: l % 8, in the half l / 8; or the row l % 16 of B.
  const std::string straight = R"(
  and.b32 %r4, %r0, 7;
  shr.u32 %r5, %r0, 3;
  and.b32 %r5, %r5, 1;
  shl.b32 %r6, %r4, 5;
  shl.b32 %r7, %r5, 4;
  add.u32 %r8, %r6, %r7;
  add.u32 %r8, %r8, %r1;
  ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r14, %r15}, [%r8+512];
)";
  const std::string transposed = R"(
  shl.b32 %r6, %r4, 4;
  add.u32 %r8, %r6, %r1;
  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r8+768];
)";
  const std::string product = R"(
  mov.f32 %f0, 0f00000000;
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r10, %r11, %r12, %r13}, {%r14, %r15},
    {%f0, %f0, %f0, %f0};
  mul.wide.u32 %d5, %r0, 16;
  add.u64 %d6, %d0, %d5;
  st.global.v4.f32 [%d6], {%f0, %f1, %f2, %f3};
)";
  std::mt19937 random(1);
  std::array<std::uint16_t, 512> numbers{};  // A [16, 16], B^T [8, 16], B [16, 8]
  for (std::size_t i = 0; i < 384; ++i)
    numbers[i] = narrow_to_bf16(static_cast<float>(static_cast<int>(random() % 17) - 8));
  for (std::size_t k = 0; k < 16; ++k)
    for (std::size_t n = 0; n < 8; ++n) numbers[384 + k * 8 + n] = numbers[256 + n * 16 + k];
  for (const std::string& load : {straight, transposed}) {
    SmallKernel kernel(begin + load + product);
    kernel.out.assign(128, 0);
    kernel.in.clear();
    for (std::size_t i = 0; i < numbers.size(); i += 2)
      kernel.in.push_back(std::uint32_t{numbers[i + 1]} << 16 | numbers[i]);
    for (const Fault& fault : kernel.run({.shared_bytes = 1024})) FAIL_CHECK(fault.text);
    for (std::size_t row = 0; row < 16; ++row)
      for (std::size_t column = 0; column < 8; ++column) {
        float sum = 0;
        for (std::size_t k = 0; k < 16; ++k)
          sum += widen_bf16(numbers[row * 16 + k]) * widen_bf16(numbers[256 + column * 16 + k]);
        CHECK(sum_at(kernel, static_cast<int>(row), static_cast<int>(column)) == sum);
      }
  }
}

}  // namespace plumb::test::ptx
