#include "tests/ptx/decode/register_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace plumb::test::ptx {
namespace {

constexpr std::array<std::string_view, 5> kSpecials = {"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid"};

std::int64_t rounded_up(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Bytes of a register's lanes, a multiple of 8. A predicate has its mask in the first four.
std::uint32_t bytes_of(int bits) {
  return bits == 1 ? 8 : static_cast<std::uint32_t>(bits / 8 * kWarpLanes);
}

/// The number of decimal digits at the end of a name.
std::size_t digits_at_end(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  return last == std::string_view::npos ? name.size() : name.size() - last - 1;
}

}  // namespace

RegisterFile::RegisterFile(const Module& module, const Entry& entry) {
  for (const RegisterNames& of : entry.registers) {
    const Names names{static_cast<std::uint32_t>(bytes_.size()), of.count, of.bits};
    names_.emplace(of.name, names);
    for (int i = 0; i < std::max(of.count, 1); ++i) append(of.bits);
  }
  std::vector<const Variable*> dynamic;
  for (const std::vector<Variable>* variables : {&module.variables(), &entry.variables})
    for (const Variable& variable : *variables) {
      if (variable.space == Variable::Space::kParameter)
        place(variable, parameter_bytes_);
      else if (variable.space == Variable::Space::kLocal)
        place(variable, local_bytes_);
      else if (variable.bytes > 0)
        place(variable, shared_bytes_);
      else
        dynamic.push_back(&variable);
    }
  // All arrays whose size the launch gives begin at the same place.
  for (const Variable* variable : dynamic) shared_bytes_ = rounded_up(shared_bytes_, variable->alignment);
  for (const Variable* variable : dynamic)
    variables_.emplace(variable->name, static_cast<std::uint64_t>(shared_bytes_));
}

std::uint32_t RegisterFile::append(int bits) {
  const auto at = static_cast<std::uint32_t>(bytes_.size());
  bytes_.resize(bytes_.size() + bytes_of(bits));
  return at;
}

void RegisterFile::place(const Variable& variable, std::int64_t& end) {
  const std::int64_t begin = rounded_up(end, variable.alignment);
  variables_.emplace(variable.name, static_cast<std::uint64_t>(begin));
  end = begin + variable.bytes;
}

std::optional<RegisterPlace> RegisterFile::find(std::string_view name) {
  if (const auto found = names_.find(name); found != names_.end() && found->second.count == 0)
    return RegisterPlace{found->second.first, found->second.bits};
  for (const SpecialRegister& special : specials_)
    if (special.name == name) return RegisterPlace{special.at, 32};
  if (std::ranges::find(kSpecials, name) != kSpecials.end())
    return RegisterPlace{specials_.emplace_back(SpecialRegister{name, append(32)}).at, 32};
  const std::string_view digits = name.substr(name.size() - digits_at_end(name));
  const auto found = names_.find(name.substr(0, name.size() - digits.size()));
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (found == names_.end() || digits.empty() || number >= found->second.count) return {};
  const int bits = found->second.bits;
  return RegisterPlace{found->second.first + static_cast<std::uint32_t>(number) * bytes_of(bits), bits};
}

std::optional<std::uint64_t> RegisterFile::address_of(std::string_view variable) const {
  const auto found = variables_.find(variable);
  if (found == variables_.end()) return {};
  return found->second;
}

std::uint32_t RegisterFile::constant(std::uint64_t value, int bits) {
  const std::uint32_t at = append(bits);
  if (bits == 1)
    std::memset(bytes_.data() + at, value != 0 ? 0xFF : 0, sizeof(LaneMask));
  else
    for (int lane = 0; lane < kWarpLanes; ++lane)
      std::memcpy(bytes_.data() + at + lane * (bits / 8), &value, static_cast<std::size_t>(bits / 8));
  return at;
}

void RegisterFile::put_into(Program& program) const {
  program.registers = bytes_;
  program.specials = specials_;
  program.parameter_bytes = parameter_bytes_;
  program.static_shared_bytes = shared_bytes_;
  program.local_bytes = local_bytes_;
}

}  // namespace plumb::test::ptx
