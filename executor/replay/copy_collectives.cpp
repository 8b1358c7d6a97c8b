#include "executor/replay/copy_collectives.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>

namespace plumb { inline namespace executor {

CopyCollectives::CopyCollectives(const ReplayPlan& plan, const ReplaySeat& seat, CloseSpan close)
    : plan_(plan),
      seat_(seat),
      close_(std::move(close)),
      reductions_(plan.schedule.stages.size()),
      gathers_(plan.schedule.stages.size()),
      shares_are_summed_(plan.schedule.stages.size()) {}

void CopyCollectives::start(Open& open, Communicator* group, const std::vector<Collective>& collectives) {
  for (const Collective& collective : collectives) open.collectives.push_back({group, group->start(collective)});
}

void CopyCollectives::wait(const Open& open) {
  std::optional<TransferTimes> all;
  for (const Started& started : open.collectives) {
    const TransferTimes times = started.group->wait(started.ticket);
    all = {all ? std::min(all->start, times.start) : times.start, all ? std::max(all->end, times.end) : times.end};
  }
  if (all) close_(open.span, *all);
}

void CopyCollectives::reduce(int stage_number, int bucket, std::size_t span) {
  if (copies_of(stage_number) == nullptr) return;
  if (plan_.policy.zero >= 2) finish_reductions(stage_number);
  Open open{.span = span};
  start(open, copies_of(stage_number), stage(stage_number).start_reduction(bucket));
  if (Communicator* experts = expert_copies_of(stage_number))
    start(open, experts, stage(stage_number).start_expert_reduction(bucket));
  reductions_[static_cast<std::size_t>(stage_number)].push_back(std::move(open));
}

void CopyCollectives::finish_reductions(int stage_number) {
  std::vector<Open>& open = reductions_[static_cast<std::size_t>(stage_number)];
  for (const Open& reduction : open) wait(reduction);
  if (!open.empty()) stage(stage_number).finish_reduction();
  open.clear();
}

/// Ends all reductions of a step, and sums the shares once over the groups of copies that share state.
void CopyCollectives::complete_gradients(int stage_number) {
  finish_reductions(stage_number);
  const auto number = static_cast<std::size_t>(stage_number);
  Communicator* same_shares = same_shares_of(stage_number);
  if (same_shares == nullptr || shares_are_summed_[number]) return;
  shares_are_summed_[number] = true;
  for (const Collective& sum : stage(stage_number).start_sum_of_shares()) same_shares->run(sum);
}

void CopyCollectives::gather(int stage_number, std::size_t span) {
  if (copies_of(stage_number) == nullptr) return;
  Open open{.span = span};
  start(open, copies_of(stage_number), stage(stage_number).start_gather());
  if (Communicator* experts = expert_copies_of(stage_number))
    start(open, experts, stage(stage_number).start_expert_gather());
  gathers_[static_cast<std::size_t>(stage_number)] = std::move(open);
}

void CopyCollectives::finish_gather(int stage_number) {
  std::optional<Open>& open = gathers_[static_cast<std::size_t>(stage_number)];
  if (open) wait(*open);
  open.reset();
}

void CopyCollectives::drop(int stage_number) {
  if (copies_of(stage_number) == nullptr) return;
  finish_gather(stage_number);
  stage(stage_number).drop_gathered();
}

void CopyCollectives::require_weights(int stage_number) {
  finish_gather(stage_number);
}

StepScale CopyCollectives::before_step(int stage_number) {
  if (plan_.policy.agrees) {
    if (!agreed_) agree();
    return *agreed_;
  }
  complete_gradients(stage_number);
  sum_tied_tables(stage_number);
  return {};
}

/// Agrees with all ranks on the scale of this step. All gradients of the rank are complete when it comes to its first
/// step (plan_replay).
void CopyCollectives::agree() {
  GradientMeasure own;
  for (std::size_t number = 0; number < seat_.stages.size(); ++number) {
    if (seat_.stages[number] == nullptr) continue;
    complete_gradients(static_cast<int>(number));
    sum_tied_tables(static_cast<int>(number));
  }
  for (std::size_t number = 0; number < seat_.stages.size(); ++number) {
    if (seat_.stages[number] == nullptr) continue;
    const Communicator* same_shares = same_shares_of(static_cast<int>(number));
    const GradientMeasure measure = seat_.stages[number]->gradient_measure();
    if (same_shares == nullptr || same_shares->member() == 0) own.square_sum += measure.square_sum;
    own.overflows |= measure.overflows;
  }
  std::array<float, 2> sums = {static_cast<float>(own.square_sum), own.overflows ? 1.0F : 0.0F};
  seat_.everyone->run(all_reduce(sums));
  agreed_ = seat_.settle({.square_sum = static_cast<double>(sums[0]), .overflows = sums[1] > 0});
}

/// Sums all of the rank's tied tables when the first of their stages comes to its step. Shards are gathered for all
/// tables before any is waited for, and pairs are summed in one order on every rank. Ranks that hold one end of each of
/// two pairs (copies in both directions) would otherwise wait for each other.
void CopyCollectives::sum_tied_tables(int stage_number) {
  const auto has = [](const TiedStages& tied, int stage) { return tied.embedding == stage || tied.head == stage; };
  const bool is_tied = std::ranges::any_of(plan_.tied, [&](const TiedStages& tied) { return has(tied, stage_number); });
  if (!is_tied || tied_are_summed_) return;
  tied_are_summed_ = true;
  Open gathers;
  for (const TiedStages& tied : plan_.tied)
    for (const ModelEnd end : {ModelEnd::kEmbedding, ModelEnd::kHead}) {
      const int number = end == ModelEnd::kEmbedding ? tied.embedding : tied.head;
      if (seat_.stages[static_cast<std::size_t>(number)] == nullptr) continue;
      complete_gradients(number);
      start(gathers, copies_of(number), stage(number).start_tied(end));
    }
  for (const Started& started : gathers.collectives) started.group->wait(started.ticket);
  for (std::size_t pair = 0; pair < plan_.tied.size(); ++pair) sum_tied(pair);
}

/// Gives both ends of a tied table the gradient embedding's + head's.
void CopyCollectives::sum_tied(std::size_t pair) {
  const TiedStages& tied = plan_.tied[pair];
  const bool has_first = seat_.stages[static_cast<std::size_t>(tied.embedding)] != nullptr;
  const bool has_last = seat_.stages[static_cast<std::size_t>(tied.head)] != nullptr;
  if (has_first && has_last) return sum_tied_here(tied);
  if (!has_first && !has_last) return;
  const auto mesh = [&](int number) {
    return mesh_of(plan_.grid, plan_.schedule.stages[static_cast<std::size_t>(number)].rank);
  };
  if (mesh(tied.embedding) != mesh(tied.head)) return sum_tied_between_meshes(pair);
  const int number = has_first ? tied.embedding : tied.head;
  const ModelEnd end = has_first ? ModelEnd::kEmbedding : ModelEnd::kHead;
  seat_.groups->tied[pair]->run(all_reduce(stage(number).tied_gradients(end)));
  stage(number).finish_tied(end);
}

/// Sums a table whose two ends are divided differently: the first replica of each end contributes its rows of the whole
/// table.
void CopyCollectives::sum_tied_between_meshes(std::size_t pair) {
  const TiedStages& tied = plan_.tied[pair];
  const bool has_first = seat_.stages[static_cast<std::size_t>(tied.embedding)] != nullptr;
  const int number = has_first ? tied.embedding : tied.head;
  const ModelEnd end = has_first ? ModelEnd::kEmbedding : ModelEnd::kHead;
  const std::span<float> own = stage(number).tied_gradients(end);
  Tensor table = seat_.pool->take_zeros(tied.elements);
  const std::int64_t first = std::min(tied.elements, seat_.place.tensor * std::ssize(own));
  const std::int64_t count = std::min(std::ssize(own), tied.elements - first);
  if (seat_.place.data == 0 && seat_.place.context == 0) std::copy_n(own.data(), count, table.data() + first);
  seat_.groups->tied[pair]->run(all_reduce(table.values()));
  std::copy_n(table.data() + first, count, own.data());
  stage(number).finish_tied(end);
}

void CopyCollectives::sum_tied_here(const TiedStages& tied) {
  const std::span<float> first = stage(tied.embedding).tied_gradients(ModelEnd::kEmbedding);
  const std::span<float> last = stage(tied.head).tied_gradients(ModelEnd::kHead);
  for (std::size_t i = 0; i < first.size(); ++i) last[i] = first[i] = first[i] + last[i];
  stage(tied.embedding).finish_tied(ModelEnd::kEmbedding);
  stage(tied.head).finish_tied(ModelEnd::kHead);
}

void CopyCollectives::finish() {
  for (std::size_t number = 0; number < seat_.stages.size(); ++number) {
    if (seat_.stages[number] == nullptr) continue;
    finish_reductions(static_cast<int>(number));
    finish_gather(static_cast<int>(number));
  }
}

}}  // namespace plumb::executor
