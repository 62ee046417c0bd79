// SPDX-License-Identifier: Apache-2.0
// The labels of a convolution's dimensions, "b01f_01io->b01f".
#ifndef SHARDCALL_PARTITIONER_IR_DIM_LABELS_H_
#define SHARDCALL_PARTITIONER_IR_DIM_LABELS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace shardcall::inline internal {

struct DimLabels {
  // The dimension of each role. Of the kernel, `batch` is the input feature (i) and `feature` the
  // output feature (o).
  struct Side {
    int batch = -1, feature = -1;
    absl::InlinedVector<int64_t, 3> spatial;
    int rank = 0;
    bool has_unknown = false;  // a dimension is labelled ?
  };
  Side lhs, rhs, out;
};

// False if a role has no dimension or several, or if the sides differ in spatial dimensions.
bool ParseDimLabels(absl::string_view text, DimLabels* labels);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_IR_DIM_LABELS_H_
