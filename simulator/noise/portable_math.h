#pragma once
// Exponential and logarithm that give the same bits on every machine. They use only +, -, *, / and exact scaling by
// powers of two, which IEEE 754 rounds in one way. Those of the C++ library may differ in the last bit from one library
// to the next.

namespace plumb { inline namespace simulator {

/// Returns e^x for |x| <= 700, with a relative error below 1e-15, by powers of two and a Taylor series.
double portable_exp(double x);

/// Returns the natural logarithm of x > 0, with an error below 1e-15 (1 + |ln x|), by powers of two and the series of
/// artanh.
double portable_log(double x);

}}  // namespace plumb::simulator
