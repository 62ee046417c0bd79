// SPDX-License-Identifier: Apache-2.0
// The attributes of HLO text: their names, the syntax of their values, and which of them each
// opcode requires and allows.
#ifndef SHARDCALL_PARTITIONER_IR_ATTRIBUTE_NAMES_H_
#define SHARDCALL_PARTITIONER_IR_ATTRIBUTE_NAMES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/opcode.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

enum class Attr : uint8_t {
#define SHARDCALL_ATTR(name, text, form) name,
#include "shardcall/partitioner/ir/attributes.inc"
};
inline constexpr int kNumAttrs = 0
#define SHARDCALL_ATTR(name, text, form) +1
#include "shardcall/partitioner/ir/attributes.inc"
    ;

enum class AttrForm : uint8_t {
  kInt,
  kBool,
  kFloat,
  kWord,
  kString,
  kInts,
  kIntsOrLists,
  kBools,
  kSliceRanges,
  kPadding,
  kWindow,
  kDimLabels,
  kPrecision,
  kComputation,
  kComputations,
  kAliasing,
  kShape,
  kShapes,
  kLiteral,
  kReplicaGroups,
  kStatistics,
  kAccuracy,
  kSparsity,
  kDomain,
  kOrigin,
  kSharding,
  kFrontend,
  kInstructions,
  kMetadata,
  kBackendConfig,
};

absl::string_view AttrText(Attr attr);
AttrForm FormOf(Attr attr);
// False if there is no such attribute.
bool AttrFromText(absl::string_view text, Attr* attr);

// Whether an opcode has an attribute.
enum class Presence : uint8_t {
  kRequired,
  kOptional,  // not written if it has the default value of its field in attributes.h
  kAlways,    // may be left out, and is always written
  kRefused,
};

struct AttrSet {
  uint64_t words[2] = {0, 0};
  constexpr void Add(Attr a) {
    words[static_cast<int>(a) / 64] |= uint64_t{1} << (static_cast<int>(a) % 64);
  }
  constexpr void Remove(Attr a) {
    words[static_cast<int>(a) / 64] &= ~(uint64_t{1} << (static_cast<int>(a) % 64));
  }
  constexpr bool Has(Attr a) const {
    return (words[static_cast<int>(a) / 64] >> (static_cast<int>(a) % 64)) & 1;
  }
};
static_assert(kNumAttrs <= 128);

struct OpcodeAttrs {
  AttrSet required;
  AttrSet allowed;  // the required ones included
};
const OpcodeAttrs& AttrsOf(Opcode opcode);
inline bool Allows(Opcode opcode, Attr attr) { return AttrsOf(opcode).allowed.Has(attr); }
inline bool Requires(Opcode opcode, Attr attr) { return AttrsOf(opcode).required.Has(attr); }

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ATTRIBUTE_NAMES_H_
