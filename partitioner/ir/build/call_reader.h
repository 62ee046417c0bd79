// SPDX-License-Identifier: Apache-2.0
// Reads custom calls that are HLO ops under another name; see expanded_calls.h.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_CALL_READER_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_CALL_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/expansion.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// One call, with what its readers ask of it. Errors: E177, which says what was expected.
class CallReader {
 public:
  using Dims = std::vector<int64_t>;
  using Ids = absl::Span<const InstrId>;

  // The module must outlive the reader.
  CallReader(const Module& m, InstrId id) : m_(m), call_(m.instr(id)), operands_(m.operands(id)) {}

  absl::Status Unfit(std::string expected, std::string found) const;
  Context& context() const { return m_.context(); }
  const Instruction& call() const { return call_; }
  const Shape* operand(int k) const { return m_.instr(operands_[k]).shape; }
  Dims DimsOf(int k) const { return Dims(operand(k)->dims().begin(), operand(k)->dims().end()); }
  // An array of the type of operand 0.
  const Shape* Like(const Dims& dims) const;

  // The operands must be so many arrays of fixed sizes, the result a tuple of so many.
  absl::Status WantOperands(size_t count) const;
  absl::Status WantResults(int64_t count) const;

  // Reads a configuration "name=1,names=[1,2]", and its `dimension`, one of operand 0.
  absl::Status ReadConfig();
  int64_t dimension() const { return dimension_; }
  int64_t rows() const { return operand(0)->dim(static_cast<int>(dimension_)); }  // along it
  // A number that the configuration states, from 0 to `most`.
  absl::StatusOr<int64_t> Number(absl::string_view name, int64_t most) const;
  // A list with a number for each dimension of operand 0.
  absl::StatusOr<Dims> PerDimension(absl::string_view name) const;

 private:
  absl::Status BadConfig(std::string expected) const;

  const Module& m_;
  const Instruction& call_;
  const Ids operands_;
  absl::flat_hash_map<absl::string_view, Dims> config_;
  int64_t dimension_ = 0;
};

// expanded_shifts.cc
absl::StatusOr<CallExpansion> ReadRotateRight(CallReader& call);
absl::StatusOr<CallExpansion> ReadMultiRotate(CallReader& call);
absl::StatusOr<CallExpansion> ReadWrap(CallReader& call);
absl::StatusOr<CallExpansion> ReadMultiSlice(CallReader& call);
absl::StatusOr<CallExpansion> ReadMultiPad(CallReader& call);
// expanded_math.cc
absl::StatusOr<CallExpansion> ReadTopK(CallReader& call);
absl::StatusOr<CallExpansion> ReadX64Combine(CallReader& call);
absl::StatusOr<CallExpansion> ReadX64SplitLow(CallReader& call);
absl::StatusOr<CallExpansion> ReadX64SplitHigh(CallReader& call);
absl::StatusOr<CallExpansion> ReadBlockScaledDot(CallReader& call);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_CALL_READER_H_
