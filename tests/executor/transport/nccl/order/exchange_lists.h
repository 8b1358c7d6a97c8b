#pragma once
// The calls on each communicator in their order, which is all by which NCCL matches them: those of training on ranks
// with a device each, and those that stand for the messages and collectives of the cpu backend.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/spec/run_spec.h"
#include "executor/training/training_plan.h"
#include "tests/executor/transport/nccl/order/nccl_order.h"

namespace plumb::test {

/// [communicator's name and ranks][member] its calls.
using ExchangeLists = std::map<std::pair<std::string, std::vector<int>>, std::vector<std::vector<NcclCall>>>;

/// Returns the lists of an order, without communicators on which there are no calls.
ExchangeLists exchange_lists(const NcclOrder& order);

/// Trains one step on the cpu backend and returns its lists. Blocks between expert ranks have the sizes that the
/// router's picks give them.
ExchangeLists cpu_exchange_lists(const RunSpec& spec, const TrainingPlan& plan);

/// Holds the calls of training on devices against those of the cpu backend and of the schedule's groups of messages,
/// and checks that their order does not deadlock with the least room. Returns how many calls of NCCL there are.
std::int64_t check_against_cpu(const RunSpec& spec);

}  // namespace plumb::test
