#pragma once
// The generators, one file each (or one a family). Each takes numbers and returns order: compute actions, and what
// moves activations out of the way. All work
// for any m >= 1; warm-ups are clamped. Numbers are checked by make_schedule (catalogue.h), the way in.

#include "schedules/generators/catalogue.h"

namespace plumb {

/// Naive model parallelism: one micro-batch through all ranks and back before the next one starts.
Schedule naive_schedule(const ScheduleParameters& parameters);

/// GPipe (Huang et al. 2019): all forwards, then all backwards. Backwards ascend, as in PyTorch.
Schedule gpipe_schedule(const ScheduleParameters& parameters);

/// 1F1B, also PipeDream-Flush or DAPPLE (Narayanan et al. 2021, Fan et al. 2021): rank r runs min(p-1-r, m) forwards
/// ahead, then alternates, then drains.
Schedule one_f_one_b_schedule(const ScheduleParameters& parameters);

/// PipeDream (Narayanan et al. 2019): the order of 1F1B without a flush; each backward is followed by the stage's
/// OPTIMIZER_STEP, and a micro-batch's backward uses the weights that its forward saw (weight stashing).
Schedule pipedream_schedule(const ScheduleParameters& parameters);

/// Interleaved 1F1B (Narayanan et al. 2021), looped placement: v chunks a rank, micro-batches in groups. The groups are
/// as equal as m allows and never smaller than `group` (unless there is only one), larger ones first: for m a multiple
/// of the group this is Megatron-LM's order, for m a multiple of max(1, m/p) PyTorch's, otherwise a ragged variant of
/// both. Throws ScheduleError if the group is smaller than p while m is larger than the group: such an order deadlocks.
Schedule interleaved_schedule(const ScheduleParameters& parameters);

/// ZB-V (Qi et al. 2024) in the hand-written order of PyTorch's ScheduleZBVZeroBubble: two chunks a rank on a V, split
/// backwards, no bubble inside at F = I = W. For m < 2p-1 the order of 2p-1 micro-batches without those there are not.
Schedule zb_v_schedule(const ScheduleParameters& parameters);

/// V-Half and V-Min (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024): split backwards on a V, with
/// about a half and a third of the activations of 1F1B. Each repeats the paper's building block, squeezed.
Schedule v_half_schedule(const ScheduleParameters& parameters);
Schedule v_min_schedule(const ScheduleParameters& parameters);

/// V-1F1B (Sea AI Lab 2024): whole backwards on a V. A micro-batch's actions take the first slots, modulo a period of
/// two forwards and two backwards (B = 2F), that earlier micro-batches leave free; repeated, and squeezed.
Schedule v_1f1b_schedule(const ScheduleParameters& parameters);

/// DualPipeV (DeepSeek-AI, Sea AI Lab 2025), DualPipe cut in half: the eight steps of dualpipe on the two chunks of a V,
/// forwards overlapped with backwards. For m < 2p the order of 2p micro-batches without those there are not.
Schedule dualpipev_schedule(const ScheduleParameters& parameters);

/// DualPipe (DeepSeek-V3, 2024): two lanes in opposite directions over copies of each model part, half of the
/// micro-batches each, forwards of one overlapped with backwards of the other. Throws ScheduleError unless p and m are
/// even and m >= 2p.
Schedule dualpipe_schedule(const ScheduleParameters& parameters);

/// Chimera (Li & Hoefler 2021) with one pair of pipelines: two lanes in opposite directions over copies of each model
/// part, half of the micro-batches each, both 1F1B; merged greedily at F = B. Throws ScheduleError unless p and m are
/// even.
Schedule chimera_schedule(const ScheduleParameters& parameters);

/// BPipe (Kim et al. 2023): 1F1B whose first ranks EVICT activations to rank p-1-r, which holds few, and LOAD them back a
/// backward ahead. No rank holds more than ceil((p+2)/2).
Schedule bpipe_schedule(const ScheduleParameters& parameters);

/// Hanayo (Liu et al. 2023): v chunks a rank on a snake (W waves are v = 2W), backwards first, then the forward of the
/// deepest chunk, p micro-batches under way; laid out greedily at F = B.
Schedule hanayo_schedule(const ScheduleParameters& parameters);

}  // namespace plumb
