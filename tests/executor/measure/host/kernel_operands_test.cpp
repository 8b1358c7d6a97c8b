#include "executor/measure/host/kernel_operands.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "executor/measure/host/measure_kernels.h"

namespace plumb::test {

TEST_CASE("operands: what calls have written is as new after a renewal") {
  OperandMemory memory(OperandMemory::Use::kCold, OperandMemory::Values::kBothSigns);
  memory.begin_call();
  float* slice = memory.next(1000);
  const std::vector<float> first(slice, slice + 1000);
  CHECK(std::ranges::all_of(first, [](float value) { return std::abs(value) <= 1; }));
  CHECK(*std::ranges::min_element(first) < 0);
  CHECK(*std::ranges::max_element(first) > 0);
  std::fill_n(slice, 1000, 1e30F);
  memory.begin_call();
  CHECK(memory.next(10) != slice);  // cold memory goes on
  memory.renew();
  CHECK(std::vector<float>(slice, slice + 1000) == first);
}

TEST_CASE("operands: hot memory begins at the same place, also when it has grown") {
  OperandMemory memory(OperandMemory::Use::kHot, OperandMemory::Values::kPositive);
  memory.begin_call();
  memory.next(100);
  memory.next(5000);
  memory.begin_call();
  float* first = memory.next(100);
  CHECK(std::all_of(first, first + 100, [](float value) { return value >= 0; }));
  float* second = memory.next(5000);
  CHECK(second >= first + 100);
  memory.begin_call();
  CHECK(memory.next(100) == first);
  CHECK(memory.next(5000) == second);
}

TEST_CASE("operands: no kernel leaves numbers on which the next call would take longer") {
  KernelOperands operands;
  std::set<KernelKind> seen;
  for (const auto& ladder : {gemm_ladder(), attention_ladder(), other_kernel_ladder()})
    for (const KernelCall& call : ladder) {
      if (!seen.insert(call.kind).second) continue;
      for (int i = 0; i < 3; ++i) call_kernel(call, operands);
      operands.renew();
    }
  CHECK(seen.size() == kCpuKernelKindCount);
  for (OperandMemory* memory : {&operands.hot, &operands.cold, &operands.moments}) {
    memory->begin_call();
    const float* slice = memory->next(2048);
    CHECK(std::none_of(slice, slice + 2048, [](float value) { return std::fpclassify(value) == FP_SUBNORMAL; }));
    CHECK(std::all_of(slice, slice + 2048, [](float value) { return std::abs(value) <= 1; }));
  }
}

}  // namespace plumb::test
