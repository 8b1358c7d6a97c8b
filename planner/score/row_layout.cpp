#include "planner/score/row_layout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "planner/score/row_fields.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Returns the layers with as many on the first and last stage as on the others, where the row says that these have one
/// less.
std::optional<std::int64_t> rounded_layers(const RowReader& reader) {
  const auto layers = reader.integer("model.layers");
  if (!layers || reader.text("first_last_stage").find("one layer fewer") == std::string::npos) return std::nullopt;
  return *layers + 2;
}

int chunks_of(const RowReader& reader, int pipeline) {
  const std::string chunks = reader.text("vpp");
  if (chunks.empty()) return reader.degree("vpp");
  const auto layers = rounded_layers(reader);
  if (chunks.starts_with("one layer per chunk") && layers && *layers % pipeline == 0) {
    return static_cast<int>(*layers / pipeline);
  }
  throw Unmapped{fmt::format("the chunks a rank are \"{}\"", chunks)};
}

std::vector<int> split_of(const RowReader& reader, const Layout& layout) {
  const json& printed = value_at(reader.row, "split");
  if (printed.is_array()) {
    std::vector<int> split;
    for (const json& layers : printed) split.push_back(layers.is_number_integer() ? layers.get<int>() : 0);
    return split;
  }
  const auto layers = rounded_layers(reader);
  const std::int64_t parts = std::int64_t{layout.pipeline} * layout.chunks;
  if (!layers || parts == 1) return {};
  if (*layers < 1 || *layers % parts != 0) {
    throw Unmapped{fmt::format("{} stages with one layer fewer on the first and the last have no even share of {}",
                               parts, *layers - 2)};
  }
  std::vector<int> split(static_cast<std::size_t>(parts), static_cast<int>(*layers / parts));
  --split.front();
  --split.back();
  return split;
}

/// Returns the printed micro-batch, or the one that follows from a replica's batch and its number of micro-batches.
std::optional<std::int64_t> microbatch_of(const RowReader& reader, const Layout& layout) {
  if (const auto printed = reader.count("mbs")) return printed;
  const auto batch = reader.count("gbs");
  const auto count = reader.count("n_microbatches") ? reader.count("n_microbatches") : reader.count("ga");
  if (!batch || !count || *count < 1 || *batch % (*count * layout.data) != 0) return std::nullopt;
  return *batch / (*count * layout.data);
}

}  // namespace

Layout layout_of_row(RowReader& reader) {
  Layout layout{.tensor = reader.degree("tp"),
                .pipeline = reader.degree("pp"),
                .context = reader.degree("cp"),
                .expert = reader.degree("ep"),
                .expert_tensor = reader.degree("etp")};
  const auto gpus = reader.count("gpus");
  if (!gpus) throw Unmapped{"the number of GPUs is not printed"};
  const std::int64_t model_ranks = std::int64_t{layout.tensor} * layout.pipeline * layout.context;
  const std::int64_t data =
      printed_count(reader.row, "dp", kMostRanks).value_or(std::max<std::int64_t>(1, *gpus / model_ranks));
  if (model_ranks > *gpus || model_ranks * data != *gpus) {
    const double product = static_cast<double>(model_ranks) * static_cast<double>(data);
    throw Unmapped{fmt::format("contradictory degrees: tp={} x pp={} x cp={} x dp={} is {:.0f}, not the {} GPUs",
                               layout.tensor, layout.pipeline, layout.context, data, product, *gpus)};
  }
  layout.data = static_cast<int>(data);
  const bool rounded = !value_at(reader.row, "gbs_printed").is_null();
  if (rounded) reader.assumptions.push_back("a rate is that of whole micro-batches, which do not divide the batch");
  const auto microbatch = microbatch_of(reader, layout);
  if (!microbatch) throw Unmapped{"the micro-batch is not printed"};
  layout.microbatch = *microbatch;
  layout.zero = zero_stage_in(reader.row).value_or(0);
  layout.shard = static_cast<int>(printed_count(reader.row, "shard", kMostRanks).value_or(0));
  layout.sequence_parallel = layout.tensor > 1 && value_at(reader.row, "sequence_parallel") == json(true);

  const std::string recompute = reader.text("recompute");
  const auto kind = recompute_in(recompute);
  if (!kind && !recompute.empty()) throw Unmapped{fmt::format("recomputation \"{}\" is not known", recompute)};
  if (!kind) reader.assumptions.push_back("nothing is recomputed");
  layout.recompute = kind.value_or(Recompute::kNone);

  if (layout.pipeline > 1) {
    layout.chunks = chunks_of(reader, layout.pipeline);
    const std::string schedule = reader.text("schedule");
    layout.schedule = schedule_in(schedule, layout.chunks);
    if (layout.schedule.empty()) throw Unmapped{fmt::format("the schedule \"{}\" is not known", schedule)};
    if (layout.schedule == "interleaved" && layout.chunks == 1) {
      if (value_at(reader.row, "vpp").is_null()) throw Unmapped{"interleaved, but the chunks a rank are not printed"};
      layout.schedule = "1f1b";  // interleaving with one chunk
    }
  }
  layout.split = split_of(reader, layout);
  if (const auto group = reader.count("group")) layout.group = static_cast<int>(*group);
  return layout;
}

}}  // namespace plumb::planner
