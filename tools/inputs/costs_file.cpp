#include "tools/inputs/costs_file.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/forms/file_format.h"
#include "schedules/forms/strict_json.h"
#include "tools/inputs/file_kinds.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

constexpr double kGigabyte = 1e9;

/// One entry of "parts", or the embedding or the head.
struct PartCosts {
  double forward = 0;
  double input_grad = 0;
  double weight_grad = 0;
  double backward = 0;
  double recompute = 0;
  std::int64_t activation_bytes = 0;
  std::int64_t released_bytes = 0;
  std::int64_t message_bytes = 0;
};

/// Returns the part's costs; `whole` says whether its backward is one time.
PartCosts read_part(StrictObject& object, bool whole) {
  PartCosts part{.forward = object.non_negative_number("forward_s")};
  if (whole) {
    part.backward = object.non_negative_number("backward_s");
  } else {
    part.input_grad = object.non_negative_number("input_grad_s");
    part.weight_grad = object.non_negative_number("weight_grad_s");
  }
  part.recompute = object.has("recompute_s") ? object.non_negative_number("recompute_s") : part.forward;
  part.activation_bytes = object.non_negative_integer_or("activation_bytes", 0);
  part.released_bytes = object.non_negative_integer_or("released_at_input_grad_bytes", 0);
  part.message_bytes = object.non_negative_integer_or("message_bytes", 0);
  if (part.released_bytes > part.activation_bytes) {
    object.fail("released_at_input_grad_bytes", "it frees more than activation_bytes: give at most as many");
  }
  object.finish();
  return part;
}

void add(PartCosts& part, const PartCosts& more) {
  part.forward += more.forward;
  part.input_grad += more.input_grad;
  part.weight_grad += more.weight_grad;
  part.backward += more.backward;
  part.recompute += more.recompute;
  part.activation_bytes += more.activation_bytes;
  part.released_bytes += more.released_bytes;
}

std::vector<Seconds> seconds_by_part(const std::vector<PartCosts>& parts, double PartCosts::*cost) {
  std::vector<Seconds> list;
  for (const PartCosts& part : parts) list.emplace_back(part.*cost);
  return list;
}

std::vector<std::int64_t> bytes_by_part(const std::vector<PartCosts>& parts, std::int64_t PartCosts::*bytes) {
  std::vector<std::int64_t> list;
  for (const PartCosts& part : parts) list.push_back(part.*bytes);
  return list;
}

void read_links(StrictObject& object, CostsOption& option) {
  if (!object.has("links")) return;
  std::vector<Seconds> latencies;
  for (StrictObject& link : object.objects("links")) {
    latencies.emplace_back(link.non_negative_number("latency_s"));
    option.bytes_per_second.push_back(link.has("bandwidth_gb_per_s")
                                          ? link.positive_number("bandwidth_gb_per_s") * kGigabyte
                                          : std::numeric_limits<double>::infinity());
    link.finish();
  }
  if (latencies.empty()) object.fail("links", "it has no entry: give one for all links, or one for each");
  option.chunk.hop_latency = *std::ranges::max_element(latencies);
  if (latencies.size() > 1) option.link_latencies = std::move(latencies);
}

}  // namespace

CostsOption parse_costs_file(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_file(FileForm::kCosts, text, file);
  StrictObject object(document, file);
  std::vector<StrictObject> entries = object.objects("parts");
  if (entries.empty()) object.fail("parts", "it has no entry: give one for each stage");
  const bool whole = entries.front().has("backward_s");
  std::vector<PartCosts> parts;
  for (StrictObject& entry : entries) parts.push_back(read_part(entry, whole));
  const auto add_end = [&](std::string_view key, PartCosts& part) {
    if (!object.has(key)) return;
    StrictObject end = object.object(key);
    add(part, read_part(end, whole));
  };
  add_end("embedding", parts.front());
  add_end("head", parts.back());
  CostsOption option{.whole_backward = whole};
  option.chunk.forward = seconds_by_part(parts, &PartCosts::forward);
  option.chunk.recompute = seconds_by_part(parts, &PartCosts::recompute);
  if (whole) {
    option.chunk.backward = seconds_by_part(parts, &PartCosts::backward);
  } else {
    option.chunk.input_grad = seconds_by_part(parts, &PartCosts::input_grad);
    option.chunk.weight_grad = seconds_by_part(parts, &PartCosts::weight_grad);
  }
  const bool any_memory = std::ranges::any_of(parts, [](const PartCosts& part) { return part.activation_bytes > 0; });
  if (any_memory) {
    option.memory = {.activation_bytes = bytes_by_part(parts, &PartCosts::activation_bytes),
                     .released_at_input_grad_bytes = bytes_by_part(parts, &PartCosts::released_bytes)};
  }
  if (object.has("max_activation_bytes")) {
    option.memory.max_bytes = object.integers("max_activation_bytes");
    if (!any_memory) object.fail("max_activation_bytes", "no part holds anything: give \"activation_bytes\" as well");
    if (std::ranges::any_of(option.memory.max_bytes, [](std::int64_t bytes) { return bytes < 0; }))
      object.fail("max_activation_bytes", "numbers of 0 or more are wanted");
  }
  read_links(object, option);
  const std::vector<std::int64_t> messages = bytes_by_part(parts, &PartCosts::message_bytes);
  const bool any_message = std::ranges::any_of(messages, [](std::int64_t bytes) { return bytes > 0; });
  if (any_message) option.message_bytes.assign(messages.begin(), messages.end());
  object.finish();
  return option;
}

CostsOption costs_input(const std::string& option) {
  if (option.ends_with(".json")) {
    return read_as(FileKind::kCosts, option, [&option] { return parse_costs_file(read_text_file(option), option); });
  }
  return read_option([&] { return parse_costs(option.empty() ? "c=0" : option); });
}

}}  // namespace plumb::tools
