// SPDX-License-Identifier: Apache-2.0
// Checks of a handler's operands, results and attributes. Every error names the
// target, the instruction, the operand or result by index and name, what was
// expected and what was found:
//   E133 target "rms_norm" (%ffi_call.3): operand 1 (gain) has the wrong shape:
//   expected f32[16], found f32[8]
// E131 attributes, E132 counts, E133 shapes, E134 element types.
#ifndef SHARDCALL_KERNELS_HOST_ARGUMENTS_H_
#define SHARDCALL_KERNELS_HOST_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

struct ArgumentPlace {
  bool is_result;
  int index;
};
inline ArgumentPlace Operand(int index) { return {false, index}; }
inline ArgumentPlace Result(int index) { return {true, index}; }

class CallArguments {
 public:
  using Names = absl::Span<const absl::string_view>;

  // The buffers and the names must outlive this object. The last `optional_*` arguments may be
  // missing.
  CallArguments(const HandlerContext& context, absl::Span<const BufferView> operands,
                absl::Span<const BufferView> results, Names operand_names, Names result_names,
                int optional_operands = 0, int optional_results = 0);

  // Must be called first: E132 unless the counts match the names.
  absl::Status CheckCounts() const;

  int num_results() const { return static_cast<int>(results_.size()); }
  const BufferView& operand(int i) const { return operands_[i]; }
  const BufferView& result(int i) const { return results_[i]; }
  const BufferView& at(ArgumentPlace p) const {
    return p.is_result ? results_[p.index] : operands_[p.index];
  }

  // E134 unless the type is among `allowed`.
  absl::Status CheckType(ArgumentPlace place, absl::Span<const ElementType> allowed) const;
  // E133 unless rank >= least.
  absl::Status CheckLeastRank(ArgumentPlace place, int least) const;
  absl::Status CheckRank(ArgumentPlace place, int rank) const;
  // E133 unless the dimensions are these.
  absl::Status CheckDims(ArgumentPlace place, absl::Span<const int64_t> dims) const;

  // E133 for any other error of a shape.
  absl::Status ShapeError(ArgumentPlace place, absl::string_view expected) const;
  absl::Status AttributeError(absl::string_view name, absl::string_view expected,
                              absl::string_view found) const;
  // Adds the target and the instruction to an error of AttributeMapView.
  absl::Status Located(const absl::Status& status) const;

 private:
  std::string Describe(ArgumentPlace place) const;
  absl::Status Error(absl::string_view code, std::string message, std::string expected,
                     std::string found) const;

  const HandlerContext& context_;
  absl::Span<const BufferView> operands_, results_;
  std::vector<absl::string_view> operand_names_, result_names_;
  int optional_operands_, optional_results_;
};

// The element types of shipped kernels that compute with floats.
inline constexpr ElementType kFloatTypes[] = {ElementType::kF32, ElementType::kBF16,
                                              ElementType::kF16, ElementType::kF64};

}  // namespace internal
}  // namespace shardcall

// Like SHARDCALL_ASSIGN_OR_RETURN, for attributes of a call whose arguments are `args`.
#define SHARDCALL_ASSIGN_ATTRIBUTE(lhs, args, expr) \
  SHARDCALL_ASSIGN_ATTRIBUTE_IMPL_(SHARDCALL_CONCAT_(shardcall_attr_, __LINE__), lhs, args, expr)
#define SHARDCALL_ASSIGN_ATTRIBUTE_IMPL_(tmp, lhs, args, expr) \
  auto tmp = (expr);                                           \
  if (!tmp.ok()) return (args).Located(tmp.status());          \
  lhs = *std::move(tmp)

#endif  // SHARDCALL_KERNELS_HOST_ARGUMENTS_H_
