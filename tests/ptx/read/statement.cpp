#include "tests/ptx/read/statement.h"

#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace plumb::test::ptx {
namespace {

bool is_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' || letter == '%' ||
         letter == '.' || letter == ':';
}

class StatementReader {
 public:
  StatementReader(std::string_view text, int line) : text_(text), rest_(text), line_(line) {}

  Statement read() {
    Statement statement{.line = line_, .text = text_};
    if (take('@')) {
      statement.is_guard_negated = take('!');
      statement.guard = name();
    }
    statement.opcode = name();
    skip_blanks();
    while (!rest_.empty()) {
      statement.operands.push_back(operand());
      skip_blanks();
      if (!rest_.empty() && !take(',')) fail("a comma is missing");
    }
    return statement;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw PtxError(fmt::format("line {}: {} in \"{}\"", line_, what, text_));
  }
  void skip_blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) rest_.remove_prefix(1);
  }
  bool take(char wanted) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view name() {
    skip_blanks();
    std::size_t end = 0;
    while (end < rest_.size() && is_of_name(rest_[end])) ++end;
    if (end == 0) fail("a name is missing");
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return found;
  }
  bool is_at_number() const {
    return !rest_.empty() && (std::isdigit(static_cast<unsigned char>(rest_.front())) != 0 || rest_.front() == '-');
  }

  /// 0f3F800000 and 0d... are the bits of a float and a double.
  std::uint64_t number() {
    const bool is_negative = take('-');
    std::string_view digits = name();
    int base = 10;
    if (digits.starts_with("0f") || digits.starts_with("0F") || digits.starts_with("0d") || digits.starts_with("0D") ||
        digits.starts_with("0x") || digits.starts_with("0X")) {
      digits.remove_prefix(2);
      base = 16;
    }
    if (digits.ends_with('U')) digits.remove_suffix(1);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc{} || end != digits.data() + digits.size()) fail("a number cannot be read");
    return is_negative ? 0 - value : value;
  }

  Operand operand() {
    skip_blanks();
    if (take('{')) return vector();
    if (take('[')) return address();
    if (is_at_number()) return {.kind = Operand::Kind::kImmediate, .bits = number()};
    Operand first{.name = name()};
    if (!take('|')) return first;
    Operand second{.name = name()};
    return {.kind = Operand::Kind::kVector, .elements = {std::move(first), std::move(second)}};
  }
  Operand vector() {
    Operand vector{.kind = Operand::Kind::kVector};
    do vector.elements.push_back(operand());
    while (take(','));
    if (!take('}')) fail("a brace is not closed");
    return vector;
  }
  Operand address() {
    Operand address{.kind = Operand::Kind::kAddress};
    skip_blanks();
    if (!is_at_number()) {
      address.name = name();
      skip_blanks();
    }
    take('+');
    skip_blanks();
    if (is_at_number()) address.offset = static_cast<std::int64_t>(number());
    if (!take(']')) fail("a bracket is not closed");
    return address;
  }

  std::string_view text_, rest_;
  int line_;
};

}  // namespace

Statement read_statement(std::string_view text, int line) {
  return StatementReader(text, line).read();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

}  // namespace plumb::test::ptx
