#pragma once
// The generators, one file for each (or for each family). Each takes numbers and returns order: compute actions, and
// the moves that take activations out of the way. All work for any m >= 1, with warm-ups clamped. make_schedule
// (catalogue.h), the way in, checks the numbers.

#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace schedules {

/// Naive model parallelism: one micro-batch runs through all ranks and back before the next one starts.
Schedule naive_schedule(const ScheduleParameters& parameters);

/// GPipe (Huang et al. 2019): all forwards run, then all backwards. Backwards ascend, as in PyTorch.
Schedule gpipe_schedule(const ScheduleParameters& parameters);

/// 1F1B, also PipeDream-Flush or DAPPLE (Narayanan et al. 2021, Fan et al. 2021): rank r runs min(p-1-r, m) forwards
/// ahead, then alternates, then drains.
Schedule one_f_one_b_schedule(const ScheduleParameters& parameters);

/// Eager 1F1B (Zhuang et al. 2023, Alpa's `1f1b_overlap_friendly`): 1F1B with 2(p-1-r) forwards ahead instead of p-1-r,
/// so that activations may travel while the rank computes.
Schedule eager_one_f_one_b_schedule(const ScheduleParameters& parameters);

/// ZB-H1 (Qi et al. 2024): 1F1B with the backward split. Rank r keeps r weight gradients back, to run them while it
/// would wait. Every rank holds as many activations as 1F1B's first rank.
Schedule zb_h1_schedule(const ScheduleParameters& parameters);

/// ZB-H2 (Qi et al. 2024): ranks run 2(p-1-r) forwards ahead and keep 2r weight gradients back. With F = I = W no rank
/// idles between its first and its last action, for nearly twice the activations. It is worth it where the optimizer
/// steps rank by rank.
Schedule zb_h2_schedule(const ScheduleParameters& parameters);

/// ZB-auto (Qi et al. 2024; ZB-1p, ZB-1.5p and ZB-2p by `memory_ratio`): the schedule that
/// synthesis/listed_chain.h makes for `costs`, with the memory of memory_ratio * p activations a rank, of
/// which I frees `released_at_input_grad_ratio` and W the rest (the authors' scheduler counts one half).
/// Throws ScheduleError if memory_ratio is below 1 or the share is not in [0, 1), SpecError if the costs have
/// neither one entry nor one a stage.
Schedule zb_auto_schedule(const ScheduleParameters& parameters);

/// PipeDream (Narayanan et al. 2019): the order of 1F1B without a flush; each backward is followed by the stage's
/// OPTIMIZER_STEP, and a micro-batch's backward uses the weights that its forward saw (weight stashing). With
/// `vertical_sync` every stage uses the version that the micro-batch saw at stage 0.
Schedule pipedream_schedule(const ScheduleParameters& parameters);

/// PipeDream-2BW (Narayanan et al. 2021): PipeDream with one OPTIMIZER_STEP for each `batch` of micro-batches, whose
/// gradients use the version of one batch ago: two versions lie on every rank. The last batch may be smaller. Throws
/// ScheduleError if the batch is smaller than p-1 and not the only one: its successor would start before the version
/// that it needs is made.
Schedule pipedream_2bw_schedule(const ScheduleParameters& parameters);

/// Interleaved 1F1B (Narayanan et al. 2021) in a looped placement: v chunks a rank, micro-batches in groups. The groups
/// are as equal as m allows and never smaller than `group` (unless there is only one), larger ones first. For m a
/// multiple of the group this is Megatron-LM's order, for m a multiple of max(1, m/p) PyTorch's, otherwise a ragged
/// variant of both. Throws ScheduleError if the group is smaller than p while m is larger than the group: such an order
/// deadlocks.
Schedule interleaved_schedule(const ScheduleParameters& parameters);

/// Interleaved zero bubble (PyTorch's InterleavedZeroBubble): `interleaved` with the backward split, one forward a hop
/// ahead instead of two, and r weight gradients kept back on rank r. With one chunk it is ZB-H1. Throws as
/// interleaved_schedule does.
Schedule interleaved_zero_bubble_schedule(const ScheduleParameters& parameters);

