#include "tests/executor/kernels/kernel_comparison.h"

#include <doctest/doctest.h>

#include <optional>
#include <random>

#include "tests/executor/machines/host_machine.h"

namespace plumb::test {

TEST_CASE("every kernel makes numbers of numbers, and touches nothing but its tensors") {
  unsigned seed = std::random_device()();
  for (const std::optional<HalfFormat> half :
       {std::optional<HalfFormat>{}, std::optional(HalfFormat::kBf16), std::optional(HalfFormat::kFp16)}) {
    HostMachine one(half), other(half);
    KernelBench ours(one), reference(other);
    for (const KernelCase& of : kernel_cases()) {
      INFO(of.name << ", seed " << seed);
      CHECK(difference_on(ours, reference, of, half, seed++) == "");
    }
  }
}

TEST_CASE("a kernel that does something else is found out") {
  HostMachine one(std::nullopt), other(std::nullopt);
  KernelBench ours(one), reference(other);
  const auto difference_of = [&](auto spoil) {
    KernelOperands own(ours.memory(), {}, 1), same(reference.memory(), {}, 1);
    const auto call_with = [](KernelOperands& with, std::int64_t elements) {
      float *sum = with.float_room(32), *x = with.floats(32), *y = with.floats(32);
      return [=](DeviceKernels& kernels) { kernels.add_gradients(sum, x, y, elements); };
    };
    const auto here = call_with(own, 32);
    const auto there = call_with(same, 32);
    auto after = ours.outcome("a sum", here, own);
    const auto expected = reference.outcome("a sum", there, same);
    spoil(after);
    return own.difference(after, expected, {.stored = 1e-5, .floats = 1e-5});
  };
  CHECK(difference_of([](auto&) {}) == "");
  CHECK(
      difference_of([](auto& after) { after[256 + 3] ^= std::byte{4}; }).starts_with("element 0 of 32 of tensor 0 is"));
  CHECK(difference_of([](auto& after) { after[256 + 32 * 4] = std::byte{0}; }) ==
        "a byte ahead of tensor 1 was written");
}

TEST_CASE("a word that no kernel writes may be no number") {
  HostMachine one(std::nullopt), other(std::nullopt);
  KernelBench ours(one), reference(other);
  const auto call_with = [](KernelOperands& with) {
    with.numbers({.replay = ~std::uint64_t{0}});
    float *sum = with.float_room(32), *x = with.floats(32), *y = with.floats(32);
    return [=](DeviceKernels& kernels) { kernels.add_gradients(sum, x, y, 32); };
  };
  KernelOperands own(ours.memory(), {}, 1), same(reference.memory(), {}, 1);
  const auto here = call_with(own);
  const auto there = call_with(same);
  CHECK(own.difference(ours.outcome("a sum", here, own), reference.outcome("a sum", there, same), {}) == "");
}

}  // namespace plumb::test
