// SPDX-License-Identifier: Apache-2.0
// Makes the interned record from the slots of an instruction's attributes: fields with a row in the
// schema, and the checks of single ops. Records with fields that have no row are in
// record_builder_own.cc.
#include "shardcall/partitioner/ir/text/parse/record_builder.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/attribute_schema.h"
#include "shardcall/partitioner/ir/compare_order.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

bool RecordBuilder::WordIndex(const Scratch& s, Attr attr, const WordList& list, int* out) {
  const absl::string_view word = s[attr].text;
  absl::InlinedVector<absl::string_view, 16> texts;
  for (size_t i = 0; i < list.words.size(); ++i) {
    const absl::string_view text = list.words[i].empty() ? list.unset : list.words[i];
    if (text.empty()) continue;
    if (text == word) return *out = static_cast<int>(i), true;
    texts.push_back(text);
  }
  return lex_.Fail(
      s[attr].at, "E019", absl::StrCat("Unknown value of the attribute ", AttrText(attr)),
      absl::StrJoin(texts, ", "), absl::StrCat("'", word, "'"), DidYouMean(word, texts));
}

bool RecordBuilder::OneDimension(const Scratch& s, int64_t* out) {
  const Ints dims = s.IntsOf(A::kDimensions);
  if (dims.size() != 1) {
    return lex_.Fail(s[A::kDimensions].at, "E019", "This op has exactly one dimension",
                     "dimensions={d}", absl::StrCat(dims.size(), " dimensions"));
  }
  if (dims[0] < 0) {
    return lex_.Fail(s[A::kDimensions].at, "E019", "A dimension is negative",
                     "dimensions={d}, d >= 0", absl::StrCat(dims[0]));
  }
  *out = dims[0];
  return true;
}

template <typename Row, typename T>
bool RecordBuilder::ReadSlot(const Scratch& s, const Row& row, T* to) {
  using Form = decltype(row.form);
  if (!s.Has(row.attr)) return true;
  const Slot& slot = s[row.attr];
  if constexpr (std::is_same_v<Form, field_forms::OneInt>) {
    return OneDimension(s, to);
  } else if constexpr (std::is_same_v<T, Field<int64_t>>) {
    *to = s.IntsOf(row.attr);
  } else if constexpr (std::is_same_v<T, double>) {
    *to = static_cast<float>(slot.number);
  } else if constexpr (std::is_same_v<T, CompId>) {
    *to = Comp(s, row.attr);
  } else if constexpr (std::is_same_v<T, Window>) {
    *to = WindowOf(s);
  } else if constexpr (std::is_same_v<Form, field_forms::Word>) {
    int index;
    if (!WordIndex(s, row.attr, row.form.list, &index)) return false;
    if constexpr (std::is_enum_v<T>) {
      *to = static_cast<T>(index);
    } else {
      *to = row.form.list.words[index];
    }
  } else if constexpr (std::is_same_v<T, TextField>) {
    *to = slot.text;
  } else {
    *to = static_cast<T>(slot.value);
  }
  return true;
}

template <typename Record>
bool RecordBuilder::ReadSlots(const Scratch& s, Record* record) {
  return Schema<Record>::Visit(
      [&](const auto& row) { return ReadSlot(s, row, &(record->*row.member)); });
}

template <typename Record>
bool RecordBuilder::Build(RecordType<Record>, Scratch* s, Opcode, const Attributes** out) {
  Record record;
  if (!ReadSlots(*s, &record)) return false;
  *out = InternAttributes(context_, record);
  return true;
}

bool RecordBuilder::Build(RecordType<NoneAttrs>, Scratch*, Opcode, const Attributes** out) {
  *out = NoAttributes();
  return true;
}

bool RecordBuilder::Build(RecordType<CompareAttrs>, Scratch* s, Opcode, const Attributes** out) {
  CompareAttrs a;
  if (!ReadSlots(*s, &a)) return false;
  int order = 0;
  if (s->Has(A::kOrder)) {
    if (!WordIndex(*s, A::kOrder, words::kCompareOrders, &order)) return false;
    if (s->Has(A::kType)) {
      return lex_.Fail((*s)[A::kOrder].at, "E019",
                       "A comparison has both type= and order=", "one of the two", "",
                       "remove type=, which older versions of XLA write");
    }
  }
  if (!s->Has(A::kType) && !s->operands.empty()) {
    a.type = CompareTypeOf(static_cast<CompareOrder>(order),
                           module_.instr(s->operands[0]).shape->element_type());
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<DimensionsAttrs>, Scratch* s, Opcode opcode,
                          const Attributes** out) {
  DimensionsAttrs a;
  if (!ReadSlots(*s, &a)) return false;
  int64_t dimension;
  if (HasTrait(opcode, kOneDimension) && !OneDimension(*s, &dimension)) return false;
  if (!s->Has(A::kDimensions) && !s->operands.empty() &&
      module_.instr(s->operands[0]).shape->rank() > 0) {
    return lex_.Fail(s->opcode_at, "E006", "An attribute is missing",
                     "dimensions= on broadcast of an array");
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<ReduceAttrs>, Scratch* s, Opcode, const Attributes** out) {
  ReduceAttrs a;
  if (!ReadSlots(*s, &a)) return false;
  absl::InlinedVector<int64_t, 8> all;
  if (!s->Has(A::kDimensions) && !s->operands.empty()) {  // a map without dimensions: all of them
    const Shape* shape = module_.instr(s->operands[0]).shape;
    for (int d = 0; d < shape->rank(); ++d) all.push_back(d);
    a.dimensions = all;
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<TopKAttrs>, Scratch* s, Opcode, const Attributes** out) {
  TopKAttrs a;
  if (!ReadSlots(*s, &a)) return false;
  // It is the default, which only newer versions of XLA write, and older ones do not read.
  if (a.is_stable > 0) a.is_stable = -1;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<GatherAttrs>, Scratch* s, Opcode, const Attributes** out) {
  GatherAttrs a;
  if (!ReadSlots(*s, &a)) return false;
  if ((*s)[A::kSliceSizes].value > 0) {
    return lex_.Fail((*s)[A::kSliceSizes].at, "E019", "slice_sizes of gather is one list", "{1,2}");
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(Scratch* s, Opcode opcode, const Attributes** out) {
  return ForRecordType(GetOpcodeInfo(opcode).attrs,
                       [&](auto type) { return Build(type, s, opcode, out); });
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
