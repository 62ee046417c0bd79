// SPDX-License-Identifier: Apache-2.0
// Numbers of MLIR bytecode: sections, versions, bits of an operation, and the codes of attributes
// and types of MLIR's builtin dialect (BuiltinDialectBytecode.td) and of StableHLO
// (StablehloBytecode.cpp). Codes are append-only.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_CODES_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_CODES_H_

#include <cstdint>

namespace shardcall {
inline namespace internal {
namespace stablehlo::codes {

inline constexpr char kMagic[] = "ML\xefR";

enum Section { kStrings, kDialects, kAttrTypes, kAttrTypeOffsets, kIr };
// The byte before a section has its number, and this bit if the contents are aligned.
inline constexpr uint8_t kAligned = 0x80;

// The newest version that is read, and the one that is written; and those in which the format
// changed.
inline constexpr uint64_t kNewestVersion = 4;
inline constexpr uint64_t kDialectVersions = 1, kLazyRegions = 2, kUseListOrders = 3,
                          kElidedLocations = 4;

// Bits of an operation's encoding.
inline constexpr uint8_t kHasAttributes = 1, kHasResults = 2, kHasOperands = 4, kHasSuccessors = 8,
                         kHasRegions = 16, kHasUseListOrders = 32;

enum BuiltinAttribute {
  kArrayAttr,
  kDictionaryAttr,
  kStringAttr,
  kStringAttrWithType,
  kFlatSymbolRefAttr,
  kSymbolRefAttr,
  kTypeAttr,
  kUnitAttr,
  kIntegerAttr,
  kFloatAttr,
  kCallSiteLoc,
  kFileLineColLoc,
  kFusedLoc,
  kFusedLocWithMetadata,
  kNameLoc,
  kUnknownLoc,
  kDenseResourceElementsAttr,
  kDenseArrayAttr,
  kDenseElementsAttr,
  kDenseStringElementsAttr,
  kSparseElementsAttr,
  kDistinctAttr,
  kFileLineColRange,
};

enum BuiltinType {
  kInteger,
  kIndex,
  kFunction,
  kBF16,
  kF16,
  kF32,
  kF64,
  kF80,
  kF128,
  kComplex,
  kMemRef,
  kMemRefWithSpace,
  kNone,
  kRankedTensor,
  kRankedTensorWithEncoding,
  kTuple,
  // The codes of 8-bit and narrower floats, as MLIR writes them since 2025. Older writers have
  // their names as text, which every version reads.
  kF8E5M2 = 22,
  kF8E4M3,
  kF8E4M3FN,
  kF8E5M2FNUZ,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E3M4,
  kF4E2M1FN,
  kF8E8M0FNU = 32,
};
// Of an integer type.
enum Signedness { kSignless, kSigned, kUnsigned };

enum StablehloAttribute {
  kChannelHandle = 1,
  kComparisonDirection,
  kComparisonType,
  kConvDimensionNumbers,
  kDotDimensionNumbers,
  kFftType,
  kGatherDimensionNumbers,
  kPrecision,
  kRngAlgorithm,
  kRngDistribution,
  kScatterDimensionNumbers,
  kTranspose,
  kTypeExtensions,
  kOutputOperandAlias,
  // Since StableHLO of jaxlib 0.12: replica groups by the axes of a mesh.
  kReplicaGroupMeshAxes = 18,
  kSubAxisInfo,
  kAxisRef,
};
inline constexpr uint64_t kTokenType = 0;

}  // namespace stablehlo::codes
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_CODES_H_
