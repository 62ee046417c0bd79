// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/attribute_names.h"

#include <array>
#include <initializer_list>

namespace shardcall::hlo_text {
namespace {

struct Row {
  absl::string_view text;
  AttrForm form;
};
constexpr Row kRows[] = {
#define SHARDCALL_ATTR(name, text, form) {text, AttrForm::form},
#include "shardcall/partitioner/ir/attribute_names.inc"
#undef SHARDCALL_ATTR
};

constexpr int kSlots = 512;
constexpr uint32_t SlotOf(absl::string_view text) {
  const size_t n = text.size();
  uint32_t h = static_cast<uint32_t>(n) * 0x9E3779B1u;
  h = (h ^ static_cast<unsigned char>(text[0])) * 0x85EBCA6Bu;
  h = (h ^ static_cast<unsigned char>(text[n - 1])) * 0xC2B2AE35u;
  h = (h ^ static_cast<unsigned char>(text[n / 2])) * 0x27D4EB2Fu;
  return (h ^ (h >> 15)) % kSlots;
}
constexpr std::array<int8_t, kSlots> MakeSlots() {
  std::array<int8_t, kSlots> slots{};
  for (auto& s : slots) s = -1;
  for (int i = 0; i < kNumAttrs; ++i) {
    uint32_t at = SlotOf(kRows[i].text);
    while (slots[at] >= 0) at = (at + 1) % kSlots;
    slots[at] = static_cast<int8_t>(i);
  }
  return slots;
}
constexpr std::array<int8_t, kSlots> kAttrSlots = MakeSlots();

struct Rule {
  std::initializer_list<Attr> required, optional;
};

OpcodeAttrs MakeAttrs(const Rule& rule) {
  OpcodeAttrs out;
  for (Attr a : rule.required) out.required.Add(a);
  for (Attr a : rule.optional) out.allowed.Add(a);
  out.allowed.AddAll(out.required);
  for (int a = static_cast<int>(Attr::kParameterReplication); a < kNumAttrs; ++a) {
    out.allowed.Add(static_cast<Attr>(a));
  }
  return out;
}

using A = Attr;

// Opcodes that share a kind of record may still differ in what they take.
OpcodeAttrs CollectiveAttrsOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
      return MakeAttrs(
          {{A::kDimensions},
           {A::kChannelId, A::kReplicaGroups, A::kConstrainLayout, A::kUseGlobalDeviceIds}});
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
      return MakeAttrs({{A::kToApply},
                        {A::kChannelId, A::kReplicaGroups, A::kConstrainLayout,
                         A::kUseGlobalDeviceIds, A::kMode}});
    case Opcode::kReduceScatter:
      return MakeAttrs({{A::kToApply, A::kDimensions},
                        {A::kChannelId, A::kReplicaGroups, A::kConstrainLayout,
                         A::kUseGlobalDeviceIds, A::kMode}});
    case Opcode::kAllToAll:
      return MakeAttrs(
          {{}, {A::kDimensions, A::kChannelId, A::kReplicaGroups, A::kConstrainLayout}});
    case Opcode::kRaggedAllToAll:
      return MakeAttrs({{}, {A::kDimensions, A::kChannelId, A::kReplicaGroups}});
    default:  // collective-broadcast
      return MakeAttrs({{}, {A::kChannelId, A::kReplicaGroups, A::kHasDynamicRoot}});
  }
}

OpcodeAttrs DotAttrsOf(Opcode opcode) {
  OpcodeAttrs out = MakeAttrs({{},
                               {A::kLhsBatchDims, A::kLhsContractingDims, A::kRhsBatchDims,
                                A::kRhsContractingDims, A::kOperandPrecision}});
  if (opcode == Opcode::kRaggedDot) {
    out.allowed.Add(A::kLhsRaggedDims);
    out.allowed.Add(A::kRhsGroupDims);
  } else {
    out.allowed.Add(A::kAlgorithm);
  }
  return out;
}

