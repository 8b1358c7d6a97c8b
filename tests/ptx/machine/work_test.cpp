#include "tests/ptx/machine/work.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/ptx/small_kernel.h"

namespace plumb::test::ptx {
namespace {

Work work_of(const std::string& body, const LaunchSize& size = {.shared_bytes = 1024}) {
  Interpreter interpreter(small_module(body), true);
  std::vector<std::uint32_t> words(256);
  interpreter.memory().add(std::as_writable_bytes(std::span(words)));
  const std::vector<const void*> parameters = {words.data(), words.data()};
  interpreter.launch("k", size, std::as_bytes(std::span(parameters)));
  return interpreter.take_work().at(0).work;
}

}  // namespace

TEST_CASE("instructions that ptxas may leave out are not counted") {
  CHECK(work_of("").issued == 0);
  CHECK(
      work_of("mov.f32 %f1, 0f3F800000; mul.f32 %f1, %f1, %f1; add.u32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0;").issued ==
      0);
}

TEST_CASE("each warp counts an instruction once, however many lanes do it, and lanes apart twice") {
  const std::string sum = "add.f32 %f1, %f2, %f3;";
  CHECK(work_of(sum, {.blocks = 3, .threads = 64}).fp32 == 6);
  CHECK(work_of(sum, {.threads = 1}).fp32 == 1);
  CHECK(work_of("setp.lt.u32 %p1, %r0, 8; @%p1 " + sum + " @!%p1 " + sum).fp32 == 2);
  CHECK(work_of("setp.lt.u32 %p1, %r0, 99; @!%p1 " + sum).fp32 == 0);
}

TEST_CASE("units are told apart") {
  const Work work = work_of("fma.rn.f32 %f1, %f2, %f3, %f4; ex2.approx.ftz.f32 %f1, %f1; rcp.approx.f32 %f1, %f1;");
  CHECK(work.fp32 == 1);
  CHECK(work.special == 2);
  CHECK(work.issued == 3);
  CHECK(work_of("fma.rn.f64 %d5, %d5, %d5, %d5;").issued == 0);
  CHECK(work_of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
                "{%f0,%f1,%f2,%f3};")
            .tensor_flops == 4096);
}

TEST_CASE("shared memory takes a pass for each 128 bytes, and lanes that use the same word share it") {
  const std::string place = "mov.u32 %r1, shared; shl.b32 %r2, %r0, 4; add.u32 %r1, %r1, %r2;";
  CHECK(work_of(place + "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};").shared_passes == 4);
  CHECK(work_of("setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [shared], %r0; bar.sync 0; ld.shared.u32 %r3, [shared];")
            .shared_passes == 2);
  CHECK(work_of(place + "cp.async.cg.shared.global [%r1], [%d0], 16;").shared_passes == 4);
  CHECK(work_of(place + "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0}; bar.sync 0;"
                        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r1];")
            .shared_passes == 8);
}

TEST_CASE("lanes that use different words of a bank are conflicts") {
  const auto conflicts = [](const std::string& place, const std::string& access) {
    return work_of("mov.u32 %r1, shared; " + place + " add.u32 %r1, %r1, %r2;" + access).bank_conflicts;
  };
  const std::string row_each = "shl.b32 %r2, %r0, 7;";  // lanes are 128 bytes apart
  const LaunchSize large{.shared_bytes = 8192};
  CHECK(conflicts("shl.b32 %r2, %r0, 2;", "st.shared.u32 [%r1], %r0;") == 0);
  CHECK(conflicts("shl.b32 %r2, %r0, 3;", "st.shared.u32 [%r1], %r0;") == 1);
  CHECK(conflicts("shl.b32 %r2, %r0, 3;", "st.shared.v2.u32 [%r1], {%r0, %r0};") == 0);
  CHECK(conflicts("shl.b32 %r2, %r0, 4;", "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};") == 0);
  const std::string rows = "mov.u32 %r1, shared; " + row_each + " add.u32 %r1, %r1, %r2;";
  CHECK(work_of(rows + "st.shared.u32 [%r1], %r0;", large).bank_conflicts == 31);
  CHECK(work_of(rows + "st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0}; bar.sync 0;"
                       "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r1];",
                large)
            .bank_conflicts == 56);  // 28 for four passes of the write, and 28 for the four matrices
  CHECK(work_of("mov.u32 %r1, shared; st.shared.u32 [%r1], %r0;").bank_conflicts == 0);
}

TEST_CASE("device memory counts what is read before it is written, and what is written, once") {
  CHECK(work_of("ld.global.u32 %r1, [%d2]; ld.global.u32 %r1, [%d2];").memory_bytes == 128);
  CHECK(work_of("ld.global.u32 %r1, [%d2]; st.global.u32 [%d2], %r1; ld.global.u32 %r1, [%d2];").memory_bytes == 256);
  CHECK(work_of("st.global.u32 [%d2], %r0; ld.global.u32 %r1, [%d2];").memory_bytes == 128);
  CHECK(work_of("ld.global.u16 %h1, [%d2];").memory_bytes == 64);
}

}  // namespace plumb::test::ptx
