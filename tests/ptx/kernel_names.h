#pragma once
// Names of kernels, as the compiler mangles them and as they are written.

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace plumb::test {

/// Returns the name as it is written in C++, or the name itself if it is not mangled.
inline std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return text == nullptr ? name : std::string(text.get());
}

}  // namespace plumb::test