/// Breadth-first pipeline (Lamy-Poirier 2022; PyTorch's LoopedBFS) in a looped placement: all micro-batches run through
/// a chunk before the next chunk's turn, and the backwards in the mirrored order, so that each chunk's weights are
/// needed once a pass.
Schedule breadth_first_schedule(const ScheduleParameters& parameters);

/// Seq1F1B (Sun et al. 2024): 1F1B whose units are the `slices` k of each micro-batch's sequence. Forwards ascend
/// through the slices and backwards descend, since a slice attends to those before it. Rank r runs min(p-r-2+k, mk)
/// units ahead.
Schedule seq1f1b_schedule(const ScheduleParameters& parameters);

/// TeraPipe (Li et al. 2021): GPipe whose units are the `slices` k of each micro-batch's sequence; all forwards come
/// before the first backward, forwards ascend through the slices, and backwards descend. The paper also chooses slices
/// of unequal length, so that each takes as long; here they are equal.
Schedule terapipe_schedule(const ScheduleParameters& parameters);

/// SVPP, the schedule of MEPipe (Sun et al. 2025): interleaved whose units are the `slices` k of each micro-batch's
/// sequence. A group of micro-batches with p slices or more runs through a rank's v chunks in turn. Rank r runs
/// (v-1)gk + p-2-r+k slices ahead, g the first group's micro-batches. MEPipe also runs weight gradients layer by layer
/// where a rank would wait; here backwards are whole.
Schedule svpp_schedule(const ScheduleParameters& parameters);

/// SlimPipe (Li et al. 2025): 1F1B whose units are the `slices` k of a micro-batch's sequence, all of one length. p of
/// them pass through a rank's v chunks in turn, then the next p, and a micro-batch's backwards take the opposite order.
/// Rank r runs vk-1 + 2(p-1-r) slices ahead: one micro-batch and little more. The paper has p divide k; with fewer
/// slices than p, as many micro-batches as have p together take the place of one. It shares the attention of the slices
/// that are under way among the ranks, so that each costs the same.
Schedule slimpipe_schedule(const ScheduleParameters& parameters);

/// Vocabulary-parallel 1F1B (Yeung et al. 2024): the output layer is cut by vocabulary over all ranks, and its shards
/// are stages p to 2p-1, one a rank, all of model part p. A micro-batch's pass S on all ranks makes logits and their
/// softmax, T the gradients. An interval of rank r has F, B, S and T, each of another micro-batch, and the interval is
/// as long on every rank. vocab-1 is Algorithm 1, with a collective behind S and one behind T, and p-r+2 activations;
/// vocab-2 is Algorithm 2, whose S makes the gradient of the layer's input too, with one collective and p-r+1. Which
/// micro-batch S has depends on the `costs`. The first stage holds the input layer, which the paper cuts as well.
Schedule vocab_1_schedule(const ScheduleParameters& parameters);
Schedule vocab_2_schedule(const ScheduleParameters& parameters);

/// WeiPipe (Lin et al. 2025; WeiPipe-Interleave, in the order of the authors' code): every rank runs whole micro-batches,
/// and the weights of the p model parts travel around the ring (schedules/dependencies/weight_messages.h). At each turn
/// a rank runs B of one part and F of another for its next micro-batch, and passes on one part of each flow and the
/// gradient of the part before: two weights and one gradient. Rank r is r turns behind rank 0. Rank (c+1) mod p owns
/// part c; the backward flow begins there, the forward flow at rank -c mod p.
Schedule weipipe_schedule(const ScheduleParameters& parameters);

/// TawPipe (Wu & Chen 2025, in the order of the authors' code): every rank runs whole micro-batches, a micro-batch's
/// forwards and then its backwards, and weights come to it part by part. Each rank keeps the part that it owns: with g
/// nodes, part c lies on rank c/g of node c mod g. For each step the owner sends its part to one rank of each other node,
/// and that rank shares it with its node (here by a message to each rank of it). Gradients go back the same way and are
/// summed on it. A node is one step behind the node before. Throws ScheduleError unless `node_ranks` divides p.
Schedule tawpipe_schedule(const ScheduleParameters& parameters);

/// Inference and evaluation: the forwards of all micro-batches, no backward.
Schedule forward_only_schedule(const ScheduleParameters& parameters);

