#include "tests/ptx/interpreter.h"

#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

#include "tests/ptx/small_kernel.h"

namespace plumb::test::ptx {
namespace {

using Words = std::vector<std::uint32_t>;

/// Returns `out` of a kernel that has no faults.
Words result_of(const std::string& body, const LaunchSize& size = {.shared_bytes = 1024}) {
  SmallKernel kernel(body);
  kernel.out.resize(std::size_t{size.blocks} * size.threads);
  for (std::size_t i = 0; i < kernel.in.size(); ++i) kernel.in[i] = static_cast<std::uint32_t>(100 + i);
  for (const Fault& fault : kernel.run(size)) FAIL_CHECK(fault.text);
  return kernel.out;
}

/// The words that a function makes of 0, 1, ...
template <class Word>
Words words(std::size_t count, const Word& word) {
  Words made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::uint32_t>(word(static_cast<std::uint32_t>(i)));
  return made;
}

}  // namespace

TEST_CASE("threads know their number, block and grid") {
  const std::string body = R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r7, %laneid;
  mad.lo.u32 %r4, %r1, %r2, %r0;
  mul.wide.u32 %d5, %r4, 4;
  add.u64 %d6, %d0, %d5;
  mul.lo.u32 %r5, %r3, 1000;
  add.u32 %r6, %r4, %r5;
  mul.lo.u32 %r7, %r7, 100000;
  add.u32 %r6, %r6, %r7;
  st.global.u32 [%d6], %r6;
)";
  CHECK(result_of(body, {.blocks = 3, .threads = 64}) ==
        words(192, [](std::uint32_t i) { return 3000 + i + i % 32 * 100000; }));
}

TEST_CASE("lanes that a loop or a branch divides come together behind it") {
  // A lane goes round tid + 1 times. bar.sync, which needs all lanes, shows that they meet.
  const std::string body = R"(
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
$loop:
  add.u32 %r1, %r1, %r2;
  and.b32 %r3, %r2, 1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra $even;
  add.u32 %r1, %r1, 100;
  bra.uni $next;
$even:
  add.u32 %r1, %r1, 1;
$next:
  add.u32 %r2, %r2, 1;
  setp.le.u32 %p2, %r2, %r0;
  @%p2 bra $loop;
  bar.sync 0;
  st.global.u32 [%d2], %r1;
)";
  CHECK(result_of(body) ==
        words(32, [](std::uint32_t i) { return i * (i + 1) / 2 + (i + 1) / 2 * 100 + (i / 2 + 1); }));
}

TEST_CASE("guards leave lanes out, and lanes that exit leave the rest to go on") {
  const std::string body = R"(
  setp.ge.u32 %p1, %r0, 20;
  st.global.u32 [%d2], 1;
  @!%p1 ret;
  @%p1 st.global.u32 [%d2], 2;
  bar.sync 0;
)";
  CHECK(result_of(body) == words(32, [](std::uint32_t i) { return i >= 20 ? 2 : 1; }));
}

TEST_CASE("static and dynamic shared memory lie behind each other, and generic addresses reach them") {
  const std::string body = R"(
  .shared .align 4 .b8 fixed[12];
  mov.u64 %d5, fixed;
  cvta.shared.u64 %d5, %d5;
  mov.u32 %r1, fixed;
  mov.u32 %r2, shared;
  sub.u32 %r3, %r2, %r1;
  st.u32 [%d5+8], %r3;
  ld.shared.u32 %r4, [fixed+8];
  st.global.u32 [%d2], %r4;
)";
  // The dynamic array is aligned to 16 bytes.
  CHECK(result_of(body, {.threads = 1, .shared_bytes = 16}) == Words{16});
}

TEST_CASE("local memory is a thread's own") {
  const std::string body = R"(
  .local .align 8 .b8 room[16];
  mov.u64 %d5, room;
  cvta.local.u64 %d6, %d5;
  st.local.v2.u32 [%d5+8], {%r0, 5};
  ld.u32 %r1, [%d6+8];
  ld.local.u32 %r2, [%d5+12];
  add.u32 %r1, %r1, %r2;
  st.global.u32 [%d2], %r1;
)";
  CHECK(result_of(body) == words(32, [](std::uint32_t i) { return i + 5; }));
}

