#pragma once
// The entries (kernels) of a PTX module, as `nvcc -ptx` writes it: their parameters, registers, variables and
// instructions. It is read once and interpreted by decode.h.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/read/statement.h"

namespace plumb::test::ptx {

/// An array of bytes: a parameter, or a variable in shared or local memory. No bytes: a shared array whose
/// size the launch gives.
struct Variable {
  enum class Space : std::uint8_t { kParameter, kShared, kLocal };
  Space space = Space::kParameter;
  std::string_view name;
  std::int64_t alignment = 1;
  std::int64_t bytes = 0;
};

/// Registers %name0, %name1, ... of one width; `count` 0: the register %name alone.
struct RegisterNames {
  std::string_view name;
  int count = 0;
  int bits = 0;  ///< 1: predicates
};

struct Entry {
  std::string_view name;
  std::vector<Variable> variables;
  std::vector<RegisterNames> registers;
  std::vector<Statement> statements;
  std::map<std::string_view, int> labels;  ///< index of the statement behind each label
};

class Module {
 public:
  /// Throws PtxError if a line cannot be read.
  explicit Module(std::string text);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<Variable>& variables() const { return variables_; }  ///< of all entries

 private:
  std::string text_;
  std::vector<Entry> entries_;
  std::vector<Variable> variables_;
};

}  // namespace plumb::test::ptx
