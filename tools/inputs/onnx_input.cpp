#include "tools/inputs/onnx_input.h"

#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "planner/onnx/onnx_model.h"
#include "planner/spec/layout.h"
#include "schedules/error.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::string_view kEnding = ".onnx";

std::int64_t size_of(std::string_view text, const std::string& whole) {
  std::int64_t size = 0;
  constexpr std::int64_t kLargest = std::int64_t{1} << 32;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (fault != std::errc{} || end != text.data() + text.size() || size < 1 || size > kLargest)
    throw UsageError(fmt::format("{}: {} is no size: give a whole number above 0, as in :sequence=128", whole, text));
  return size;
}

}  // namespace

std::optional<OnnxName> onnx_name(const std::string& text) {
  const std::size_t end = text.find(kEnding);
  if (end == std::string::npos || end == 0) return std::nullopt;
  const std::size_t behind = end + kEnding.size();
  if (behind < text.size() && text[behind] != ':') return std::nullopt;
  OnnxName name{.path = text.substr(0, behind)};
  if (behind == text.size()) return name;
  for (const auto& [key, value] : read_option([&] { return layout_words(std::string_view(text).substr(behind + 1)); }))
    name.sizes.emplace(key, size_of(value, text));
  return name;
}

ModelSpec onnx_input(const OnnxName& name) {
  const OnnxModel imported = model_from_onnx(read_file(name.path), name.path, name.sizes);
  for (const std::string& note : imported.notes) print_note(fmt::format("{}: {}", name.path, note));
  if (imported.external.empty()) return imported.model;
  const std::filesystem::path weights = std::filesystem::path(name.path).parent_path() / imported.external;
  if (std::error_code fault; !std::filesystem::exists(weights, fault)) {
    print_note(fmt::format("{}: its weights lie in {}, which is missing: only their shapes are needed here", name.path,
                           weights.string()));
  }
  return imported.model;
}

}}  // namespace plumb::tools
