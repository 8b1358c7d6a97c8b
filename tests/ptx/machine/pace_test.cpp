#include "tests/ptx/machine/pace.h"

#include <doctest/doctest.h>

namespace plumb::test::ptx {

TEST_CASE("moves and constants take no instruction, integers of 64 bits two, and their products three") {
  CHECK(pace_of("mov.u32").slots == 0);
  CHECK(pace_of("ld.param.u64").slots == 0);
  CHECK(pace_of("add.f32").slots == 1);
  CHECK(pace_of("add.s64").slots == 2);
  CHECK(pace_of("mul.lo.s64").slots == 3);
  CHECK(pace_of("mul.wide.u32").slots == 1);
  CHECK(pace_of("ld.global.u64").slots == 1);
  CHECK(pace_of("div.u32").slots == 24);
  CHECK(pace_of("rem.s64").slots == 77);
  CHECK(pace_of("div.rn.f32").slots == 1);
}

TEST_CASE("results come from registers, arithmetic, shared memory or device memory") {
  CHECK(pace_of("cvta.to.global.u64").origin == Origin::kRegister);
  CHECK(pace_of("fma.rn.f32").origin == Origin::kArithmetic);
  CHECK(pace_of("ldmatrix.sync.aligned.m8n8.x4.shared.b16").origin == Origin::kShared);
  CHECK(pace_of("shfl.sync.bfly.b32").origin == Origin::kShared);
  CHECK(pace_of("ld.global.nc.f32").origin == Origin::kMemory);
  CHECK(pace_of("st.global.f32").is_store);
  CHECK(pace_of("cp.async.cg.shared.global").is_copy);
  CHECK(!pace_of("cp.async.commit_group").is_copy);
  CHECK(pace_of("cp.async.wait_group").is_wait);
  CHECK(pace_of("bar.sync").is_barrier);
}

}  // namespace plumb::test::ptx
