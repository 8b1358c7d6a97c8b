// Floating point. Sums, products, quotients and roots are IEEE 754's, as on the device. The approximations
// (ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh, div) are computed by the host's mathematics, which is nearer
// than the device's.

#include <cfenv>
#include <cmath>
#include <limits>
#include <string>

#include "tests/ptx/forms/elementwise.h"

namespace plumb::test::ptx {
namespace {

/// .ftz: subnormal numbers count as zeros of their sign.
float flushed(float a) {
  return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0F, a) : a;
}

template <class T>
T smaller(T a, T b) {
  if (a == b) return std::signbit(a) ? a : b;
  return std::fmin(a, b);
}
template <class T>
T larger(T a, T b) {
  if (a == b) return std::signbit(a) ? b : a;
  return std::fmax(a, b);
}

/// Rounds another way while the object lives. The file is compiled with -frounding-math.
class Rounding {
 public:
  explicit Rounding(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;
  ~Rounding() { std::fesetround(before_); }

 private:
  int before_;
};

/// Does an instruction with the rounding mode.
template <Run kRun, int kMode>
void rounded(Warp& warp, const Instruction& in, LaneMask lanes) {
  const Rounding rounding(kMode);
  kRun(warp, in, lanes);
}

/// Adds the operation under its name with each way of rounding, and without (nearest) if `is_default`.
template <auto kFunction>
void add_rounded(FormTable& table, const std::string& name, const std::string& type, bool is_default) {
  constexpr Run kNearest = Elementwise<kFunction>::run;
  Form form = Elementwise<kFunction>::form();
  table.add(name + ".rn" + type, form);
  if (is_default) table.add(name + type, form);
  form.run = rounded<kNearest, FE_DOWNWARD>;
  table.add(name + ".rm" + type, form);
  form.run = rounded<kNearest, FE_UPWARD>;
  table.add(name + ".rp" + type, form);
  form.run = rounded<kNearest, FE_TOWARDZERO>;
  table.add(name + ".rz" + type, form);
}

template <class T>
void add_arithmetic_of(FormTable& table, const std::string& type) {
  add_rounded<[](T a, T b) { return a + b; }>(table, "add", type, true);
  add_rounded<[](T a, T b) { return a - b; }>(table, "sub", type, true);
  add_rounded<[](T a, T b) { return a * b; }>(table, "mul", type, true);
  add_rounded<[](T a, T b) { return a / b; }>(table, "div", type, false);
  add_rounded<[](T a) { return T{1} / a; }>(table, "rcp", type, false);
  add_rounded<[](T a) { return std::sqrt(a); }>(table, "sqrt", type, false);
  add_rounded<[](T a, T b, T c) { return std::fma(a, b, c); }>(table, "fma", type, false);
  add_elementwise<[](T a) { return -a; }>(table, "neg" + type);
  add_elementwise<[](T a) { return std::abs(a); }>(table, "abs" + type);
  add_elementwise<[](T a, T b) { return smaller(a, b); }>(table, "min" + type);
  add_elementwise<[](T a, T b) { return larger(a, b); }>(table, "max" + type);
  add_elementwise<[](T sign, T a) { return std::copysign(a, sign); }>(table, "copysign" + type);
}

/// An approximation with subnormal numbers, and with .ftz.
template <auto kFunction>
void add_approximation(FormTable& table, const std::string& name) {
  add_elementwise<kFunction>(table, name + ".f32");
  add_elementwise<[](float a) { return flushed(kFunction(flushed(a))); }>(table, name + ".ftz.f32");
}

void add_approximations(FormTable& table) {
  add_approximation<[](float a) { return std::exp2(a); }>(table, "ex2.approx");
  add_approximation<[](float a) { return std::log2(a); }>(table, "lg2.approx");
  add_approximation<[](float a) { return 1 / a; }>(table, "rcp.approx");
  add_approximation<[](float a) { return static_cast<float>(1 / std::sqrt(double{a})); }>(table, "rsqrt.approx");
  add_approximation<[](float a) { return std::sqrt(a); }>(table, "sqrt.approx");
  add_approximation<[](float a) { return std::sin(a); }>(table, "sin.approx");
  add_approximation<[](float a) { return std::cos(a); }>(table, "cos.approx");
  add_elementwise<[](float a) { return std::tanh(a); }>(table, "tanh.approx.f32");
  constexpr auto kQuotient = [](float a, float b) { return a / b; };
  constexpr auto kFlushedQuotient = [](float a, float b) { return flushed(flushed(a) / flushed(b)); };
  for (const std::string name : {"div.approx", "div.full"}) {
    add_elementwise<kQuotient>(table, name + ".f32");
    add_elementwise<kFlushedQuotient>(table, name + ".ftz.f32");
  }
}

}  // namespace

void add_float_forms(FormTable& table) {
  add_arithmetic_of<float>(table, ".f32");
  add_arithmetic_of<double>(table, ".f64");
  add_approximations(table);
}

}  // namespace plumb::test::ptx
