// SPDX-License-Identifier: Apache-2.0
// The reductions that the engine knows: add, multiply, maximum, minimum, and, or, xor over
// scalars. It recognises them in a module's computations, has their identities, and makes the
// small computations that emitted reductions call.
#ifndef SHARDCALL_PARTITIONER_IR_MONOID_H_
#define SHARDCALL_PARTITIONER_IR_MONOID_H_

#include <cstdint>
#include <iterator>
#include <optional>

#include "shardcall/partitioner/ir/literal.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall SHARDCALL_PUBLIC {

// A row of the table: an op, and the PartialOp that it combines. In the order of PartialOp.
struct Monoid {
  Opcode op;
  PartialOp partial;
  bool idempotent;  // op(x, x) is x, so that a value may be combined more than once
};
inline constexpr Monoid kMonoids[] = {
    {Opcode::kAdd, PartialOp::kSum, false},    {Opcode::kMultiply, PartialOp::kProduct, false},
    {Opcode::kMaximum, PartialOp::kMax, true}, {Opcode::kMinimum, PartialOp::kMin, true},
    {Opcode::kAnd, PartialOp::kAnd, true},     {Opcode::kOr, PartialOp::kOr, true},
    {Opcode::kXor, PartialOp::kXor, false},
};
inline constexpr int kNumMonoids = static_cast<int>(std::size(kMonoids));

// The row of an op, or -1.
int MonoidIndex(Opcode op);
inline bool IsMonoid(Opcode op) { return MonoidIndex(op) >= 0; }
Opcode MonoidOf(PartialOp op);
std::optional<PartialOp> PartialOpOf(Opcode op);  // if it is in the table
inline bool IsIdempotent(Opcode op) { return IsMonoid(op) && kMonoids[MonoidIndex(op)].idempotent; }

// Whether the computation is op(p0, p1) or op(p1, p0) over two scalars of one
// type, with op one of the above.
bool RecognizeMonoid(const Module& module, CompId computation, Opcode* op);

// The same as a PartialOp; also false for an invalid `computation`.
bool RecognizePartialOp(const Module& module, CompId computation, PartialOp* out);

// The identity of a float sum is +0 or -0. Only -0 is exact, as +0 + -0 is +0.
enum class ZeroSign : uint8_t { kPositive, kExact };

// The identity element: add 0, multiply 1, maximum the least value (-inf), minimum the greatest,
// and all ones, or and xor 0. Null if the type has none (a maximum of complex numbers, an and of
// floats), and for f8e8m0fnu, which has no zero and which no collective reduces.
const Literal* IdentityLiteral(Context& context, Opcode monoid, ElementType type,
                               ZeroSign zero = ZeroSign::kPositive);
// Whether there is one.
bool HasIdentity(PartialOp op, ElementType type);
// The identity's bits in a host buffer, zero-extended. False if there is none, or if the type is
// wider than 8 bytes and the identity is not all zero bits.
bool IdentityBits(Opcode monoid, ElementType type, uint64_t* bits,
                  ZeroSign zero = ZeroSign::kPositive);

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// The op of the table that makes `result` of these two values, in either order; empty if none does.
std::optional<Opcode> MonoidOfPair(const Module& module, InstrId result, InstrId a, InstrId b);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MONOID_H_
