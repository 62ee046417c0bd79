// SPDX-License-Identifier: Apache-2.0
// Makes the interned record from the fields of an instruction: fields with a row in the schema, and
// the checks of single ops. Records with fields that have no row are in record_reader_own.cc, and
// those of calls, custom calls and collectives in record_reader_calls.cc.
#include "shardcall/partitioner/ir/proto/record_reader.h"

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/compare_order.h"
#include "shardcall/partitioner/ir/proto/record_fields.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

bool RecordReader::OneDimension(int64_t* out) {
  if (p_.dimensions_size() != 1) {
    return faults_.Fail("E019", "This op has exactly one dimension", "dimensions", "1",
                        absl::StrCat(p_.dimensions_size()));
  }
  *out = p_.dimensions(0);
  return true;
}

bool RecordReader::Calls(size_t n) {
  return called_.size() == n ||
         faults_.Fail("E019", "Wrong number of called computations", "called_computation_ids",
                      absl::StrCat(n), absl::StrCat(called_.size()));
}

template <typename Record>
bool RecordReader::Read(RecordType<Record>, Opcode, const Attributes** out) {
  Record record;
  if (!ReadFields(&record)) return false;
  *out = InternAttributes(context_, record);
  return true;
}

bool RecordReader::Read(RecordType<NoneAttrs>, Opcode, const Attributes** out) {
  *out = NoAttributes();
  return Calls(0);
}

// `type` holds comparison_type, if the message has it: what XLA wrote before it had orders.
bool RecordReader::ReadOrder(CompareType* type) {
  const Words words = words::kCompareOrders.words;
  const bool has_order = !p_.comparison_order().empty();
  const int found = has_order ? IndexOf(p_.comparison_order(), words) : 0;
  if (found < 0) return faults_.FailWord("comparison_order", p_.comparison_order(), words);
  if (operands_.empty()) return true;
  const auto order = static_cast<CompareOrder>(found);
  const ElementType element = module_.instr(operands_[0]).shape->element_type();
  if (p_.comparison_type().empty()) {
    *type = CompareTypeOf(order, element);
  } else if (has_order && NaturalCompareType(element) == CompareType::kFloat &&
             CompareOrderOf(*type) != order) {
    return faults_.Fail("E019", "A comparison's type and order contradict each other",
                        "comparison_order",
                        absl::StrCat(words[static_cast<size_t>(CompareOrderOf(*type))],
                                     ", as comparison_type says ", p_.comparison_type()),
                        p_.comparison_order());
  }
  return true;
}

bool RecordReader::Read(RecordType<CompareAttrs>, Opcode, const Attributes** out) {
  CompareAttrs a;
  if (!ReadFields(&a) || !ReadOrder(&a.type)) return false;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<DimensionsAttrs>, Opcode opcode, const Attributes** out) {
  DimensionsAttrs a;
  int64_t one;
  if (HasTrait(opcode, kOneDimension) && !OneDimension(&one)) return false;
  if (!ReadFields(&a)) return false;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(Opcode opcode, const Attributes** out) {
  return ForRecordType(GetOpcodeInfo(opcode).attrs,
                       [&](auto type) { return Read(type, opcode, out); });
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
