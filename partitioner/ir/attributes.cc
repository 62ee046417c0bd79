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

CompareType NaturalCompareType(ElementType type) {
  if (IsFloat(type) || IsComplex(type)) return CompareType::kFloat;
  return IsSignedInteger(type) ? CompareType::kSigned : CompareType::kUnsigned;
}

const Attributes* NoAttributes() {
  static const NoneAttrs none;
  return &none;
}

// The record without fields is the same everywhere.
template <>
const NoneAttrs* InternAttributes(Context&, const NoneAttrs&) {
  return static_cast<const NoneAttrs*>(NoAttributes());
}

#define SHARDCALL_RECORD(Record) \
  template const Record##Attrs* InternAttributes(Context&, const Record##Attrs&);
#include "shardcall/partitioner/ir/attributes.inc"

}  // namespace shardcall
