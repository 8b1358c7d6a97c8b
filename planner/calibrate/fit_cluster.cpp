#include "planner/calibrate/fit_cluster.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/price/collective/collective_price.h"
#include "planner/price/collective/nccl_launch_fit.h"
#include "planner/price/collective/nccl_point_to_point.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/search/evaluate_plan.h"
#include "schedules/error.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

template <class Files>
std::string source_of(const Files& files, const std::string& date) {
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.file);
  return fmt::format("fitted on {}: {}", date, fmt::join(names, ", "));
}

void require_group_fits(const ClusterSpec& cluster, const NcclTestsLog& log) {
  if (log.group.ranks_per_node > cluster.devices_per_node) {
    throw SpecError(
        fmt::format("{}: {} ranks on a node, but those of cluster {} have {} devices: give the cluster that "
                    "was measured",
                    log.file, log.group.ranks_per_node, cluster.name, cluster.devices_per_node));
  }
  if (log.group.nodes > 1 && !cluster.network) {
    throw SpecError(fmt::format("{}: {} nodes, but cluster {} has no network: give it one", log.file, log.group.nodes,
                                cluster.name));
  }
}

NcclEstimate estimate_of(const NcclMachine& machine, const NcclTestsLog& log, std::int64_t bytes) {
  if (!log.kind) return nccl_send(machine, log.group, bytes);
  if (*log.kind == CollectiveKind::kAllToAll) return nccl_all_to_all(machine, log.group, bytes);
  return nccl_choice(nccl_tuning(machine, log.group, *log.kind), bytes);
}

void put_table(ClusterSpec& cluster, const NcclTestsLog& log) {
  if (!log.kind) return;
  CollectiveTable table{.kind = *log.kind, .ranks = log.group.ranks, .nodes = log.group.nodes};
  for (const TimedSize& size : log.sizes) {
    table.bytes.push_back(size.bytes);
    table.times.push_back(size.out_of_place);
  }
  std::erase_if(cluster.collective_tables, [&](const CollectiveTable& old) {
    return old.kind == table.kind && old.ranks == table.ranks && old.nodes == table.nodes;
  });
  cluster.collective_tables.push_back(std::move(table));
}

void fit_collectives(ClusterFit& fit, const ClusterEvidence& evidence) {
  if (evidence.collectives.empty()) return;
  std::vector<CollectiveObservation> observations;
  const std::optional<NcclMachine> machine = nccl_machine(fit.cluster);
  for (const NcclTestsLog& log : evidence.collectives) {
    require_group_fits(fit.cluster, log);
    put_table(fit.cluster, log);
    if (!machine) continue;
    for (const TimedSize& size : log.sizes)
      observations.push_back({.estimate = estimate_of(*machine, log, size.bytes), .measured = size.out_of_place});
  }
  if (!machine) {
    fit.notes.push_back(
        fmt::format("cluster {} says nothing of NCCL: the tables were written, no constant was fitted; "
                    "add an \"nccl\" block to fit them",
                    fit.cluster.name));
    return;
  }
  constexpr double kLargestScale = 1.25;
  const LaunchFit launches = fit_launches(observations);
  if (!launches.fitted[LaunchFit::kScale]) {
    fit.notes.push_back(
        fmt::format("{}: larger messages do not take longer than smaller ones by more than the noise: the tables were "
                    "written, no constant was fitted; measure larger messages, more often",
                    evidence.collectives.front().file));
    return;
  }
  const double scale = launches.calibration.bandwidth_scale;
  if (scale > kLargestScale) {
    throw SpecError(
        fmt::format("{}: the bandwidth comes out {:.3g} times what cluster {} can have: the mapping is "
                    "wrong, give the cluster that was measured",
                    evidence.collectives.front().file, scale, fit.cluster.name));
  }
  NcclCalibration& calibration = fit.cluster.nccl->calibration;
  const NcclCalibration before = calibration;
  calibration = launches.calibration;
  if (launches.observations[LaunchFit::kLowLatency] == 0) calibration.low_latency_launch = before.low_latency_launch;
  if (launches.observations[LaunchFit::kSimple] == 0) calibration.simple_launch = before.simple_launch;
  const double values[] = {calibration.low_latency_launch.count() / kMicro, calibration.simple_launch.count() / kMicro,
                           scale};
  const double units[] = {kMicro, kMicro, 1};
  const char* const names[] = {"nccl.low_latency_launch_us", "nccl.simple_launch_us", "nccl.bandwidth_scale"};
  for (int i = 0; i < 3; ++i) {
    if (launches.observations[i] == 0) {
      fit.notes.push_back(fmt::format("{}: no size was moved by that protocol, so it stays {:g}", names[i], values[i]));
      continue;
    }
    if (!launches.fitted[i]) {
      fit.notes.push_back(fmt::format(
          "{}: the sizes measured do not tell it from the bandwidth, so it is {:g}; measure smaller ones too", names[i],
          values[i]));
      continue;
    }
    FittedConstant constant{.path = names[i],
                            .value = values[i],
                            .observations = launches.observations[i],
                            .residual_pct = 100 * launches.residual_ratio};
    if (launches.standard_error[i]) constant.standard_error = *launches.standard_error[i] / units[i];
    fit.cluster.sources[names[i]] = source_of(evidence.collectives, evidence.date);
    fit.constants.push_back(constant);
  }
}

