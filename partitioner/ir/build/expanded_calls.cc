// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/expanded_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/build/call_reader.h"
#include "shardcall/partitioner/ir/build/expansion.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// How a call of each target that has the trait kIsOp or kRunsAsOps is read.
struct Reader {
  KnownTarget target;
  absl::StatusOr<CallExpansion> (*read)(CallReader& call);
};
constexpr Reader kReaders[] = {
    {KnownTarget::kRotateRight, ReadRotateRight},
    {KnownTarget::kMultiRotate, ReadMultiRotate},
    {KnownTarget::kWrap, ReadWrap},
    {KnownTarget::kMultiSlice, ReadMultiSlice},
    {KnownTarget::kMultiPad, ReadMultiPad},
    {KnownTarget::kTopKCall, ReadTopK},
    {KnownTarget::kX64Combine, ReadX64Combine},
    {KnownTarget::kX64SplitLow, ReadX64SplitLow},
    {KnownTarget::kX64SplitHigh, ReadX64SplitHigh},
    {KnownTarget::kBlockScaledDot, ReadBlockScaledDot},
};

absl::StatusOr<CallExpansion> Read(const Module& m, InstrId id, KnownTarget target) {
  CallReader call(m, id);
  const auto reader =
      absl::c_find_if(kReaders, [&](const Reader& r) { return r.target == target; });
  SHARDCALL_ASSIGN_OR_RETURN(CallExpansion out, reader->read(call));
  const Shape* declared = m.instr(id).shape;
  bool fits = declared->num_leaves() == static_cast<int>(out.results.size());
  for (int k = 0; fits && k < declared->num_leaves(); ++k) {
    fits = declared->leaf(k)->bare() == out.results[k]->bare();
  }
  if (fits) return out;
  const auto append = [](std::string* text, const Shape* s) {
    absl::StrAppend(text, s->bare()->ToString());
  };
  return call.Unfit(absl::StrJoin(out.results, ", ", append), declared->bare()->ToString());
}

}  // namespace

absl::StatusOr<absl::optional<Module>> ExpandCalls(const Module& m, uint32_t traits) {
  absl::flat_hash_map<InstrId, CallExpansion> calls;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const KnownTarget target = KnownTargetOf(m.instr(InstrId(k)));
    if (!HasTrait(target, traits)) continue;
    SHARDCALL_ASSIGN_OR_RETURN(calls[InstrId(k)], Read(m, InstrId(k), target));
  }
  std::optional<Rewritten> out = Expand(m, std::move(calls));
  if (!out.has_value()) return absl::optional<Module>();
  return absl::optional<Module>(std::move(out->module));
}

}  // namespace internal
}  // namespace shardcall
