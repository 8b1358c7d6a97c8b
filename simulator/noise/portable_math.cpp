#include "simulator/noise/portable_math.h"

#include <array>
#include <cassert>
#include <cmath>
#include <numbers>

namespace plumb { inline namespace simulator {
namespace {

constexpr int kExpTerms = 14;  // r^15 / 15! < 1e-19 for |r| <= ln 2 / 2
constexpr int kLogTerms = 11;  // s^23 / 23 < 1e-18 for |s| < 0.172

/// [n] 1 / n!
constexpr auto kInverseFactorials = [] {
  std::array<double, kExpTerms + 1> inverse{};
  double factorial = 1;
  for (int n = 0; n <= kExpTerms; ++n) {
    if (n > 0) factorial *= n;
    inverse[n] = 1 / factorial;
  }
  return inverse;
}();

/// [n] 1 / (2n + 1)
constexpr auto kInverseOdd = [] {
  std::array<double, kLogTerms> inverse{};
  for (int n = 0; n < kLogTerms; ++n) inverse[n] = 1.0 / (2 * n + 1);
  return inverse;
}();

}  // namespace

double portable_exp(double x) {
  assert(x >= -700 && x <= 700);
  // ln 2 in two parts: k times the first, which ends in zero bits, is exact.
  constexpr double kLn2High = 0x1.62e42fefap-1;
  constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
  const double k = std::floor(x / std::numbers::ln2 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln 2 / 2
  double sum = kInverseFactorials[kExpTerms];
  for (int n = kExpTerms - 1; n >= 0; --n) sum = sum * r + kInverseFactorials[n];
  return std::ldexp(sum, static_cast<int>(k));
}

double portable_log(double x) {
  assert(x > 0);
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // in [1/2, 1)
  if (mantissa < std::numbers::sqrt2 / 2) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);  // |s| < 0.172; ln mantissa = 2 artanh s
  const double square = s * s;
  double sum = kInverseOdd[kLogTerms - 1];
  for (int n = kLogTerms - 2; n >= 0; --n) sum = sum * square + kInverseOdd[n];
  return exponent * std::numbers::ln2 + 2 * s * sum;
}

}}  // namespace plumb::simulator
