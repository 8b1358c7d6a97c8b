#include "schedules/action.h"

#include <charconv>
#include <limits>

namespace plumb { inline namespace schedules {
namespace {

constexpr std::array<std::string_view, kOpCount> kOpNames = {"F",
                                                             "B",
                                                             "I",
                                                             "W",
                                                             "R",
                                                             "SEND_F",
                                                             "RECV_F",
                                                             "SEND_B",
                                                             "RECV_B",
                                                             "UNSHARD",
                                                             "RESHARD",
                                                             "REDUCE_GRAD",
                                                             "OPTIMIZER_STEP",
                                                             "SEND_WEIGHTS",
                                                             "RECV_WEIGHTS",
                                                             "SEND_WGRAD",
                                                             "RECV_WGRAD",
                                                             "OFFLOAD",
                                                             "RELOAD",
                                                             "EVICT",
                                                             "LOAD"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Reads a decimal number at the front of `text` and removes it. Returns nothing if there is none or it does not fit.
template <typename Int>
std::optional<Int> take_number(std::string_view& text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  Int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::string_view op_name(Op op) {
  return kOpNames[static_cast<std::size_t>(op)];
}

std::optional<Op> op_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kOpNames.size(); ++i) {
    if (kOpNames[i] == name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::string to_text(const Action& action) {
  std::string text = std::to_string(action.stage);
  text += op_name(action.op);
  if (has_microbatch(action.op)) text += std::to_string(action.microbatch);
  if (is_weight_message(action.op)) text += std::to_string(action.peer);
  if (action.part != 0) text += '/' + std::to_string(action.part);
  return text;
}

std::optional<Action> parse_action(std::string_view token) {
  Action action;
  const auto stage = take_number<std::int32_t>(token);
  if (!stage) return std::nullopt;
  action.stage = *stage;

  std::size_t name_length = 0;
  while (name_length < token.size() &&
         (token[name_length] == '_' || (token[name_length] >= 'A' && token[name_length] <= 'Z'))) {
    ++name_length;
  }
  const auto op = op_from_name(token.substr(0, name_length));
  if (!op) return std::nullopt;
  action.op = *op;
  token.remove_prefix(name_length);

  if (has_microbatch(action.op) || is_weight_message(action.op)) {
    const auto number = take_number<std::int32_t>(token);
    if (!number) return std::nullopt;
    (has_microbatch(action.op) ? action.microbatch : action.peer) = *number;
  }
  if (!token.empty() && token.front() == '/') {
    token.remove_prefix(1);
    const auto part = take_number<std::int16_t>(token);
    if (!part) return std::nullopt;
    action.part = *part;
  }
  if (!token.empty()) return std::nullopt;
  return action;
}

}}  // namespace plumb::schedules
