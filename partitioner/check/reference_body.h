// SPDX-License-Identifier: Apache-2.0
// A reference computation for the search for its rule: dimensions of operands and results as atoms,
// the computation in other sizes, and trials with numbers. Internal to partitioner/check.
#ifndef SHARDCALL_PARTITIONER_CHECK_REFERENCE_BODY_H_
#define SHARDCALL_PARTITIONER_CHECK_REFERENCE_BODY_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

class ReferenceBody {
 public:
  // `targets` must outlive it. Errors as for RuleOfReference.
  static absl::StatusOr<ReferenceBody> Read(std::string hlo, const TargetRegistry& targets);

  // Operands, then results.
  int num_tensors() const { return static_cast<int>(tensors_.size()); }
  int num_operands() const { return num_operands_; }
  bool tuple_result() const { return tuple_; }
  ElementType type(int tensor) const { return types_[tensor]; }
  // For each dimension its atoms (see DimensionClasses), from major to minor.
  const std::vector<std::vector<int>>& dims(int tensor) const { return tensors_[tensor]; }
  // The size of every atom in the reference as written.
  const std::map<int, int64_t>& sizes() const { return sizes_; }
  bool fixed(int atom) const { return fixed_.count(atom) > 0; }
  // The number of ops in the reference, by opcode.
  const std::array<int, 256>& opcodes() const { return opcodes_; }

  int Count(int tensor, int atom) const;
  // Whether the tensor has the atom in two dimensions; an axis can shard only one of them.
  bool Twice(int atom) const;
  bool InEveryResult(int atom) const;
  bool InAResult(int atom) const;
  // The dimension whose most major atom it is; -1 if there is none.
  int DimOf(int tensor, int atom) const;

  // The reference with these sizes of atoms; other sizes are small if possible.
  absl::StatusOr<Module> Resized(const std::map<int, int64_t>& now) const;

 private:
  explicit ReferenceBody(std::string hlo, const TargetRegistry& targets)
      : hlo_(std::move(hlo)), targets_(&targets) {}
  absl::Status ReadSignature();
  absl::Status FindSize();
  int64_t Usual(int atom) const;

  std::string hlo_;
  const TargetRegistry* targets_;
  std::vector<std::vector<std::vector<int>>> tensors_;
  std::vector<ElementType> types_;
  int num_operands_ = 0;
  bool tuple_ = false, small_ = false;
  std::map<int, int64_t> sizes_;
  std::set<int> fixed_;
  std::array<int, 256> opcodes_{};
};

// Whether combining the results of two halves by `op` gives the result of the whole. Tested with
// numbers, since ops after a sum may not commute with it (a bias, a square root).
absl::StatusOr<bool> HalvesMakeTheWhole(const ReferenceBody& body, int atom, PartialOp op);

// A value that can pad the operands along the atom: it does not change results without the atom.
absl::StatusOr<std::optional<double>> PadOf(const ReferenceBody& body, int atom, PartialOp op);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_REFERENCE_BODY_H_
