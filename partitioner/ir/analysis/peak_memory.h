// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_PEAK_MEMORY_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_PEAK_MEMORY_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The most bytes that the entry holds at a time beside its parameters and its result, if
// instructions run in their order and every value is held from where it is computed to its last
// use. `bytes_of` says what the result of an instruction takes.
int64_t PeakOfTemporaries(const Module& module, absl::FunctionRef<int64_t(InstrId)> bytes_of);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_PEAK_MEMORY_H_
