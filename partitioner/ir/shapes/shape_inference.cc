// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/shapes/shape_inference.h"

#include <utility>

#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
namespace shape_inference {
namespace {

const Shape* Dispatch(const Query& q) {
  const OpcodeInfo& info = GetOpcodeInfo(q.opcode);
  if (info.arity >= 0 && q.num_operands() != info.arity) {
    WantOperands(q, info.arity);
    return nullptr;
  }
  switch (q.opcode) {
    case Opcode::kConvert:
    case Opcode::kBitcastConvert:
    case Opcode::kStochasticConvert:
      return InferConvert(q);
    case Opcode::kCompare:
      return InferCompare(q);
    case Opcode::kSelect:
      return InferSelect(q);
    case Opcode::kClamp:
      return InferClamp(q);
    case Opcode::kOptBarrier:
    case Opcode::kDomain:
      return InferUnary(q);
    case Opcode::kBitcast:
    case Opcode::kReshape:
    case Opcode::kDynamicReshape:
      return InferReshape(q);
    case Opcode::kAllGatherDone:
    case Opcode::kAllReduceDone:
    case Opcode::kCollectivePermuteDone:
      return InferCollectiveDone(q);
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kIota:
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kRng:
    case Opcode::kRngBitGenerator:
    case Opcode::kRngGetAndUpdateState:
      return InferSource(q);
    case Opcode::kTuple:
    case Opcode::kAfterAll:
    case Opcode::kAddDependency:
      return InferTuple(q);
    case Opcode::kGetTupleElement:
      return InferGetTupleElement(q);
    case Opcode::kBroadcast:
      return InferBroadcast(q);
    case Opcode::kTranspose:
      return InferTranspose(q);
    case Opcode::kReverse:
      return InferReverse(q);
    case Opcode::kConcatenate:
      return InferConcatenate(q);
    case Opcode::kGetDimensionSize:
    case Opcode::kSetDimensionSize:
      return InferDimensionSize(q);
    case Opcode::kSlice:
      return InferSlice(q);
    case Opcode::kDynamicSlice:
      return InferDynamicSlice(q);
    case Opcode::kDynamicUpdateSlice:
      return InferDynamicUpdateSlice(q);
    case Opcode::kPad:
      return InferPad(q);
    case Opcode::kReduce:
      return InferReduce(q);
    case Opcode::kMap:
      return InferMap(q);
    case Opcode::kReduceWindow:
      return InferReduceWindow(q);
    case Opcode::kSelectAndScatter:
      return InferSelectAndScatter(q);
    case Opcode::kSort:
      return InferSort(q);
    case Opcode::kTopk:
      return InferTopK(q);
    case Opcode::kScan:
      return InferScan(q);
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kScaledDot:
      return InferDot(q);
    case Opcode::kConvolution:
      return InferConvolution(q);
    case Opcode::kFft:
      return InferFft(q);
    case Opcode::kCholesky:
      return InferCholesky(q);
    case Opcode::kTriangularSolve:
      return InferTriangularSolve(q);
    case Opcode::kGather:
      return InferGather(q);
    case Opcode::kScatter:
      return InferScatter(q);
    case Opcode::kBatchNormTraining:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormGrad:
      return InferBatchNorm(q);
    case Opcode::kWhile:
      return InferWhile(q);
    case Opcode::kConditional:
      return InferConditional(q);
    case Opcode::kCall:
    case Opcode::kFusion:
      return InferCall(q);
    case Opcode::kCustomCall:
      return InferCustomCall(q);
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kSend:
    case Opcode::kRecv:
    case Opcode::kSendDone:
    case Opcode::kRecvDone:
    case Opcode::kCopyStart:
    case Opcode::kCopyDone:
      return InferTransfer(q);
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
      return InferPermute(q);
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
      return InferAsync(q);
    default:
      if (info.attrs == AttrKind::kCollective) return InferCollective(q);
      return info.arity == 2 ? InferBinary(q) : InferUnary(q);
  }
}

bool IsUnbounded(const Shape* s) {
  if (!s->IsDynamic()) return false;
  for (int64_t d : s->dims()) {
    if (d == kUnboundedDim) return true;
  }
  return false;
}

bool WantRank(const Query& q, const Shape* s) {
  if (s->rank() <= kMaxRank) return true;
  Fail(q, "E021", "an array has too many dimensions", absl::StrCat("at most ", kMaxRank),
       absl::StrCat(s->rank()));
  return false;
}

// Ops that carry dynamic sizes through; the others are inferred for static
// operands only.
bool CarriesDynamic(const Query& q) {
  if (HasTrait(q.opcode, kElementwise) || HasTrait(q.opcode, kCollectiveOp)) return true;
  switch (q.opcode) {
    case Opcode::kTuple:
    case Opcode::kOptBarrier:
    case Opcode::kDomain:
    case Opcode::kTranspose:
    case Opcode::kReverse:
    case Opcode::kConcatenate:
    case Opcode::kReduce:
    case Opcode::kSort:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kScatter:
    case Opcode::kGetDimensionSize:
    case Opcode::kSetDimensionSize:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kCustomCall:
    case Opcode::kAddDependency:
      return true;
    default:
      return false;
  }
}

}  // namespace
}  // namespace shape_inference

const Shape* InferShapeOrNull(Context& context, const Module& module, Opcode opcode,
                              absl::Span<const Shape* const> operands, const Attributes* attrs,
                              const Shape* declared, Diagnostic* error) {
  if (attrs == nullptr) attrs = NoAttributes();
  const shape_inference::Query q = {context, module, opcode, operands, attrs, declared, error};
  const AttrKind kind = GetOpcodeInfo(opcode).attrs;
  if (attrs->kind != kind && kind != AttrKind::kResultAccuracy) {
    return shape_inference::Fail(q, "E022", "the attributes are those of another op",
                                 "its own attributes", "others");
  }
  if (declared != nullptr && !shape_inference::WantRank(q, declared)) return nullptr;
  for (const Shape* x : operands) {
    if (!shape_inference::WantRank(q, x)) return nullptr;
    if (!x->IsArray() || !x->IsDynamic()) continue;
    // Sizes that are not known cannot be checked; the written shape stands.
    if (shape_inference::IsUnbounded(x) && !HasTrait(opcode, kElementwise)) {
      return shape_inference::WantDeclared(q) ? declared : nullptr;
    }
    if (declared == nullptr && !shape_inference::CarriesDynamic(q)) {
      shape_inference::WantDeclared(q);
      return nullptr;
    }
  }
  return shape_inference::Dispatch(q);
}

absl::StatusOr<const Shape*> InferShape(Context& context, const Module& module, Opcode opcode,
                                        absl::Span<const Shape* const> operands,
                                        const Attributes* attrs) {
  Diagnostic error;
  const Shape* shape =
      InferShapeOrNull(context, module, opcode, operands, attrs, nullptr, &error);
  if (shape == nullptr) return ToStatus(error);
  return shape;
}

}  // namespace shardcall
