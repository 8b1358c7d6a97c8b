#pragma once
// Small kernels for tests, written as the body of an entry whose first registers are set.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/interpreter.h"

namespace plumb::test::ptx {

/// Returns a module with the kernel k(out, in), whose body begins on line 22.
inline std::string small_module(const std::string& body) {
  return R"(.version 9.0
.target sm_90
.address_size 64

.extern .shared .align 16 .b8 shared[];
.visible .entry k(
  .param .u64 k_out,
  .param .u64 k_in
)
{
  .reg .pred %p<8>;
  .reg .b16 %h<8>;
  .reg .b32 %r<40>;
  .reg .f32 %f<40>;
  .reg .b64 %d<16>;
  ld.param.u64 %d0, [k_out];
  ld.param.u64 %d1, [k_in];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d4, %r0, 4;
  add.u64 %d2, %d0, %d4;  // of the thread's word of out
  add.u64 %d3, %d1, %d4;
)" + body +
         "\n  ret;\n}\n";
}

/// Runs the body of a small kernel, whose buffers are words.
class SmallKernel {
 public:
  explicit SmallKernel(const std::string& body) : interpreter_(small_module(body)) {}

  std::vector<std::uint32_t> out = std::vector<std::uint32_t>(kWarpLanes), in = out;

  /// Returns what is reported.
  const std::vector<Fault>& run(const LaunchSize& size = {}) {
    interpreter_.memory().clear();
    interpreter_.memory().add(std::as_writable_bytes(std::span(out)));
    interpreter_.memory().add(std::as_writable_bytes(std::span(in)));
    const std::vector<const void*> parameters = {out.data(), in.data()};
    interpreter_.launch("k", size, std::as_bytes(std::span(parameters)));
    return interpreter_.report().faults();
  }

 private:
  Interpreter interpreter_;
};

}  // namespace plumb::test::ptx
