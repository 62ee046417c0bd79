// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_LAPACK_TARGETS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_LAPACK_TARGETS_H_

#include "absl/status/status.h"
#include "partitioner/custom_call/registry.h"

namespace shardcall {

// Rules of lapack_sgetrf_ffi and its kin, as the kernels have them.
absl::Status RegisterLapackTargets(TargetRegistry& registry);
// Those of lapack_sgetrf, blas_strsm and their kin, before the typed FFI.
absl::Status RegisterUntypedLapackTargets(TargetRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_LAPACK_TARGETS_H_
