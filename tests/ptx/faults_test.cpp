// A kernel with each of the faults that the interpreter reports, and beside it the same kernel without the
// fault.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/ptx/small_kernel.h"

namespace plumb::test::ptx {
namespace {

/// Runs the body and returns the sentence of its first fault of the kind, or "" if it has no fault of any
/// kind.
std::string fault_of(const std::string& body, FaultKind kind, const LaunchSize& size = {.shared_bytes = 1024}) {
  SmallKernel kernel(body);
  const std::vector<Fault>& faults = kernel.run(size);
  if (faults.empty()) return "";
  const auto found = std::ranges::find(faults, kind, &Fault::kind);
  if (found == faults.end()) return "another fault: " + faults[0].text;
  CHECK(found->kernel == "k");
  return found->text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Stores the thread's number into its word of shared memory, whose address is left in %r1.
const std::string kWriteShared = R"(
  mov.u32 %r1, shared;
  shl.b32 %r2, %r0, 2;
  add.u32 %r1, %r1, %r2;
  st.shared.u32 [%r1], %r0;
)";

}  // namespace

TEST_CASE("an access outside of every buffer is reported, by one thread where one makes it") {
  CHECK(fault_of("st.global.u32 [%d2], %r0;", FaultKind::kOutOfBounds) == "");
  const std::string text = fault_of("st.global.u32 [%d2+4], %r0;", FaultKind::kOutOfBounds);
  CHECK(has(text, "\"st.global.u32 [%d2+4], %r0\" at line 22: thread 31 of block 0 writes 4 bytes at 0x"));
  CHECK(has(fault_of("ld.global.u32 %r1, [%d2+-4];", FaultKind::kOutOfBounds), "thread 0 of block 0 reads"));
}

TEST_CASE("a vector that a buffer has only the first part of is out of bounds") {
  CHECK(fault_of("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+112];", FaultKind::kOutOfBounds) == "");
  CHECK(has(fault_of("ld.global.v2.u64 {%d5, %d6}, [%d0+128];", FaultKind::kOutOfBounds), "reads 16 bytes"));
}

TEST_CASE("shared and local memory have bounds, too") {
  CHECK(has(fault_of("st.shared.u32 [shared+1024], %r0;", FaultKind::kOutOfBounds),
            "writes bytes 1024 to 1027 of 1024 in shared memory"));
  const std::string local = ".local .align 16 .b8 room[64];";
  CHECK(fault_of(local + "st.local.u32 [room+60], %r0;", FaultKind::kOutOfBounds) == "");
  CHECK(has(fault_of(local + "st.local.u32 [room+64], %r0;", FaultKind::kOutOfBounds), "of 64 in local memory"));
}

TEST_CASE("an address that is no multiple of the bytes accessed is reported") {
  CHECK(has(fault_of("ld.global.u32 %r1, [%d0+2];", FaultKind::kMisaligned), "reads 4 bytes at 0x"));
  CHECK(fault_of("ld.global.u16 %h1, [%d0+2];", FaultKind::kMisaligned) == "");
  // The vector's words are aligned, the vector is not.
  CHECK(has(fault_of("ld.global.v2.u32 {%r1, %r2}, [%d0+4];", FaultKind::kMisaligned), "reads 8 bytes"));
}

TEST_CASE("shared memory that is read before it is written is reported") {
  CHECK(has(fault_of("ld.shared.u32 %r1, [shared];", FaultKind::kUnwritten),
            "reads bytes 0 to 3 of shared memory, which nobody has written"));
  CHECK(fault_of(kWriteShared + "ld.shared.u32 %r3, [%r1];", FaultKind::kUnwritten) == "");
  // Half of the word has been written.
  CHECK(has(fault_of("st.shared.u16 [shared+4], 1; ld.shared.u32 %r3, [shared+4];", FaultKind::kUnwritten,
                     {.threads = 1, .shared_bytes = 64}),
            "reads bytes 4 to 7"));
}

TEST_CASE("what one block has written is not written in the next") {
  const std::string body = R"(
  mov.u32 %r5, %ctaid.x;
  setp.eq.u32 %p1, %r5, 0;
  @%p1 st.shared.u32 [shared], %r0;
  ld.shared.u32 %r1, [shared];
)";
  const LaunchSize size{.threads = 1, .shared_bytes = 4};
  CHECK(fault_of(body, FaultKind::kUnwritten, size) == "");
  CHECK(has(fault_of(body, FaultKind::kUnwritten, {.blocks = 2, .threads = 1, .shared_bytes = 4}),
            "thread 0 of block 1"));
}

