// SPDX-License-Identifier: Apache-2.0
// Parses output_to_operand_aliasing, which instructions keep as text: {{0}: (1, {}), {1}: (0,
// {2})}.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_OUTPUT_ALIASING_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_OUTPUT_ALIASING_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/shape.h"

namespace shardcall {
inline namespace internal {

// A part of the result that aliases a part of an operand; indices into tuples.
struct OutputAlias {
  std::vector<int64_t> output;
  int64_t operand = 0;
  std::vector<int64_t> inner;
};

// False if the text is malformed. Empty text has no entries.
bool ParseOutputAliasing(absl::string_view text, std::vector<OutputAlias>* out);

// The part of a tuple shape at an index; null if there is none.
const Shape* PartAt(const Shape* shape, absl::Span<const int64_t> index);
// The number of its first flat leaf; -1 if there is none.
int FirstLeafAt(const Shape* shape, absl::Span<const int64_t> index);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_OUTPUT_ALIASING_H_