/// ZB-V (Qi et al. 2024) in the hand-written order of PyTorch's ScheduleZBVZeroBubble: two chunks a rank on a V, split
/// backwards, no bubble inside at F = I = W. For m < 2p-1 it is the order of 2p-1 micro-batches without the excess
/// ones. For other `costs` it is the best order that is found from there with as many activations (2p chunks a rank).
Schedule zb_v_schedule(const ScheduleParameters& parameters);

/// V-Half and V-Min (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024): split backwards on a V, with
/// about a half and a third of the activations of 1F1B. Each repeats the paper's building block
/// (schedules/synthesis/repeated_block.h). For other `costs` than F = I = W it is the best order that is found from
/// there with as many activations.
Schedule v_half_schedule(const ScheduleParameters& parameters);
Schedule v_min_schedule(const ScheduleParameters& parameters);

/// V-1F1B (Sea AI Lab 2024): whole backwards on a V. A micro-batch's actions take the first slots, modulo a period of
/// two forwards and two backwards (B = 2F), that earlier micro-batches leave free. The block is repeated, and its
/// actions move forward throughout.
Schedule v_1f1b_schedule(const ScheduleParameters& parameters);

/// DualPipeV (DeepSeek-AI, Sea AI Lab 2025), DualPipe cut in half: the eight steps of dualpipe on the two chunks of a
/// V, forwards overlapped with backwards. For m < 2p it is the order of 2p micro-batches without the excess ones.
Schedule dualpipev_schedule(const ScheduleParameters& parameters);

/// STP (Qi et al. 2025, synergistic tensor and pipeline parallelism): two chunks a rank on a V, zero-bubble backwards,
/// and almost every forward paired with a pass of the same chunk, so that the tensor-parallel exchanges of each go on
/// beside the compute of the other. For m < 3p-1 it is the order of 3p-1 micro-batches without the excess ones.
Schedule stp_schedule(const ScheduleParameters& parameters);

/// DualPipe (DeepSeek-V3, 2024): two lanes in opposite directions over copies of each model part, half of the
/// micro-batches each, forwards of one overlapped with backwards of the other. For an odd m, and for m < 2p, it is the
/// larger order (an even m of 2p or more) without the excess micro-batches, at the larger order's bubble. Throws
/// ScheduleError unless p is even and m >= 2.
Schedule dualpipe_schedule(const ScheduleParameters& parameters);

/// Chimera (Li & Hoefler 2021) with one pair of pipelines: two lanes in opposite directions over copies of each model
/// part, half of the micro-batches each, both 1F1B, merged greedily at F = B. With an odd m lane 1 has one micro-batch
/// more. Throws ScheduleError unless p is even and m >= 2.
Schedule chimera_schedule(const ScheduleParameters& parameters);

/// GEMS (Jain et al. 2020): one micro-batch is under way in each of two lanes in opposite directions over copies of
/// each model part. The next one enters at the other end, behind the backward of the one before. A micro-batch
/// therefore takes p B instead of p (F+B), with one micro-batch's activations on a rank. Throws ScheduleError unless p
/// is even and m >= 2.
Schedule gems_schedule(const ScheduleParameters& parameters);

/// BPipe (Kim et al. 2023): 1F1B whose first ranks EVICT activations to rank p-1-r, which holds few, and LOAD them back
/// a backward ahead. No rank holds more than ceil((p+2)/2).
Schedule bpipe_schedule(const ScheduleParameters& parameters);

/// Hanayo (Liu et al. 2023): v chunks a rank on a snake (W waves are v = 2W). Backwards go first, then the forward of
/// the deepest chunk, with p micro-batches under way; the order is laid out greedily at F = B.
Schedule hanayo_schedule(const ScheduleParameters& parameters);

/// HelixPipe (Zhang et al. 2025): attention apart from the layers' other parts, on a rank that depends on the
/// micro-batch, so that all ranks attend at the same time; p*v layers, of which a rank has the parts with weights of
/// v. All forwards come first, and the backwards take the mirrored order. 2p micro-batches make a round, two in each of
/// p lanes; in a smaller one the micro-batches are spread evenly over the lanes.
Schedule helixpipe_schedule(const ScheduleParameters& parameters);

}}  // namespace plumb::schedules
