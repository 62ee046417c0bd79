// SPDX-License-Identifier: Apache-2.0
// Structs that users fill by name, of each one member: what is left out has its value,
// and the compiler warns of nothing (-Wextra).
#include "shardcall/partitioner/api/partition_call.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/partitioner/check/check_target.h"

namespace shardcall {

const SpmdOptions kSpmd = {.max_reshard_bytes = 1 << 20};
const PartitionOptions kPartition = {.num_partitions = 4};
const RunOptions kRun = {.handlers = nullptr};
const TrialOptions kTrial = {.targets = nullptr};
const TargetCheck kCheck = {.target = "t"};
const SpecifiedCall kCall = {.target = "t"};
const HandlerEntry kHandler = {.target = "t"};
const HandlerContext kContext = {.target = "t"};
const CustomCallTarget kTarget = {.name = "t"};
const LoweringRequest kRequest = {.name = "t"};
const LoweredCall kLowered = {.target = "t"};
const RuleText kRule = {.rule = "i -> i"};
const RuleAlternative kAlternative = {.text = {.rule = "i -> i"}};
const PartitionerCallbacks kCallbacks = {.version = 2};
const VjpSpec kVjp = {.target = "t"};
const TargetFacts kFacts = {.shapes = nullptr};
const SizeFormula kFormula = {.factor = "h"};
const OperandRange kRange = {.high = "s"};

}  // namespace shardcall
