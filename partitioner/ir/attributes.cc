// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/attributes.h"

#include "shardcall/partitioner/ir/attributes_intern.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
namespace {

// One table for all kinds; the kind is part of hash and comparison.
struct AttributeTable {
  InternTable<Attributes> table;
};

}  // namespace

template <typename T>
const T* InternAttributes(Context& context, const T& value) {
  InternTable<Attributes>& table = context.Get<AttributeTable>().table;
  const uint64_t hash =
      FinishHash(ir_internal::HashField(static_cast<uint64_t>(T::kKind) + 1, value));
  const Attributes* found = table.Find(hash, [&](const Attributes& a) {
    return a.kind == T::kKind && ir_internal::EqualField(static_cast<const T&>(a), value);
  });
  if (found != nullptr) return static_cast<const T*>(found);
  T* made = context.arena().New<T>(value);
  ir_internal::CopyField(context.arena(), *made);
  table.Insert(hash, made);
  return made;
}

const Attributes* NoAttributes() {
  static const NoAttrs none;
  return &none;
}

// The record without fields is the same everywhere.
template <>
const NoAttrs* InternAttributes(Context&, const NoAttrs&) {
  return static_cast<const NoAttrs*>(NoAttributes());
}

#define SHARDCALL_INSTANTIATE(T) template const T* InternAttributes(Context&, const T&);
SHARDCALL_INSTANTIATE(ResultAccuracyAttrs)
SHARDCALL_INSTANTIATE(CompareAttrs)
SHARDCALL_INSTANTIATE(ParameterAttrs)
SHARDCALL_INSTANTIATE(ConstantAttrs)
SHARDCALL_INSTANTIATE(IotaAttrs)
SHARDCALL_INSTANTIATE(TupleIndexAttrs)
SHARDCALL_INSTANTIATE(DimensionsAttrs)
SHARDCALL_INSTANTIATE(ReshapeAttrs)
SHARDCALL_INSTANTIATE(SliceAttrs)
SHARDCALL_INSTANTIATE(DynamicSliceAttrs)
SHARDCALL_INSTANTIATE(PadAttrs)
SHARDCALL_INSTANTIATE(ReduceAttrs)
SHARDCALL_INSTANTIATE(ReduceWindowAttrs)
SHARDCALL_INSTANTIATE(SelectAndScatterAttrs)
SHARDCALL_INSTANTIATE(SortAttrs)
SHARDCALL_INSTANTIATE(TopKAttrs)
SHARDCALL_INSTANTIATE(ScanAttrs)
SHARDCALL_INSTANTIATE(DotAttrs)
SHARDCALL_INSTANTIATE(ConvolutionAttrs)
SHARDCALL_INSTANTIATE(FftAttrs)
SHARDCALL_INSTANTIATE(CholeskyAttrs)
SHARDCALL_INSTANTIATE(TriangularSolveAttrs)
SHARDCALL_INSTANTIATE(GatherAttrs)
SHARDCALL_INSTANTIATE(ScatterAttrs)
SHARDCALL_INSTANTIATE(BatchNormAttrs)
SHARDCALL_INSTANTIATE(RngAttrs)
SHARDCALL_INSTANTIATE(RngBitGeneratorAttrs)
SHARDCALL_INSTANTIATE(RngStateAttrs)
SHARDCALL_INSTANTIATE(WhileAttrs)
SHARDCALL_INSTANTIATE(ConditionalAttrs)
SHARDCALL_INSTANTIATE(CallAttrs)
SHARDCALL_INSTANTIATE(FusionAttrs)
SHARDCALL_INSTANTIATE(CustomCallAttrs)
SHARDCALL_INSTANTIATE(InfeedAttrs)
SHARDCALL_INSTANTIATE(OutfeedAttrs)
SHARDCALL_INSTANTIATE(SendRecvAttrs)
SHARDCALL_INSTANTIATE(DomainAttrs)
SHARDCALL_INSTANTIATE(CopyStartAttrs)
SHARDCALL_INSTANTIATE(ReducePrecisionAttrs)
SHARDCALL_INSTANTIATE(CollectiveAttrs)
SHARDCALL_INSTANTIATE(PermuteAttrs)
SHARDCALL_INSTANTIATE(AsyncAttrs)
#undef SHARDCALL_INSTANTIATE

}  // namespace shardcall
