// SPDX-License-Identifier: Apache-2.0
// Reading an instruction's attributes out of the parser's Scratch, with the
// default where an attribute was not written.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSER_SLOTS_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSER_SLOTS_H_

#include "shardcall/partitioner/ir/text/parser_internal.h"

namespace shardcall::hlo_text {

using A = Attr;

inline CompId Comp(const Scratch& s, Attr attr) {
  return s.Has(attr) ? CompId(static_cast<uint32_t>(s[attr].value)) : CompId();
}
inline int64_t IntOr(const Scratch& s, Attr attr, int64_t otherwise) {
  return s.Has(attr) ? s[attr].value : otherwise;
}
inline bool Flag(const Scratch& s, Attr attr) { return s.Has(attr) && s[attr].value != 0; }
inline Text TextOf(const Scratch& s, Attr attr) { return s.Has(attr) ? s[attr].text : Text(); }
inline Ints IntsOr(const Scratch& s, Attr attr) { return s.Has(attr) ? s.IntsOf(attr) : Ints(); }

inline Window WindowOf(const Scratch& s) {
  Window w;
  if (!s.Has(A::kWindow)) return w;
  Ints* fields[] = {&w.size,       &w.stride,     &w.pad_low, &w.pad_high,
                    &w.lhs_dilate, &w.rhs_dilate, &w.reversal};
  for (int f = 0; f < 7; ++f) *fields[f] = s.Part(A::kWindow, f, 7);
  return w;
}

}  // namespace shardcall::hlo_text

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSER_SLOTS_H_
