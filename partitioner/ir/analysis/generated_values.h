// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_GENERATED_VALUES_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_GENERATED_VALUES_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// By instruction, whether it is an array that a few elementwise ops make of scalar constants,
// iotas and broadcasts of such arrays, so that each device can make any part of it in place of
// having it sent. Scalar constants are among them. Linear.
std::vector<bool> GeneratedValues(const Module& module);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_GENERATED_VALUES_H_
