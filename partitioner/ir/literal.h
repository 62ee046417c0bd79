// SPDX-License-Identifier: Apache-2.0
// The value of a constant: dense row-major bytes of an array in host format
// (types narrower than a byte take one byte each, pred one byte 0/1), or a
// tuple of such. Immutable, owned by a Context.
#ifndef SHARDCALL_PARTITIONER_IR_LITERAL_H_
#define SHARDCALL_PARTITIONER_IR_LITERAL_H_

#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/shape.h"

namespace shardcall SHARDCALL_PUBLIC {

struct Literal {
  const Shape* shape = nullptr;
  absl::Span<const char> data;                // empty for tuples and if elided
  absl::Span<const Literal* const> elements;  // tuples
  bool elided = false;                        // `{...}`: the values are unknown
};

// Copies data into the Context. `data` holds num_elements * ElementTypeBytes.
const Literal* MakeLiteral(Context& context, const Shape* shape, absl::Span<const char> data);
const Literal* MakeTupleLiteral(Context& context, const Shape* shape,
                                absl::Span<const Literal* const> elements);
const Literal* MakeElidedLiteral(Context& context, const Shape* shape);
// A scalar of `type` from a double or an int64 (for complex types: the real part).
const Literal* MakeScalarLiteral(Context& context, ElementType type, double value);
const Literal* MakeScalarIntLiteral(Context& context, ElementType type, int64_t value);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_LITERAL_H_
