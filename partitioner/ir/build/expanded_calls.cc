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
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/build/placed_windows.h"
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

class Expander {
 public:
  Expander(const Module& m, absl::flat_hash_map<InstrId, CallExpansion> calls)
      : m_(m),
        calls_(std::move(calls)),
        out_(m.shared_context()),
        cloner_(m, &out_),
        monoids_(&out_) {}

  Module Run() && {
    cloner_.CopyHeader();
    for (int c = 0; c < m_.num_computations(); ++c) cloner_.AddComputation(CompId(c));
    // A map's computation has to be whole when the map is made.
    for (const CompId c : ComputationPostOrder(m_)) {
      GraphBuilder b(&out_, cloner_.now(c), &monoids_);
      // Each call has shardings of its own, also where two give the same.
      b.set_value_numbering(false);
      for (const InstrId id : m_.comp(c).instructions) {
        const auto call = calls_.find(id);
        if (call == calls_.end()) {
          cloner_.Clone(id);
        } else {
          Expand(id, call->second, b);
        }
      }
      cloner_.SetRoot(c);
    }
    out_.set_entry(cloner_.now(m_.entry()));
    return std::move(out_);
  }

 private:
  void Expand(InstrId id, const CallExpansion& expansion, GraphBuilder& b) {
    const Instruction& call = m_.instr(id);
    const auto operands = cloner_.OperandsOf(id);
    b.set_metadata(call.metadata);
    const std::vector<InstrId> made = expansion.make(b, operands);
    InstrId now = made[0];
    if (call.shape->IsTuple() && !b.shape(now)->IsTuple()) now = b.Tuple(made);
    // What is given as it came needs a place for the call's sharding.
    if (absl::c_linear_search(operands, now)) now = b.Copy(now);
    Instruction& copy = out_.mutable_instr(now);
    copy.name = call.name;
    copy.sharding = call.sharding;
    copy.frontend = call.frontend;
    cloner_.CopyRare(id, now);
    cloner_.Set(id, now);
  }

  const Module& m_;
  const absl::flat_hash_map<InstrId, CallExpansion> calls_;
  Module out_;
  ModuleCloner cloner_;
  MonoidTable monoids_;
};

}  // namespace

absl::StatusOr<absl::optional<Module>> ExpandCalls(const Module& m, uint32_t traits, bool windows) {
  absl::flat_hash_map<InstrId, CallExpansion> calls;
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (windows) {
      if (auto plainer = ReadPlacedWindow(m, InstrId(k))) calls[InstrId(k)] = *std::move(plainer);
    }
    const KnownTarget target = KnownTargetOf(m.instr(InstrId(k)));
    if (!HasTrait(target, traits)) continue;
    SHARDCALL_ASSIGN_OR_RETURN(calls[InstrId(k)], Read(m, InstrId(k), target));
  }
  if (calls.empty()) return absl::optional<Module>();
  // The computation of an async-start may hold one op and its parameters only.
  for (int k = 0; k < m.num_instructions(); ++k) {
    const Instruction& i = m.instr(InstrId(k));
    if (i.opcode != Opcode::kAsyncStart) continue;
    for (const InstrId id : m.comp(i.as<AsyncAttrs>().calls).instructions) calls.erase(id);
  }
  return absl::optional<Module>(Expander(m, std::move(calls)).Run());
}

}  // namespace internal
}  // namespace shardcall
