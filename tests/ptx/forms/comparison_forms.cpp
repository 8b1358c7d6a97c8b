// setp and selp.

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "tests/ptx/forms/elementwise.h"

namespace plumb::test::ptx {
namespace {

template <class T>
void add_equality(FormTable& table, const std::string& type) {
  add_elementwise<[](T a, T b) { return a == b; }>(table, "setp.eq." + type);
  add_elementwise<[](T a, T b) { return a != b && !(std::is_floating_point_v<T> && (a != a || b != b)); }>(
      table, "setp.ne." + type);
}

template <class T>
void add_order(FormTable& table, const std::string& type) {
  add_equality<T>(table, type);
  add_elementwise<[](T a, T b) { return a < b; }>(table, "setp.lt." + type);
  add_elementwise<[](T a, T b) { return a <= b; }>(table, "setp.le." + type);
  add_elementwise<[](T a, T b) { return b < a; }>(table, "setp.gt." + type);
  add_elementwise<[](T a, T b) { return a >= b; }>(table, "setp.ge." + type);
}

/// Comparisons that hold if either number is NaN.
template <class T>
void add_unordered(FormTable& table, const std::string& type) {
  add_elementwise<[](T a, T b) { return !(a < b || a > b); }>(table, "setp.equ." + type);
  add_elementwise<[](T a, T b) { return a != b; }>(table, "setp.neu." + type);
  add_elementwise<[](T a, T b) { return !(a >= b); }>(table, "setp.ltu." + type);
  add_elementwise<[](T a, T b) { return !(a > b); }>(table, "setp.leu." + type);
  add_elementwise<[](T a, T b) { return !(a <= b); }>(table, "setp.gtu." + type);
  add_elementwise<[](T a, T b) { return !(a < b); }>(table, "setp.geu." + type);
  add_elementwise<[](T a, T b) { return !std::isnan(a) && !std::isnan(b); }>(table, "setp.num." + type);
  add_elementwise<[](T a, T b) { return std::isnan(a) || std::isnan(b); }>(table, "setp.nan." + type);
}

template <class T>
void add_selection(FormTable& table, const std::string& types) {
  for (const char kind : types)
    add_elementwise<[](T a, T b, bool first) { return first ? a : b; }>(
        table, std::string("selp.") + kind + std::to_string(8 * sizeof(T)));
}

}  // namespace

void add_comparison_forms(FormTable& table) {
  add_order<std::int16_t>(table, "s16");
  add_order<std::uint16_t>(table, "u16");
  add_order<std::int32_t>(table, "s32");
  add_order<std::uint32_t>(table, "u32");
  add_order<std::int64_t>(table, "s64");
  add_order<std::uint64_t>(table, "u64");
  add_order<float>(table, "f32");
  add_order<double>(table, "f64");
  add_unordered<float>(table, "f32");
  add_unordered<double>(table, "f64");
  add_equality<std::uint16_t>(table, "b16");
  add_equality<std::uint32_t>(table, "b32");
  add_equality<std::uint64_t>(table, "b64");
  add_selection<std::uint16_t>(table, "bsu");
  add_selection<std::uint32_t>(table, "bsuf");
  add_selection<std::uint64_t>(table, "bsuf");
}

}  // namespace plumb::test::ptx
