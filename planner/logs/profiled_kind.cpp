#include "planner/logs/profiled_kind.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

#include "schedules/spelling.h"

namespace plumb { inline namespace planner {
namespace {

bool has_any(const std::string& text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

/// Returns true if one of the words stands by itself between other characters than letters: "tp" in "mesh_tp".
bool has_word(const std::string& text, std::initializer_list<std::string_view> words) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at]));
  };
  return std::ranges::any_of(words, [&](std::string_view word) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
    }
    return false;
  });
}

/// Replicas come first: Megatron's groups of replicas also name what they are replicas of.
ProfiledKind kind_of_group(const std::string& group) {
  if (has_any(group, {"data", "fsdp", "shard", "replica"}) || has_word(group, {"dp"}))
    return ProfiledKind::kDataParallel;
  if (has_any(group, {"expert", "context", "ulysses"}) || has_word(group, {"ep", "cp", "etp"}))
    return ProfiledKind::kContextAndExpert;
  if (has_any(group, {"pipeline"}) || has_word(group, {"pp"})) return ProfiledKind::kPipeline;
  if (has_any(group, {"tensor"}) || has_word(group, {"tp"})) return ProfiledKind::kTensorParallel;
  return ProfiledKind::kUnknownGroup;
}

}  // namespace

ProfiledKind profiled_kind(std::string_view kernel, std::string_view group) {
  const std::string name = lower_case(kernel);
  if (has_any(name, {"nccl"})) return kind_of_group(lower_case(group));
  if (has_any(name, {"deep_ep", "nvshmem"})) return ProfiledKind::kContextAndExpert;
  if (has_any(name, {"memcpy", "memset"})) return ProfiledKind::kCopy;
  if (has_any(name, {"flash", "fmha", "attention", "attn", "sdpa"})) return ProfiledKind::kAttention;
  if (has_any(name, {"multi_tensor", "adam", "optimizer"})) return ProfiledKind::kOptimizer;
  if (has_any(name, {"gemm", "cutlass", "nvjet", "cublas", "xmma", "splitk"})) return ProfiledKind::kGemm;
  return ProfiledKind::kMemoryBound;
}

}}  // namespace plumb::planner
