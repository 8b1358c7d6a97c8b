#pragma once
// Factors between the units that people write and the SI units inside.

namespace plumb { inline namespace schedules {

inline constexpr double kMicro = 1e-6;
inline constexpr double kGiga = 1e9;
inline constexpr double kTera = 1e12;
inline constexpr double kKibibyte = 1024.0;
inline constexpr double kMebibyte = 1024.0 * kKibibyte;
inline constexpr double kGibibyte = 1024.0 * kMebibyte;

}}  // namespace plumb::schedules
