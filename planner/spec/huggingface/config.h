#pragma once
// A config.json for the readers of its families: values by key, the file's name in every refusal, and a list of the
// keys that no reader asked for.

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/model_spec.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {

class HuggingFaceConfig {
 public:
  /// Keeps references: `json` and `file` must outlive it.
  HuggingFaceConfig(const nlohmann::json& json, const std::string& file) : json_(json), object_(json, file) {}

  /// Returns true if the key is there; null counts as absent.
  bool has(const std::string& key);
  bool is_null(const std::string& key) const;
  /// Returns true if the key is absent, null or [].
  bool is_empty(const std::string& key);

  /// Returns true if the key is empty, or lists these numbers.
  bool is_empty_or(const std::string& key, const std::vector<std::int64_t>& numbers);

  /// Returns a positive integer, at most 2^24. All functions that read a value throw SpecError if it is of another
  /// kind.
  std::int64_t size(const std::string& key);
  /// Returns the size under the first of these names that is there; where none is, the error names the first.
  std::int64_t size_of(std::initializer_list<const char*> keys);
  std::int64_t size_or(const std::string& key, std::int64_t fallback);
  /// Returns a size like size_or, which may also be 0.
  std::int64_t count_or(const std::string& key, std::int64_t fallback);
  double number_or(const std::string& key, double fallback);
  /// Returns a number above 0 and at most 1.
  double share_or(const std::string& key, double fallback);
  /// Returns a number from 0 to below 1.
  double rate_or(const std::string& key, double fallback);
  bool flag_or(const std::string& key, bool fallback);
  std::string text(const std::string& key);
  std::string text_or(const std::string& key, const std::string& fallback);
  /// Returns true if the value is a text, where others have a number.
  bool is_text(const std::string& key) const;
  /// Returns a list of texts; none where the key is absent or null.
  std::vector<std::string> texts(const std::string& key);
  StrictObject object(const std::string& key);

  /// Refuses a flag that is set: what it asks for is not modelled.
  void refuse_flag(const std::string& key, std::string_view what);

  /// Refuses a value that asks for `what`. Another value would be another model, so that none is proposed.
  [[noreturn]] void refuse(const std::string& key, std::string_view what) const;

  [[noreturn]] void fail(const std::string& key, const std::string& message) const { object_.fail(key, message); }

  /// Returns the keys that no reader asked for, in ascending order.
  std::vector<std::string> ignored_keys() const;

 private:
  StrictObject& used(const std::string& key);

  const nlohmann::json& json_;
  StrictObject object_;
  std::set<std::string> used_;
};

/// Defaults of the transformers library where a file is silent; 0: the value that follows from the other sizes.
struct HuggingFaceDefaults {
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
  bool tied = false;
};

/// Returns the sizes whose names most families share; the head size is still to be set.
ModelSpec shared_sizes(HuggingFaceConfig& config, const HuggingFaceDefaults& defaults);

/// Returns head_dim, the family's default, or hidden / heads.
std::int64_t head_size_of(HuggingFaceConfig& config, const ModelSpec& model, std::int64_t fallback);

/// Returns the even number of leading channels of a head that RoPE turns, where it turns that share of them.
std::int64_t rotary_size_of(std::int64_t head_size, double share);

/// Returns the value under `key`, or that in rope_parameters, where newer files keep it.
double rope_theta_of(HuggingFaceConfig& config, const std::string& key, double fallback);

/// Returns a model with RMS norms and SwiGLU; the head size and the turned channels are still to be set.
ModelSpec rms_sizes(HuggingFaceConfig& config, const HuggingFaceDefaults& defaults);

/// Reads the groups of experts, and the number of those that a token's picks come from, with the class's defaults.
void read_expert_groups(HuggingFaceConfig& config, ModelSpec& model, std::int64_t groups, std::int64_t picked);

/// Returns a model with RMS norms, SwiGLU and attention like Llama's.
ModelSpec rms_model(HuggingFaceConfig& config, const HuggingFaceDefaults& defaults = {});

/// Returns true for the exact form, and false for the tanh approximation and for squared ReLU and ReLU, which cost as
/// much. Refuses other activations.
bool is_exact_gelu(HuggingFaceConfig& config, const std::string& key, const std::string& fallback);

/// Returns Qwen's sliding window, which is used only where a flag says so.
std::int64_t optional_window(HuggingFaceConfig& config);

}}  // namespace plumb::planner
