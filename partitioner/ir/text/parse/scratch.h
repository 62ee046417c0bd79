// SPDX-License-Identifier: Apache-2.0
// The parsed text of one instruction. Attributes come in any order, so each value is read into a
// slot. At the end of the instruction its record is built from the slots and interned. Scratch is
// reused, so that nothing is allocated per instruction.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SCRATCH_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SCRATCH_H_

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

struct Slot {
  const char* at = nullptr;       // where the value starts
  int64_t value = 0;              // int, bool, computation id
  double number = 0;              // float
  absl::string_view text;         // word, string, raw text
  uint32_t begin = 0, count = 0;  // range in one of Scratch's pools
};

// The parsed text of one instruction.
struct Scratch {
  const char* start = nullptr;  // first character of its name
  const char* opcode_at = nullptr;
  Instruction proto;
  std::vector<InstrId> operands;
  AttrSet seen;
  Slot slots[kNumAttrs];
  std::vector<int64_t> ints;
  std::vector<std::pair<uint32_t, uint32_t>> lists;  // replica groups: ranges of ints
  uint32_t last_count = 0;                           // length of the last inner list
  std::vector<CompId> comps;
  std::vector<const Shape*> shapes;
  std::vector<InstrId> controls;
  std::vector<char> bools;
  const Shape* outfeed_shape = nullptr;
  const Literal* literal = nullptr;
  int64_t parameter_number = 0;
  ReplicaGroups groups;  // its lists are in `lists`
  Opcode opcode;
  int wrapped = kNumOpcodes;  // opcode in `<wrapped>-start` and the like
  bool is_root = false;
  Attr pending;  // its value is a computation in braces, which is being read

  void Reset() {
    proto = Instruction();
    operands.clear();
    seen = AttrSet();
    ints.clear();
    lists.clear();
    comps.clear();
    shapes.clear();
    controls.clear();
    bools.clear();
    outfeed_shape = nullptr;
    literal = nullptr;
    parameter_number = 0;
    wrapped = kNumOpcodes;
    is_root = false;
  }
  bool Has(Attr a) const { return seen.Has(a); }
  const Slot& operator[](Attr a) const { return slots[static_cast<int>(a)]; }
  Slot& operator[](Attr a) { return slots[static_cast<int>(a)]; }
  Ints IntsOf(Attr a) const {
    return absl::MakeConstSpan(ints).subspan((*this)[a].begin, (*this)[a].count);
  }
  // Part `k` of several equally long ranges stored one after another.
  Ints Part(Attr a, int k, int parts) const {
    const Slot& s = (*this)[a];
    return absl::MakeConstSpan(ints).subspan(s.begin + k * (s.count / parts), s.count / parts);
  }
};

using A = Attr;

// The value of an attribute, or the default if it was not written.
inline CompId Comp(const Scratch& s, Attr attr) {
  return s.Has(attr) ? CompId(static_cast<uint32_t>(s[attr].value)) : CompId();
}
inline int64_t IntOr(const Scratch& s, Attr attr, int64_t otherwise) {
  return s.Has(attr) ? s[attr].value : otherwise;
}
inline bool Flag(const Scratch& s, Attr attr) { return s.Has(attr) && s[attr].value != 0; }
inline Text TextOf(const Scratch& s, Attr attr) { return s.Has(attr) ? s[attr].text : Text(); }

inline Window WindowOf(const Scratch& s) {
  Window w;
  if (!s.Has(A::kWindow)) return w;
  Ints* fields[] = {&w.size,       &w.stride,     &w.pad_low, &w.pad_high,
                    &w.lhs_dilate, &w.rhs_dilate, &w.reversal};
  for (int f = 0; f < 7; ++f) *fields[f] = s.Part(A::kWindow, f, 7);
  return w;
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SCRATCH_H_
