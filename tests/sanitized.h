#pragma once
// A build with sanitizers leaves out the cases that run for minutes what smaller cases run, too.
//
//   TEST_CASE("every space of a hundred" * doctest::skip(kIsSanitized)) { ... }

namespace plumb::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace plumb::test
