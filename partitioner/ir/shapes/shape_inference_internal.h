// SPDX-License-Identifier: Apache-2.0
// Shared by the files of shape inference: the query, error reporting, and common checks. One
// function per op family; each returns the result's shape, or null after filling `*q.error`.
// Internal to partitioner/ir.
#ifndef SHARDCALL_PARTITIONER_IR_SHAPES_SHAPE_INFERENCE_INTERNAL_H_
#define SHARDCALL_PARTITIONER_IR_SHAPES_SHAPE_INFERENCE_INTERNAL_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {

using Dims = absl::InlinedVector<int64_t, 6>;

struct Query {
  Context& context;
  const Module& module;
  Opcode opcode;
  absl::Span<const Shape* const> operands;
  const Attributes* attrs;
  const Shape* declared;  // or null
  Diagnostic* error;

  const Shape* x(size_t i) const { return operands[i]; }
  int num_operands() const { return static_cast<int>(operands.size()); }
  template <typename T>
  const T& as() const {
    return *static_cast<const T*>(attrs);
  }
};

// Fills the error; "<opcode>: <message>". Returns null.
const Shape* Fail(const Query& q, absl::string_view code, absl::string_view message,
                  std::string expected = "", std::string found = "", std::string fix = "");
std::string Brackets(absl::Span<const int64_t> values);  // "{1,2}"
std::string Text(const Shape* shape);                    // without layout

// Each returns true if the condition holds, else fills the error.
bool WantOperands(const Query& q, int count);
bool WantAtLeast(const Query& q, int count);
bool WantArray(const Query& q, int operand);
bool WantArrays(const Query& q);  // every operand
bool WantScalar(const Query& q, int operand);
bool WantSameType(const Query& q, int a, int b);
bool WantSameDims(const Query& q, int a, int b);
bool WantDeclared(const Query& q);  // the op needs a written shape
bool WantDeclaredArray(const Query& q);
bool WantDeclaredType(const Query& q, ElementType type);
bool WantToken(const Query& q, int operand);
// Element `index` of operand 0, a tuple with at least `count` elements. Null if it is not.
const Shape* PartOfStart(const Query& q, int index, int count);
// Every value is in [0, rank), without duplicates.
bool WantDims(const Query& q, absl::string_view attribute, absl::Span<const int64_t> dims,
              int rank);
bool WantDim(const Query& q, absl::string_view attribute, int64_t dim, int rank);
bool WantLength(const Query& q, absl::string_view attribute, size_t found, size_t expected);

bool SameDims(const Shape* a, const Shape* b);  // arrays
// Equal, or both floats (mixed precision in reducers and contractions).
bool SameTypeButPrecision(ElementType a, ElementType b);
// f32 of c64, f64 of c128.
ElementType RealTypeOf(ElementType complex);
// An array with a descending layout.
const Shape* MakeResult(const Query& q, ElementType type, absl::Span<const int64_t> dims);
const Shape* MakeResult(const Query& q, ElementType type, absl::Span<const int64_t> dims,
                        absl::Span<const bool> dynamic);
// One shape alone, several as a tuple.
const Shape* OneOrTuple(const Query& q, absl::Span<const Shape* const> shapes);
// Tuples with more leaves are refused, since shared sub-tuples could make them grow exponentially
// with the length of the text.
inline constexpr int64_t kMaxLeaves = int64_t{1} << 24;
bool WantFewLeaves(const Query& q);  // of all operands together

// A computation's signature. Null if the id is not one of the module's or the
// computation has no root.
const Computation* Callee(const Query& q, absl::string_view attribute, CompId id);
const Shape* ParameterShape(const Query& q, const Computation& c, int number);
const Shape* RootShape(const Query& q, const Computation& c);
bool WantParameters(const Query& q, absl::string_view attribute, const Computation& c, int count);
// Parameter `number` is compatible with `shape`.
bool WantParameter(const Query& q, absl::string_view attribute, const Computation& c, int number,
                   const Shape* shape);
// Parameter `number` is a scalar of that type, up to floating-point precision.
bool WantScalarParameter(const Query& q, absl::string_view attribute, const Computation& c,
                         int number, ElementType type);
// A reducer over k (value, accumulator) pairs: 2k scalar parameters, root k
// scalars of the accumulators' types. Gives the root's element types.
bool WantReducer(const Query& q, absl::string_view attribute, CompId id,
                 absl::Span<const ElementType> accumulators, absl::Span<const ElementType> values,
                 absl::InlinedVector<ElementType, 2>* results);

// The window over `x` (entries per dimension, all checked) gives these sizes.
bool WindowedDims(const Query& q, const Window& w, absl::Span<const int64_t> base, Dims* out);

// The inference functions that the op table names.
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  const Shape* Infer##shape(const Query& q);
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SHAPES_SHAPE_INFERENCE_INTERNAL_H_