TrainingSpec training_of(const ClusterSpec& cluster, const ClusterEvidence& evidence) {
  if (evidence.plan) return evidence.plan->training;
  TrainingSpec training;
  const auto& peaks = cluster.device.peak_flops_per_second;
  if (!peaks.contains(training.precision)) training.precision = peaks.begin()->first;
  return training;
}

/// Returns the efficiency at which each product lasts as long as measured, for the products that FLOPs bound and that
/// fill half of the device. It is found by bisection, since the roofline's tiles change with it.
std::vector<double> reached(ClusterSpec cluster, const TrainingSpec& training,
                            const std::vector<KernelSample>& samples) {
  constexpr double kLeast = 0.01, kMost = 16;
  cluster.samples.clear();
  const auto time_at = [&](const KernelCall& call, double efficiency) {
    cluster.device.gemm_efficiency = efficiency;
    return roofline_time(kernel_prices(cluster, training, 1), call).count();
  };
  const double peak = kernel_prices(cluster, training, 1).peak_flops_per_second;
  std::vector<double> efficiencies;
  for (const KernelSample& sample : samples) {
    const KernelCall call = kernel_call(KernelKind::kGemm, sample.shape);
    const double at_full = time_at(call, 1);
    const double flops_seconds = time_at(call, 0.5) - at_full;
    const bool bound_by_flops = flops_seconds > 0.5 * at_full;
    const bool fills_device = call.flops > 0.5 * flops_seconds * peak;
    if (!bound_by_flops || !fills_device) continue;
    double low = kLeast, high = kMost;
    for (int i = 0; i < 50; ++i) {
      const double middle = (low + high) / 2;
      (time_at(call, middle) > sample.median.count() ? low : high) = middle;
    }
    efficiencies.push_back(high);
  }
  return efficiencies;
}

void fit_gemms(ClusterFit& fit, const ClusterEvidence& evidence) {
  if (evidence.gemms.empty()) return;
  std::vector<KernelSample> samples;
  for (const GemmTable& table : evidence.gemms)
    samples.insert(samples.end(), table.samples.begin(), table.samples.end());
  const std::vector<double> efficiencies = reached(fit.cluster, training_of(fit.cluster, evidence), samples);
  std::erase_if(fit.cluster.samples, [](const KernelSample& sample) { return sample.kernel == "gemm"; });
  fit.cluster.samples.insert(fit.cluster.samples.end(), samples.begin(), samples.end());
  if (efficiencies.empty()) {
    fit.notes.push_back(
        "device.gemm_efficiency: no product is bound by its FLOPs, so it stays as it is; measure larger "
        "ones");
    return;
  }
  const MedianEstimate median = median_of(efficiencies);
  if (median.value > 1) {
    throw SpecError(
        fmt::format("{}: products reach {:.3g} of the peak of cluster {}: the mapping is wrong, give the "
                    "device and precision that were measured",
                    evidence.gemms.front().file, median.value, fit.cluster.name));
  }
  fit.cluster.device.gemm_efficiency = median.value;
  fit.cluster.sources["device.gemm_efficiency"] = source_of(evidence.gemms, evidence.date);
  double residual = 0;
  for (const double efficiency : efficiencies)
    residual += std::abs(efficiency / median.value - 1) / static_cast<double>(efficiencies.size());
  fit.constants.push_back({.path = "device.gemm_efficiency",
                           .value = median.value,
                           .standard_error = median.standard_error,
                           .observations = median.observations,
                           .residual_pct = 100 * residual});
}

Evaluation evaluated_on(const ClusterSpec& cluster, const ClusterEvidence& evidence) {
  Plan plan = *evidence.plan;
  plan.cluster = resize(cluster, plan.cluster.devices);
  Evaluation evaluation = evaluate(plan, {.record_timeline = false});
  if (!evaluation.exists) {
    throw SpecError(fmt::format("{}: the plan cannot run: {}", evidence.trainings.front().file, evaluation.infeasible));
  }
  return evaluation;
}

