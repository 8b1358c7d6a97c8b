#include "tests/ptx/decode/decode.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "tests/ptx/decode/reconvergence.h"
#include "tests/ptx/decode/register_file.h"
#include "tests/ptx/forms/form.h"
#include "tests/ptx/machine/work.h"

namespace plumb::test::ptx {
namespace {

[[noreturn]] void fail(const Statement& statement, const std::string& what) {
  throw PtxError(fmt::format("line {}: {} in \"{}\"", statement.line, what, statement.text));
}

const Form& form_of(const Statement& statement) {
  const FormTable& forms = all_forms();
  const std::string opcode(statement.opcode);
  const auto& operands = statement.operands;
  const auto vector = std::ranges::find(operands, Operand::Kind::kVector, &Operand::kind);
  const Form* found = nullptr;
  if (vector != operands.end())
    found = forms.find(fmt::format("{} {}:{}", opcode, vector - operands.begin(), vector->elements.size()));
  if (found == nullptr) found = forms.find(fmt::format("{} {}", opcode, operands.size()));
  if (found == nullptr) found = forms.find(opcode);
  if (found == nullptr) fail(statement, fmt::format("the instruction {} is not interpreted (tests/ptx/forms)", opcode));
  return *found;
}

int bits_of(Slot slot) {
  switch (slot) {
    case Slot::kPredicate:
      return 1;
    case Slot::k16:
      return 16;
    case Slot::k32:
      return 32;
    default:
      return 64;
  }
}

/// Fills in the operands of one instruction.
class OperandDecoder {
 public:
  OperandDecoder(const Entry& entry, RegisterFile& registers, const Statement& statement, Instruction& in)
      : entry_(&entry), registers_(&registers), statement_(&statement), in_(&in) {}

  void decode(const Form& form) {
    std::size_t next = 0;
    const auto decode_one = [&](const Operand& operand) {
      if (next == form.slots.size()) fail(*statement_, "there is an operand too many");
      put(operand, form.slots[next++]);
    };
    for (const Operand& operand : statement_->operands)
      if (operand.kind == Operand::Kind::kVector)
        std::ranges::for_each(operand.elements, decode_one);
      else
        decode_one(operand);
    if (next != form.slots.size()) fail(*statement_, "an operand is missing");
    in_->values = static_cast<std::uint8_t>(values_);
    in_->addresses = static_cast<std::uint8_t>(addresses_);
    in_->results = results();
    if (!statement_->guard.empty()) {
      in_->guard = register_named(statement_->guard, Slot::kPredicate).at;
      in_->is_guard_negated = statement_->is_guard_negated;
    }
  }

 private:
  /// Returns the registers that the first operand names, unless the instruction has no result.
  std::uint8_t results() const {
    if (in_->flow != Flow::kNext || statement_->operands.empty() || statement_->opcode.starts_with("bar")) return 0;
    const Operand& first = statement_->operands.front();
    if (first.kind == Operand::Kind::kVector) return static_cast<std::uint8_t>(first.elements.size());
    return first.kind == Operand::Kind::kAddress || first.kind == Operand::Kind::kImmediate ? 0 : 1;
  }

  void put(const Operand& operand, Slot slot) {
    if (slot == Slot::kLabel) {
      const auto label = entry_->labels.find(operand.name);
      if (label == entry_->labels.end()) fail(*statement_, fmt::format("there is no label {}", operand.name));
      in_->target = label->second;
    } else if (slot == Slot::kAddress) {
      put_address(operand);
    } else if (slot == Slot::kNumber) {
      if (operand.kind != Operand::Kind::kImmediate) fail(*statement_, "a register stands where a number is expected");
      in_->immediate.at(numbers_++) = static_cast<std::uint32_t>(operand.bits);
    } else {
      put_value(operand, slot);
    }
  }

  void put_value(const Operand& operand, Slot slot) {
    RegisterPlace place{0, bits_of(slot)};
    if (operand.kind == Operand::Kind::kImmediate)
      place.at = registers_->constant(operand.bits, place.bits);
    else if (const auto address = registers_->address_of(operand.name))
      place.at = registers_->constant(*address, place.bits);
    else
      place = register_named(operand.name, slot);
    in_->bytes.at(values_) = static_cast<std::uint8_t>(place.bits / 8);
    in_->at.at(values_++) = place.at;
  }

  void put_address(const Operand& operand) {
    if (operand.kind != Operand::Kind::kAddress) fail(*statement_, "an address in brackets is expected");
    Address& address = in_->address.at(addresses_++);
    address.offset = operand.offset;
    if (operand.name.empty()) {
      address.base = registers_->constant(0, 64);
    } else if (const auto variable = registers_->address_of(operand.name)) {
      address.base = registers_->constant(*variable, 64);
    } else {
      const RegisterPlace base = register_named(operand.name, Slot::kAny);
      address.base = base.at;
      address.is_wide = base.bits == 64;
    }
  }

  RegisterPlace register_named(std::string_view name, Slot slot) {
    const std::optional<RegisterPlace> found = registers_->find(name);
    if (!found) fail(*statement_, fmt::format("the name {} is not known", name));
    if (slot == Slot::kAny ? found->bits == 1 : found->bits != bits_of(slot))
      fail(*statement_, fmt::format("{} has {} bits, which do not fit here", name, found->bits));
    return *found;
  }

  const Entry* entry_;
  RegisterFile* registers_;
  const Statement* statement_;
  Instruction* in_;
  std::size_t values_ = 0, addresses_ = 0, numbers_ = 0;
};

}  // namespace

Program decode(const Module& module, const Entry& entry) {
  Program program{.name = entry.name};
  RegisterFile registers(module, entry);
  for (const Statement& statement : entry.statements) {
    const Form& form = form_of(statement);
    Instruction in{.run = form.run,
                   .flow = form.flow,
                   .unit = unit_of(statement.opcode),
                   .pace = pace_of(statement.opcode),
                   .space = form.space,
                   .access_bytes = form.access_bytes,
                   .is_aligned = form.is_aligned,
                   .line = statement.line,
                   .text = statement.text};
    OperandDecoder(entry, registers, statement, in).decode(form);
    program.instructions.push_back(in);
  }
  set_reconvergence(program.instructions);
  registers.put_into(program);
  return program;
}

}  // namespace plumb::test::ptx
