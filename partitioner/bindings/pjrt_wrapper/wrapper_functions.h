// SPDX-License-Identifier: Apache-2.0
// The functions that replace the wrapped plugin's.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_FUNCTIONS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_FUNCTIONS_H_

#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

struct Replaced {
  int place;  // in the table
  const void* function;
  bool of_errors;  // present whether or not a plugin could be wrapped
};
absl::Span<const Replaced> ReplacedFunctions();

// Returns the reason why no plugin could be wrapped.
const void* RefusingFunction();

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_FUNCTIONS_H_
