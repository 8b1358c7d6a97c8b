#include "schedules/forms/action_remedy.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "schedules/action.h"

namespace plumb { inline namespace schedules {
namespace {

struct Instruction {
  std::string_view word;
  std::string_view means;
};

// DeepSpeed's instructions (runtime/pipe/schedule.py).
constexpr std::array kInstructions = {
    Instruction{"ForwardPass", "F"},         Instruction{"BackwardPass", "B"},  Instruction{"SendActivation", "SEND_F"},
    Instruction{"RecvActivation", "RECV_F"}, Instruction{"SendGrad", "SEND_B"}, Instruction{"RecvGrad", "RECV_B"},
    Instruction{"LoadMicroBatch", ""},       Instruction{"ReduceGrads", ""},    Instruction{"ReduceTiedGrads", ""},
    Instruction{"OptimizerStep", ""},
};

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

}  // namespace

std::string action_remedy(std::string_view word, std::string_view usual) {
  const std::string upper = upper_case(word);
  if (upper != word && parse_action(upper)) return fmt::format("is not an action: write it in capitals, {}", upper);
  for (const Instruction& instruction : kInstructions) {
    if (word.find(instruction.word) == std::string_view::npos) continue;
    return instruction.means.empty()
               ? fmt::format("is an instruction of DeepSpeed: leave {} out, lowering adds what is needed",
                             instruction.word)
               : fmt::format("is an instruction of DeepSpeed: write <stage>{}<micro-batch> for {}", instruction.means,
                             instruction.word);
  }
  if (upper.size() > 1 && std::string_view("FBIW").find(upper.front()) != std::string_view::npos &&
      is_number(std::string_view(upper).substr(1))) {
    return fmt::format("has no stage: write it in front, as in 0{}", upper);
  }
  for (const std::string_view whole : {"BW", "FULL_BACKWARD", "BACKWARD"}) {
    const std::size_t at = upper.find(whole);
    if (at == std::string::npos || !is_number(std::string_view(upper).substr(0, at))) continue;
    std::string written = upper;
    written.replace(at, whole.size(), "B");
    if (parse_action(written)) return fmt::format("is not an action: a whole backward is {}", written);
  }
  if (upper == "RANK" || upper == "STEP" || upper == "STAGE" || upper == "TIME" || upper == "ACTION") {
    return "is the head of a table: leave it out, and give one row a rank, its actions in their order";
  }
  return std::string(usual);
}

}}  // namespace plumb::schedules
