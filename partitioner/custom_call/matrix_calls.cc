// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/matrix_calls.h"

#include "shardcall/partitioner/custom_call/attribute_condition.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// The attributes of a call, in the form of a dictionary, where something holds.
struct CholeskyTarget {
  absl::string_view name;  // ? is one letter
  absl::string_view lower;
};
constexpr CholeskyTarget kCholeskyTargets[] = {
    {"lapack_?potrf_ffi", "{uplo = 76 : ui8}"},
    {"cusolver_potrf_ffi", "{lower = true}"},
    {"hipsolver_potrf_ffi", "{lower = true}"},
};
struct SolveTarget {
  absl::string_view name;
  absl::string_view left, lower, transposed, adjoint;
};
constexpr SolveTarget kSolveTargets[] = {
    {"lapack_?trsm_ffi", "{side = 76 : ui8}", "{uplo = 76 : ui8}", "{trans_x = 84 : ui8}",
     "{trans_x = 67 : ui8}"},
};

bool IsNamed(absl::string_view target, absl::string_view name) {
  if (target.size() != name.size()) return false;
  for (size_t k = 0; k < name.size(); ++k) {
    if (name[k] != '?' && name[k] != target[k]) return false;
  }
  return true;
}

// LAPACK has matrices by columns: of others it would see the transpose.
bool IsByColumns(const Shape* matrices) {
  const auto order = matrices->minor_to_major();
  const int rank = matrices->rank();
  return rank >= 2 && order.size() == static_cast<size_t>(rank) && order[0] == rank - 2 &&
         order[1] == rank - 1;
}

bool IsSquare(const Shape* matrices) {
  const int rank = matrices->rank();
  return matrices->dim(rank - 2) == matrices->dim(rank - 1);
}

// The row of a typed call's target, which has so many operands and results; null for all else.
template <typename Row, size_t n>
const Row* RowOf(const Row (&rows)[n], const Instruction& instr, size_t operands, int results) {
  if (instr.opcode != Opcode::kCustomCall) return nullptr;
  const auto& attrs = instr.as<CustomCallAttrs>();
  if (attrs.api_version != kTypedFfiCall || attrs.operand_layouts.size() != operands ||
      instr.shape->num_leaves() != results) {
    return nullptr;
  }
  for (const Shape* operand : attrs.operand_layouts) {
    if (!operand->IsArray() || !IsByColumns(operand)) return nullptr;
  }
  const Shape* const first = instr.shape->leaf(0);
  if (!first->IsArray() || !IsByColumns(first) || !IsSquare(attrs.operand_layouts[0]) ||
      first->dims() != attrs.operand_layouts[operands - 1]->dims()) {
    return nullptr;
  }
  for (const Row& row : rows) {
    if (IsNamed(attrs.target, row.name)) return &row;
  }
  return nullptr;
}

bool Holds(const Instruction& instr, absl::string_view attributes) {
  const absl::StatusOr<AttributeConditions> conditions = AttributeConditionsOf(attributes);
  SHARDCALL_CHECK(conditions.ok());
  return Satisfies(instr.backend_config, *conditions);
}

}  // namespace

std::optional<CholeskyForm> CholeskyFormOf(const Instruction& instr) {
  if (instr.opcode == Opcode::kCholesky) return CholeskyForm{instr.as<CholeskyAttrs>().lower};
  const CholeskyTarget* const row = RowOf(kCholeskyTargets, instr, 1, 2);
  if (row == nullptr) return std::nullopt;
  const Shape *factor = instr.shape->leaf(0), *status = instr.shape->leaf(1);
  if (status->element_type() != ElementType::kS32 || status->rank() != factor->rank() - 2) {
    return std::nullopt;
  }
  return CholeskyForm{Holds(instr, row->lower), true};
}

std::optional<TriangularSolveForm> TriangularSolveFormOf(const Instruction& instr) {
  if (instr.opcode == Opcode::kTriangularSolve) {
    const auto& attrs = instr.as<TriangularSolveAttrs>();
    const bool adjoint = attrs.transpose_a == "ADJOINT";
    return TriangularSolveForm{attrs.left_side, attrs.lower,
                               adjoint || attrs.transpose_a == "TRANSPOSE", adjoint};
  }
  const SolveTarget* const row = RowOf(kSolveTargets, instr, 2, 1);
  if (row == nullptr) return std::nullopt;
  const bool adjoint = Holds(instr, row->adjoint), left = Holds(instr, row->left);
  const Shape *matrix = instr.as<CustomCallAttrs>().operand_layouts[0], *x = instr.shape->leaf(0);
  const int rank = x->rank();
  if (matrix->rank() != rank || matrix->dim(rank - 1) != x->dim(left ? rank - 2 : rank - 1)) {
    return std::nullopt;
  }
  return TriangularSolveForm{left, Holds(instr, row->lower),
                             adjoint || Holds(instr, row->transposed), adjoint};
}

}  // namespace internal
}  // namespace shardcall
