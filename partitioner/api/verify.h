// SPDX-License-Identifier: Apache-2.0
// Proof by execution: the partitioned program against the unpartitioned one.
#ifndef SHARDCALL_PARTITIONER_API_VERIFY_H_
#define SHARDCALL_PARTITIONER_API_VERIFY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct OutputDifference {
  double max_abs_diff = 0;  // in elements that are numbers on both sides
  double largest = 0;       // largest finite magnitude of the reference
  bool bitwise = false;
  bool ok = false;
};
// Compares by type: integers and pred bitwise; floats bitwise, but for the sign of zero,
// if `exact`, else within 1e-6 (1e-2 for bf16 and narrower) of the reference's largest
// value; with equal NaNs and infinities. Where it is not known how the values came about,
// those past which sums of whole numbers are rounded (2^24 in f32) are not exact.
OutputDifference Compare(const Tensor& reference, const Tensor& got, bool exact,
                         bool of_any_size = false);

struct VerifyResult {
  enum class Status { kOk, kMismatch, kUnsupported } status = Status::kOk;
  int64_t num_partitions = 0;
  bool exact = false;  // of every output
  std::vector<OutputDifference> outputs;
  std::string reason;  // of kMismatch and kUnsupported
};
std::string VerifyJson(const VerifyResult& result);

// `given` replaces random inputs if not empty: integers of both signs, or positive
// fractions where those would make the outputs follow from rounding. Outputs that only
// exact values make must be equal to the bit, the others within what Compare allows.
// Errors of parsing and
// partitioning are errors; an op that cannot be executed is kUnsupported.
absl::StatusOr<VerifyResult> Verify(Module module, const RunOptions& options, uint64_t seed,
                                    std::vector<Tensor> given, Communicator* communicator);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_VERIFY_H_
