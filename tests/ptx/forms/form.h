#pragma once
// The instructions that the interpreter knows: for each opcode what its operands are, and the function that
// does it.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/ptx/machine/instruction.h"

namespace plumb::test::ptx {

enum class Slot : std::uint8_t {
  kPredicate,
  k16,
  k32,
  k64,
  kAny,      ///< a register of 16, 32 or 64 bits: loads widen, and stores take the low bytes
  kAddress,  ///< [register + offset]
  kNumber,   ///< an immediate
  kLabel
};

/// The elements of {a, b} are operands of their own.
struct Form {
  Run run = nullptr;
  std::vector<Slot> slots;
  Flow flow = Flow::kNext;
  bool is_aligned = false;
  Space space = Space::kGeneric;
  std::uint8_t access_bytes = 0;
};

/// Forms by opcode. Where operands decide, the opcode is followed by a blank and their number ("bar.sync 2"),
/// or the place and size of the first vector ("mov.b32 1:2" for mov.b32 d, {a, b}).
class FormTable {
 public:
  void add(std::string opcode, Form form) { forms_.insert_or_assign(std::move(opcode), std::move(form)); }
  const Form* find(const std::string& opcode) const {
    const auto found = forms_.find(opcode);
    return found == forms_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string, Form> forms_;
};

/// Returns the table of all forms.
const FormTable& all_forms();

void add_integer_forms(FormTable& table);
void add_float_forms(FormTable& table);
void add_comparison_forms(FormTable& table);
void add_conversion_forms(FormTable& table);
void add_move_forms(FormTable& table);
void add_memory_forms(FormTable& table);
void add_async_copy_forms(FormTable& table);
void add_matrix_forms(FormTable& table);
void add_warp_forms(FormTable& table);  // branches, barriers, shuffles

}  // namespace plumb::test::ptx