/// Fits the efficiency at which the plan takes the measured time, by bisection: a step is the shorter the more products
/// reach.
void fit_step_time(ClusterFit& fit, const ClusterEvidence& evidence, const MedianEstimate& measured) {
  const auto step_at = [&](double efficiency) {
    ClusterSpec cluster = fit.cluster;
    cluster.device.gemm_efficiency = efficiency;
    return step_time(evaluated_on(cluster, evidence).simulation).count();
  };
  constexpr double kLeast = 0.02;
  if (step_at(1) > measured.value || step_at(kLeast) < measured.value) {
    throw SpecError(
        fmt::format("{}: a step of {:.4g} s asks for a gemm_efficiency outside {} to 1: the mapping is wrong, "
                    "give the plan that was run",
                    evidence.trainings.front().file, measured.value, kLeast));
  }
  double low = kLeast, high = 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (step_at(middle) > measured.value ? low : high) = middle;
  }
  FittedConstant constant{.path = "device.gemm_efficiency",
                          .value = high,
                          .observations = measured.observations,
                          .residual_pct = 100 * std::abs(step_at(high) / measured.value - 1)};
  if (measured.standard_error) {
    constexpr double kStep = 0.01;
    const double slope = (step_at(high * (1 - kStep)) - step_at(high)) / (high * kStep);
    if (slope > 0) constant.standard_error = *measured.standard_error / slope;
  }
  fit.cluster.device.gemm_efficiency = high;
  fit.cluster.sources["device.gemm_efficiency"] = source_of(evidence.trainings, evidence.date);
  fit.constants.push_back(constant);
}

void fit_memory(ClusterFit& fit, const ClusterEvidence& evidence) {
  std::vector<double> overheads;
  const std::vector<std::int64_t> peaks = evaluated_on(fit.cluster, evidence).simulation.peak_memory_bytes;
  const auto peak = static_cast<double>(*std::ranges::max_element(peaks));
  for (const TrainingLog& log : evidence.trainings) {
    if (log.reserved_bytes) overheads.push_back(static_cast<double>(*log.reserved_bytes) - peak);
  }
  if (overheads.empty()) {
    fit.notes.push_back("device.reserved_gib: no training log prints reserved memory, so it stays as it is");
    return;
  }
  const MedianEstimate median = median_of(overheads);
  if (median.value < 0) {
    fit.notes.push_back(
        fmt::format("device.reserved_gib: the runs reserved {:.2f} GiB less than the plan's peak of {:.2f} "
                    "GiB, so it stays as it is; is it the plan that was run?",
                    -median.value / kGibibyte, peak / kGibibyte));
    return;
  }
  FittedConstant constant{
      .path = "device.reserved_gib", .value = median.value / kGibibyte, .observations = median.observations};
  if (median.standard_error) constant.standard_error = *median.standard_error / kGibibyte;
  fit.cluster.device.reserved_bytes = static_cast<std::int64_t>(median.value);
  fit.cluster.sources["device.reserved_gib"] = source_of(evidence.trainings, evidence.date);
  fit.constants.push_back(constant);
}

void fit_trainings(ClusterFit& fit, const ClusterEvidence& evidence) {
  if (evidence.trainings.empty()) return;
  if (!evidence.plan) {
    throw SpecError(
        fmt::format("{}: a training log says nothing of the model and its layout: give the plan that was run",
                    evidence.trainings.front().file));
  }
  const Plan& plan = *evidence.plan;
  const LoggedStep step{.samples = plan.training.global_batch,
                        .tokens = plan.training.global_batch * plan.training.sequence,
                        .devices = plan.cluster.devices};
  std::vector<double> steps;
  MedianEstimate measured;
  for (const TrainingLog& log : evidence.trainings) {
    measured = step_seconds(log, step);
    steps.push_back(measured.value);
  }
  if (steps.size() > 1) measured = median_of(steps);
  if (evidence.gemms.empty() && fit.cluster.samples.empty()) {
    fit_step_time(fit, evidence, measured);
  } else {
    const double predicted = step_time(evaluated_on(fit.cluster, evidence).simulation).count();
    fit.notes.push_back(
        fmt::format("step time: measured {:.4g} s, predicted from the measured products {:.4g} s "
                    "({:+.1f} %); no constant was fitted to it",
                    measured.value, predicted, 100 * (predicted / measured.value - 1)));
  }
  fit_memory(fit, evidence);
}

}  // namespace

ClusterFit fit_cluster(ClusterSpec base, const ClusterEvidence& evidence) {
  ClusterFit fit{.cluster = std::move(base)};
  fit_collectives(fit, evidence);
  fit_gemms(fit, evidence);
  fit_trainings(fit, evidence);
  return fit;
}

}}  // namespace plumb::planner
