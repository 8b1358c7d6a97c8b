#include "planner/spec/megatron_layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::size_t kMostLetters = 1 << 16;  // of a layout without repetitions
constexpr int kDeepest = 64;                   // of brackets in one another

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw SpecError(fmt::format("layout \"{}\": {}", text, why));
}

/// Reads a layout letter by letter, and writes its repetitions out.
class Unroller {
 public:
  explicit Unroller(std::string_view text) : text_(text) {}

  std::string all() {
    std::string letters = part();
    if (at_ < text_.size()) refuse(text_, "a bracket is closed that was not opened: leave it out");
    return letters;
  }

 private:
  /// Returns what stands up to the end, or up to the bracket that closes.
  std::string part() {
    std::string letters;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char letter = text_[at_++];
      if (letter == ',') continue;
      std::string one(1, letter);
      if (letter == '(') {
        if (++depth_ > kDeepest) refuse(text_, "it has too many brackets in one another: write them out");
        one = part();
        if (at_ == text_.size()) refuse(text_, "a bracket is open at the end: close it");
        ++at_;
        --depth_;
      } else if (std::string_view("EtmL|").find(letter) == std::string_view::npos) {
        refuse(text_, fmt::format("\"{}\" is none of E, t, m, L, a bar, a comma, a bracket and *N", letter));
      }
      const std::size_t times = repetitions();
      if (letters.size() + times * one.size() > kMostLetters) refuse(text_, "it has too many layers: give fewer");
      for (std::size_t time = 0; time < times; ++time) letters += one;
    }
    return letters;
  }

  /// Reads "*N" where it follows; it is 1 otherwise.
  std::size_t repetitions() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    std::size_t times = 0;
    const std::size_t first = ++at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      times = std::min(10 * times + static_cast<std::size_t>(text_[at_] - '0'), kMostLetters + 1);
    if (at_ == first || times == 0) refuse(text_, "* needs a number above 0 behind it, as in t*5");
    return times;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<int> split_of_megatron_layout(std::string_view text) {
  std::string letters = Unroller(text).all();
  if (letters.ends_with('|')) letters.pop_back();  // it closes the last stage
  std::size_t modules = 0;
  while (letters.size() > modules + 1 && letters[letters.size() - 2 - modules] == 'm') ++modules;
  if (letters.ends_with('L')) letters.erase(letters.size() - 1 - modules, modules);
  if (letters.find('m') != std::string::npos)
    refuse(text, "modules of multi-token prediction (m) are priced before the loss alone: write them before L");
  const bool framed = letters.size() > 1 && letters.front() == 'E' && letters.back() == 'L';
  if (!framed || std::ranges::count(letters, 'E') != 1 || std::ranges::count(letters, 'L') != 1)
    refuse(text, "it begins with the embedding and ends with the loss: write E in front and L at the end, once");
  std::vector<int> split(1, 0);
  for (const char letter : letters) {
    if (letter == '|') split.push_back(0);
    if (letter == 't') ++split.back();
  }
  return split;
}

std::string megatron_layout(const std::vector<int>& split, std::int64_t mtp_modules) {
  const auto layers = [](int count) {
    return count < 3 ? std::string(static_cast<std::size_t>(count), 't') : fmt::format("t*{}", count);
  };
  std::string text = "E" + layers(split.front());
  if (split.size() > 1) text += "|";
  for (std::size_t part = 1; part + 1 < split.size();) {
    std::size_t end = part + 1;
    while (end + 1 < split.size() && split[end] == split[part]) ++end;
    const std::string stage(static_cast<std::size_t>(split[part]), 't');
    text += end - part > 1 ? fmt::format("({}|)*{}", stage, end - part) : layers(split[part]) + "|";
    part = end;
  }
  return text + (split.size() > 1 ? layers(split.back()) : "") +
         std::string(static_cast<std::size_t>(mtp_modules), 'm') + "L";
}

}}  // namespace plumb::planner
