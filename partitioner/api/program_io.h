// SPDX-License-Identifier: Apache-2.0
// Distributes global arrays to a partitioned program and assembles its outputs, for any engine.
#ifndef SHARDCALL_PARTITIONER_API_PROGRAM_IO_H_
#define SHARDCALL_PARTITIONER_API_PROGRAM_IO_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Flat leaves of the entry's parameters and results.
std::vector<LeafShape> ParameterLeaves(const Module& module);
std::vector<LeafShape> ResultLeaves(const Module& module);

// E313 where global inputs do not match the program's parameters: of all inputs, of their number,
// or of input k alone.
absl::Status CheckInputs(const PartitionedProgram& program, absl::Span<const Tensor> inputs);
absl::Status CheckInputCount(size_t expected, size_t found);
absl::Status CheckInput(size_t k, const LeafShape& leaf, const Tensor& input);

// Global outputs from the shards of the devices: parts[d] are those of output k, by_device[d][k]
// those of all outputs. E321, with the output's name, if `check_replicas` is set and replicas of a
// shard differ.
absl::StatusOr<Tensor> JoinOutput(const LocalProgram& local, size_t k,
                                  absl::Span<const Tensor> parts, bool check_replicas);
absl::StatusOr<std::vector<Tensor>> JoinOutputs(const LocalProgram& local,
                                                absl::Span<const std::vector<Tensor>> by_device,
                                                bool check_replicas);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_PROGRAM_IO_H_
