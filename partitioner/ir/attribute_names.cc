// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/attribute_names.h"

#include <array>
#include <initializer_list>

#include "shardcall/partitioner/ir/row_by_text.h"
#include "shardcall/sharding/base/made_at_first_use.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {
namespace {

struct Row {
  absl::string_view text;
  AttrForm form;
};
constexpr Row kRows[] = {
#define SHARDCALL_ATTR(name, text, form) {text, AttrForm::form},
#include "shardcall/partitioner/ir/attributes.inc"
};

void Set(OpcodeAttrs* attrs, Attr a, Presence presence) {
  attrs->required.Remove(a);
  attrs->allowed.Remove(a);
  if (presence == Presence::kRequired) attrs->required.Add(a);
  if (presence != Presence::kRefused) attrs->allowed.Add(a);
}

constexpr int kNumKinds = 0
#define SHARDCALL_RECORD(Record) +1
#include "shardcall/partitioner/ir/attributes.inc"
    ;

std::array<OpcodeAttrs, kNumKinds> AttrsOfKinds() {
  std::array<OpcodeAttrs, kNumKinds> kinds;
  OpcodeAttrs* kind = nullptr;
#define SHARDCALL_RECORD(Record) kind = &kinds[static_cast<int>(AttrKind::k##Record)];
#define SHARDCALL_NAME(attr, presence) Set(kind, Attr::attr, Presence::presence);
#define SHARDCALL_FIELD(member, attr, form, presence, message) SHARDCALL_NAME(attr, presence)
#include "shardcall/partitioner/ir/attributes.inc"
  for (OpcodeAttrs& k : kinds) {
    for (int a = static_cast<int>(Attr::kParameterReplication); a < kNumAttrs; ++a) {
      k.allowed.Add(static_cast<Attr>(a));
    }
  }
  return kinds;
}

std::array<OpcodeAttrs, kNumOpcodes> AttrsOfOpcodes() {
  const std::array<OpcodeAttrs, kNumKinds> kinds = AttrsOfKinds();
  std::array<OpcodeAttrs, kNumOpcodes> opcodes;
  for (int i = 0; i < kNumOpcodes; ++i) opcodes[i] = kinds[static_cast<int>(kOpcodeInfo[i].attrs)];
  using enum Attr;
  const auto differs = [&](Opcode opcode, Presence presence, std::initializer_list<Attr> attrs) {
    for (Attr a : attrs) Set(&opcodes[static_cast<int>(opcode)], a, presence);
  };
#define SHARDCALL_OPCODE_ATTRS(opcode, presence, ...) \
  differs(Opcode::opcode, Presence::presence, {__VA_ARGS__});
#include "shardcall/partitioner/ir/attributes.inc"
  return opcodes;
}

}  // namespace

absl::string_view AttrText(Attr attr) { return kRows[static_cast<int>(attr)].text; }
AttrForm FormOf(Attr attr) { return kRows[static_cast<int>(attr)].form; }

bool AttrFromText(absl::string_view text, Attr* attr) {
  const int row = RowByText<kRows>::Find(text);
  if (row >= 0) *attr = static_cast<Attr>(row);
  return row >= 0;
}

const OpcodeAttrs& AttrsOf(Opcode opcode) {
  const auto& table =
      MadeAtFirstUse([] { return new std::array<OpcodeAttrs, kNumOpcodes>(AttrsOfOpcodes()); });
  return table[static_cast<int>(opcode)];
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
