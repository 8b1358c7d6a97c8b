#include "tests/ptx/read/module.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace plumb::test::ptx {
namespace {

/// Overwrites comments by blanks, so that lines keep their numbers.
std::string without_comments(std::string text) {
  for (std::size_t at = 0; (at = text.find('/', at)) != std::string::npos;) {
    const bool is_line = text.compare(at, 2, "//") == 0, is_block = text.compare(at, 2, "/*") == 0;
    if (!is_line && !is_block) {
      ++at;
      continue;
    }
    const std::size_t found = is_line ? text.find('\n', at) : text.find("*/", at + 2);
    const std::size_t end = found == std::string::npos ? text.size() : found + (is_line ? 0 : 2);
    for (; at < end; ++at)
      if (text[at] != '\n') text[at] = ' ';
  }
  return text;
}

int number_in(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Returns the blank-separated words of a declaration.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

/// The width of `.f32`, `.b8`, `.pred` and the like, in bits.
int bits_of_type(std::string_view type) {
  if (type == ".pred") return 1;
  return type.size() > 2 ? number_in(type.substr(2)) : 0;
}

class ModuleReader {
 public:
  explicit ModuleReader(std::string_view text) : text_(text) {}

  void read(std::vector<Entry>& entries, std::vector<Variable>& variables) {
    while (skip_blanks(), at_ < text_.size()) {
      if (text_[at_] != '.') fail("a declaration is expected");
      const std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
      if (line.starts_with(".version") || line.starts_with(".target") || line.starts_with(".address_size")) {
        at_ += line.size();
      } else if (const std::size_t entry = line.find(".entry "); entry != std::string_view::npos) {
        at_ += entry + std::string_view(".entry ").size();
        entries.push_back(entry_of());
      } else if (line.find(".func") != std::string_view::npos) {
        fail("functions that are called are not interpreted");
      } else {
        variables.push_back(variable_of(until(';'), number_of_line(at_)));
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw PtxError(
        fmt::format("line {}: {}: \"{}\"", number_of_line(at_), what, text_.substr(at_, text_.find('\n', at_) - at_)));
  }
  int number_of_line(std::size_t at) const {
    for (; counted_ < at; ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
    return line_;
  }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  std::string_view until(char end) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) fail("the end is missing");
    const std::string_view text = text_.substr(at_, found - at_);
    at_ = found + 1;
    return text;
  }

  /// .extern .shared .align 16 .b8 name[64], .param .u64 name, ...
  Variable variable_of(std::string_view declaration, int line) const {
    Variable variable;
    std::optional<Variable::Space> space;
    std::int64_t element = 0;
    const std::vector<std::string_view> words = words_of(declaration);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string_view word = words[i];
      if (word == ".shared")
        space = Variable::Space::kShared;
      else if (word == ".local")
        space = Variable::Space::kLocal;
      else if (word == ".param")
        space = Variable::Space::kParameter;
      else if (word == ".align" && i + 1 < words.size())
        variable.alignment = number_in(words[++i]);
      else if (word.front() == '.' && bits_of_type(word) >= 8)
        element = bits_of_type(word) / 8;
      else if (word.front() != '.')
        variable.name = word;
    }
    if (!space || element == 0 || variable.name.empty())
      throw PtxError(fmt::format("line {}: the declaration \"{}\" is not interpreted", line, trimmed(declaration)));
    variable.space = *space;
    variable.alignment = std::max(variable.alignment, element);
    variable.bytes = element;
    if (const std::size_t bracket = variable.name.find('['); bracket != std::string_view::npos) {
      variable.bytes = element * number_in(variable.name.substr(bracket + 1));
      variable.name = variable.name.substr(0, bracket);
    }
    return variable;
  }

  Entry entry_of() {
    Entry entry{.name = trimmed(until('('))};
    const int line = number_of_line(at_);
    std::string_view parameters = until(')');
    while (!(parameters = trimmed(parameters)).empty()) {
      const std::size_t end = std::min(parameters.find(','), parameters.size());
      entry.variables.push_back(variable_of(parameters.substr(0, end), line));
      parameters.remove_prefix(std::min(end + 1, parameters.size()));
    }
    until('{');  // behind .maxntid and the like
    read_body(entry);
    return entry;
  }

  /// Scopes inside the body come from inline assembly and are not told apart.
  void read_body(Entry& entry) {
    for (int depth = 1; depth > 0;) {
      skip_blanks();
      if (at_ >= text_.size()) fail("the body does not end");
      const char first = text_[at_];
      if (first == '{' || first == '}') {
        depth += first == '{' ? 1 : -1;
        ++at_;
      } else if (first == '$' && text_.find(':', at_) < text_.find(';', at_)) {
        entry.labels.emplace(trimmed(until(':')), static_cast<int>(entry.statements.size()));
      } else {
        const int line = number_of_line(at_);
        const std::string_view text = trimmed(until(';'));
        if (first == '.')
          read_declaration(entry, text, line);
        else
          entry.statements.push_back(read_statement(text, line));
      }
    }
  }

  void read_declaration(Entry& entry, std::string_view text, int line) const {
    if (text.starts_with(".pragma")) return;
    if (!text.starts_with(".reg")) return entry.variables.push_back(variable_of(text, line));
    const std::vector<std::string_view> words = words_of(text);
    for (std::size_t i = 2; i < words.size(); ++i) {
      std::string_view name = words[i];
      if (name.ends_with(',')) name.remove_suffix(1);
      const std::size_t bracket = name.find('<');
      const bool is_one = bracket == std::string_view::npos;
      entry.registers.push_back({.name = name.substr(0, bracket),
                                 .count = is_one ? 0 : number_in(name.substr(bracket + 1)),
                                 .bits = bits_of_type(words[1])});
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  mutable std::size_t counted_ = 0;
  mutable int line_ = 1;
};

}  // namespace

Module::Module(std::string text) : text_(without_comments(std::move(text))) {
  ModuleReader(text_).read(entries_, variables_);
}

}  // namespace plumb::test::ptx
