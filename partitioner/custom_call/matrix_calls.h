// SPDX-License-Identifier: Apache-2.0
// How matrices are factored and systems solved: by the HLO ops, and by calls of LAPACK's and
// cuSOLVER's targets that do the same. Their matrices have to be in column-major layout, as the
// calls of JAX state.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_MATRIX_CALLS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_MATRIX_CALLS_H_

#include <optional>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The factor L of A = L L^H, or that of A = U^H U, of operand 0: of matrices in its last two
// dimensions, of which one triangle is read.
struct CholeskyForm {
  bool lower = false;
  // A call keeps the other triangle of A, and gives LAPACK's status of each matrix, too: s32, 0 or
  // the order of the first minor that is not positive definite. The op's other triangle is zero.
  bool is_call = false;
};
std::optional<CholeskyForm> CholeskyFormOf(const Instruction& instr);

// X of op(A) X = B, if `left`, or else of X op(A) = B, for operands A, of which one triangle is
// read, and B. op(A) is A, its transpose or, if it is also conjugated, its adjoint.
struct TriangularSolveForm {
  bool left = false, lower = false, transposed = false, conjugated = false;
};
std::optional<TriangularSolveForm> TriangularSolveFormOf(const Instruction& instr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_MATRIX_CALLS_H_