TEST_CASE("a read of what another thread writes needs a barrier between") {
  const std::string turned = "xor.b32 %r3, %r1, 128; ld.shared.u32 %r4, [%r3];";
  const LaunchSize size{.threads = 64, .shared_bytes = 256};
  // The first warp runs ahead of the second, which has not written yet.
  CHECK(has(fault_of(kWriteShared + turned, FaultKind::kUnwritten, {.threads = 64, .shared_bytes = 256}), "thread 0"));
  CHECK(fault_of(kWriteShared + "bar.sync 0;" + turned, FaultKind::kRace, size) == "");
}

TEST_CASE("a race between two warps is reported though this order of theirs gives the right result") {
  // The second warp reads what the first has written.
  const std::string body = R"(
  setp.lt.u32 %p1, %r0, 32;
  @%p1 st.shared.u32 [shared], 7;
)";
  const LaunchSize size{.threads = 64, .shared_bytes = 4};
  const std::string one_writer = R"(
  setp.eq.u32 %p1, %r0, 0;
  setp.eq.u32 %p2, %r0, 32;
  @%p1 st.shared.u32 [shared], 7;
)";
  const std::string read = "@%p2 ld.shared.u32 %r1, [shared];";
  CHECK(has(fault_of(one_writer + read, FaultKind::kRace, size),
            "thread 32 of block 0 reads bytes 0 to 3 of shared memory, which thread 0 of block 0 has written with no "
            "barrier between"));
  CHECK(fault_of(one_writer + "bar.sync 0;" + read, FaultKind::kRace, size) == "");
  CHECK(has(fault_of(body, FaultKind::kRace, size), "writes bytes 0 to 3 of shared memory, which thread"));
}

TEST_CASE("a write behind another thread's read needs a barrier, too") {
  const std::string begin = R"(
  setp.eq.u32 %p1, %r0, 0;
  setp.eq.u32 %p2, %r0, 33;
  @%p2 st.shared.u32 [shared], 7;
  bar.sync 0;
  ld.shared.u32 %r1, [shared];
)";
  const LaunchSize size{.threads = 64, .shared_bytes = 4};
  const std::string write = "@%p2 st.shared.u32 [shared], 8;";
  CHECK(has(fault_of(begin + write, FaultKind::kRace, size), "of block 0 has read with no barrier between"));
  CHECK(fault_of(begin + "bar.sync 1;" + write, FaultKind::kRace, size) == "");
}

TEST_CASE("lanes of one warp meet by bar.warp.sync, and not by going in lockstep") {
  const std::string read = "xor.b32 %r3, %r1, 4; ld.shared.u32 %r4, [%r3];";
  CHECK(has(fault_of(kWriteShared + read, FaultKind::kRace), "thread 0 of block 0 reads bytes 4 to 7"));
  CHECK(fault_of(kWriteShared + "bar.warp.sync 0xffffffff;" + read, FaultKind::kRace) == "");
}

TEST_CASE("a race on neighbouring bytes is none") {
  CHECK(fault_of("mov.u32 %r1, shared; add.u32 %r1, %r1, %r0; cvt.u16.u32 %h1, %r0; st.shared.u8 [%r1], %h1;",
                 FaultKind::kRace) == "");
  CHECK(has(fault_of("mov.u32 %r1, shared; add.u32 %r1, %r1, %r0; and.b32 %r1, %r1, -2; mov.b16 %h1, 1; "
                     "st.shared.u8 [%r1], %h1;",
                     FaultKind::kRace),
            "thread 1 of block 0 writes bytes 0 to 0 of shared memory, which thread 0"));
}

TEST_CASE("races in device memory are found inside a block and between blocks") {
  CHECK(has(fault_of("st.global.u32 [%d0], %r0;", FaultKind::kRace), "writes bytes 0 to 3 of a buffer"));
  CHECK(fault_of("st.global.u32 [%d2], %r0;", FaultKind::kRace) == "");
  const LaunchSize two{.blocks = 2};
  CHECK(has(fault_of("st.global.u32 [%d2], %r0;", FaultKind::kRace, two),
            "thread 0 of block 1 writes bytes 0 to 3 of a buffer, which thread 0 of block 0 has written"));
  // A barrier orders the threads of one block alone.
  CHECK(has(fault_of("ld.global.u32 %r1, [%d2]; bar.sync 0; st.global.u32 [%d2], %r0;", FaultKind::kRace, two),
            "which thread 0 of block 0 has"));
}

TEST_CASE("a barrier that some threads of a warp do not reach together is reported") {
  CHECK(has(fault_of("setp.lt.u32 %p1, %r0, 8; @%p1 bar.sync 0;", FaultKind::kDivergence),
            "thread 0 of block 0 is here with lanes 000000ff of its warp, while lanes ffffff00 are elsewhere"));
  const std::string branch = R"(
  setp.lt.u32 %p1, %r0, 8;
  @%p1 bra $there;
  bar.sync 0;
  bra.uni $end;
$there:
  bar.sync 0;
$end:
)";
  CHECK(has(fault_of(branch, FaultKind::kDivergence), "\"bar.sync 0\""));
  // Lanes that have come together again may meet.
  CHECK(fault_of("setp.lt.u32 %p1, %r0, 8;\n @%p1 bra $end;\n mov.u32 %r1, 1;\n$end:\n bar.sync 0;",
                 FaultKind::kDivergence) == "");
  // Lanes that have exited are not waited for.
  CHECK(fault_of("setp.lt.u32 %p1, %r0, 8; @%p1 ret; bar.sync 0;", FaultKind::kDivergence) == "");
}

