// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/lower_table.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

LowerFn FindLowerFn(Opcode opcode) {
  if (HasTrait(opcode, kElementwise)) return LowerElementwise;
  switch (opcode) {
    case Opcode::kBroadcast:
      return LowerBroadcast;
    case Opcode::kTranspose:
      return LowerTranspose;
    case Opcode::kReverse:
      return LowerReverse;
    case Opcode::kReshape:
      return LowerReshape;
    case Opcode::kBitcast:
      return LowerReshape;
    case Opcode::kBitcastConvert:
      return LowerBitcastConvert;
    case Opcode::kIota:
      return LowerIota;
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
      return LowerDeviceId;
    case Opcode::kGetDimensionSize:
      return LowerGetDimensionSize;
    case Opcode::kSlice:
      return LowerSlice;
    case Opcode::kPad:
      return LowerPad;
    case Opcode::kConcatenate:
      return LowerConcatenate;
    case Opcode::kDynamicSlice:
      return LowerDynamicSlice;
    case Opcode::kDynamicUpdateSlice:
      return LowerDynamicUpdateSlice;
    case Opcode::kDot:
      return LowerDot;
    case Opcode::kReduce:
      return LowerReduce;
    case Opcode::kMap:
      return LowerMap;
    case Opcode::kReduceWindow:
      return LowerReduceWindow;
    case Opcode::kSelectAndScatter:
      return LowerSelectAndScatter;
    case Opcode::kSort:
      return LowerSort;
    case Opcode::kTopk:
      return LowerTopK;
    case Opcode::kGather:
      return LowerGather;
    case Opcode::kScatter:
      return LowerScatter;
    case Opcode::kWhile:
      return LowerWhile;
    case Opcode::kConditional:
      return LowerConditional;
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
      return LowerCall;
    case Opcode::kScan:
      return LowerScan;
    case Opcode::kRaggedDot:
      return LowerRaggedDot;
    case Opcode::kScaledDot:
      return LowerScaledDot;
    case Opcode::kRng:
      return LowerRng;
    case Opcode::kRngGetAndUpdateState:
      return LowerRngGetAndUpdateState;
    case Opcode::kRngBitGenerator:
      return LowerRngBitGenerator;
    case Opcode::kConvolution:
      return LowerConvolution;
    case Opcode::kFft:
      return LowerFft;
    case Opcode::kCholesky:
      return LowerCholesky;
    case Opcode::kTriangularSolve:
      return LowerTriangularSolve;
    case Opcode::kBatchNormTraining:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormGrad:
      return LowerBatchNorm;
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kReduceScatter:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
      return LowerCollective;
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
      return LowerPermute;
    case Opcode::kRaggedAllToAll:
      return LowerRaggedAllToAll;
    case Opcode::kCustomCall:
      return LowerCustomCall;
    default:
      return nullptr;
  }
}

// Why an op is read and partitioned, but has no meaning here.
absl::string_view WhyNot(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
      return "a transfer to another program or to the host, which has no other side here,";
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
      return "a feed from or to the host, which has no queue here,";
    default:
      return "this opcode";
  }
}

}  // namespace

absl::Status LowerByOpcode(const LowerContext& context, Step* step) {
  const LowerFn fn = FindLowerFn(context.instr.opcode);
  if (fn == nullptr) return context.Unimplemented(WhyNot(context.instr.opcode));
  SHARDCALL_RETURN_IF_ERROR(fn(context, step));
  SHARDCALL_CHECK(step->fn != nullptr);
  return absl::OkStatus();
}

absl::Status LowerContext::Error(absl::string_view code, absl::string_view message,
                                 absl::string_view fix, absl::StatusCode status) const {
  // What the verifier refuses comes here only where nobody asked it.
  if (fix.empty() && code == "E311") fix = "Ask VerifyModule, which says what the op needs";
  return ToStatus({.code = std::string(code),
                   .message = absl::StrCat(OpcodeText(instr.opcode), ": ", message),
                   .where = absl::StrCat("%", instr.name),
                   .fix = std::string(fix)},
                  status);
}

absl::Status LowerContext::Unimplemented(absl::string_view message) const {
  return Error("E310", absl::StrCat(message, " cannot be executed"), "",
               absl::StatusCode::kUnimplemented);
}

LeafShape MakeLeafShape(const Shape& shape) {
  LeafShape leaf;
  leaf.type = shape.element_type();
  leaf.dims.assign(shape.dims().begin(), shape.dims().end());
  leaf.minor_to_major.assign(shape.minor_to_major().begin(), shape.minor_to_major().end());
  for (int d = 0; shape.IsDynamic() && d < shape.rank(); ++d) {
    leaf.dynamic.push_back(shape.IsDynamicDim(d));
  }
  return leaf;
}

bool IsAnnotationTarget(absl::string_view target) {
  return target == "Sharding" || target == "xla.sdy.FuncResultSharding" ||
         target == "xla.sdy.ShardingGroup" || target == "annotate_device_placement" ||
         target == "InspectSharding";
}

bool IsManualBoundaryTarget(absl::string_view target) {
  return target == "xla.sdy.GlobalToLocalShape" || target == "xla.sdy.LocalToGlobalShape" ||
         target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape";
}

}  // namespace shardcall
