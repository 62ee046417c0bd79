// SPDX-License-Identifier: Apache-2.0
// Verification by execution: compares the partitioned program with the unpartitioned one. Threads
// may verify at once, each with a module of its own.
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
  bool same_specials = true;  // NaNs and infinities are at the same places
  bool same_zeros = true;     // the zeros that both sides have are of the same signs
  bool ok = false;
};
// Compares by type. Integers and pred: bitwise. Floats: equal, with the same signs of zeros, if
// `exact`, else within 1e-6 (1e-2 for bf16 and other narrow types) of the reference's largest
// value; NaNs and infinities must match. Unless `of_any_size`, floats whose largest value exceeds
// the limit up to which sums of whole numbers are exact (2^24 in f32) are not compared as exact.
// Values that are not exact may differ by `spread`, too, up to 100 times the tolerance.
OutputDifference Compare(const Tensor& reference, const Tensor& got, bool exact,
                         bool of_any_size = false, double spread = 0);

struct VerifyResult {
  enum class Status { kOk, kMismatch, kUnsupported } status = Status::kOk;
  int64_t num_partitions = 0;
  bool exact = false;  // whether every output is exact
  std::vector<OutputDifference> outputs;
  std::string reason;  // for kMismatch and kUnsupported
};
std::string VerifyJson(const VerifyResult& result);

// `given` replaces random inputs if not empty. Random inputs are integers of both signs, or
// positive fractions where the signs would make outputs depend on rounding. Outputs that are
// computed from exact values only must be bitwise equal, but for the signs of zeros where sums or
// complex products are in another order; the others within the tolerance of Compare, or within
// twice what sums in another order are seen to change, up to the tolerance of the narrowest type.
// Errors of parsing and partitioning are errors; a program with an op that cannot be executed is
// kUnsupported.
absl::StatusOr<VerifyResult> Verify(Module module, const RunOptions& options, uint64_t seed,
                                    std::vector<Tensor> given, Communicator* communicator);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_VERIFY_H_