OpcodeAttrs Make(Opcode opcode) {
  switch (GetOpcodeInfo(opcode).attrs) {
    case AttrKind::kResultAccuracy: return MakeAttrs({{}, {A::kResultAccuracy}});
    case AttrKind::kNone:
    case AttrKind::kParameter:
    case AttrKind::kConstant: return MakeAttrs({});
    case AttrKind::kCompare: return MakeAttrs({{A::kDirection}, {A::kType}});
    case AttrKind::kIota: return MakeAttrs({{A::kIotaDimension}, {}});
    case AttrKind::kTupleIndex: return MakeAttrs({{A::kIndex}, {}});
    case AttrKind::kDimensions:
      if (opcode == Opcode::kBroadcast) return MakeAttrs({{}, {A::kDimensions}});
      return MakeAttrs({{A::kDimensions}, {}});
    case AttrKind::kReshape: return MakeAttrs({{}, {A::kInferredDimension}});
    case AttrKind::kSlice: return MakeAttrs({{A::kSlice}, {}});
    case AttrKind::kDynamicSlice: return MakeAttrs({{A::kDynamicSliceSizes}, {}});
    case AttrKind::kPad: return MakeAttrs({{A::kPadding}, {}});
    case AttrKind::kReduce:
      if (opcode == Opcode::kMap) return MakeAttrs({{A::kToApply}, {A::kDimensions}});
      return MakeAttrs({{A::kToApply, A::kDimensions}, {}});
    case AttrKind::kReduceWindow: return MakeAttrs({{A::kToApply}, {A::kWindow}});
    case AttrKind::kSelectAndScatter: return MakeAttrs({{A::kSelect, A::kScatter}, {A::kWindow}});
    case AttrKind::kSort: return MakeAttrs({{A::kDimensions, A::kToApply}, {A::kIsStable}});
    case AttrKind::kTopK: return MakeAttrs({{A::kK}, {A::kLargest, A::kIsStable}});
    case AttrKind::kScan:
      return MakeAttrs(
          {{A::kDimensions, A::kNumCarries, A::kToApply}, {A::kIsReverse, A::kIsAssociative}});
    case AttrKind::kDot: return DotAttrsOf(opcode);
    case AttrKind::kConvolution:
      return MakeAttrs(
          {{A::kDimLabels},
           {A::kWindow, A::kFeatureGroupCount, A::kBatchGroupCount, A::kConvolutionKind,
            A::kOperandPrecision, A::kAlgorithm, A::kSparsityConfig}});
    case AttrKind::kFft: return MakeAttrs({{A::kFftType, A::kFftLength}, {}});
    case AttrKind::kCholesky: return MakeAttrs({{}, {A::kLower}});
    case AttrKind::kTriangularSolve:
      return MakeAttrs({{}, {A::kLeftSide, A::kLower, A::kUnitDiagonal, A::kTransposeA}});
    case AttrKind::kGather:
      return MakeAttrs(
          {{A::kOffsetDims, A::kCollapsedSliceDims, A::kStartIndexMap, A::kIndexVectorDim,
            A::kSliceSizes},
           {A::kOperandBatchingDims, A::kStartIndicesBatchingDims, A::kIndicesAreSorted}});
    case AttrKind::kScatter:
      return MakeAttrs({{A::kUpdateWindowDims, A::kInsertedWindowDims, A::kScatterDimsToOperandDims,
                         A::kIndexVectorDim, A::kToApply},
                        {A::kInputBatchingDims, A::kScatterIndicesBatchingDims,
                         A::kIndicesAreSorted, A::kUniqueIndices}});
    case AttrKind::kBatchNorm: return MakeAttrs({{A::kEpsilon, A::kFeatureIndex}, {}});
    case AttrKind::kRng: return MakeAttrs({{A::kDistribution}, {}});
    case AttrKind::kRngBitGenerator: return MakeAttrs({{A::kAlgorithm}, {}});
    case AttrKind::kRngState: return MakeAttrs({{A::kDelta}, {}});
    case AttrKind::kWhile: return MakeAttrs({{A::kCondition, A::kBody}, {}});
    case AttrKind::kConditional:
      return MakeAttrs({{}, {A::kTrueComputation, A::kFalseComputation, A::kBranchComputations}});
    case AttrKind::kCall: return MakeAttrs({{A::kToApply}, {A::kIsComposite}});
    case AttrKind::kFusion:
      return MakeAttrs({{A::kKind, A::kCalls}, {A::kOutputToOperandAliasing}});
    case AttrKind::kCustomCall:
      return MakeAttrs({{A::kCustomCallTarget},
                        {A::kWindow, A::kDimLabels, A::kFeatureGroupCount, A::kBatchGroupCount,
                         A::kOperandPrecision, A::kPaddingType, A::kOperandLayoutConstraints,
                         A::kCustomCallHasSideEffect, A::kLiteral, A::kOutputToOperandAliasing,
                         A::kSchedule, A::kApiVersion, A::kCalledComputations, A::kToApply}});
    case AttrKind::kInfeed: return MakeAttrs({{}, {A::kInfeedConfig}});
    case AttrKind::kOutfeed: return MakeAttrs({{}, {A::kOutfeedShape, A::kOutfeedConfig}});
    case AttrKind::kSendRecv: return MakeAttrs({{}, {A::kChannelId, A::kIsHostTransfer}});
    case AttrKind::kDomain: return MakeAttrs({{A::kDomain}, {}});
    case AttrKind::kCopyStart: return MakeAttrs({{}, {A::kCrossProgramPrefetchIndex}});
    case AttrKind::kReducePrecision: return MakeAttrs({{A::kExponentBits, A::kMantissaBits}, {}});
    case AttrKind::kCollective: return CollectiveAttrsOf(opcode);
    case AttrKind::kPermute:
      return MakeAttrs({{A::kSourceTargetPairs}, {A::kChannelId, A::kSliceSizes}});
    case AttrKind::kAsync: {
      if (opcode == Opcode::kAsyncStart) {
        return MakeAttrs({{A::kCalls}, {A::kAsyncExecutionThread, A::kOutputToOperandAliasing}});
      }
      return MakeAttrs({{}, {A::kAsyncExecutionThread, A::kCalls}});
    }
  }
  return {};
}

}  // namespace

absl::string_view AttrText(Attr attr) { return kRows[static_cast<int>(attr)].text; }
AttrForm FormOf(Attr attr) { return kRows[static_cast<int>(attr)].form; }

bool AttrFromText(absl::string_view text, Attr* attr) {
  if (text.empty()) return false;
  for (uint32_t at = SlotOf(text); kAttrSlots[at] >= 0; at = (at + 1) % kSlots) {
    if (kRows[kAttrSlots[at]].text == text) {
      *attr = static_cast<Attr>(kAttrSlots[at]);
      return true;
    }
  }
  return false;
}

const OpcodeAttrs& AttrsOf(Opcode opcode) {
  static const std::array<OpcodeAttrs, kNumOpcodes>& table = *[] {
    auto* t = new std::array<OpcodeAttrs, kNumOpcodes>;
    for (int i = 0; i < kNumOpcodes; ++i) (*t)[i] = Make(static_cast<Opcode>(i));
    return t;
  }();
  return table[static_cast<int>(opcode)];
}

}  // namespace shardcall::hlo_text
