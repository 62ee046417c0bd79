// SPDX-License-Identifier: Apache-2.0
// A reference computation as the search for its rule sees it: dimensions of
// operands and results as atoms, the computation in other sizes, and trials of it
// on numbers. Internal to partitioner/api.
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

namespace shardcall::inline internal {

class ReferenceBody {
 public:
  // `targets` must outlive it. Errors as RuleOfReference.
  static absl::StatusOr<ReferenceBody> Read(std::string hlo, const TargetRegistry& targets);

  // Operands, then results.
  int num_tensors() const { return static_cast<int>(tensors_.size()); }
  int num_operands() const { return num_operands_; }
  bool tuple_result() const { return tuple_; }
  ElementType type(int tensor) const { return types_[tensor]; }
  // By dimension, the atoms (DimensionClasses) from major to minor.
  const std::vector<std::vector<int>>& dims(int tensor) const { return tensors_[tensor]; }
  // Of every atom, as the reference is written.
  const std::map<int, int64_t>& sizes() const { return sizes_; }
  bool fixed(int atom) const { return fixed_.count(atom) > 0; }
  // Of the whole computation, by opcode.
  const std::array<int, 256>& opcodes() const { return opcodes_; }

  int Count(int tensor, int atom) const;
  // Whether a tensor has the atom in two dimensions: an axis cuts it once.
  bool Twice(int atom) const;
  bool InEveryResult(int atom) const;
  bool InAResult(int atom) const;
  // The dimension that has the atom as its most major; -1 for none.
  int DimOf(int tensor, int atom) const;

  // With these sizes of atoms; others are small, where that can be.
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

// Whether what the whole gives is what two halves give, reduced; on numbers,
// since a sum may stand before ops that do not pass it on (a bias, a root).
absl::StatusOr<bool> HalvesMakeTheWhole(const ReferenceBody& body, int atom, PartialOp op);

// The value that may fill up the operands along the atom: it leaves results
// without the atom as they are.
absl::StatusOr<std::optional<double>> PadOf(const ReferenceBody& body, int atom, PartialOp op);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_CHECK_REFERENCE_BODY_H_
