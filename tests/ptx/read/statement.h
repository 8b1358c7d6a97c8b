#pragma once
// A line of PTX as it is written: an opcode with its operands, and the predicate that guards it.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::test::ptx {

/// PTX that this interpreter cannot read or run. The text names the line and the instruction.
struct PtxError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Operand {
  enum class Kind : std::uint8_t {
    kName,       ///< a register, a special register, a variable or a label
    kImmediate,  ///< `bits`
    kAddress,    ///< [name + offset], or [offset] without a name
    kVector      ///< {a, b, ...}, or a|b
  };
  Kind kind = Kind::kName;
  std::string_view name;
  std::uint64_t bits = 0;
  std::int64_t offset = 0;
  std::vector<Operand> elements;
};

struct Statement {
  int line = 0;
  std::string_view guard;  ///< the predicate's register; empty: none
  bool is_guard_negated = false;
  std::string_view opcode;
  std::vector<Operand> operands;
  std::string_view text;
};

/// Reads an instruction without its semicolon. The views point into `text`. Throws PtxError.
Statement read_statement(std::string_view text, int line);

/// Returns the text without blanks at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace plumb::test::ptx
