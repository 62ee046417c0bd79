// SPDX-License-Identifier: Apache-2.0
// The steps of import, in the order import.cc takes them: inline calls into a
// new module, read annotations into constraints, find manual regions.
#ifndef SHARDCALL_PARTITIONER_IMPORT_IMPORT_INTERNAL_H_
#define SHARDCALL_PARTITIONER_IMPORT_IMPORT_INTERNAL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

// Where an instruction came from when calls were inlined.
struct CallFrame {
  int parent = -1;
  InstrId value;  // a value of the call's body: its root, or an operand if it has none
};
struct InlinedModule {
  explicit InlinedModule(Module m) : module(std::move(m)) {}
  Module module;
  std::vector<int32_t> frame_of;  // by instruction; 0 is the entry
  std::vector<int32_t> place;     // Program::place so far
  std::vector<CallFrame> frames;
  std::vector<bool> unstated_results;  // Program::unstated_output so far
};

// A new module with calls inlined (while the copies stay below 3 times the module's instructions
// plus 10,000), loops and branches cloned per caller, and dead instructions and unreachable
// computations removed. Annotations inside reducers and comparators are dropped, since their
// values are scalars. Errors: those of OrderAsCalled.
absl::StatusOr<InlinedModule> InlineCalls(const Module& module, bool inline_calls);

// Without dead instructions and computations that nothing calls. Keeps the order of all others, and
// the frames.
InlinedModule WithoutDeadCode(InlinedModule inlined);
// With plainer ops (plain_ops.h), and without reverses that cancel
// (carried_reverses.h). What is added has no name.
InlinedModule WithPlainOps(InlinedModule inlined);

// Makes the calls whose known target only names an order (kOrders) into control dependencies, and
// puts what is to be computed later behind what is to be computed before. A call without
// has_side_effect is dead code, and gone. Errors: E165 a call that names no two values, or an order
// that contradicts the data flow or another call.
absl::Status OrderAsCalled(InlinedModule* inlined);

// Puts values together or takes them apart. The elements of a tuple may be of several regions.
inline bool IsTupling(const Instruction& i) {
  return i.opcode == Opcode::kTuple || i.opcode == Opcode::kGetTupleElement;
}

// shardcall's own attribute, in the header of an exported module: the base meshes it was made with.
inline constexpr absl::string_view kBaseMeshes = "shardcall.meshes";

// The target if `i` is a custom call, else empty.
inline absl::string_view Target(const Instruction& i) {
  if (i.opcode != Opcode::kCustomCall) return "";
  return i.as<CustomCallAttrs>().target;
}
AnnotationKind KindOf(const Instruction& i);
// Ops whose called computations belong to a region: loops, branches and calls. With the entry,
// these are the computations whose instructions are assigned to regions.
inline bool CarriesRegion(Opcode opcode) {
  return HasTrait(opcode, kControlFlow) || opcode == Opcode::kAsyncStart;
}
inline bool IsManualEntry(const Instruction& i) {
  return HasTrait(KnownTargetOf(i), kEntersManual);
}
inline absl::string_view Attribute(const Instruction& i, absl::string_view key) {
  return i.frontend == nullptr ? absl::string_view() : i.frontend->Find(key);
}

// Clones and identities to insert into a complete module, and what to change in it. ApplyEdit makes
// a copy of the module that has them, with ids in order. Edits are rare, so one plain pass is
// enough.
struct ModuleEdit {
  // An operand slot, of an instruction or of the clone made of it.
  struct Use {
    InstrId user;
    int operand = 0;
    int clone = -1;  // index into `clones`
  };
  // A copy of `source` right after it, for `uses`.
  struct Clone {
    InstrId source;
    std::vector<Use> uses;
  };
  // A `Sharding` custom call on operand `operand` of `user`, right before it; if `user` is
  // invalid, on the entry's result at flat index `operand`.
  struct Identity {
    InstrId user;
    int operand = 0;
    const HloSharding* sharding = nullptr;
    const FrontendAttributes* frontend = nullptr;
  };
  // Another operand and other attributes of an instruction; the operand stands before it.
  struct Rewrite {
    int operand = 0;
    InstrId value;
    const Attributes* attrs = nullptr;
  };
  std::vector<Clone> clones;
  std::vector<Identity> identities;
  absl::flat_hash_map<InstrId, Rewrite> rewrites;
  std::vector<bool> unstated_results;  // of an edit that has identities
  bool empty() const { return clones.empty() && identities.empty() && rewrites.empty(); }
};
void ApplyEdit(const ModuleEdit& edit, InlinedModule* module);

// The parts sorted and merged, so that they compare as sets.
AxisList AsSet(const BaseMesh& mesh, absl::Span<const AxisRef> axes);

// Finds which manual axes are in force at each instruction, from data flow: values that are
// connected without a boundary between them are in the same region. Fills region_of and regions of
// `program`, whose boundaries are known. Values without a region of their own (constants and
// values computed from constants only) belong to the region of their users; if users are in
// several regions, `edit` gets clones, and FindRegions must run again after the edit is applied.
// Parameters and results are outside of all regions, unless their shardings name manual axes: then
// these are their region, without a boundary. The elements of a tuple may be of several regions.
// Errors: E174 an axis made manual twice, E175 a value that crosses the edge of a region without a
// boundary.
absl::Status FindRegions(const InlinedModule& inlined, Program* program, ModuleEdit* edit);

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_IMPORT_INTERNAL_H_
