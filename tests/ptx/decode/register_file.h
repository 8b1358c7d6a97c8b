#pragma once
// Places of an entry's registers, constants and variables.

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/ptx/machine/instruction.h"

namespace plumb::test::ptx {

/// A register: where its lanes' values begin in the warp's bytes, and their width. 1 bit: a predicate.
struct RegisterPlace {
  std::uint32_t at = 0;
  int bits = 0;
};

class RegisterFile {
 public:
  RegisterFile(const Module& module, const Entry& entry);

  /// Returns the place of a register, or of a special register such as %tid.x.
  std::optional<RegisterPlace> find(std::string_view name);
  /// Returns the address of a variable in its own memory.
  std::optional<std::uint64_t> address_of(std::string_view variable) const;
  /// Returns the place of a constant.
  std::uint32_t constant(std::uint64_t value, int bits);

  /// Fills in the program's registers and memory.
  void put_into(Program& program) const;

 private:
  struct Names {
    std::uint32_t first = 0;
    int count = 0, bits = 0;
  };

  std::uint32_t append(int bits);
  void place(const Variable& variable, std::int64_t& end);

  std::vector<std::byte> bytes_;
  std::unordered_map<std::string_view, Names> names_;
  std::vector<SpecialRegister> specials_;
  std::unordered_map<std::string_view, std::uint64_t> variables_;
  std::int64_t parameter_bytes_ = 0, shared_bytes_ = 0, local_bytes_ = 0;
};

}  // namespace plumb::test::ptx
