// SPDX-License-Identifier: Apache-2.0
// The roles of the dimensions of a convolution, as in dim_labels=b01f_01io->b01f: an input of
// [batch, space 0, space 1, feature], a kernel of [space 0, space 1, input feature, output feature]
// and an output like the input.
#ifndef SHARDCALL_PARTITIONER_IR_SHAPES_DIM_LABELS_H_
#define SHARDCALL_PARTITIONER_IR_SHAPES_DIM_LABELS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

struct DimLabels {
  struct Side {
    int batch = -1;    // of the kernel: the input feature
    int feature = -1;  // of the kernel: the output feature
    absl::InlinedVector<int64_t, 3> spatial;
    int rank = 0;
    bool has_unknown = false;  // a dimension without a role, written '?'
  };
  Side lhs, rhs, out;
};

// False unless each side gives each role one dimension, and all sides have as many spatial ones.
bool ParseDimLabels(absl::string_view text, DimLabels* labels);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SHAPES_DIM_LABELS_H_
