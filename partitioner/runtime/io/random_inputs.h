// SPDX-License-Identifier: Apache-2.0
// Inputs for runs and checks that need none in particular, and whose sums are
// exact.
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

// Small integers in every type, the same on every platform: -4 to 4 in floats
// and complex parts, 0 to 7 in integers (what fits, if that is less).
std::vector<Tensor> RandomInputs(absl::Span<const LeafShape> leaves, uint64_t seed);

// Likewise values for the constants whose own the text left out, `{...}`; how many
// there were.
int FillElidedConstants(Module* module, uint64_t seed);

// Floats become eighths above zero, (|x| + 1) / 8: no root or logarithm makes a
// NaN of them, and no signs cancel, so that a sum rounded in another order is off
// by its rounding alone.
void MakePositive(std::vector<Tensor>* inputs);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_IO_RANDOM_INPUTS_H_
