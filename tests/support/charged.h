// SPDX-License-Identifier: Apache-2.0
// What the plan charges against what localize emits.
#ifndef SHARDCALL_TESTS_SUPPORT_CHARGED_H_
#define SHARDCALL_TESTS_SUPPORT_CHARGED_H_

#include <string>

#include "shardcall/partitioner/api/partition.h"

namespace shardcall {

// "" if every op with a rule sends the bytes that its decision was charged with, before the
// clean-up, which removes what nobody reads and merges what is equal; else the first op that sends
// others.
std::string WhyChargedOtherwise(const PartitionedProgram& program, const SpmdOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_CHARGED_H_