TEST_CASE("named barriers let a producer go on and consumers wait") {
  // The first warp writes and arrives; the second waits for both.
  const std::string body = R"(
  setp.lt.u32 %p1, %r0, 32;
  @%p1 bra $produce;
  bar.sync 3, 64;
  ld.shared.u32 %r1, [shared];
  st.global.u32 [%d2], %r1;
  bra.uni $end;
$produce:
  setp.eq.u32 %p2, %r0, 0;
  @%p2 st.shared.u32 [shared], 77;
  bar.arrive 3, 64;
$end:
)";
  const Words out = result_of(body, {.threads = 64, .shared_bytes = 4});
  CHECK(out == words(64, [](std::uint32_t i) { return i < 32 ? 0 : 77; }));
}

TEST_CASE("cp.async copies, and fills with zeros what the source lacks") {
  const std::string body = R"(
  mov.u32 %r1, shared;
  shl.b32 %r2, %r0, 4;
  add.u32 %r3, %r1, %r2;
  cvt.u64.u32 %d5, %r2;
  add.u64 %d6, %d1, %d5;
  cp.async.cg.shared.global [%r3], [%d6], 16, 8;
  cp.async.wait_all;
  ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];
  add.u32 %r4, %r4, %r5;
  add.u32 %r6, %r6, %r7;
  mad.lo.u32 %r4, %r6, 1000, %r4;
  st.global.u32 [%d2], %r4;
)";
  CHECK(result_of(body, {.threads = 8, .shared_bytes = 128}) ==
        words(8, [](std::uint32_t i) { return 2 * (100 + 4 * i) + 1; }));
}

TEST_CASE("shuffles exchange registers as the PTX ISA's text says") {
  const auto shuffled = [](const std::string& instruction) {
    return result_of("mov.u32 %r2, %r0;\n" + instruction + "\nst.global.u32 [%d2], %r1;");
  };
  CHECK(shuffled("shfl.sync.bfly.b32 %r1, %r2, 5, 31, -1;") == words(32, [](std::uint32_t i) { return i ^ 5; }));
  CHECK(shuffled("shfl.sync.down.b32 %r1, %r2, 3, 31, -1;") ==
        words(32, [](std::uint32_t i) { return i + 3 < 32 ? i + 3 : i; }));
  CHECK(shuffled("shfl.sync.up.b32 %r1, %r2, 3, 0, -1;") ==
        words(32, [](std::uint32_t i) { return i >= 3 ? i - 3 : i; }));
  CHECK(shuffled("shfl.sync.idx.b32 %r1, %r2, 9, 31, -1;") == words(32, [](std::uint32_t) { return 9; }));
  // Segments of 8 lanes: bits 8 to 12 of the third operand are 24.
  CHECK(shuffled("shfl.sync.idx.b32 %r1, %r2, 2, 6175, -1;") ==
        words(32, [](std::uint32_t i) { return i / 8 * 8 + 2; }));
  CHECK(shuffled("shfl.sync.down.b32 %r3|%p1, %r2, 3, 6175, -1; selp.u32 %r1, %r3, 99, %p1;") ==
        words(32, [](std::uint32_t i) { return i % 8 < 5 ? i + 3 : 99; }));
}

TEST_CASE("loads extend by zeros or the sign, and stores take the low bytes") {
  const std::string body = R"(
  st.global.u32 [%d2], 0x8081fffe;
  ld.global.s16 %r1, [%d2+2];
  ld.global.u16 %r2, [%d2+2];
  ld.global.s8 %d5, [%d2];
  ld.global.u8 %h1, [%d2+1];
  cvt.u32.u64 %r3, %d5;
  cvt.u32.u16 %r4, %h1;
  xor.b32 %r1, %r1, %r2;
  xor.b32 %r3, %r3, %r4;
  add.u32 %r1, %r1, %r3;
  st.global.u32 [%d2], %r1;
  st.global.u8 [%d2], %h1;
)";
  const std::uint32_t sum = (0xFFFF8081U ^ 0x8081U) + (0xFFFFFFFEU ^ 0xFFU);
  CHECK(result_of(body, {.threads = 1}) == Words{(sum & 0xFFFFFF00U) | 0xFFU});
}

}  // namespace plumb::test::ptx
