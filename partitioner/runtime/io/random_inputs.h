// SPDX-License-Identifier: Apache-2.0
// Inputs for runs and checks that need no particular values; sums of them are exact.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_IO_RANDOM_INPUTS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_IO_RANDOM_INPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Small integers in every type, the same on every platform: -4 to 4 in floats and complex parts, 0
// to 7 in integers (or as many as the type has).
std::vector<Tensor> RandomInputs(absl::Span<const LeafShape> leaves, uint64_t seed);

// Fills in constants whose values the text elides, `{...}`, in the same way; returns how many
// there were.
int FillElidedConstants(Module* module, uint64_t seed);

// Floats become positive eighths, (|x| + 1) / 8: roots and logarithms give no NaN, and signs do
// not cancel, so that sums in another order differ only by their rounding.
void MakePositive(std::vector<Tensor>* inputs);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_IO_RANDOM_INPUTS_H_
