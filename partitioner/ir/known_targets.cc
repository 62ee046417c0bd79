// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/known_targets.h"

#include <iterator>

namespace shardcall {
inline namespace internal {
namespace {

struct Row {
  absl::string_view text;
  uint32_t traits;
};
constexpr Row kRows[] = {
    {"", 0},
#define SHARDCALL_KNOWN_TARGET(name, text, traits) {text, traits},
#include "shardcall/partitioner/ir/known_targets.inc"
#undef SHARDCALL_KNOWN_TARGET
};

}  // namespace

KnownTarget FindKnownTarget(absl::string_view text) {
  for (size_t k = 1; k < std::size(kRows); ++k) {
    if (kRows[k].text == text) return static_cast<KnownTarget>(k);
  }
  return KnownTarget::kNone;
}

KnownTarget KnownTargetOf(const Instruction& instr) {
  if (instr.opcode != Opcode::kCustomCall) return KnownTarget::kNone;
  return FindKnownTarget(instr.as<CustomCallAttrs>().target);
}

absl::string_view KnownTargetText(KnownTarget target) {
  return kRows[static_cast<size_t>(target)].text;
}

uint32_t TraitsOf(KnownTarget target) { return kRows[static_cast<size_t>(target)].traits; }

}  // namespace internal
}  // namespace shardcall
