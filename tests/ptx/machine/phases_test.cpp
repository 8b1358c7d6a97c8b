#include "tests/ptx/machine/phases.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/ptx/small_kernel.h"

namespace plumb::test::ptx {
namespace {

/// Returns the phases of each block, whose kernel begins with a 64-bit product and two 64-bit sums: 5 instructions.
std::vector<BlockPhases> phases_of(const std::string& body, const LaunchSize& size = {.shared_bytes = 1024}) {
  Interpreter interpreter(small_module(body), true);
  alignas(32) std::array<std::uint32_t, 256> words{};
  interpreter.memory().add(std::as_writable_bytes(std::span(words)));
  const std::vector<const void*> parameters = {words.data(), words.data()};
  interpreter.launch("k", size, std::as_bytes(std::span(parameters)));
  return interpreter.take_work().at(0).phases;
}

/// Returns the clocks of the whole run of the first block's first warp.
int clocks_of_run(const std::string& body) {
  const std::vector<BlockPhases> blocks = phases_of(body);
  int clocks = 0;
  for (const Phase& phase : blocks.at(0).at(0)) clocks += phase.clocks;
  return clocks;
}

constexpr int kAddress = 8;  // clocks until the address of the thread's word is there: a product and a sum

}  // namespace

TEST_CASE("an instruction begins when its operands are there") {
  CHECK(clocks_of_run("") == 0 + 4);  // the second of two dependent instructions begins after 4
  CHECK(clocks_of_run("ld.global.f32 %f1, [%d2];") == kAddress);
  CHECK(clocks_of_run("ld.global.f32 %f1, [%d2]; add.f32 %f1, %f1, %f1;") == kAddress + 650);
  CHECK(clocks_of_run("ld.global.f32 %f1, [%d2]; add.f32 %f1, %f1, %f1; add.f32 %f1, %f1, %f1;") == kAddress + 650 + 4);
}

TEST_CASE("loads of a phase wait together, and loads behind a branch or a store one after the other") {
  const std::string load = "ld.global.f32 %f1, [%d2]; add.f32 %f2, %f1, %f2;";
  const std::string other = "ld.global.f32 %f3, [%d3+512]; add.f32 %f2, %f3, %f2;";
  CHECK(clocks_of_run(load + other) == kAddress + 650 + 4);
  CHECK(clocks_of_run(load + "bra $next; $next:" + other) == kAddress + 650 + 650);
  CHECK(clocks_of_run(load + "st.global.f32 [%d2], %f2;" + other) == kAddress + 650 + 4 + 650);
}

TEST_CASE("memory that the block has used is near, and what another block has used is nearer than what none has") {
  const std::string load = "ld.global.f32 %f1, [%d2]; add.f32 %f2, %f1, %f2;";
  CHECK(clocks_of_run(load + "bra $next; $next:" + load) == kAddress + 650 + 34);
  const auto blocks = phases_of(load, {.blocks = 2});
  CHECK(blocks.at(0).at(0).at(0).clocks == kAddress + 650);
  CHECK(blocks.at(1).at(0).at(0).clocks == kAddress + 265);
}

TEST_CASE("a copy into shared memory is waited for, and phases end at branches and barriers") {
  CHECK(clocks_of_run("cp.async.ca.shared.global [shared], [%d0], 16; add.f32 %f1, %f1, %f1;") == 4);
  CHECK(clocks_of_run("cp.async.ca.shared.global [shared], [%d0], 16; cp.async.wait_all;") == 650);
  const WarpPhases phases = phases_of("bar.sync 0; bra $next; $next: add.s64 %d5, %d5, %d5;").at(0).at(0);
  REQUIRE(phases.size() == 3);
  CHECK(phases[0].ends_at_barrier);
  CHECK(!phases[1].ends_at_barrier);
  CHECK(phases[0].slots == 6);  // mul.wide, two sums of 64 bits, and the barrier
  CHECK(phases[1].slots == 1);
  CHECK(phases[2].slots == 3);  // a sum of 64 bits, and the return
}

}  // namespace plumb::test::ptx
