// SPDX-License-Identifier: Apache-2.0
// Lowering by op family: each function fills a step's `fn` and `data`. A step
// comes with opcode, name, operands, results and shapes set.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_OP_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_OP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {

// What is being lowered.
class LowerContext {
 public:
  LowerContext(const Module& module, const LowerOptions& options, InstrId id)
      : module(module), options(options), id(id), instr(module.instr(id)) {}

  const Module& module;
  const LowerOptions& options;
  const InstrId id;
  const Instruction& instr;

  int num_operands() const { return static_cast<int>(instr.operand_count); }
  const Shape* operand_shape(int k) const { return module.instr(module.operands(instr)[k]).shape; }
  // The attribute record; the parser and the verifier see to its kind.
  template <typename T>
  const T& attrs() const {
    return instr.as<T>();
  }
  // Computations keep their numbers.
  int computation(CompId comp) const { return static_cast<int>(comp.value); }

  absl::Status Error(absl::string_view code, absl::string_view message, absl::string_view fix = "",
                     absl::StatusCode status = absl::StatusCode::kInvalidArgument) const;
  absl::Status Unimplemented(absl::string_view message) const;
};

LeafShape MakeLeafShape(const Shape& shape);
inline Dims ToDims(Ints v) { return Dims(v.begin(), v.end()); }

using LowerFn = absl::Status (*)(const LowerContext& context, Step* step);

absl::Status LowerElementwise(const LowerContext& context, Step* step);
absl::Status LowerBroadcast(const LowerContext& context, Step* step);
absl::Status LowerTranspose(const LowerContext& context, Step* step);
absl::Status LowerReverse(const LowerContext& context, Step* step);
absl::Status LowerReshape(const LowerContext& context, Step* step);
absl::Status LowerBitcastConvert(const LowerContext& context, Step* step);
absl::Status LowerIota(const LowerContext& context, Step* step);
absl::Status LowerIdentity(const LowerContext& context, Step* step);
absl::Status LowerToken(const LowerContext& context, Step* step);
absl::Status LowerDeviceId(const LowerContext& context, Step* step);
absl::Status LowerGetDimensionSize(const LowerContext& context, Step* step);
absl::Status LowerSlice(const LowerContext& context, Step* step);
absl::Status LowerPad(const LowerContext& context, Step* step);
absl::Status LowerConcatenate(const LowerContext& context, Step* step);
absl::Status LowerDynamicSlice(const LowerContext& context, Step* step);
absl::Status LowerDynamicUpdateSlice(const LowerContext& context, Step* step);
absl::Status LowerDot(const LowerContext& context, Step* step);
absl::Status LowerReduce(const LowerContext& context, Step* step);
absl::Status LowerMap(const LowerContext& context, Step* step);
absl::Status LowerReduceWindow(const LowerContext& context, Step* step);
absl::Status LowerSelectAndScatter(const LowerContext& context, Step* step);
absl::Status LowerSort(const LowerContext& context, Step* step);
absl::Status LowerTopK(const LowerContext& context, Step* step);
absl::Status LowerGather(const LowerContext& context, Step* step);
absl::Status LowerScatter(const LowerContext& context, Step* step);
absl::Status LowerWhile(const LowerContext& context, Step* step);
absl::Status LowerConditional(const LowerContext& context, Step* step);
absl::Status LowerCall(const LowerContext& context, Step* step);
absl::Status LowerScan(const LowerContext& context, Step* step);
absl::Status LowerRaggedDot(const LowerContext& context, Step* step);
absl::Status LowerScaledDot(const LowerContext& context, Step* step);
absl::Status LowerRng(const LowerContext& context, Step* step);
absl::Status LowerRngGetAndUpdateState(const LowerContext& context, Step* step);
absl::Status LowerRngBitGenerator(const LowerContext& context, Step* step);
absl::Status LowerConvolution(const LowerContext& context, Step* step);
absl::Status LowerFft(const LowerContext& context, Step* step);
absl::Status LowerCholesky(const LowerContext& context, Step* step);
absl::Status LowerTriangularSolve(const LowerContext& context, Step* step);
absl::Status LowerBatchNorm(const LowerContext& context, Step* step);
absl::Status LowerCollective(const LowerContext& context, Step* step);
absl::Status LowerPermute(const LowerContext& context, Step* step);
absl::Status LowerRaggedAllToAll(const LowerContext& context, Step* step);
absl::Status LowerCustomCall(const LowerContext& context, Step* step);
// Custom calls that begin and end a manual region (global mode).
absl::Status LowerManualBoundary(const LowerContext& context, Step* step);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_OP_H_