TEST_CASE("products and loads of matrices in a branch are reported") {
  const std::string divided = "setp.lt.u32 %p1, %r0, 8;\n @%p1 bra $end;\n";
  CHECK(has(fault_of(divided + "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, "
                               "{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f0,%f1,%f2,%f3};\n$end:",
                     FaultKind::kDivergence),
            "lanes 000000ff are elsewhere"));
  CHECK(has(
      fault_of(divided + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [shared];\n$end:", FaultKind::kDivergence),
      "lanes 000000ff are elsewhere"));
}

TEST_CASE("a shuffle with lanes that are elsewhere is reported") {
  const std::string shuffle = "shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;";
  CHECK(fault_of(shuffle, FaultKind::kDivergence) == "");
  CHECK(has(fault_of("setp.lt.u32 %p1, %r0, 8;\n @%p1 bra $end;\n" + shuffle + "\n$end:", FaultKind::kDivergence),
            "while lanes 000000ff are elsewhere"));
}

TEST_CASE("a barrier that some warps never reach is reported") {
  const std::string body = R"(
  setp.lt.u32 %p1, %r0, 32;
  @%p1 bra $first;
  bar.sync 1;
  bra.uni $end;
$first:
  bar.sync 2;
$end:
)";
  CHECK(has(fault_of(body, FaultKind::kStuckBarrier, {.threads = 64}), "waits for ever: 32 threads have come"));
  CHECK(fault_of(body, FaultKind::kStuckBarrier, {.threads = 32}) == "");
}

TEST_CASE("what cp.async copies may be used behind the wait, and by other threads behind a barrier") {
  const std::string begin = "mov.u32 %r1, shared; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2;";
  const std::string copy = begin + "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.commit_group;";
  const std::string own = "ld.shared.u32 %r3, [%r1];", other = "xor.b32 %r3, %r1, 4; ld.shared.u32 %r4, [%r3];";
  CHECK(has(fault_of(copy + own, FaultKind::kPendingCopy), "for whose copy thread 0 of block 0 has not waited"));
  CHECK(has(fault_of(copy + "cp.async.wait_group 1;" + own, FaultKind::kPendingCopy), "has not waited"));
  CHECK(fault_of(copy + "cp.async.wait_group 0;" + own, FaultKind::kPendingCopy) == "");
  CHECK(has(fault_of(copy + "cp.async.wait_all;" + other, FaultKind::kRace), "with no barrier between"));
  CHECK(has(fault_of(copy + "bar.sync 0;" + own, FaultKind::kPendingCopy), "has not waited"));
  CHECK(fault_of(copy + "cp.async.wait_all; bar.sync 0;" + other, FaultKind::kRace) == "");
  CHECK(has(fault_of(begin + "cp.async.cg.shared.global [%r1], [%d3], 16;", FaultKind::kMisaligned,
                     {.threads = 2, .shared_bytes = 1024}),
            "at line 22"));
}

TEST_CASE("PTX that is not known is refused with line and instruction") {
  const auto refused = [](const std::string& body) -> std::string {
    try {
      SmallKernel(body).run();
    } catch (const PtxError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refused("atom.global.add.u32 %r1, [%d0], 1;") ==
        "line 22: the instruction atom.global.add.u32 is not interpreted (tests/ptx/forms) in \"atom.global.add.u32 "
        "%r1, [%d0], 1\"");
  CHECK(refused("add.u32 %r1, %r2, %d0;") ==
        "line 22: %d0 has 64 bits, which do not fit here in \"add.u32 %r1, %r2, %d0\"");
  CHECK(refused("add.u32 %r1, %r2;") == "line 22: an operand is missing in \"add.u32 %r1, %r2\"");
  CHECK(refused("add.u32 %r1, %r2, %r99;") == "line 22: the name %r99 is not known in \"add.u32 %r1, %r2, %r99\"");
  CHECK(refused("bra $nowhere;") == "line 22: there is no label $nowhere in \"bra $nowhere\"");
}

TEST_CASE("a launch that does not fit the kernel is refused") {
  Interpreter interpreter(small_module(""));
  CHECK_THROWS_WITH_AS(interpreter.launch("other", {}, {}), "the module has no kernel other", PtxError);
  CHECK_THROWS_WITH_AS(interpreter.launch("k", {}, {}), "k has 16 bytes of parameters and not 0", PtxError);
}

}  // namespace plumb::test::ptx
